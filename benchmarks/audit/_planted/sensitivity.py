"""Bugs of sensitivities and shares: a record is thought to move less than it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.categories import exponential
from dpbayes_sklearn.categories.candidates import ScoredCandidates
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.counts import draws, plans, splits
from dpbayes_sklearn.counts import fourier as characters
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.privacy.unit import FEATURE, RECORD, PrivacyUnit
from dpbayes_sklearn.regression import ball_draws, location, mode, step_noise
from dpbayes_sklearn.regression import plans as fourier
from dpbayes_sklearn.regression.gram import GramMatrix
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.record_sums import RowNorm

Replacements = Iterator[tuple[Any, str, Any]]


@fault("sensitivity", "enumeration of counts", "The sensitivity of the counts is too small by one")
def off_by_one() -> Replacements:
    real = CountTables.sensitivity
    yield CountTables, "sensitivity", lambda self, unit: real(self, unit) - 1


@fault(
    "sensitivity",
    "enumeration of counts",
    "A record is thought to move the tables of its features, not that of its label",
)
def label_forgotten() -> Replacements:
    real = Network.tables_changed
    yield Network, "tables_changed", lambda self, unit: max(1, real(self, unit) - 1)


@fault(
    "sensitivity",
    "enumeration of counts",
    "The sensitivity of one feature value is used where records are protected",
)
def one_feature_for_a_record() -> Replacements:
    real = Network.tables_changed
    yield Network, "tables_changed", lambda self, unit: real(self, FEATURE)


@fault(
    "sensitivity",
    "enumeration of counts",
    "A replaced record is thought to leave one row of counts only",
)
def one_row_for_two() -> Replacements:
    yield CountTables, "class_row_sensitivity", lambda self, unit: 1


@fault(
    "sensitivity",
    "enumeration of counts",
    "Character sums are thought to move half as far",
    "fourier, Network",
)
def characters_move_half() -> Replacements:
    real = characters.l1_sensitivity
    yield characters, "l1_sensitivity", lambda *args: real(*args) // 2


@fault(
    "sensitivity",
    "enumeration of counts",
    "The scale of the noise depends on which classes occur in the data",
)
def local_sensitivity_of_counts() -> Replacements:
    real = plans.NoisyTables.release

    def local(self: Any, statistics: Any, noise: Any) -> Any:
        if not (statistics.tables[-1] == 0).any():
            return real(self, statistics, noise)
        more = self.cost._replace(epsilon=self.cost.epsilon * Fraction(11, 10))
        return real(
            plans.tables_plan(Laplace(), self.prior, self.facts, more),  # type: ignore[arg-type]
            statistics,
            noise,
        )

    yield plans.NoisyTables, "release", local


@fault(
    "sensitivity",
    "enumeration of counts",
    "The exponential mechanism is scaled by the local sensitivity and not calibrated",
    "exponential",
)
def local_sensitivity_of_scores() -> Replacements:
    def law(mechanism: Any, candidates: Any, budget: Any) -> ScoredCandidates:
        return ScoredCandidates(
            candidates, candidates.local_sensitivity(), float(budget.epsilon) / 2, "hellinger"
        )

    yield exponential, "_law", law


@fault(
    "sensitivity",
    "enumeration of counts",
    "Replacing a record is thought to move counts of categories by one in all",
    "geometric",
)
def one_count_for_two() -> Replacements:
    yield SimplexCounts, "sensitivity", lambda self, unit=RECORD, cells=None: 1


@fault(
    "sensitivity",
    "enumeration of counts",
    "Any number of draws is made for the price of one",
    "n_samples=2",
)
def draws_that_cost_nothing() -> Replacements:
    real = draws.sampler_law
    yield draws, "sampler_law", lambda m, *args: real(Sampler(1, n_points=m.n_points), *args)


@fault(
    "sensitivity",
    "enumeration of counts",
    "A turn at a split is thought to lose half of what it does",
    "Sampler(n_points=33)",
)
def half_a_turn() -> Replacements:
    real = splits.SplitGrid._worst
    yield splits.SplitGrid, "_worst", lambda *args: real(*args) / 2
    yield splits, "_node_loss", splits._node_loss.__wrapped__


@fault(
    "sensitivity",
    "enumeration of counts",
    "The score of the MAP mechanism is thought to move a fifth as far",
    "MAP(score",
)
def posterior_mass_moves_less() -> Replacements:
    real = draws._mass_sensitivity
    yield draws, "_mass_sensitivity", lambda *args: real(*args) / 5


@fault(
    "sensitivity",
    "enumeration of moments",
    "Moments are thought to move half as far, as if bounds were centred once too often",
    "fourier, epsilon=1500",
)
def moments_move_half() -> Replacements:
    real = fourier.whole_block
    yield (
        fourier,
        "whole_block",
        lambda d: replace(b := real(d), together=b.together / 2, each=-(-b.each // 2)),
    )


@fault(
    "sensitivity",
    "enumeration of moments",
    "The steps of a regression together spend one and a half times epsilon",
)
def shares_above_one() -> Replacements:
    real = step_noise.Shares.of.__func__

    def generous(cls: Any, *args: Any, **options: Any) -> Any:
        shares = real(cls, *args, **options)
        return shares._replace(model=shares.model + shares.epsilon / 2)

    yield step_noise.Shares, "of", classmethod(generous)


@fault(
    "sensitivity",
    "enumeration of moments",
    "The sum of the target is thought to move by 1, and not by 2",
    "fourier, epsilon=1500",
)
def target_moves_half() -> Replacements:
    real = location.target_block

    def halved() -> Any:
        block = real()
        return replace(block, each=block.each // block.each, together=block.together / 2)

    yield location, "target_block", halved


@fault(
    "sensitivity",
    "replay of estimators",
    "A mean of a column is thought to move by 1, and not by 2",
    "BayesianLinearRegression, laplace, intercept=True, schema",
)
def means_move_half() -> Replacements:
    real = location.location_block

    def halved(which: Any) -> Any:
        block = real(which)
        return replace(block, each=block.each // block.each, together=block.together / 2)

    yield location, "location_block", halved


@fault(
    "sensitivity",
    "replay of estimators",
    "A record is thought to enter a shell, but to leave none",
    "BayesianLinearRegression, gaussian",
)
def shells_move_half() -> Replacements:
    real = location.shell_block
    yield (
        location,
        "shell_block",
        lambda *size: replace(b := real(*size), together=b.together / 2),
    )


@fault(
    "sensitivity",
    "enumeration of moments",
    "Of a replaced record only the square that comes is counted",
    "laplace, epsilon=1500.0, MomentDomain",
)
def matrix_moves_half() -> Replacements:
    real = GramMatrix.law
    yield (
        GramMatrix,
        "law",
        lambda self, epsilon, grid: real(self, 2 * epsilon, grid),
    )


@fault(
    "sensitivity",
    "enumeration of moments",
    "The weight of the target is left out of a record's square",
)
def target_without_weight() -> Replacements:
    real = GramMatrix.law

    def less(self: Any, epsilon: Fraction, grid: int) -> Any:
        limit = max(self.norm.limit - self.norm.squares[-1], 1)
        return real(replace(self, norm=replace(self.norm, limit=limit)), epsilon, grid)

    yield GramMatrix, "law", less


@fault(
    "sensitivity",
    "enumeration of moments",
    "Records beyond the bound of their norm are not scaled",
)
def records_are_not_scaled() -> Replacements:
    yield RowNorm, "clip", lambda self, x, t, grid: None


@fault(
    "sensitivity",
    "enumeration of moments",
    "Centred signs do not count for the norm of a record",
    "laplace, epsilon=1500.0, MomentDomain",
)
def signs_do_not_count() -> Replacements:
    real = GramMatrix.of.__func__

    def without(cls: Any, design: Any, *public: Any, **options: Any) -> Any:
        matrix = real(cls, design, *public, **options)
        kept = [*np.where(design.signs, 0, matrix.norm.squares[:-1]), matrix.norm.squares[-1]]
        return replace(matrix, norm=replace(matrix.norm, squares=tuple(map(int, kept))))

    yield GramMatrix, "of", classmethod(without)


@fault(
    "sensitivity",
    "enumeration of moments",
    "A record beyond the bound of its norm is scaled, but not its target",
    "laplace, Design(domains=(Categories",
)
def targets_are_not_scaled() -> Replacements:
    real = RowNorm.clip
    yield RowNorm, "clip", lambda self, x, t, grid: real(self, x, t.copy(), grid)


@fault(
    "sensitivity",
    "enumeration of counts",
    "Any character sum is thought to move by 1, and not by 2",
    "fourier, Network",
)
def characters_move_by_one() -> Replacements:
    real = characters.sup_sensitivity
    yield characters, "sup_sensitivity", lambda *args: max(1, real(*args) // 2)


@fault(
    "sensitivity",
    "enumeration of counts",
    "A feature is thought to move its own table, not its child's",
    "unit=feature, Network(sizes=(2, 2, 2), parents=((2,), (0,)",
)
def children_forgotten() -> Replacements:
    real = Network.tables_changed

    def own_only(self: Any, unit: PrivacyUnit) -> int:
        return real(self, unit) if unit == RECORD else min(1, real(self, unit))

    yield Network, "tables_changed", own_only


@fault(
    "sensitivity",
    "enumeration of moments",
    "Squared residuals are not clipped at the reach of the model",
    "fourier, epsilon=1500",
)
def residuals_not_clipped() -> Replacements:
    real = Moments.squared_residuals

    def unclipped(self: Any, model: Any, grid: int) -> Any:
        near = model._replace(reach=model.reach * 4)
        total, rows = real(self, near, grid)
        return 16 * total, rows

    yield Moments, "squared_residuals", unclipped


@fault(
    "sensitivity",
    "enumeration of moments",
    "A residual is thought to be no larger than the prediction",
    "sampler, prior=100",
)
def residuals_without_target() -> Replacements:
    yield ball_draws, "score_range", lambda limit, reach: reach**2 / 2


@fault(
    "sensitivity",
    "enumeration of moments",
    "The volume around a perturbed mode is thought not to change",
    "map, epsilon=1.0",
)
def volume_for_nothing() -> Replacements:
    real = mode.least_ridge
    yield mode, "least_ridge", lambda *public: real(*public) / 100


@fault(
    "sensitivity",
    "enumeration of moments",
    "A replaced record is thought to pull at a perturbed mode once",
    "map, epsilon=1.0",
)
def pull_of_one_side() -> Replacements:
    real = mode.plan_mode

    def halved(*public: Any) -> Any:
        plan = real(*public)
        return plan._replace(pull=replace(plan.pull, scale=plan.pull.scale / 2))

    yield mode, "plan_mode", halved


@fault(
    "sensitivity",
    "enumeration of counts",
    "All counts but the last are thought to move by 1 together",
    "laplace_improved",
)
def all_but_last_move_by_one() -> Replacements:
    real = SimplexCounts.sensitivity

    def less(self: Any, unit: PrivacyUnit = RECORD, cells: int | None = None) -> int:
        return real(self, unit, cells) if cells is None else min(1, real(self, unit, cells))

    yield SimplexCounts, "sensitivity", less
