r"""Audit a mechanism by the exact log likelihood ratio of what it releases.

A release is run once, to see what it draws from; each of its noise steps is then drawn many times,
by the production sampler. Of one step with laws p and p' on two neighbouring data sets, no event
tells more than :math:`\log p(x) - \log p'(x) \ge t` (Neyman and Pearson), so the outcomes are
ordered by this ratio, which is known in closed form, and only the threshold t is learned. A step
whose samples do not follow its law is judged by its samples.

Steps that depend on what earlier ones released are all taken along the same transcript, that of the
first data set: given the transcript, each step must keep to its own share of epsilon.

Joint log densities of noise laws, and the same laws with half the noise.

Written down here a second time, from the definitions and apart from ``noise/``: what judges a law
should not ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import kve

from benchmarks.audit.tools.recording import ModeSearch, Recording, ScoredChoice
from benchmarks.audit.tools.steps import (
    Added,
    Ball,
    Choice,
    ConvexMode,
    LogisticMode,
    PerturbedMinimum,
    StepLaw,
)
from benchmarks.audit.tools.universes import released
from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.audit.statistical import EpsilonBound, bound_from_outcomes
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    MatrixNoise,
    Noise,
    NoiseLaw,
    SupNorm,
    ZeroSum,
)
from dpbayes_sklearn.noise.ball import BallNoise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy import Budget

_BATCH_RUNS = 20_000  # This many runs are simulated at a time.


def drawn_steps(
    mechanism: Mechanism | None,
    statistics: Any,
    prior: Any,
    budget: Budget,
    along: Recording | None = None,
    random_state: int | None = None,
) -> Recording:
    """Release once, along an earlier release if there was one; return its steps."""
    recording = Recording(along)
    released(mechanism, statistics, prior, budget, recording.noise(random_source(random_state)))
    return recording


def log_ratios(
    here: Sequence[StepLaw],
    there: Sequence[StepLaw],
    runs: int,
    sharper: bool = False,
    random_state: int | None = 0,
) -> FloatArray:
    """Return log p(x)/p'(x) of all steps together, x drawn on the first data set."""
    if [type(step) for step in here] != [type(step) for step in there]:
        raise ValueError("Which steps a release takes depends on the data.")
    total, noise = np.zeros(runs), Noise(random_source(random_state))
    for mine, theirs in zip(here, there, strict=True):
        if not isinstance(mine, ModeSearch):  # which is judged with its mode
            parts = [min(_BATCH_RUNS, runs - start) for start in range(0, runs, _BATCH_RUNS)]
            drawn = (redrawn(mine, part, sharper, noise) for part in parts)
            total += np.concatenate([_RATIOS[type(mine)](mine, theirs, x) for x in drawn])
    return total


@singledispatch
def redrawn(step: Any, runs: int, sharper: bool, noise: Noise) -> AnyArray:
    """Draw outcomes of a step, also with half its noise; sums are in steps of the noise's grid."""
    raise TypeError(f"No draws are known for {type(step).__name__}.")


@redrawn.register
def _(step: Added, runs: int, sharper: bool, noise: Noise) -> AnyArray:
    parts = np.split(step.centre, np.cumsum(step.law.sizes)[:-1])
    many = [np.broadcast_to(part, (runs, len(part))) for part in parts]
    noisy = noise.add(many, halved(step.law) if sharper else step.law)
    return np.asarray(np.rint(np.hstack(noisy) * step.law.grid), np.int64)


@redrawn.register
def _(step: Choice, runs: int, sharper: bool, noise: Noise) -> AnyArray:
    own = _squared(step.weights) if sharper else step.weights
    return noise.choose(np.broadcast_to(own, (runs, *own.shape)))


@redrawn.register
def _(step: Ball, runs: int, sharper: bool, noise: Noise) -> AnyArray:
    times = 2 if sharper else 1
    return noise.ball(times * step.precision, times * step.linear, step.radius, runs)


@redrawn.register
def _(step: PerturbedMinimum, runs: int, sharper: bool, noise: Noise) -> AnyArray:
    law = step.plan.gradient_noise
    own = step.with_noise(halved(law) if sharper else law)
    return np.array([noise.minimum(own) for _ in range(runs)])


def audit_ratios(
    here: Sequence[StepLaw],
    there: Sequence[StepLaw],
    runs: int,
    sharper: bool = False,
    delta: float = 0.0,
    random_state: int | None = 0,
) -> EpsilonBound:
    """Bound the epsilon that goes with ``delta`` from below by the ratios of both sides.

    ``sharper`` plants half the noise, which an audit with any power must see.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.mechanisms import Geometric
    >>> from dpbayes_sklearn.categories.posterior import Beta, SimplexPrior
    >>> from dpbayes_sklearn.categories.counts import SimplexCounts
    >>> sides = [
    ...     drawn_steps(Geometric(), SimplexCounts(np.array(x)), SimplexPrior(Beta(1, 1)),
    ...                 Budget(Fraction(1)), random_state=0).steps
    ...     for x in ([3, 2], [2, 3])
    ... ]
    >>> 0.8 < audit_ratios(*sides, 20_000).epsilon <= 1 < audit_ratios(*sides, 20_000, True).epsilon
    True
    """
    seeds = (None, None) if random_state is None else (2 * random_state, 2 * random_state + 1)
    first = log_ratios(here, there, runs, sharper, seeds[0])
    second = -log_ratios(there, here, runs, sharper, seeds[1])
    return bound_from_outcomes(first, second, delta=delta)


def _noise_ratio(one: Added, other: Added, outcomes: AnyArray) -> FloatArray:
    grid = one.law.grid
    return log_ratio(one.law, outcomes - one.centre * grid, (one.centre - other.centre) * grid)


def _choice_ratio(one: Choice, other: Choice, outcomes: AnyArray) -> FloatArray:
    ratios = one._log_law - other._log_law
    return np.asarray(ratios[np.arange(len(ratios)), outcomes].sum(axis=1))


def _ball_ratio(one: Ball, other: Ball, outcomes: AnyArray) -> FloatArray:
    """Return the difference of the exponents; normalisations shift all ratios alike."""
    curvature, slope = other.precision - one.precision, one.linear - other.linear
    return np.asarray(
        0.5 * np.einsum("ri,ij,rj->r", outcomes, curvature, outcomes) + outcomes @ slope
    )


def _mode_ratio(one: Any, other: Any, outcomes: AnyArray) -> FloatArray:
    """Return the difference of the log densities of the minimum without the noise of the search."""
    return np.asarray(one.log_density(outcomes) - other.log_density(outcomes))


# How the log likelihood ratio of a step is computed, by the kind of its law.
_RATIOS: dict[type[StepLaw], Callable[..., FloatArray]] = {
    Added: _noise_ratio,
    Choice: _choice_ratio,
    ScoredChoice: _choice_ratio,
    Ball: _ball_ratio,
    ConvexMode: _mode_ratio,
    LogisticMode: _mode_ratio,
}


def _squared(weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return weights of the squared probabilities: all log ratios are doubled."""
    shares = weights.astype(np.float64) / weights.max(axis=-1, keepdims=True)
    return np.asarray(np.maximum(np.rint(shares**2 * 2.0**40), 1), np.uint64)


@singledispatch
def log_density(law: NoiseLaw, noise: IntArray) -> FloatArray:
    """Return the log probability of noises, up to a constant.

    ``noise`` has one row for each release, in steps of the law's grid.
    """
    raise TypeError(f"No density is known for {type(law).__name__}.")


@log_density.register
def _(law: DiscreteLaplace, noise: IntArray) -> FloatArray:
    rates = [0.0 if scale == 0 else float(1 / scale) for scale in law.scales]
    return np.asarray(-np.abs(noise) @ np.repeat(rates, law.numbers))


@log_density.register
def _(law: DiscreteGaussian, noise: IntArray) -> FloatArray:
    halves = [0.0 if variance == 0 else float(1 / (2 * variance)) for variance in law.parameters]
    return np.asarray(-np.square(noise.astype(float)) @ np.repeat(halves, law.numbers))


@log_density.register
def _(law: ZeroSum, noise: IntArray) -> FloatArray:
    return np.asarray(-np.abs(noise).sum(axis=1) / float(law.scale))


@log_density.register
def _(law: SupNorm, noise: IntArray) -> FloatArray:
    norms = np.ceil(np.abs(noise) / np.array(law.sides)).max(axis=1)
    return np.asarray(-norms / float(law.scale * law.grid))


@log_density.register
def _(law: BallNoise, noise: IntArray) -> FloatArray:
    return np.asarray(-np.sqrt(np.square(noise.astype(float)).sum(axis=1)) / float(law.scale))


@log_density.register
def _(law: ClassRows, noise: IntArray) -> FloatArray:
    parts = np.split(np.abs(noise), np.cumsum(law.sizes)[:-1], axis=1)
    rows = [part.reshape(len(noise), law.n_classes, -1).sum(axis=2) for part in parts]
    return np.asarray(-np.max(rows, axis=0).sum(axis=1) / float(law.scale * law.grid))


@singledispatch
def log_ratio(law: NoiseLaw, noise: IntArray, shift: IntArray) -> FloatArray:
    """Return the log ratio of the densities at ``noise`` and at ``noise + shift``."""
    return log_density(law, noise) - log_density(law, noise + shift)


@log_ratio.register
def _(law: MatrixNoise, noise: IntArray, shift: IntArray) -> FloatArray:
    """Return that of the noise along the axes of the shift, as if they were independent.

    The joint density has no closed form. Any order of the outcomes gives a bound from below.
    """
    p = len(law.weights)
    a = np.array([float(weight) for weight in law.weights])
    upper = np.triu_indices(p)
    matrices = np.zeros((len(noise) + 1, p, p))
    matrices[(slice(None), *upper)] = np.vstack([noise, shift])
    full = (matrices + np.triu(matrices, 1).swapaxes(1, 2)) * np.outer(a, a) / float(law.scale)
    values, axes = np.linalg.eigh(full[-1])
    along = np.einsum("ik,rij,jk->rk", axes, full[:-1], axes)
    return np.asarray((_log_bessel(along, p) - _log_bessel(along + values, p)).sum(axis=1))


def _log_bessel(x: FloatArray, p: int) -> FloatArray:
    """Log density of the difference of two Gamma variables of order (p + 1)/2 and scale 1."""
    v, y = p / 2, np.maximum(np.abs(x), 1e-9)
    return np.asarray(v * np.log(y) + np.log(kve(v, y)) - y)


@singledispatch
def halved(law: Any) -> Any:
    """Return the law with half the noise."""
    return replace(law, scale=law.scale / 2)


@halved.register
def _(law: DiscreteGaussian) -> DiscreteGaussian:
    return replace(law, parameters=tuple(variance / 4 for variance in law.parameters))


@halved.register
def _(law: DiscreteLaplace) -> DiscreteLaplace:
    return replace(law, scales=tuple(scale / 2 for scale in law.scales))
