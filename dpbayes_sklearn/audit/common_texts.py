r"""The exact delta of publishing common texts, over all data sets of a small world.

The production mechanism releases every data set with **every** noise that there can be, one after
the other; the probabilities of the noises are written down here a second time. So no assumption is
made about which texts are published, or how their counts are compared.

.. math:: \delta(\varepsilon) = \max_{D \sim D'} \sum_S (P(S) - e^\varepsilon P'(S))_+
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.audit._domains import TextDomain
from dpbayes_sklearn.audit.deltas import DeltaEnumeration
from dpbayes_sklearn.columns.plans import TextPlan
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy.budget import Budget, exact
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit

__all__ = ["enumerate_texts"]

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
    domain, budget = TextDomain(texts), Budget(exact(epsilon), exact(delta, "delta"), unit)
    data_sets, (first, second) = domain.data_sets(n, unit), domain.neighbours(n, unit)
    laws = [_law(domain.statistics(chosen), budget) for chosen in data_sets]
    pairs = [*zip(first.tolist(), second.tolist(), strict=True)]
    pairs += [(b, a) for a, b in pairs]
    deltas = [_delta(laws[a], laws[b], epsilon) for a, b in pairs]
    worst = int(np.argmax(deltas))
    records = [tuple(domain.records[i] for i in data_sets[side]) for side in pairs[worst]]
    return DeltaEnumeration(deltas[worst], epsilon, delta, (records[0], records[1]), len(pairs))


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
