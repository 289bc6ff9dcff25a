"""Bugs of a linear regression: a factor, a share, a limit or a unit of one of its steps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, returns, times
from dpbayes_sklearn.convex import mode
from dpbayes_sklearn.convex.losses import LATTICE
from dpbayes_sklearn.noise.matrix import Normals
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.regression.moments import _counts
from dpbayes_sklearn.release import Facts

FAULTS = Faults("regression")
MOMENTS, GAUSSIAN, PARTS = "enumeration of moments", "enumeration of Gaussian noise", "parts"
LAWS, REPLAY = "sampler laws", "replay of estimators"
TENTH = Fraction(11, 10)
GRAM, BLOCK = "regression.gram.GramMatrix", "regression.moments.Block"
GAUSSIAN_GRAM = "regression.plans.gaussian_gram"
LINEAR, SUMS, DRAWN = "convex.linear.LinearPlan", "convex.record_sums", "convex.draws"
WHOLE, ONE_NUMBER, LEVELS = (
    f"whole recipe, {c}" for c in ("xm, record", "x, record", "lk, record")
)
SECOND, ALL_MOMENTS = "second moments, record", "convex.moments.MomentsPlan"
PERSONS = "whole recipe, xmslk, person (2 records)"
LAPLACE, MAP, DRAWS = (
    f"regression, {m}, record" for m in ("laplace", "map", "Sampler(n_samples=3)")
)
TWO_OF_MAP, TWO_OF_GAUSSIAN = (f"regression, {m}, person (2 records)" for m in ("map", "gaussian"))
LOCATED = "BayesianLinearRegression, auto, intercept=True, located"


def half(number):
    """Halve a number."""
    return number / 2


def half_of(real, *given):
    """Return half of what a function returns."""
    return real(*given) / 2


def _halved(law):
    """Halve the scale of a noise law."""
    return replace(law, scale=law.scale / 2)


def _for_one_record(real, self, unit, epsilon):
    """Return the law for one record of a person."""
    return real(self, RECORD, epsilon)


def _exactly(ask, read):
    """Read what was asked exactly in place of the answer."""
    seen = []

    def asked(real, self, *given):
        seen[:] = real(self, *given)
        return [*seen]

    return at(f"{LINEAR}.{ask}", asked).also(
        f"{LINEAR}.{read}", lambda real, self, known, noisy, law: real(self, known, [*seen], law)
    )


def _untold(of):
    """Ask at what follows from the records, not from what was released."""

    def asked(real, self, records, known):
        parity = int(real(self, records, known)[0][0]) % 2
        return real(self, records, of(known, 1 + 0.01 * parity))

    return asked


def _cut_bits(real, count, source, *rest):
    """Return normals of two bits."""
    drawn = real(count, source, *rest)
    return Normals(drawn.cells >> (drawn.bits - 2), 2)


_SEEN = [0]


def _odd(shard):
    """Return a sum of targets that one record changes in its last digit."""
    return int(np.nansum(np.asarray(shard.target, float)) // 2)


FAULTS.rows(MOMENTS, {
    "Moments are thought to move half as far, as if bounds were centred once too often":
        at("regression.plans.whole_block",
           changed(l1_sensitivity=half, entry_sensitivities=lambda each: -(-each // 2)),
           "fourier, epsilon=1500"),
    "Of a replaced record only the square that comes is counted":
        at(f"{GRAM}.law", lambda real, self, epsilon, grid: real(self, 2 * epsilon, grid),
           "laplace, epsilon=1500.0, MomentUniverse"),
    "A residual is thought to be no larger than the prediction":
        at(f"{DRAWN}.score_range", lambda _, limit, reach: reach**2 / 2, "sampler, prior=100"),
    "A replaced record is thought to change the gradient of a perturbed mode once":
        at("convex.mode.hull_body", changed(law=_halved), "map, epsilon=1.0"),
    "Draws of a regression follow a likelihood with twice its weight":
        at(f"{DRAWN}.score_range", times(0.5), "sampler, prior=100"),
    "The noise of the moments has twice its share":
        at(f"{BLOCK}.law", lambda real, self, epsilon, grid: real(self, 2 * epsilon, grid),
           "fourier, epsilon=1500"),
    "The weight of the target is left out of a record's square":
        at(f"{GRAM}.of", lambda real, cls, design: replace(
               b := real(cls, design), bound=b.bound - b.weights[-1] ** 2
           ), "laplace, epsilon=1500.0, MomentUniverse"),
    "Signs do not count for the norm of a record":
        at(f"{GRAM}.of", lambda real, cls, design: replace(
               b := real(cls, design),
               bound=b.bound - int(design.signs.sum()) * b.weights[1] ** 2,
           ), "laplace, epsilon=1500.0, MomentUniverse"),
})  # fmt: skip
FAULTS.rows(GAUSSIAN, {
    "Products of a regression have 5 % less noise":
        at(GAUSSIAN_GRAM, changed(bound=lambda bound: bound * Fraction(361, 400)), "slope"),
    "A step draws with twice its share of rho":
        at("regression.gram.GaussianGram.law",
           lambda real, self, rho, grid: real(self, 2 * rho, grid), "slope"),
    "Products are composed for a tenth of epsilon more":
        at("regression.plans.composed_rho",
           lambda real, epsilon, *rest: real(epsilon * TENTH, *rest), "slope"),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "The body of a mode's gradients is half as wide as they are":
        at("convex.linear.ball_body", lambda real, p, radius, *rest: real(p, radius / 2, *rest),
           WHOLE),
    "A replaced record is thought to change the gradient once where the body is a ball":
        at("convex.linear.ball_body", changed(law=_halved), WHOLE),
    "Records of a mode are longer than its T":
        at("convex.losses.shrinking", lambda _, length, limit: np.ones_like(length), WHOLE),
    "Records of a mode have one limit, however long they are":
        at("convex.losses.Turned.chunks", lambda real, self, *given: (
               (v, t, np.full(len(t), self.limit)) for v, t, _ in real(self, *given)
           ), WHOLE),
    "The least ridge of a ball's mode is a tenth":
        at("convex.perturbed.raised", times(0.1), WHOLE),
    "Squares of records of a mode in turned coordinates are averages over coordinates":
        at("convex.perturbed.Shape.determinant",
           lambda real, self, ridge: real(self, ridge) / len(self.squares), WHOLE),
    "The coordinates are turned by the exact shape":
        _exactly("ask_shape", "read_shape")._replace(case=WHOLE),
    "The score is asked for at parameters that were not released":
        at(f"{LINEAR}.ask_score", _untold(lambda k, by: replace(k, mode=k.mode + 1 - by)),
           WHOLE),
    "The curvature is asked for in coordinates that were not released":
        at(f"{LINEAR}.ask_curvature", _untold(lambda k, by: replace(k, turn=k.turn * by)), WHOLE),
    "The lengths of records are asked for in coordinates that were not released":
        at("convex.linear.ask_lengths", lambda real, records, known: real(
               records, replace(known, turn=known.turn * (1 + 9 * (records.total(_odd) % 2)))
           ), WHOLE),
    "All sums of the whole recipe are drawn with twice their share":
        at(f"{LINEAR}._step", lambda real, self, what, asked, share, *rest: replace(
               real(self, what, asked, share, *rest), law=asked.law(self.cost.unit, 2 * share)
           ), WHOLE),
    "All steps of second moments are drawn with twice their share":
        at(f"{ALL_MOMENTS}._step", lambda real, self, what, of, share, *rest: replace(
               real(self, what, of, share, *rest), law=of.law(self.cost.unit, 2 * share)
           ), SECOND),
    "Records of second moments have no limit":
        at(f"{SUMS}.shrinking", lambda _, length, limit: np.ones_like(length), SECOND),
    "A record counts in one column of the histograms of second moments":
        at("convex.moments.Histograms", lambda real, _, sizes: real(1, sizes), SECOND),
    "Products of pairs have the noise of products of as many fewer coordinates":
        at("convex.moments.ProductSum.law", lambda real, self, unit, e: replace(
               law := real(self, unit, e), scale=law.scale / (3 if self.size > 20 else 1)
           ), SECOND),
    "The pairs are asked for in coordinates that were not released":
        at(f"{ALL_MOMENTS}.ask_pairs", _untold(lambda k, by: replace(k, turn=k.turn * by)), SECOND),
    "The products are asked for up to a limit that was not released":
        at(f"{ALL_MOMENTS}.ask_products", _untold(lambda k, by: replace(k, limit=k.limit * by)),
           SECOND),
    "A record counts in one column of the even histograms":
        at("convex.linear.Histograms", lambda real, _, sizes: real(1, sizes), WHOLE),
    "A replaced record leaves no bin of the histograms":
        at(f"{SUMS}.Histograms.law", lambda real, self, unit, e: real(self, unit, 2 * e), WHOLE),
    "A missing target counts eight times":
        at("convex.linear.ask_look", lambda real, records, known: [
               np.append((c := real(records, known))[0][:-1], 8 * c[0][-1]), *c[1:]
           ], LEVELS),
    "A record without a target is in the histograms of numbers, too":
        at("convex.linear.ask_look", lambda real, records, known: [
               *(c := real(records, known))[:-1], c[-1] + 2 * c[0][-1]
           ], WHOLE),
    "Of a person's scores one record counts":
        at(f"{SUMS}.VectorSum.law", _for_one_record, PERSONS),
    "Of a person's products one record counts":
        at(f"{SUMS}.ProductSum.law", _for_one_record, PERSONS),
    "Of a person's histograms one record counts":
        at(f"{SUMS}.Histograms.law", _for_one_record, PERSONS),
    "A replaced record is thought to move the score once":
        at(f"{SUMS}.VectorSum.law", changed(scale=half), WHOLE),
    "A record that comes is thought to move products by half of its square":
        at(f"{SUMS}.ProductSum.law", changed(scale=half), "whole recipe, x, record, add_remove"),
    "Vectors that are added up are not shortened":
        at(f"{SUMS}.shrinking", lambda _, length, limit: np.ones_like(length), WHOLE),
    "The score reaches twice as far as its noise knows":
        at(f"{LINEAR}.ask_score", lambda real, self, records, known: [
               2 * each for each in real(self, records, replace(
                   known, limits=known.limits._replace(score=2 * known.limits.score)))
           ], WHOLE),
    "Squared scores reach twice as far as their noise knows":
        at(f"{LINEAR}.ask_middle", lambda real, self, records, known: [
               4 * each for each in real(self, records, replace(
                   known, limits=known.limits._replace(middle=2 * known.limits.middle)))
           ], WHOLE),
    "The noise of a mode hides one of the two roundings":
        at("convex.perturbed.PerturbedPlan.of",
           changed(jitter=lambda jitter: replace(jitter, scale=jitter.scale / 16)),
           "whole recipe, x, record, add_remove"),
    "The plan of a mode follows from the exact number of records, though that is secret":
        at(f"{LINEAR}.ask_mode", lambda real, self, records, known: real(
               replace(self, facts=Facts(records.n)), records, known
           ), "whole recipe, xmslk, record, add_remove"),
    "The search for a mode ends 16 times too early":
        at("convex.perturbed.Search._found",
           lambda real, self, loss, start, inverse, error: real(
               self, loss, start, inverse, 16 * error
           ), "end of a search"),
    "The search for a mode ends where a part of the records has it":
        at("convex.perturbed.Search.minimum", lambda real, self, error: self._found(
               self.loss.some(1000), self.centre, None, error
           ), "end of a search"),
    "A residual is clipped at twice the limit in the gradient":
        at("convex.losses._residuals", lambda real, *given: (
               (v, r, 2 * limits) for v, r, limits in real(*given)
           ), WHOLE),
    "A mode in windows clips residuals at twice its limit":
        at("convex.losses.InWindows.chunks", lambda real, self, *given: (
               (v, t, 2 * limits) for v, t, limits in real(self, *given)
           ), MAP),
    "Records in windows lie beyond their hull":
        at("convex.losses.InWindows.chunks", lambda real, self, *given: (
               (2 * v, t, limits) for v, t, limits in real(self, *given)
           ), MAP),
    "Indicators have no part in the norm of a mode":
        at("convex.mode.record_squares",
           lambda real, design: real(design) * np.append(1.0, design.single), MAP),
    "A mode spends on volume and search besides the budget of its gradient":
        at("convex.mode.ModePlan.body", lambda real, self, h: mode.hull_body(
               self.prior.design, h, self.mode_share, self.cost.unit
           ), MAP),
    "A record that comes is thought to change the gradient of a mode half as far":
        at("convex.mode.hull_body", changed(law=_halved), "regression, map, record, add_remove"),
    "The noise of gradients in windows hides one record of a person":
        at("convex.mode.hull_body", lambda real, design, h, epsilon, unit, *delta: real(
               design, h, epsilon, RECORD, *delta
           ), TWO_OF_MAP),
    "The ridge of a mode hides one record of a person":
        at("convex.perturbed.raised", lambda real, ridge, shape, e, unit: real(
               ridge, shape, e * unit.max_records, unit
           ), TWO_OF_MAP),
    "Residuals and level of a mode are free":
        at("convex.mode.ModePlan.mode_share", lambda real, self: (
               real(self) + 2 * self.level_share
           ), MAP),
    "The level of residuals is cut at twice its limit":
        at("convex.mode.ModePlan.ask_level", lambda real, self, records, found: [
               2 * real(self, records, replace(found, limit=2 * found.limit))[0]
           ], MAP),
    "The level is that of residuals at parameters that were not released":
        at("convex.mode.ModePlan.ask_level", lambda real, self, records, found: real(
               self, records,
               replace(found, belief=found.belief + LATTICE * 2**36 * (records.total(_odd) % 2))
           ), MAP),
    "A record counts four times where the target lies":
        at("convex.mode.ModePlan.ask_look", lambda real, self, records, found: [
               4 * each for each in real(self, records, found)
           ], MAP),
    "All products of a regression may have a tenth more rho":
        at("regression.plans.composed_rho", times(TENTH), "regression, gaussian, record"),
    "The number of missing targets is drawn with half its noise":
        at("regression.plans.laplace_scale", half_of, LAPLACE),
    "Each of several draws of coefficients has the whole loss":
        at(f"{DRAWN}.loss_of_a_draw", lambda real, e, d, n: real(e, d, 1), DRAWS),
    "Draws around a mode have the mode's half, too":
        at(f"{DRAWN}.loss_of_a_draw", lambda real, e, d, n: real(2 * e, d, n), DRAWS),
    "Draws are weighed for one record of a person":
        at(f"{DRAWN}.score_range", times(0.5), "regression, Sampler(n_samples=3), person"),
    "Every ball of draws is thought to be small":
        at(f"{DRAWN}.score_range", lambda _, limit, reach: 2 * limit * reach,
           "'coef_bound': 3.0}, record"),
    "Indicators have no part in the norm of a draw":
        at(f"{DRAWN}.record_squares",
           lambda real, design: real(design) * np.append(1.0, design.single),
           "regression, sampler"),
    "The centre of draws follows from the records":
        at(f"{DRAWN}.DrawsPlan.place", lambda real, self, found: (
               (r := real(self, found))[0], r[1] + LATTICE * 2**36 * (_SEEN[-1] % 2), r[2]
           ), DRAWS)
        .also(f"{DRAWN}.DrawsPlan.ask_draws", lambda real, self, records, found: (
               _SEEN.append(records.total(_odd)), real(self, records, found)
           )[1]),
    "A replaced record is thought to change the gradient once where its noise is Gaussian":
        at("noise.gradient.largest_ratio", times(2), "regression, many columns, record"),
    "Gaussian noise of a mode has the whole share of epsilon, and the determinant has it, too":
        at("noise.gradient.gaussian_noise",
           lambda real, shape, epsilon, *rest: real(shape, epsilon * 64 / 55, *rest),
           "regression, many columns, person (2 records)")
        .also("convex.hull.gaussian_noise",
           lambda real, shape, epsilon, *rest: real(shape, epsilon * 64 / 55, *rest)),
    "A mode with Gaussian noise is charged without a delta":
        at("convex.mode.ModePlan.of", lambda real, cls, *given: replace(
               plan := real(cls, *given), cost=plan.cost._replace(delta=Fraction(0))
           ), "regression, many columns, record")
        .also("convex.mode.ModePlan.body", lambda real, self, h: real(
               replace(self, cost=self.cost._replace(delta=Fraction(1, 10**6))), h
           )),
    "A person changes squared sums by as many times, not by its square":
        at("regression.gram.GaussianGram.protecting", lambda real, self, unit: replace(
               b := real(self, unit), bound=b.bound / unit.max_records
           ), TWO_OF_GAUSSIAN),
    "Constant and levels have no part in the norm of a matrix":
        at(f"{GRAM}.of", changed(bound=lambda bound: bound / 2), "levels, laplace"),
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
FAULTS.rows(REPLAY, {
    "The limits of a score follow from the exact tails":
        at(f"{LINEAR}.read_lengths", lambda real, self, known, noisy, law: replace(
               found := real(self, known, noisy, law),
               limits=found.limits._replace(score=found.limits.score * (1 + _SEEN[-1] % 97 / 1e6)),
           ), LOCATED).also("convex.linear.ask_lengths", lambda real, records, known: (
               _SEEN.append(records.total(_odd)), real(records, known)
           )[1]),
})  # fmt: skip
FAULTS.rows(LAWS, {
    "Noise of a ball is rounded from too few bits":
        at("noise.ball.exact_normals", _cut_bits)
        .also("noise.ball.rounded_ends", lambda real, *given: (real(*given)[0],) * 2),
    "Noise of a ball has a normal too few in each entry":
        at("noise.ball.exact_normals", lambda real, count, source: replace(
               drawn := real(count, source),
               cells=drawn.cells * (np.arange(count) < count - isqrt(count)),
           )),
    "Noise of a ball has half its scale":
        at("noise.ball.ball_vectors", lambda real, scale, *rest: real(scale / 2, *rest)),
})  # fmt: skip
FAULTS.rows("intervals", {
    "Nominal errors of map and sampler are printed as 95 % intervals":
        at("linear_model.BayesianLinearRegression._why_no_intervals", returns(""), "coefficients"),
})  # fmt: skip


@FAULTS.row(PARTS, "regression.moments._gram", LAPLACE)
def _(real, shard, *args, **options):
    """The first record of a table is in the sums twice."""
    first = shard._replace(table=shard.table.rows(slice(0, 1)), target=shard.target[:1])
    return real(shard, *args, **options) + real(first, *args, **options)


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


@FAULTS.row("draws added up", "convex.draws.DrawsPlan.of", "coefficients")
def _(real, cls, *given, **options):
    """The mode is left out of the zCDP of draws."""
    plan = real(cls, *given, **options)
    return replace(plan, cost=plan.cost._replace(rho=plan.cost.rho - plan.mode_share**2 / 2))


@FAULTS.row(REPLAY, "convex.design._map_numbers", "BayesianLinearRegression, gaussian")
def _(_, chunk, maps, out, grid):
    """Features of a regression are not clipped to their bounds."""
    factor, shift, _ = maps
    numbers = np.nan_to_num(np.asarray(chunk, float), nan=0.0, posinf=1e6, neginf=-1e6)
    out[:] = grid * np.clip(numbers * factor - shift, -1e6, 1e6)


@FAULTS.row(
    REPLAY,
    ("convex.records.scaled_target", "convex.record_sums.scaled_target"),
    "BayesianLinearRegression, gaussian",
)
def _(_, y, scale):
    """The target of a regression is scaled, but the result of clipping it is dropped."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (y - scale.centre) / scale.half
    return np.nan_to_num(scaled, nan=0.0, posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)


@FAULTS.row("values", "convex.records._of_known")
def _(_, ask, shard):
    """A missing target stays NaN on its way into the sums."""
    return ask(shard)


@FAULTS.row("values", "regression.moments._Products.add")
def _(_, self, x, edge):
    """Products are added up as single floats, so that the order of the rows moves the last bits."""
    self.rows += len(x)
    self._inner = np.float32(self._inner) + np.float32(x).T @ np.float32(x)
    self._cross = np.float32(self._cross) + np.float32(edge).T @ np.float32(x)
    self._outer += edge.T @ edge
