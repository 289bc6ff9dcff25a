"""The exact worst-case privacy loss of a mechanism, over all data sets of a small world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn.audit._reading import laws_of_release
from dpbayes_sklearn.audit._steps import Added, Choice, Fixed, Placed, StepLaw, shared_laws
from dpbayes_sklearn.audit._universes import DataSet, Indices, Universe, universe_of
from dpbayes_sklearn.audit.recording import Transcript
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit, exact
from dpbayes_sklearn.release import Facts, RecordCount, size_share

_CLEAR = 1e-9  # Below (1 - 1e-9) epsilon floats decide; closer, compare exact fractions.


@dataclass(frozen=True)
class Enumeration:
    """Result of the enumeration of all neighbouring data sets.

    Attributes
    ----------
    loss : float
        Worst log ratio of the probabilities of an outcome; infinite if an outcome of one data
        set is impossible for its neighbour.
    claim : float
        The claimed epsilon.
    within : bool
        True if the loss is at most the claim: decided in exact rationals where ``exact``.
    exact : bool
        True if ``loss`` is the exact worst case (as a float, rounded up); False if it is an upper
        bound, for the transcripts that were tried.
    worst_pair : pair of tuples
        The records of the two neighbours with the largest loss.
    n_pairs, n_outcomes : int
        Number of pairs of neighbours, and of log ratios that were compared. Noise on the integers
        has infinitely many outcomes; a closed form replaces them and counts as one.
    """

    loss: float
    claim: float
    within: bool
    exact: bool
    worst_pair: tuple[tuple[Any, ...], tuple[Any, ...]]
    n_pairs: int
    n_outcomes: int

    @property
    def ratio(self) -> float:
        """Return the part of the claim that the worst pair uses up."""
        return self.loss / self.claim


def enumerate_loss(
    mechanism: str | Mechanism | None,
    structure: Any,
    n: int,
    *,
    epsilon: float = 1.0,
    unit: PrivacyUnit | str = "record",
    prior: float | Sequence[float] = 1.0,
    transcripts: int = 2,
    noise: type[Noise] = Noise,
) -> Enumeration:
    """Compute the worst loss over all neighbouring data sets of n records of a universe.

    Every data set is counted by the production statistics and released by the production
    mechanism, with recorders in place of its samplers. The distributions that would have been
    drawn from are compared; stated sensitivities are not used. While this runs, no other thread
    may fit.

    Parameters
    ----------
    mechanism : str or Mechanism
        None for quantiles and choices, which have one way of release.
    structure : Network, int, Design or QuantileQuestions
        What a record is: the nodes of a network, one of k categories, the columns of a
        regression, whose numbers take five values each, or columns of which quantiles are asked.
    n : int
        Number of records. All multisets of n records are enumerated, so keep it small.
    epsilon : float, default=1.0
    unit : PrivacyUnit or {"record", "feature"}, default="record"
        Where records may be added or removed, n is the larger number, and something was released
        about it before.
    prior : float or sequence of float, default=1.0
        Pseudo-counts, or the precision of a regression's prior.
    transcripts : int, default=2
        For a regression or quantiles, which are released in several steps: so many outcomes of the
        earlier steps are tried, drawn with fixed seeds.
    noise : subclass of Noise, optional
        What makes the noise of a release in one step, for noise of one's own.

    Returns
    -------
    Enumeration

    Examples
    --------
    >>> from dpbayes_sklearn.audit import enumerate_loss
    >>> from dpbayes_sklearn.counts.network import Network
    >>> found = enumerate_loss("laplace", Network.star([2, 2], 2), n=3)
    >>> found.loss, found.within, found.n_pairs
    (1.0, True, 1008)
    >>> enumerate_loss("geometric", 2, n=5).worst_pair
    (((0,), (0,), (0,), (0,), (1,)), ((0,), (0,), (0,), (0,), (0,)))
    """
    chosen = None if mechanism is None else resolve_mechanism(mechanism)
    universe = universe_of(structure)
    budget = Budget(exact(epsilon), unit=PrivacyUnit.of(unit))
    data_sets = universe.data_sets(n, budget.unit)
    first, second = universe.neighbours(n, budget.unit)
    size = known_size(n, budget)
    if not len(first):
        raise ValueError("There are no two neighbouring data sets in this world.")
    readers = readers_of(chosen, universe, data_sets, prior, budget, transcripts, noise)
    found = [
        _Comparison([read(universe.observed(d, size)) for d in data_sets], first, second)
        for read in readers
    ]
    worst = max(found, key=lambda c: c.loss)
    pair = [tuple(universe.records[i] for i in data_sets[side]) for side in worst.pair]
    return Enumeration(
        worst.loss,
        float(budget.epsilon),
        all(c.within(Fraction(budget.epsilon)) for c in found),
        universe.is_finite,
        (pair[0], pair[1]),
        len(first),
        sum(c.n_outcomes for c in found),
    )


def known_size(n: int, budget: Budget) -> Facts | None:
    """Return what was released about a secret number of records before: the same for all."""
    if not budget.unit.size_is_secret:
        return None
    law = RecordCount(n).law(budget.unit, size_share(Fraction(budget.epsilon)))
    return Facts(n, (law,))


def readers_of(
    mechanism: Mechanism | None,
    universe: Universe,
    data_sets: list[DataSet],
    prior: Any,
    budget: Budget,
    transcripts: int,
    noise: type[Noise] = Noise,
) -> list[Callable[[Any], list[StepLaw]]]:
    """Return ways to read the laws of statistics: one, or one for each transcript."""
    belief = universe.prior(prior)
    if universe.is_finite:
        return [lambda statistics: laws_of_release(mechanism, statistics, belief, budget, noise)]
    size = known_size(len(data_sets[-1]), budget)
    starts = (data_sets[seed * 7919 % len(data_sets)] for seed in range(transcripts))
    return [
        Transcript(mechanism, universe.observed(s, size), belief, budget, seed).laws
        for seed, s in enumerate(starts)
    ]


class _Comparison:
    """The losses of all pairs, in both directions, added up over the steps of the release."""

    def __init__(self, laws: list[list[StepLaw]], first: Indices, second: Indices) -> None:
        steps = max(map(len, laws))
        self._laws = [[*own, *[Fixed(b"")] * (steps - len(own))] for own in shared_laws(laws)]
        self._here, self._there = (
            np.concatenate(sides) for sides in ((first, second), (second, first))
        )
        self.n_outcomes = 0
        self._total = np.zeros(len(self._here))
        self._kinds = np.stack([self._add(step) for step in range(steps)], axis=1)
        worst = int(np.argmax(self._total))
        self.pair = int(self._here[worst]), int(self._there[worst])

    def _add(self, step: int) -> Indices:
        """Add the loss of every pair at one step; return numbers that tell losses apart.

        Equal laws are compared only once.
        """
        numbers: dict[bytes, int] = {}
        laws: list[StepLaw] = []
        number_of = np.empty(len(self._laws), np.intp)
        for i, own in enumerate(self._laws):
            number_of[i] = numbers.setdefault(own[step].key(), len(laws))
            if number_of[i] == len(laws):
                laws.append(own[step])
        here, there = number_of[self._here], number_of[self._there]
        pairs, which = np.unique(here * len(laws) + there, return_inverse=True)
        losses = _losses([(laws[p // len(laws)], laws[p % len(laws)]) for p in pairs.tolist()])
        self._total += np.array(losses, np.float64)[which]
        self.n_outcomes += int(np.array([law.n_outcomes for law in laws])[here].sum())
        seen: dict[Any, int] = {}
        # a fraction is the loss itself; a float may stand for several that differ a little
        keys = (x if isinstance(x, Fraction) else (i, x) for i, x in enumerate(losses))
        return np.array([seen.setdefault(key, len(seen)) for key in keys], np.intp)[which]

    @property
    def loss(self) -> float:
        """Return the worst loss of all pairs."""
        pairs = zip(*(self._laws[side] for side in self.pair), strict=True)
        each = [one.loss(other) for one, other in pairs]
        if all(isinstance(loss, Fraction) for loss in each):
            return float(sum(each))
        return float(self._total.max())

    def within(self, epsilon: Fraction) -> bool:
        """Tell whether no pair loses more, in exact rationals where floats could not decide."""
        close = np.flatnonzero(self._total > float(epsilon) * (1 - _CLEAR))
        _, examples = np.unique(self._kinds[close], axis=0, return_index=True)
        worst_first = close[examples][np.argsort(-self._total[close[examples]])]
        return all(
            self._pair_within(int(self._here[i]), int(self._there[i]), epsilon) for i in worst_first
        )

    def _pair_within(self, here: int, there: int, epsilon: Fraction) -> bool:
        rest, ratio = Fraction(0), Fraction(1)
        for one, other in zip(self._laws[here], self._laws[there], strict=True):
            loss = one.loss(other)
            if math.isinf(loss):
                return False
            if isinstance(one, (Choice, Placed)):
                points: Any = other
                ratio *= one.ratio(points)
            else:
                rest += Fraction(loss)
        return rest <= epsilon and ratio <= _exp_from_below(epsilon - rest)


def _losses(pairs: list[tuple[StepLaw, StepLaw]]) -> list[Fraction | float]:
    """Return the loss of every pair; with the same noise it depends on their difference only."""
    known: dict[tuple[int, bytes], Fraction | float] = {}
    losses = []
    for one, other in pairs:
        if isinstance(one, Added) and isinstance(other, Added) and one.law is other.law:
            shift = id(one.law), (one.centre - other.centre).tobytes()
            if shift not in known:
                known[shift] = one.loss(other)
            losses.append(known[shift])
        else:
            losses.append(one.loss(other))
    return losses


def _exp_from_below(x: Fraction) -> Fraction:
    """Return a rational no larger than exp(x), x >= 0, off by a relative 1e-12 for x up to 20."""
    term = total = Fraction(1)
    for k in range(1, 80):
        term *= Fraction(x) / k
        total += term
    return total
