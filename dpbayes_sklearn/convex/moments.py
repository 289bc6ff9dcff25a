r"""All second moments of some columns in one release: the list of its steps.

Coordinates z are those of a linear regression, with every column among them, target or not:

1. **Look.** Even histograms of all numbers: where they lie.
2. **Shape.** Their mean products, records shortened to a usual length; the root turns the
   coordinates, so that all directions have about unit second moments.
3. **Lengths.** A histogram of the records' lengths: how far out the next two steps have to reach.
4. **Pairs.** :math:`\sum qq^\top` over the vectors q of all :math:`z_iz_j`: the sampling error of
   any moment, whatever the residuals are, and the directions in which far records lie.
5. **Products.** :math:`\sum zz^\top`, records shortened as a whole, so a linear relation stays one.

*Guarantee.* *Precondition*: design and bounds are public, and so is the number of records, or it
was released before. *Claim*: pure :math:`\varepsilon`-DP, :math:`\varepsilon` being the sum of the
steps' shares. *Proof*: given what was released before, a step is a function of the records, private
by :mod:`~dpbayes_sklearn.convex.record_sums`. Costs of such steps add up, also where earlier
answers decide what is asked. ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.coordinates import first_map, n_coordinates
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.linear import ask_lengths
from dpbayes_sklearn.convex.record_sums import (
    BINS,
    STEPS,
    UNIT_TARGET,
    Histograms,
    ProductSum,
    Residuals,
    count_evenly,
    sum_products,
    symmetric,
)
from dpbayes_sklearn.convex.records import LinearRecords, SumsPlan
from dpbayes_sklearn.convex.regressions import Moments, doubt
from dpbayes_sklearn.convex.tails import EDGES, LIMITS, Counts, excess, place
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.release import Step


class Shares(NamedTuple):
    """Parts of epsilon that the steps get."""

    look: Fraction
    shape: Fraction
    lengths: Fraction
    pairs: Fraction
    products: Fraction


_SHARES = Shares(*map(Fraction, ("0.07", "0.08", "0.12", "0.16", "0.57")))
MOST_COORDINATES = 20
"""More coordinates are refused: the noise of pairs grows with the cube of their number."""
_USUAL_LENGTH = 2.0  # Squared lengths usually exceed p by so many deviations of a normal law.
LEAST_TURN = 1e-3
"""Least eigenvalue of the turn, and of its inverse: columns may be a sum of others."""
_PAIR_NOISE = 0.3  # Pairs reach as far as their noise is below this part of even residuals.
_MISPLACED, _HIDDEN = 0.5, 1.3
"""What a limit takes may be misplaced by the first part of it, and noise of the lengths may hide so
many of its standard deviations. With 0.5 and 1, and without ``doubt``, the slope of a log-normal
number on a column that it explains was in 0.57 of its intervals (3,000 records, epsilon 1)."""
_UNSEEN = 0.1
"""As many records as this part of the noise in a count may be as long as any can be: otherwise the
slope of a dose that is 1 for 97 % was in 0.21 of its intervals (3,000 records, epsilon 1)."""


@dataclass(frozen=True)
class Known:
    """What earlier steps have released: all of it public."""

    first: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (p, width + 1).
    turn: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (p, p): the W.
    lengths: Counts | None = None
    pairs: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    limit: float = 1.0  # Of the products, in roots of p.
    pair_limit: float = 1.0
    pair_variance: float = 0.0

    @property
    def matrix(self) -> FloatArray:
        """The map (p, width + 1) of (1, x) to turned coordinates."""
        return self.turn @ self.first

    @property
    def residuals(self) -> Residuals:
        """The coordinates, and a model that predicts nothing."""
        return Residuals.of(self.matrix, np.zeros(len(self.turn)), UNIT_TARGET)

    @property
    def farthest(self) -> float:
        """No record is longer, in roots of p."""
        most = np.abs(self.matrix).sum(axis=1)
        return math.sqrt(float(most @ most) / len(most))


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsPlan(SumsPlan[Moments]):
    """The steps: look, shape, lengths, pairs, products."""

    design: Design

    start = Known()

    @cached_property
    def p(self) -> int:
        """Number of coordinates, the constant included."""
        return n_coordinates(self.design)

    @cached_property
    def n(self) -> int:
        """Number of records: public, or released."""
        return max(1, self.facts.n)

    @cached_property
    def usual(self) -> float:
        """The length to which records are shortened for the shape, in roots of p."""
        return math.sqrt(1 + _USUAL_LENGTH * math.sqrt(2 / self.p))

    @cached_property
    def steps(self) -> tuple[Step[LinearRecords, Known], ...]:
        """What is asked one after the other."""
        numbers, size = int(self.design.numbers.sum()), self.p * (self.p + 1) // 2
        epsilon = Fraction(0 if self.cost.infinite else self.cost.epsilon)
        own = Shares(*(epsilon * share for share in _SHARES))
        return (
            self._step(
                "where columns lie", Histograms(1 + numbers, (BINS,) * (1 + numbers)), own.look,
                ask_look, self.read_look,
            ),
            self._step(
                "shape of columns", ProductSum(self.p), own.shape, self.ask_shape, self.read_shape
            ),
            self._step(
                "lengths of records", Histograms(1, (len(EDGES) + 1,)), own.lengths,
                ask_lengths, self.read_lengths,
            ),
            self._step(
                "products of pairs", ProductSum(size), own.pairs, self.ask_pairs, self.read_pairs
            ),
            self._step(
                "products", ProductSum(self.p), own.products,
                self.ask_products, self.read_products,
            ),
        )  # fmt: skip

    def _deviation(self, step: int) -> float:
        """Return that of the noise of an entry beside the diagonal, for a limit of 1."""
        law = self.steps[step].law
        return 0.0 if law is None else math.sqrt(float(law.variances[0]) / 2) / STEPS**2

    # Look and shape

    def read_look(self, known: Known, noisy: list[IntArray], law: NoiseLaw | None) -> Known:
        """Return the first coordinates."""
        sd = 0.0 if law is None else math.sqrt(law.variance(0))
        places = [place(np.asarray(each, np.float64), self.n, sd) for each in noisy[1:]]
        at = (np.array([each.centre for each in places]), np.array([p.spread for p in places]))
        return replace(known, first=first_map(self.design, *at), turn=np.eye(self.p))

    def ask_shape(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the products of the first coordinates, shortened to a usual length."""
        return self._sums(records, known, self.usual)

    def read_shape(self, known: Known, noisy: list[IntArray], law: NoiseLaw | None) -> Known:
        """Return the shape's inverse square root; no eigenvalue is below half of its noise."""
        unit = self.usual**2 * self.p / self.n
        least = unit * self._deviation(1) * math.sqrt(self.p)
        values, vectors = np.linalg.eigh(symmetric(noisy[0] * (unit / STEPS**2)))
        values = np.clip(values, max(least, LEAST_TURN**2), LEAST_TURN**-2)
        return replace(known, turn=(vectors / np.sqrt(values)) @ vectors.T)

    # Lengths

    def read_lengths(self, known: Known, noisy: list[IntArray], law: NoiseLaw | None) -> Known:
        """Return the lengths of records, and the limits with the least predicted error."""
        sd, p, n = 0.0 if law is None else math.sqrt(law.variance(0)), self.p, self.n
        counts, far = np.asarray(noisy[0], np.float64), known.farthest
        lengths = Counts.of(counts, sd) if sd else Counts.exact(counts)
        reach = [x for x in LIMITS if self.usual <= x < 2 * far] or [self.usual]
        whole = [x for x in reach if self._pair_noise(x) <= _PAIR_NOISE * n]
        needed = [x for x in reach if excess(lengths, x, far, 4).mean <= 1e-3 * n] or reach[-1:]
        pair_limit = min(max(whole or reach[:1]), needed[0])
        unknown = self._pair_noise(pair_limit) * math.sqrt(p + 1) / (p * (p + 2))

        away = doubt(self._pair_noise(pair_limit) * math.sqrt(2), n, p)
        part = 1 + away

        def error(x: float) -> float:
            taken, doubtful = lost(lengths, x, far)
            noise = self._deviation(4) * x**2 * p
            return noise**2 + (part * doubtful) ** 2 + (taken * p * unknown / n) ** 2

        return replace(
            known, lengths=lengths, limit=float(min(reach, key=error)), pair_limit=float(pair_limit)
        )

    def _pair_noise(self, limit: float) -> float:
        """Return the deviation of the noise of the square of a product of two directions."""
        return self._deviation(3) * limit**4 * self.p**2 / math.sqrt(2)

    # Pairs and products

    def ask_pairs(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the products of pairs."""
        return self._sums(records, known, known.pair_limit, paired=True)

    def read_pairs(self, known: Known, noisy: list[IntArray], law: NoiseLaw | None) -> Known:
        """Return the products of pairs."""
        unit = known.pair_limit**4 * self.p**2
        found = symmetric(noisy[0] * (unit / STEPS**2))
        return replace(known, pairs=found, pair_variance=(self._deviation(3) * unit) ** 2)

    def ask_products(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the products."""
        return self._sums(records, known, known.limit)

    def read_products(self, known: Known, noisy: list[IntArray], law: NoiseLaw | None) -> Moments:
        """Return all that later regressions are computed from."""
        assert known.lengths is not None
        unit = known.limit**2 * self.p
        taken, doubtful = lost(known.lengths, known.limit, known.farthest)
        far = excess(known.lengths, known.pair_limit, known.farthest, 4)
        return Moments.of(
            known.first, known.turn, symmetric(noisy[0] * (unit / STEPS**2)),
            (self._deviation(4) * unit) ** 2, known.pairs, known.pair_variance,
            taken * self.p, doubtful * self.p, (far.mean + far.sd) * self.p**2, self.n,
        )  # fmt: skip

    def _sums(
        self, records: LinearRecords, known: Known, limit: float, paired: bool = False
    ) -> list[IntArray]:
        length = (limit * math.sqrt(self.p)) ** (2 if paired else 1)
        residuals = known.residuals
        return [records.asked(sum_products, residuals=residuals, limit=length, paired=paired)]


def lost(lengths: Counts, limit: float, farthest: float) -> tuple[float, float]:
    """Return what a limit takes from the squared lengths of all records, and its error."""
    gone = excess(lengths, limit, farthest, 2)
    unseen = _UNSEEN * float(lengths.noise.max()) * max(farthest**2 - limit**2, 0.0)
    return gone.mean, math.hypot(_MISPLACED * gone.mean, _HIDDEN * gone.sd, unseen)


def ask_look(records: LinearRecords, known: Known) -> list[IntArray]:
    """Return the counts of all numbers."""
    return [*records.asked(count_evenly)]
