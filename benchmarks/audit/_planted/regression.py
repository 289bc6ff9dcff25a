"""Bugs of a linear regression: a factor, a share, a limit or a unit of one of its steps."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, returns, times, uncached
from dpbayes_sklearn.privacy import gaussian
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.regression import ball_draws, gram, record_sums
from dpbayes_sklearn.regression.moments import _counts

FAULTS = Faults("regression")
MOMENTS, GAUSSIAN, PARTS = "enumeration of moments", "enumeration of Gaussian noise", "parts"
TENTH = Fraction(11, 10)
GRAM, BLOCK = "regression.gram.GramMatrix", "regression.moments.Block"
GAUSSIAN_GRAM = "regression.plans.gaussian_gram"
SHARES = "regression.step_noise.Shares"
LAPLACE, MAP, DRAWS = (
    f"regression, {m}, record" for m in ("laplace", "map", "Sampler(n_samples=3)")
)
TWO_OF_GAUSSIAN = "regression, gaussian, person (2 records)"


def half(number):
    """Halve a number."""
    return number / 2


def _with_share_of(part):
    """Give the model what another part has, too."""
    return lambda real, *args, **options: (shares := real(*args, **options))._replace(
        model=shares.model + getattr(shares, part)
    )


def _halved(noise):
    """Halve the scale of a noise law."""
    return replace(noise, scale=noise.scale / 2)


FAULTS.rows(MOMENTS, {
    "Moments are thought to move half as far, as if bounds were centred once too often":
        at("regression.plans.whole_block",
           changed(l1_sensitivity=half, entry_sensitivities=lambda each: -(-each // 2)),
           "fourier, epsilon=1500"),
    "The steps of a regression together spend one and a half times epsilon":
        at(f"{SHARES}.of", lambda real, *args, **options: (s := real(*args, **options))._replace(
               model=s.model + s.epsilon / 2
           )),
    "The sum of the target is thought to move by 1, and not by 2":
        at("regression.step_noise.counting_missing",
           changed(l1_sensitivity=half, entry_sensitivities=lambda each: each // each),
           "fourier, epsilon=1500"),
    "Of a replaced record only the square that comes is counted":
        at(f"{GRAM}.law", lambda real, self, epsilon, grid: real(self, 2 * epsilon, grid),
           "laplace, epsilon=1500.0, MomentUniverse"),
    "Records beyond the bound of their norm are not scaled":
        at("regression.record_sums.RowNorm.clip", returns(None)),
    "A record beyond the bound of its norm is scaled, but not its target":
        at("regression.record_sums.RowNorm.clip",
           lambda real, self, x, t, grid: real(self, x, t.copy(), grid),
           "laplace, Design(domains=(Categories"),
    "A residual is thought to be no larger than the prediction":
        at("convex.draws.score_range", lambda _, limit, reach: reach**2 / 2,
           "sampler, prior=100"),
    "The volume around a perturbed mode is thought not to change":
        at("regression.mode.plan_mode", changed(ridge=lambda ridge: ridge / 100),
           "map, epsilon=1.0"),
    "A replaced record is thought to change the gradient of a perturbed mode once":
        at("regression.mode.plan_mode", changed(gradient_noise=_halved), "map, epsilon=1.0"),
    "Draws of a regression follow a likelihood with twice its weight":
        at("convex.draws.score_range", times(0.5), "sampler, prior=100"),
    "The box of the moments' noise is half as wide as what one record moves":
        at("regression.step_noise.add_noise", lambda real, sums, block, grid, epsilon, noise: real(
               sums, block, grid, epsilon * 2 if len(block) > 1 else epsilon, noise
           ), "fourier, epsilon=1500"),
})  # fmt: skip
FAULTS.rows("replay of estimators", {
    "The share of the records that have a target is exact":
        at(("regression.release.located", "regression.mode.located"),
           lambda real, moments, *args: replace(
               real(moments, *args), share_known=1 - moments.n_missing / (1 + moments.n)
           ), "LinearRegression, targets may be missing"),
    "A mean of a column is thought to move by 1, and not by 2":
        at("regression.location.location_block",
           changed(l1_sensitivity=half, entry_sensitivities=lambda each: each // each),
           "BayesianLinearRegression, laplace, intercept=True, schema"),
    "A record is thought to enter a distance bin, but to leave none":
        at("regression.step_noise.distance_block", changed(l1_sensitivity=half),
           "BayesianLinearRegression, gaussian"),
})  # fmt: skip
FAULTS.rows("replay of units", {
    "Residuals are divided by the exact number of records":
        at("regression.moments.Moments.squared_residuals",
           lambda real, self, *args: real(replace(self, size=None), *args), "BayesianLinear"),
})  # fmt: skip
FAULTS.rows(GAUSSIAN, {
    "Products of a regression have 5 % less noise":
        at(GAUSSIAN_GRAM, changed(bound=lambda bound: bound * Fraction(361, 400)), "slope"),
    "What the weights of squares add to the change of a record is left out":
        at("regression.gram._scaled", changed(bound=lambda bound: bound / (1 + gram._FOR_SQUARES)),
           "slope"),
    "A replaced record counts as one that comes or goes in the products of a regression":
        at(GAUSSIAN_GRAM,
           lambda real, *public: replace(b := real(*public), bound=b.bound_of_one_record), "slope"),
    "Histograms of distances forget the bin that a record leaves":
        at("regression.step_noise.distance_block", changed(l1_sensitivity=half), "slope"),
    "A step draws with twice its share of rho":
        at("regression.moments.GaussianBlock.law",
           lambda real, self, rho, grid: real(self, 2 * rho, grid), "slope"),
    "Steps are composed for a tenth of epsilon more":
        at("regression.plans.composed_rho",
           lambda real, epsilon, *rest: real(epsilon * TENTH, *rest), "slope"),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "The signs' share of rho is free":
        at(f"{SHARES}.of_rho", _with_share_of("signs"), "signs, gaussian"),
    "The signs have the model's share of epsilon, too":
        at(f"{SHARES}.of", lambda real, *args, **options: (s := real(*args, **options))._replace(
               signs=s.signs + s.model
           ), "signs, laplace"),
    "The residuals' share of epsilon is free": at(f"{SHARES}.of", _with_share_of("residuals"), MAP),
    "The share of the target's mean is free":
        at(f"{SHARES}.of", _with_share_of("mean"), "regression, fourier, record"),
    "A first stage is free": at(f"{SHARES}.in_two_stages", _with_share_of("first"), "two stages"),
    "A first stage of moments has the second's share of rho, too":
        at(f"{SHARES}.in_two_stages",
           lambda real, *args: (s := real(*args))._replace(first=s.first + s.gaussian * s.model),
           "two stages, gaussian"),
    "The spread of residuals has the first stage's share of rho, too":
        at(f"{SHARES}.in_two_stages",
           lambda real, *args: (s := real(*args))._replace(spread=s.spread + s.gaussian * s.first),
           "two stages, gaussian"),
    "The spread of residuals is free":
        at(f"{SHARES}.in_two_stages", _with_share_of("spread"), "two stages"),
    "What clipping takes of residuals is free":
        at(f"{SHARES}.in_two_stages", _with_share_of("mean"), "two stages"),
    "What clipping takes of residuals counts four times":
        at("regression.record_sums.clipped_excess", times(4), "two stages"),
    "The share of weighted residuals is free":
        at(f"{SHARES}.of", _with_share_of("uneven"), "two stages"),
    "Weighted residuals are not clipped at the reach of the model":
        at("regression.moments.Moments.weighted_residuals", lambda real, self, model, grid: (
               16 * real(self, model._replace(reach=model.reach * 4), grid)
           ), "two stages"),
    "Weighted residuals count twice":
        at("regression.record_sums.weighted_residuals", times(2), "two stages"),
    "A record is thought to change half of the weighted residuals":
        at("regression.release.weighted_block", changed(l1_sensitivity=half), "two stages"),
    "All steps of a regression may have a tenth more rho":
        at("regression.plans.composed_rho", times(TENTH), "regression, gaussian, record"),
    "Each of several draws of coefficients has the whole loss":
        at("convex.draws.loss_of_a_draw", lambda real, e, d, n: real(e, d, 1), DRAWS),
    "Draws around a mode have the mode's half, too":
        at("convex.draws.loss_of_a_draw", lambda real, e, d, n: real(2 * e, d, n), DRAWS),
    "Residuals of a draw are clipped to twice their limit":
        at("convex.draws._place", changed(limit=lambda limit: 2 * limit), DRAWS)
        .also("convex.draws.score_range",
              lambda real, limit, reach: real(limit / 2, reach)),
    "Draws are weighed for one record of a person":
        at("convex.draws.score_range", times(0.5),
           "regression, Sampler(n_samples=3), person"),
    "Every ball of draws is thought to be small":
        at("convex.draws.score_range", lambda _, limit, reach: 2 * limit * reach,
           "'coef_bound': 3.0}, record"),
    "Indicators have no part in the norm of a draw":
        at("convex.draws._norm",
           lambda _, design: math.sqrt(len(design.domains) + design.intercept),
           "regression, sampler"),
    "Indicators have no part in the norm of a mode":
        at("regression.mode.least_ridge", lambda real, squares, *rest: real(squares - 1, *rest),
           MAP),
    "A mode spends on volume and search besides the budget of its gradient":
        at("regression.mode._VOLUME", Fraction(1, 10**6), MAP)
        .also("regression.mode.least_ridge",
              lambda real, squares, e, unit: real(squares, e * Fraction(10**6, 8), unit)),
    "The noise of a mode hides one of the two roundings":
        at("regression.mode.plan_mode",
           changed(jitter=lambda jitter: replace(jitter, scale=jitter.scale / 16)), MAP),
    "The plan of a mode follows from the exact number of records, though that is secret":
        at("regression.moments.Moments.n_bound", lambda _, self: self.records.n,
           "regression, map, record, add_remove"),
    "A record that comes is thought to change the gradient of a mode half as far":
        at("regression.mode.plan_mode", changed(gradient_noise=_halved),
           "regression, map, record, add_remove"),
    "The ridge of a mode hides one record of a person":
        at("regression.mode.least_ridge",
           lambda real, squares, e, unit: real(squares, e * unit.max_records, unit),
           "regression, map, person (2 records)"),
    "The noise of gradients hides one record of a person":
        at("regression.mode.plan_mode", changed(gradient_noise=_halved),
           "regression, map, person (2 records)"),
    "A replaced record is thought to change the gradient once where its noise is Gaussian":
        at("noise.gradient.largest_ratio", times(2), "regression, many columns, record"),
    "The sign of a residual is thought to be known where the noise is Gaussian":
        at("noise.gradient.largest_ratio", lambda real, *args: real(*args[:-1], True),
           "regression, many columns, record")
        # a ridge beyond the least one leaves a part of the budget that would hide the fault
        .also("regression.mode.plan_mode", lambda real, *args: real(*args[:6])),
    "The volume around a mode with Gaussian noise is thought not to change":
        at("regression.mode.least_ridge", times(0.5), "regression, many columns, record"),
    "Gaussian noise of a mode has the whole share of epsilon, and the determinant has it, too":
        at("noise.gradient.gaussian_noise",
           lambda real, shape, epsilon, *rest: real(shape, epsilon * 64 / 55, *rest),
           "regression, many columns, person (2 records)"),
    "A mode with Gaussian noise is charged without a delta":
        at("regression.mode.RobustModePlan.needs_delta", lambda *_: False,
           "regression, many columns, record").also("regression.plans.release_mode",
           lambda real, statistics, prior, budget, noise: real(
               statistics, prior, budget._replace(delta=Fraction(1, 10**6)), noise)),
    "Residuals are clipped at twice the limit":
        at("regression.moments.Moments.loss_derivatives",
           lambda real, *args: real(*args[:-1], 2 * args[-1]), MAP),
    "The search for a mode ends 16 times too early":
        at("regression.mode._minimum", lambda real, derivatives, start, noise, plan: real(
               derivatives, start, noise, plan._replace(error=16 * plan.error)
           ), "end of a search"),
    "Histograms of distances take the share of the means, too":
        at("regression.location._TARGET_MEAN", Fraction(3, 5), LAPLACE)
        .also("regression.step_noise.NoisyLocation.distance_shares",
              lambda real, self, c, n, share: real(self, c, n, share * Fraction(5, 2))),
    "A record is thought to change one distance bin of a column":
        at("regression.step_noise.distance_block", changed(l1_sensitivity=half), LAPLACE),
    "A record counts twice in the histogram of the common scale":
        at("regression.record_sums.largest_counts", times(2), "common scale, laplace, record"),
    "The common scale of the columns is free":
        at(f"{SHARES}.of_rho", _with_share_of("columns"), "common scale, gaussian, record"),
    "Correlations of columns are free":
        at(f"{SHARES}.with_pairs", _with_share_of("pairs"), "correlated, laplace, record"),
    "Only one of two numbers is thought to change in a replaced record":
        at("regression.location.pairs_block",
           changed(l1_sensitivity=half, entry_sensitivities=lambda each: each // 2),
           "correlated, laplace, record"),
    "How far a number varies that another predicts is free":
        at("regression.release.decorrelated", lambda real, data, places, shares, *rest: (
               real(data, places, shares, *rest)[0], shares
           ), "correlated, laplace, record"),
    "What others do not predict of a number is not clipped":
        at("convex.design.DecorrelatedWindows.decorrelate",
           lambda real, self, x, grid: real(self, x, 4 * grid), "correlated, laplace, record"),
    "A record counts twice in the histogram of a number that another predicts":
        at("regression.record_sums.window_counts", times(2), "correlated, laplace, record"),
    "Residuals count up to twice their bound":
        at("regression.moments.Moments.squared_residuals",
           lambda real, *args: (4 * real(*args)[0], real(*args)[1]), LAPLACE),
    "The target is thought to move from 0 to 1":
        at("regression.step_noise.counting_missing",
           changed(l1_sensitivity=Fraction(1), entry_sensitivities=np.array([1, 1])), LAPLACE),
    "A person changes squared sums by as many times, not by its square":
        at("regression.gram.GaussianGram.protecting", lambda real, self, unit: replace(
               b := real(self, unit), bound=b.bound / unit.max_records
           ), TWO_OF_GAUSSIAN),
    "Squares of sums are those of one record of a person":
        at(f"{BLOCK}.squared", lambda real, self: real(self) / self.times, TWO_OF_GAUSSIAN),
    "Constant and levels have no part in the norm of a matrix":
        at(f"{GRAM}.bound", lambda _, self: self.limit, "levels, laplace"),
    "A record that comes is thought to change Gaussian sums half as far":
        at("regression.gram.GaussianGram.protecting", lambda real, self, unit: real(
               replace(self, bound_of_one_record=self.bound_of_one_record / 4), unit
           ), "regression, gaussian, record, add_remove"),
    "A record that comes is thought to change one product of each row":
        at("regression.plans.whole_block",
           lambda real, design: replace(real(design), l1_of_one_record=len(design.features) + 2),
           "regression, fourier, record, add_remove"),
    "Products of two columns of levels are free":
        at(tuple(f"regression.{m}.whole_block" for m in ("gram", "moments", "plans")),
           lambda real, design: replace(
               b := real(design),
               l1_sensitivity=b.l1_sensitivity - (q := _counts(design)[2]) * (q - 1),
           ), "levels"),
})  # fmt: skip
FAULTS.rows("intervals", {
    "Nominal errors of map and sampler are printed as 95 % intervals":
        at("linear_model.BayesianLinearRegression._why_no_intervals", returns(""), "coefficients"),
})  # fmt: skip
FAULTS.rows("plans", {
    "The share of the signs has no lower bound, so that their noise cannot be drawn":
        at("regression.step_noise._LEAST_OF_SIGNS", 10**30, "signs, many records"),
})  # fmt: skip


@FAULTS.row(PARTS, "regression.record_sums.gram", LAPLACE)
def _(real, shard, *args, **options):
    """The first record of a table is in the sums twice."""
    first = shard._replace(table=shard.table.rows(slice(0, 1)), target=shard.target[:1])
    return real(shard, *args, **options) + real(first, *args, **options)


@FAULTS.row(MOMENTS, f"{GRAM}.law")
def _(real, self, epsilon, grid):
    """The weight of the target is left out of a record's square."""
    limit = max(self.norm.limit - self.norm.squares[-1], 1)
    return real(replace(self, norm=replace(self.norm, limit=limit)), epsilon, grid)


@FAULTS.row(MOMENTS, f"{GRAM}.of", "laplace, epsilon=1500.0, MomentUniverse")
def _(real, cls, design, *public, **options):
    """Centred signs do not count for the norm of a record."""
    matrix = real(cls, design, *public, **options)
    kept = [*np.where(design.signs, 0, matrix.norm.squares[:-1]), matrix.norm.squares[-1]]
    return replace(matrix, norm=replace(matrix.norm, squares=tuple(map(int, kept))))


@FAULTS.row(MOMENTS, "regression.moments.Moments.squared_residuals", "fourier, epsilon=1500")
def _(real, self, model, grid):
    """Squared residuals are not clipped at the reach of the model."""
    total, rows = real(self, model._replace(reach=model.reach * 4), grid)
    return 16 * total, rows


@FAULTS.row(MOMENTS, "regression.step_noise.NoisyLocation.means", "fourier, epsilon=1.0")
def _(real, self, sums, *rest):
    """Where to clip the target is read from the exact sums instead of the noisy ones."""
    noisy, errors = real(self, sums, *rest)
    return np.clip(sums / self._grid**2 / self.rows, -1, 1) + 0 * noisy, errors


@FAULTS.row(
    "replay of estimators",
    "regression.step_noise.NoisyLocation.means",
    "BayesianLinearRegression, gaussian",
)
def _(real, self, sums, *rest):
    """The window of the target is shifted by what its exact sums are."""
    noisy, errors = real(self, sums, *rest)
    return noisy + 1e-6 * (int(sums.sum()) % 97), errors


@FAULTS.row(GAUSSIAN, GAUSSIAN_GRAM, "slope")
def _(real, *public):
    """The square of a number counts twice in the weights of its noise."""
    block = real(*public)
    each = [w for w, size in zip(block.weights, block.sizes, strict=True) for _ in range(size)]
    entries = zip(each, block.rows.tolist(), block.columns.tolist(), strict=True)
    square = {w for w, i, j in entries if i == j}
    return replace(block, weights=tuple(2 * w if w in square else w for w in block.weights))


@FAULTS.row("draws added up", "convex.draws.loss_of_a_draw", "coefficients")
def _(_, epsilon, delta, n_draws):
    """The zCDP of a draw of coefficients is w²/16 instead of w²/8."""
    squared = 16 * Fraction(zcdp_rho(epsilon, delta)) / n_draws
    return max(epsilon / n_draws, Fraction(isqrt(int(squared * 10**40)), 10**20))


@FAULTS.row("draws added up", "regression.plans.draws_cost", "coefficients")
def _(real, statistics, prior, budget, n_draws):
    """Residuals are left out of the zCDP of a draw."""
    rho, needs_delta = real(statistics, prior, budget, n_draws)
    shares = ball_draws.shares_of(statistics, prior, budget)
    return rho - shares.residuals**2 / 2, needs_delta


def _composes(_, rho, epsilon, delta, numbers, smallest):
    if not 0 < 2 * rho <= gaussian._LARGEST_MU**2:
        return False
    eta = gaussian.grid_rounding_loss(numbers, Fraction(smallest**2) / (2 * rho))
    enough = eta <= epsilon * gaussian._DISCRETE_SHARE
    return bool(enough and gaussian.composed_delta(rho, epsilon) <= delta)


FAULTS.rows("plans", {
    "A grid without room for exact composition is divided by":
        at("privacy.gaussian._composes", _composes, "signs, a coarse grid")
        .also("regression.plans.composed_rho", uncached),
})  # fmt: skip


@FAULTS.row(
    "replay of estimators",
    "convex.design._map_numbers",
    "BayesianLinearRegression, gaussian",
)
def _(_, chunk, maps, out, grid):
    """Features of a regression are not clipped to their bounds."""
    factor, shift, _ = maps
    numbers = np.nan_to_num(np.asarray(chunk, float), nan=0.0, posinf=1e6, neginf=-1e6)
    out[:] = grid * np.clip(numbers * factor - shift, -1e6, 1e6)


@FAULTS.row(
    "replay of estimators",
    "regression.record_sums.scaled_target",
    "BayesianLinearRegression, gaussian",
)
def _(_, y, scale):
    """The target of a regression is scaled, but the result of clipping it is dropped."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (y - scale.centre) / scale.half
    return np.nan_to_num(scaled, nan=0.0, posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)


@FAULTS.row("values", "regression.record_sums.of_known")
def _(_, ask, shard):
    """A missing target stays NaN on its way into the sums."""
    return ask(shard)


@FAULTS.row("values", "regression.record_sums.gram")
def _(_, part, design, scale, grid, window, **options):
    """Products are added up as floats, so that the order of the rows moves the last bits."""
    total = np.zeros((design.width + 2,) * 2, np.float32)
    for x, edge in record_sums.coordinates(part, design, scale, window, grid):
        z = np.hstack([edge[:, :1], x, edge[:, 1:]]).astype(np.float32)
        total += z.T @ z
    return np.rint(total).astype(np.int64)
