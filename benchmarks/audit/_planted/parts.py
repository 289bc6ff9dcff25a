"""Bugs of releases in several parts: a part that is free, a share that is taken twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.columns import plans as of_columns
from dpbayes_sklearn.columns.texts import TextCounts
from dpbayes_sklearn.counts import dependence, plans, splits
from dpbayes_sklearn.counts.temperature import LossSums
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.regression import ball_draws, gram, mode, moments, record_sums
from dpbayes_sklearn.regression import plans as regressions
from dpbayes_sklearn.regression.step_noise import Shares
from dpbayes_sklearn.release import Facts, SizePlan

Replacements = Iterator[tuple[Any, str, Any]]


@fault("parts", "parts", "The signs' share of rho is free", "signs, gaussian")
def free_signs() -> Replacements:
    yield from _free(Shares.of_rho, "of_rho", "signs")


@fault("parts", "parts", "The signs' share of epsilon is free", "signs, laplace")
def free_signs_of_epsilon() -> Replacements:
    yield from _free(Shares.of, "of", "signs")


@fault("parts", "parts", "The residuals' share of epsilon is free", "regression, map, record")
def free_residuals() -> Replacements:
    yield from _free(Shares.of, "of", "residuals")


@fault("parts", "parts", "The share of the target's mean is free", "regression, fourier, record")
def free_mean() -> Replacements:
    yield from _free(Shares.of, "of", "mean")


@fault("parts", "parts", "A first stage is free", "two stages")
def free_first_stage() -> Replacements:
    yield from _free(Shares.in_two_stages, "in_two_stages", "mode", method=True)


@fault("parts", "parts", "The spread of residuals is free", "two stages")
def free_spread() -> Replacements:
    yield from _free(Shares.in_two_stages, "in_two_stages", "spread", method=True)


@fault("parts", "parts", "What clipping takes of residuals is free", "two stages")
def free_tail() -> Replacements:
    yield from _free(Shares.in_two_stages, "in_two_stages", "mean", method=True)


@fault("parts", "parts", "What clipping takes of residuals counts four times", "two stages")
def tail_counts_four_times() -> Replacements:
    real = record_sums.clipped_excess
    yield record_sums, "clipped_excess", lambda *args, **options: 4 * real(*args, **options)


def _free(real: Any, name: str, part: str, *, method: bool = False) -> Replacements:
    """Give the model what another part has, too."""

    def shared(*args: Any, **options: Any) -> Any:
        shares = real(*args, **options)
        return shares._replace(model=shares.model + getattr(shares, part))

    yield Shares, name, shared if method else staticmethod(shared)


@fault("parts", "parts", "Numbers of a learned schema take all of epsilon", "schema, record")
def numbers_take_all() -> Replacements:
    real = of_columns.shares

    def shares(n_numbers: int, n_texts: int, budget: Any) -> Any:
        numbers, texts = real(n_numbers, n_texts, budget)
        return numbers._replace(epsilon=budget.epsilon), texts

    yield of_columns, "shares", shares


@fault("parts", "parts", "Every column of texts has the whole delta", "schema, record")
def whole_delta_each() -> Replacements:
    yield TextCounts, "law", _text_law(columns_of_delta=False)


@fault("parts", "parts", "Every column of texts takes the whole epsilon", "schema, record")
def whole_epsilon_each() -> Replacements:
    yield TextCounts, "law", _text_law(columns_of_epsilon=False)


def _text_law(*, columns_of_epsilon: bool = True, columns_of_delta: bool = True) -> Any:
    def law(self: Any, unit: Any, epsilon: Fraction, delta: Fraction) -> Any:
        sides, columns = unit.n_changed // unit.max_records, self.n_columns
        scale = laplace_scale(unit.n_changed * (columns if columns_of_epsilon else 1), epsilon)
        each = delta / (sides * (columns if columns_of_delta else 1))
        return TruncatedLaplace.calibrated(scale, each, unit.max_records)

    return law


@fault("parts", "parts", "The edges of a tree share all of epsilon", "tree, record")
def edges_take_all() -> Replacements:
    def shares(self: Any) -> Any:
        edges = self.network.target - 1
        return (dependence.QUESTION_SHARE, *[Fraction(1, edges)] * edges) if edges > 0 else ()

    yield dependence.TreeChoice, "shares", property(shares)


@fault("parts", "parts", "Sums of losses exceed a released number of records", "beyond")
def losses_not_cut() -> Replacements:
    yield LossSums, "at_most", lambda self, n: self


@fault("parts", "parts", "Turns at a split exceed a released number of records", "beyond")
def turns_not_cut() -> Replacements:
    real = splits.draw_tables

    def uncut(tables: Any, law: Any, grid: Any, n: int, source: Any, most: Any = None) -> Any:
        return real(tables, law, grid, n, source)

    yield plans, "draw_tables", uncut


@fault("parts", "parts", "An empty table is told without noise", "empty")
def nobody_is_told() -> Replacements:
    real = SizePlan.release

    def told(self: Any, statistics: Any, noise: Any) -> Any:
        if statistics.n:
            return real(self, statistics, noise)
        return Facts(1, (self.law,))

    yield SizePlan, "release", told


@fault("parts", "parts", "Indicators have no part in the norm of a mode", "regression, map, record")
def indicators_not_in_modes() -> Replacements:
    real = mode.least_ridge
    yield mode, "least_ridge", lambda squares, *rest: real(squares - 1, *rest)


@fault("parts", "parts", "Indicators have no part in the norm of a draw", "regression, sampler")
def indicators_not_in_draws() -> Replacements:
    def norm(design: Any) -> float:
        return math.sqrt(len(design.domains) + design.intercept)

    yield ball_draws, "_norm", norm


@fault("parts", "parts", "The search for a mode ends 16 times too early", "end of a search")
def search_ends_early() -> Replacements:
    real = mode._minimum

    def early(pulls: Any, start: Any, noise: Any, plan: Any) -> Any:
        return real(pulls, start, noise, plan._replace(error=16 * plan.error))

    yield mode, "_minimum", early


@fault("parts", "parts", "Every ball of draws is thought to be small", "'coef_bound': 3.0}, record")
def small_balls() -> Replacements:
    yield ball_draws, "score_range", lambda limit, reach: 2 * limit * reach


@fault("parts", "parts", "Products of two columns of levels are free", "levels")
def free_products_of_levels() -> Replacements:
    real = moments.whole_block

    def free(design: Any) -> Any:
        block, (_, _, q) = real(design), moments._counts(design)
        return replace(block, together=block.together - q * (q - 1))

    for module in (gram, moments, regressions):
        yield module, "whole_block", free
