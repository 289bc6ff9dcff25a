r"""The exact delta of a mechanism at an epsilon, over all data sets of a small world.

.. math:: \delta(\varepsilon) = \max_{D \sim D'} \sum_x (P(x) - e^\varepsilon P'(x))_+

Of independent discrete Gaussian noise of parameter :math:`\sigma^2` in numbers that differ by v, it
depends on :math:`T = \langle Z, v\rangle` only, whose law is convolved directly: all terms are
positive. It is written down here a second time, apart from :mod:`dpbayes_sklearn.privacy.gaussian`,
which calibrates by a bound. Noise on sums in fine steps is so wide that the loss is that of a
continuous Gaussian, whose ratio of shift to deviation is :math:`(\sum v_i^2/\sigma_i^2)^{1/2}`.

The exact delta of publishing common texts, over all data sets of a small world.

The production mechanism releases every data set with **every** noise that there can be, one after
the other; the probabilities of the noises are written down here a second time. So no assumption is
made about which texts are published, or how their counts are compared.

.. math:: \delta(\varepsilon) = \max_{D \sim D'} \sum_S (P(S) - e^\varepsilon P'(S))_+
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from itertools import product
from typing import Any

import numpy as np

from benchmarks.audit.tools.enumeration import known_size, readers_of
from benchmarks.audit.tools.steps import Added, Choice, StepLaw, gaussian_delta, shared_laws
from benchmarks.audit.tools.universes import DataSet, Indices, TextUniverse, Universe, universe_of
from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.columns.plans import TextPlan
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.noise import DiscreteGaussian, Noise, NoiseLaw
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit, exact

_WIDE = 2.0**30  # Noise of a larger variance is treated as continuous.

Pattern = tuple[tuple[float, int, int], ...]
"""(sigma², shift, how many numbers), for every size of shift."""

_MOST_WEIGHT = 1000  # Ratios of variances must have denominators up to this.


@dataclass(frozen=True)
class DeltaEnumeration:
    """Result of the enumeration of all neighbouring data sets.

    Attributes
    ----------
    delta : float
        The largest delta of any two neighbours at this epsilon.
    epsilon, claim : float
        The epsilon, and the claimed delta.
    worst_pair : pair of tuples
        The records of the two neighbours.
    n_pairs : int
        Pairs of neighbours, in both directions.
    """

    delta: float
    epsilon: float
    claim: float
    worst_pair: tuple[tuple[Any, ...], tuple[Any, ...]]
    n_pairs: int

    @property
    def within(self) -> bool:
        """True if no two neighbours need more than the claim."""
        return self.delta <= self.claim

    @property
    def ratio(self) -> float:
        """Return the part of the claim that the worst pair uses up."""
        return self.delta / self.claim


def enumerate_delta(
    mechanism: str | Mechanism,
    structure: Any,
    n: int,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    unit: PrivacyUnit | str = "record",
    transcripts: int = 2,
) -> DeltaEnumeration:
    """Compute the largest delta over all neighbouring data sets of n records of a universe.

    As in :func:`~benchmarks.audit.tools.enumerate_loss`, the production mechanism releases the
    production statistics of every data set, its samplers replaced by recorders.

    Parameters
    ----------
    mechanism : str or Mechanism
        One that adds discrete Gaussian noise, or a sampler with few draws from few points.
    structure : Network, int or Design
        What a record is: the nodes of a network, one of k categories, or the columns of a
        regression.
    n : int
        Number of records.
    epsilon, delta : float
        The budget of the release.
    unit : PrivacyUnit or {"record", "feature"}, default="record"
    transcripts : int, default=2
        For a regression, which is released in several steps: so many outcomes of the earlier
        steps are tried.

    Returns
    -------
    DeltaEnumeration

    Examples
    --------
    >>> from dpbayes_sklearn.counts.network import Network
    >>> found = enumerate_delta("gaussian", Network.star([2, 2], 2), n=2)
    >>> found.within, found.delta > 0.99e-6, found.n_pairs
    (True, True, 648)
    """
    chosen, universe = resolve_mechanism(mechanism), universe_of(structure)
    budget = Budget(exact(epsilon), exact(delta, "delta"), PrivacyUnit.of(unit))
    data_sets = universe.data_sets(n, budget.unit)
    size, pairs = known_size(n, budget), _both_ways(universe.neighbours(n, budget.unit))
    deltas: FloatArray = np.zeros(len(pairs))
    for read in readers_of(chosen, universe, data_sets, 1.0, budget, transcripts):
        laws = shared_laws([read(universe.observed(d, size)) for d in data_sets])
        keys = [[step.key() for step in own] for own in laws]
        found = [
            _pair_delta(_apart(laws[a], keys[a], laws[b], keys[b]), float(epsilon))
            for a, b in pairs
        ]
        deltas = np.maximum(deltas, found)
    return _largest(universe, data_sets, pairs, deltas, budget)


def _both_ways(neighbours: tuple[Indices, Indices]) -> list[tuple[int, int]]:
    first, second = (side.tolist() for side in neighbours)
    return [*zip(first, second, strict=True), *zip(second, first, strict=True)]


def _largest(
    universe: Universe,
    data_sets: list[DataSet],
    pairs: list[tuple[int, int]],
    deltas: Sequence[float] | FloatArray,
    budget: Budget,
) -> DeltaEnumeration:
    """Return the result for the worst of all pairs."""
    worst = int(np.argmax(deltas))
    one, other = (tuple(universe.records[i] for i in data_sets[side]) for side in pairs[worst])
    claim = float(budget.epsilon), float(budget.delta)
    return DeltaEnumeration(float(deltas[worst]), *claim, (one, other), len(pairs))


def _apart(
    one: list[StepLaw], own: list[bytes], other: list[StepLaw], their: list[bytes]
) -> list[tuple[StepLaw, StepLaw]]:
    """Return the steps whose laws differ."""
    steps = zip(one, own, other, their, strict=True)
    return [(mine, theirs) for mine, key, theirs, their_key in steps if key != their_key]


def _pair_delta(apart: list[tuple[StepLaw, StepLaw]], epsilon: float) -> float:
    """Return delta between two releases; 1 if other laws than of noise or choices differ.

    Purely private noise beside Gaussian noise tells no more than a randomised response does.
    """
    if apart and all(isinstance(side, Choice) for pair in apart for side in pair):
        return _choices_delta(apart, epsilon)
    pattern: Counter[tuple[float, int]] = Counter()
    pure = 0.0
    for mine, theirs in apart:
        if not (isinstance(mine, Added) and isinstance(theirs, Added)):
            return 1.0
        variances = _gaussian_variances(mine.law)
        if mine.law != theirs.law:
            return 1.0
        if variances is None:
            pure += float(mine.loss(theirs))
            continue
        moved = np.abs(mine.centre - theirs.centre)
        where = np.flatnonzero(moved)
        pattern.update(zip(variances[where].tolist(), moved[where].tolist(), strict=True))
    if not math.isfinite(pure):
        return 1.0
    keeps = 1 / (1 + math.exp(-pure))
    less, more = (_shifted_delta(pattern, epsilon + side * pure) for side in (-1, 1))
    return keeps * less + (1 - keeps) * more


def _shifted_delta(pattern: Counter[tuple[float, int]], epsilon: float) -> float:
    """Return the delta of Gaussian noise that is shifted."""
    if not pattern:
        return max(-math.expm1(epsilon), 0.0)
    if min(pattern)[0] > _WIDE:
        squared = sum(k * v * v / s for (s, v), k in pattern.items())
        return gaussian_delta(math.sqrt(squared), epsilon)
    sizes = tuple((variance, size, cells) for (variance, size), cells in sorted(pattern.items()))
    return gaussian_shift_delta(sizes, epsilon)


@singledispatch
def _gaussian_variances(law: NoiseLaw) -> FloatArray | None:
    """Return the parameter of every number's noise, None if it is not Gaussian."""
    return None


@_gaussian_variances.register
def _(law: DiscreteGaussian) -> FloatArray:
    return np.repeat([float(parameter) for parameter in law.parameters], law.numbers)


def _choices_delta(pairs: Sequence[tuple[Any, Any]], epsilon: float) -> float:
    """Return delta between independent draws from finite laws, outcome by outcome."""
    loss, mass = np.zeros(1), np.ones(1)
    rows = (both for one, other in pairs for both in zip(one.weights, other.weights, strict=True))
    for both in rows:
        p, q = (row / row.sum() for row in np.array(both, np.float64))
        loss = np.add.outer(loss, np.log(p) - np.log(q)).ravel()
        mass = np.multiply.outer(mass, p).ravel()
    return float((mass * np.clip(-np.expm1(epsilon - loss), 0, None)).sum())


@lru_cache(maxsize=256)
def gaussian_shift_delta(pattern: Pattern, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise in numbers that are shifted.

    >>> f"{gaussian_shift_delta(((36.0, 1, 2),), 1.0):.3g}"
    '8.94e-07'
    """
    if not pattern:
        return 0.0
    base, weights = _integer_weights([variance for variance, _, _ in pattern])
    law: FloatArray = np.ones(1)
    squares = 0
    for weight, (variance, size, cells) in zip(weights, pattern, strict=True):
        together = _sum_law(variance, cells)
        spread = np.zeros((len(together) - 1) * size * weight + 1)
        spread[:: size * weight] = together
        law = np.convolve(law, spread)
        squares += weight * size**2 * cells
    t = np.arange(len(law)) - len(law) // 2
    loss = (squares - 2 * t) / (2 * base)
    return float((law * np.clip(-np.expm1(epsilon - loss), 0, None)).sum())


def _sum_law(variance: float, cells: int) -> FloatArray:
    """Return the law of the sum of several discrete Gaussians, but for tails below 1e-40."""
    reach = math.ceil(12 * math.sqrt(variance))
    z = np.arange(-reach, reach + 1.0)
    cell = np.exp(-(z**2) / (2 * variance))
    cell /= cell.sum()
    law: FloatArray = np.ones(1)
    for _ in range(cells):
        law = np.convolve(law, cell)
        tail = int(np.argmax(law > 1e-40))
        law = law[tail : len(law) - tail]
    return law


def _integer_weights(variances: list[float]) -> tuple[float, list[int]]:
    """Return a base and the least integers w with which every variance is base / w.

    >>> _integer_weights([3.0, 2.0, 6.0])
    (6.0, [2, 3, 1])
    """
    largest = max(variances)
    ratios = [
        Fraction(largest / variance).limit_denominator(_MOST_WEIGHT) for variance in variances
    ]
    if any(abs(r * v / largest - 1) > 1e-12 for r, v in zip(ratios, variances, strict=True)):
        raise ValueError("The ratios of the variances must be those of small integers.")
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    return common * largest, [int(common * ratio) for ratio in ratios]


Law = dict[Any, float]
"""Probabilities of the sets that can be published."""


def enumerate_texts(
    texts: tuple[str, ...] = ("a", "b", "c"),
    n: int = 6,
    *,
    epsilon: float = 4.0,
    delta: float = 0.0281,
    unit: PrivacyUnit = RECORD,
) -> DeltaEnumeration:
    """Compute the largest delta over all neighbouring data sets of n texts.

    Parameters
    ----------
    texts : tuple of str
    n : int
        Number of records. Losses are largest where a count passes twice the reach of the noise.
    epsilon, delta : float
        The budget. Keep them large: there are (2 reach + 1)^texts noises for each data set.
    unit : PrivacyUnit, default=RECORD
        What one fit protects.

    Returns
    -------
    DeltaEnumeration

    Examples
    --------
    >>> found = enumerate_texts()
    >>> found.within, round(found.delta / found.claim, 2)
    (True, 0.99)
    """
    universe, budget = TextUniverse(texts), Budget(exact(epsilon), exact(delta, "delta"), unit)
    data_sets, pairs = universe.data_sets(n, unit), _both_ways(universe.neighbours(n, unit))
    laws = [_law(universe.statistics(chosen), budget) for chosen in data_sets]
    deltas = [_delta(laws[a], laws[b], epsilon) for a, b in pairs]
    return _largest(universe, data_sets, pairs, deltas, budget)


def _law(statistics: Any, budget: Budget) -> Law:
    """Return the probability of every set of texts, by all noises there can be."""
    noise, plan = _Told(), TextPlan.of(statistics.n_columns, budget)
    plan.release(statistics, noise)  # to see the law
    law: Law = {}
    for drawn in product(noise.probabilities, repeat=noise.size):
        noise.next = np.array(drawn, np.int64)
        (found,) = plan.release(statistics, noise)
        chance = math.prod(noise.probabilities[z] for z in drawn)
        law[found] = law.get(found, 0.0) + chance
    return law


class _Told(Noise):
    """Draws the noise that it was told to."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self.next: IntArray | None = None
        self.probabilities: dict[int, float] = {}

    def truncated(self, law: TruncatedLaplace, size: int) -> IntArray:
        """Return the next noise; first zeros."""
        if self.next is None:
            weights = {z: math.exp(-abs(z) / law.scale) for z in range(-law.reach, law.reach + 1)}
            total = math.fsum(weights.values())
            self.size = size
            self.probabilities = {z: weight / total for z, weight in weights.items()}
            return np.zeros(size, np.int64)
        return self.next


def _delta(one: Law, other: Law, epsilon: float) -> float:
    return math.fsum(
        max(0.0, p - math.exp(epsilon) * other.get(found, 0.0)) for found, p in one.items()
    )
