"""Bugs of the noise itself: too little of it, of the wrong law, from the wrong place."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, returns, times
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace, SupNorm, class_rows
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace, one_sided_laplace
from dpbayes_sklearn.noise.integers import bernoulli_exp, random_source, uniform_below
from dpbayes_sklearn.noise.law import draw, laplace_scale

FAULTS = Faults("noise")
COUNTS, MOMENTS, LAWS, BYTES = (
    "enumeration of counts",
    "enumeration of moments",
    "sampler laws",
    "source of bytes",
)
HALF = Fraction(1, 2)
ADD = "noise.noise.add"

FAULTS.rows(COUNTS, {
    "The scale of the counts' noise is half of what it should be":
        at(("counts.tables.laplace_scale", "categories.counts.laplace_scale"), times(HALF)),
    "Only the first table of those that get the same noise gets it":
        at(ADD, lambda real, arrays, *rest: (real(arrays, *rest)[0], *arrays[1:])),
    "A cell that counts nobody gets no noise, which tells that it does":
        at(ADD, lambda real, arrays, *rest: tuple(
               np.where(a == 0, 0, z) for a, z in zip(arrays, real(arrays, *rest), strict=True)
           )),
    "Negative noisy counts are replaced by the exact ones":
        at(ADD, lambda real, arrays, *rest: tuple(
               np.where(z <= 0, a, z) for a, z in zip(arrays, real(arrays, *rest), strict=True)
           )),
    "Noise that should cancel over all counts leaves the last one exact":
        at("noise.joint.zero_sum_laplace",
           lambda real, *args: real(*args) * (np.arange(args[1]) < args[1] - 1), "geometric"),
    "The class table's scale is multiplied by its weight, not divided":
        at("counts.tables.CountTables._independent_noise",
           lambda real, self, unit, epsilon, weight: replace(
               law := real(self, unit, epsilon, weight),
               scales=(*law.scales[:-1], law.scales[-1] * weight**2),
           )),
    "Independent noise tells half of its privacy loss":
        at("noise.DiscreteLaplace.privacy_loss", times(HALF)),
    "Noise of the sup norm tells the loss of the mean of its entries":
        at("noise.SupNorm.privacy_loss", lambda _, law, shift: (
               Fraction(int(np.abs(shift).sum()) * law.grid, len(shift)) / law.steps
           ), "fourier, Network"),
    "Noise of the rows of a class tells the loss of one class only":
        at("noise.ClassRows.privacy_loss", times(HALF)),
    "Noise that adds to zero tells the loss of one count only":
        at("noise.ZeroSum.privacy_loss", times(HALF), "geometric"),
    "Noise on a finer grid is drawn with the scale of the coarse one":
        at("noise.SupNorm.steps", lambda _, law: law.scale, "fourier, Network"),
    "Rows of noise on a grid are drawn with one step less than they have":
        at("noise.ClassRows.steps", lambda _, law: law.scale * max(law.grid - 1, 1)),
    "A large epsilon is taken for an infinite one":
        at("privacy.budget.Budget.infinite", lambda _, budget: budget.epsilon > 30,
           "laplace, epsilon=40"),
})  # fmt: skip
FAULTS.rows(LAWS, {
    "The sampler draws with half the scale it was given":
        at("noise.discrete_laplace._proposals", lambda real, scale, *rest: real(scale / 2, *rest)),
    "Radii of a box are taken as proposed, whatever their coins say":
        at("noise.joint._radii", lambda _, sides, scale, count, source: np.sum(
               one_sided_laplace(scale, count * len(sides), source).reshape(count, -1), axis=1
           )),
    "Rejected words are taken after all, so that a die favours some of its faces":
        at("noise.integers.words_below", lambda _, limit, size, source, word: (
               np.frombuffer(source(size * np.dtype(word).itemsize), word) % np.asarray(limit, word)
           )),
    "Noise that cancels is accepted whatever its last part is":
        at("noise.joint._coins", lambda _, size, *rest: np.ones(size.size, bool)),
    "Rows of noise are accepted however few of them there are":
        at("noise.class_rows._accepts", returns(True)),
    "Discrete Gaussian noise has half of its variance":
        at("noise.discrete_gaussian.discrete_gaussian", lambda real, v, *rest: real(v / 2, *rest)),
    "A Gaussian in a ball is drawn with twice its precision":
        at("noise.discrete_gaussian._unit_ball",
           lambda real, a, b, *rest: real(2 * a, 2 * b, *rest)),
    "The last point of a finite law is never drawn":
        at("noise.finite.finite_draw",
           lambda real, weights, source: real(weights[..., :-1], source)),
    "The noise of a text is not cut off":
        at("noise.discrete_laplace._unlimited",
           lambda _, law, count, source: discrete_laplace(law.scale, count, source)),
    "Even noise of a text is not thinned out":
        at("noise.discrete_laplace._even",
           lambda _, law, count, source: np.array(
               uniform_below(2 * law.reach + 1, count, source, np.uint64), np.int64
           ) - law.reach),
})  # fmt: skip
FAULTS.rows(MOMENTS, {
    "All sides of the moments' box are 1, though some sums move by 2":
        at("regression.moments.Block._sup_norm",
           lambda _, self, scale: SupNorm(laplace_scale(scale, Fraction(1)), (1,) * len(self)),
           "laplace, Design(domains=(Categories"),
})  # fmt: skip
FAULTS.rows(BYTES, {
    "Every release uses the same seed, so that its noise can be taken off again":
        at("noise.noise.random_source", lambda _, state=None, stream=0: random_source(state or 12)),
    "Batches with one seed repeat each other's noise":
        at("noise.noise.random_source", lambda _, state=None, stream=0: random_source(state)),
})  # fmt: skip
FAULTS.rows("attacks", {
    "The sampler draws with a quarter of the variance it was given":
        at("noise.discrete_gaussian._proposals",
           lambda real, variance, *rest: real(variance / 4, *rest), "Gaussian()"),
})  # fmt: skip
FAULTS.rows("composition", {
    "Noise that cannot be drawn is charged":
        at("noise.discrete_gaussian.MAX_VARIANCE", math.inf, "smallest deltas"),
})  # fmt: skip


@FAULTS.row(LAWS, "noise.discrete_laplace.geometric")
def _(_, size, source):
    """A loop that ends by chance is ended after two rounds, which cuts the tails."""
    drawn = np.zeros(size, np.int64)
    for turn in range(2):
        drawn += bernoulli_exp(np.ones(size, np.uint16), 1, source, first=2) & (drawn == turn)
    return drawn


@FAULTS.row(LAWS, "counts.plans.ReleasedCounts")
def _(real, network, tables, n, laws, *size_laws):
    """The law that is told with the counts is not the one that was drawn."""
    told = DiscreteLaplace.of(Fraction(1), [table.size for table in tables])
    return real(network, tables, n, (told,), *size_laws)


@FAULTS.row(BYTES, ADD)
def _(_, arrays, law, source):
    """Noise comes from numpy's global generator."""
    q = [1 - np.exp(-((law.variance(i) / 2) ** -0.5)) for i in range(len(arrays))]
    pair = (np.random.geometric, np.random.geometric)
    both = zip(arrays, q, strict=True)
    return tuple(a + pair[0](p, a.shape) - pair[1](p, a.shape) for a, p in both)


@FAULTS.row(BYTES, "noise.noise.finite_draw")
def _(_, weights, source):
    """Points are chosen with numpy's global generator."""
    shares = np.cumsum(weights / weights.sum(axis=-1, keepdims=True, dtype=float), axis=-1)
    at = np.random.random(shares.shape[:-1])  # noqa: NPY002
    return np.minimum((shares <= at[..., None]).sum(axis=-1), weights.shape[-1] - 1)


@FAULTS.row("values", ADD)
def _(_, arrays, law, source):
    """Noise is a float, whose last bits tell what it was added to."""
    rng = np.random.default_rng(int.from_bytes(source(8), "little"))
    scales = [(law.variance(i) / 2) ** 0.5 for i in range(len(arrays))]
    return tuple(
        a + rng.laplace(scale=b, size=a.shape) for a, b in zip(arrays, scales, strict=True)
    )


@FAULTS.row(COUNTS, ADD, "fourier, Network")
def _(real, arrays, law, source):
    """All cells share one draw, so that differences between them are exact."""
    one = real(arrays, law, source)[0].flat[0] - arrays[0].flat[0]
    return tuple(array + one for array in arrays)


@FAULTS.row(COUNTS, ADD)
def _(real, tables, law, source):
    """Tables that should share one noise get one each, of the same scale."""
    if not isinstance(law, ClassRows):
        return real(tables, law, source)
    steps = [law.grid * table for table in tables]
    for state in np.ndindex(steps[-1].shape):
        for table, size in zip(steps[:-1], law.values, strict=True):
            [(total, (row,))] = class_rows.many_rows([size], law.steps, 1, source)
            table[state] += row
        steps[-1][state] += total
    return tuple(table / law.grid for table in steps)


@FAULTS.row(COUNTS, ADD)
def _(_, arrays, law, source):
    """Every array gets the first numbers of the noise, so they share it."""
    noise = draw(law, 1, source)[0]
    return tuple(law.grid * a + noise[: a.size].reshape(a.shape) for a in arrays)


@FAULTS.row(COUNTS, ADD, "fourier, Network")
def _(_, arrays, law, source):
    """The noise is split one number too early, so that one cell gets none."""
    noise = np.append(draw(law, 1, source)[0][1:], 0)
    ends = np.cumsum([0, *(a.size for a in arrays)])
    parts = zip(arrays, ends, strict=False)
    return tuple(a + noise[e : e + a.size].reshape(a.shape) for a, e in parts)


@FAULTS.row(COUNTS, ADD)
def _(real, arrays, law, source):
    """Class counts get no noise, since the rows that sum to them have it."""
    noisy = real(arrays, law, source)
    return (*noisy[:-1], arrays[-1] * 1.0) if isinstance(law, ClassRows) else noisy


@FAULTS.row(COUNTS, "noise.law.representable_scale", "laplace, epsilon=0.12")
def _(real, scale):
    """A scale that cannot be drawn exactly is rounded down."""
    drawn = real(scale)
    return drawn if drawn == scale else drawn * (1 - Fraction(1, 2**50))
