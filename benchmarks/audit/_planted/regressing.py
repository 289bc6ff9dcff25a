"""Small slips in the steps of a regression: a factor, a share, a limit, a unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._slip import constant, slip, slip_of_parts, times
from dpbayes_sklearn.privacy.accountant import BudgetAccountant
from dpbayes_sklearn.regression import (
    ball_draws,
    gram,
    location,
    mode,
    moments,
    record_sums,
)
from dpbayes_sklearn.regression import plans as regressions
from dpbayes_sklearn.regression.gram import GaussianGram

TENTH = Fraction(11, 10)

rho_of_steps = slip_of_parts(
    "All steps of a regression may have a tenth more rho",
    "regression, gaussian, record",
    (regressions, "composed_rho", times(TENTH)),
)
half_of_rho_charged = slip_of_parts(
    "Half of the rho of a release is charged",
    "regression, gaussian, record",
    (
        BudgetAccountant,
        "spend",
        lambda real: (
            lambda self, e=None, d=0, label="", *, rho=None, **o: real(
                self, e, d, label, rho=None if rho is None else rho / 2, **o
            )
        ),
    ),
)
one_draw_of_coefficients = slip_of_parts(
    "Each of several draws of coefficients has the whole loss",
    "regression, Sampler(n_samples=3), record",
    (ball_draws, "loss_of_a_draw", lambda real: lambda e, d, n: real(e, d, 1)),
)
draws_beside_a_mode = slip_of_parts(
    "Draws around a mode have the mode's half, too",
    "regression, Sampler(n_samples=3), record",
    (
        ball_draws,
        "loss_of_a_draw",
        lambda real: lambda e, d, n: real(2 * e, d, n),
    ),
)
wide_residuals = slip_of_parts(
    "Residuals of a draw are clipped to twice their limit",
    "regression, Sampler(n_samples=3), record",
    (ball_draws, "_place", lambda real: lambda *args: _wider(real(*args))),
    (ball_draws, "score_range", lambda real: lambda limit, reach: real(limit / 2, reach)),
)


def _wider(place: Any) -> Any:
    return place._replace(limit=2 * place.limit)


one_record_of_a_draw = slip_of_parts(
    "Draws are weighed for one record of a person",
    "regression, Sampler(n_samples=3), person",
    (
        ball_draws,
        "score_range",
        lambda real: lambda limit, reach: real(limit, reach) / 2,
    ),
)
mode_takes_all = slip_of_parts(
    "A mode has its volume and its search besides its pulls",
    "regression, map, record",
    (mode, "_VOLUME", constant(Fraction(1, 10**6))),
    (
        mode,
        "least_ridge",
        lambda real: lambda squares, e, unit: real(squares, e * Fraction(10**6, 8), unit),
    ),
)
jitter_of_a_step = slip_of_parts(
    "The noise of a mode hides one of the two roundings",
    "regression, map, record",
    (
        mode,
        "plan_mode",
        lambda real: lambda *args: _with_less_jitter(real(*args)),
    ),
)


def _with_less_jitter(plan: Any) -> Any:
    return plan._replace(jitter=replace(plan.jitter, scale=plan.jitter.scale / 16))


ridge_of_a_person = slip_of_parts(
    "The ridge of a mode hides one record of a person",
    "regression, map, person (2 records)",
    (
        mode,
        "least_ridge",
        lambda real: lambda squares, e, unit: real(squares, e * unit.max_records, unit),
    ),
)
pulls_of_a_person = slip_of_parts(
    "The noise of pulls hides one record of a person",
    "regression, map, person (2 records)",
    (
        mode,
        "plan_mode",
        lambda real: lambda d, n, p, e, unit: _half_pull(real(d, n, p, e, unit)),
    ),
)


def _half_pull(plan: Any) -> Any:
    return plan._replace(pull=replace(plan.pull, scale=plan.pull.scale / 2))


wide_pulls = slip_of_parts(
    "Records pull with twice the limit",
    "regression, map, record",
    (
        moments.Moments,
        "pulls",
        lambda real: lambda self, g, w, ws, c, limit: real(self, g, w, ws, c, 2 * limit),
    ),
)
shells_take_all = slip_of_parts(
    "Shells take the share of the means, too",
    "regression, laplace, record",
    (location, "_TARGET_MEAN", constant(Fraction(3, 5))),
    (
        location.Steps,
        "shells",
        lambda real: lambda self, c, n, share: real(self, c, n, share * Fraction(5, 2)),
    ),
)
shells_move_once = slip_of_parts(
    "A record is thought to change one shell of a column",
    "regression, laplace, record",
    (
        location,
        "shell_block",
        lambda real: lambda c, s: replace(real(c, s), together=real(c, s).together / 2),
    ),
)
residuals_not_clipped = slip_of_parts(
    "Residuals count up to twice their bound",
    "regression, laplace, record",
    (
        moments.Moments,
        "squared_residuals",
        lambda real: lambda self, m, g: (4 * real(self, m, g)[0], real(self, m, g)[1]),
    ),
)
target_block_of_one = slip_of_parts(
    "The target is thought to move from 0 to 1",
    "regression, laplace, record",
    (
        location,
        "target_block",
        lambda real: lambda: replace(real(), together=Fraction(1), each=np.array([1])),
    ),
)
gram_of_a_person = slip_of_parts(
    "A person changes squared sums by as many times, not by its square",
    "regression, gaussian, person (2 records)",
    (
        GaussianGram,
        "protecting",
        lambda real: (
            lambda self, unit: replace(
                real(self, unit), bound=real(self, unit).bound / unit.max_records
            )
        ),
    ),
)
block_of_a_person = slip_of_parts(
    "Squares of sums are those of one record of a person",
    "regression, gaussian, person (2 records)",
    (
        moments.Block,
        "squared",
        lambda real: property(lambda self: real.fget(self) / self.times),
    ),
)
exact_number_of_residuals = slip(
    "Residuals are divided by the exact number of records",
    "replay of units",
    "BayesianLinearRegression",
    (
        moments.Moments,
        "squared_residuals",
        lambda real: lambda self, m, g, e: real(replace(self, size=None), m, g, e),
    ),
)
fixed_part_of_a_norm = slip_of_parts(
    "Constant and levels have no part in the norm of a matrix",
    "levels, laplace",
    (gram.GramMatrix, "bound", lambda real: property(lambda self: self.limit)),
)
alone_in_a_gram = slip_of_parts(
    "A record that comes is thought to change Gaussian sums half as far",
    "regression, gaussian, record, add_remove",
    (
        GaussianGram,
        "protecting",
        lambda real: lambda self, unit: real(replace(self, alone=self.alone / 4), unit),
    ),
)
alone_in_a_block = slip_of_parts(
    "A record that comes is thought to change one product of each row",
    "regression, fourier, record, add_remove",
    (
        regressions,
        "whole_block",
        lambda real: lambda design: replace(real(design), alone=len(design.features) + 2),
    ),
)
counted_twice = slip_of_parts(
    "The first record of a table is in the sums twice",
    "regression, laplace, record",
    (record_sums, "gram", lambda real: lambda shard, *a, **o: _with_first(real, shard, a, o)),
)


def _with_first(real: Any, shard: Any, args: Any, options: Any) -> Any:
    first = shard._replace(table=shard.table.rows(slice(0, 1)), target=shard.target[:1])
    return real(shard, *args, **options) + real(first, *args, **options)
