r"""How far every point of a lattice is from being the quantile of some records, in ranks.

With L records below a point z, U at or below it, and n records in all, the distance of z from the
q-quantile is

.. math:: d(z) = \max(0,\; L - qn,\; qn - U).

The exponential mechanism draws z with probability proportional to
:math:`\mu(z)\,e^{-\eta d(z)}`, :math:`\mu` the public measure of the lattice. Distances are
constant between two adjacent records, so a law is a list of segments, whose ends depend on the
data; the law of a **point** is what privacy is about.

**Sensitivity.** What counts is the range (largest less smallest over all z) of the change of d:
the loss is at most :math:`\eta` times the range, because a change of all d alike cancels. A record
that comes or goes moves :math:`L - qn` by q on one side of it and by 1 - q on the other, with
opposite signs, and d has a kink at the quantile, so the range is at most :math:`2\max(q, 1-q)`; a
replaced one moves it by 1 between the two places, range 2.

**Exactness.** :math:`e^{-\eta d}` is an integer of 100 bits, never below :math:`2^{40}`: a function
of d alone, the same for all data. Floats and truncation change its logarithm by less than
:math:`2^{-39}`; in a ratio of two probabilities it occurs four times. `ROUNDING` counts that for
two draws, as many as one record can change among draws from different parts of the records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.statistics.quantiles.lattice import Lattice

__all__ = ["ROUNDING", "RankLaw", "Ranks", "Segments", "change_range", "decay"]

ROUNDING = Fraction(1, 2**35)
"""What integers for real numbers can add to the privacy loss of two draws."""

_TOP, _FLOOR = 100, 1 << 40
_FAR = (_TOP - 40) * math.log(2)  # in nats: from here on all points weigh the floor


def change_range(q: Fraction) -> Fraction:
    """Return the range of the change of distances if one record comes or goes.

    >>> str(change_range(Fraction(1, 2))), str(change_range(Fraction(1, 50)))
    ('1', '49/25')
    """
    return 2 * max(q, 1 - q)


def decay(exponent: float) -> int:
    """Return exp(-exponent) as an integer of 100 bits, at least 2**40.

    >>> decay(0.0) == 2**100, decay(1e9) == 2**40
    (True, True)
    """
    mantissa, power = math.frexp(math.exp(-min(exponent, _FAR + 1)))
    whole, shift = int(math.ldexp(mantissa, 53)), power + _TOP - 53
    return max(_FLOOR, whole << shift if shift > 0 else whole >> -shift)


@dataclass(frozen=True)
class Segments:
    """The points of one lattice: segments [starts[i], starts[i+1]), all points of one weight."""

    lattice: Lattice
    starts: IntArray
    masses: Sequence[int]
    weights: Sequence[int]


RankLaw = tuple[Segments, ...]
"""The law of a point: the segments of all lattices that it may come from."""


@dataclass(frozen=True, repr=False)
class Ranks:
    """Sensitive: some records in order, and the quantile that is asked of them."""

    values: FloatArray
    q: Fraction
    lattices: tuple[Lattice, ...]

    def law(self, rate: float) -> RankLaw:
        r"""Return the law with :math:`\eta` = ``rate``, in nats per rank."""
        return tuple(self._segments(lattice, rate) for lattice in self.lattices)

    def _segments(self, lattice: Lattice, rate: float) -> Segments:
        keys = lattice.keys(self.values)
        a, b, n = self.q.numerator, self.q.denominator, len(keys)
        reach = min(_FAR / rate + 2, n + 2) if rate > 0 else n + 2
        near = slice(max(0, int(self.q * n - reach)), math.ceil(self.q * n + reach))
        points = np.unique(keys[near])
        below = np.searchsorted(keys, points, side="left")
        up_to = np.searchsorted(keys, points, side="right")
        first_gap = 0 if near.start == 0 else int(below[0])
        at = np.maximum(0, np.maximum(b * below - a * n, a * n - b * up_to))
        after = np.abs(b * up_to - a * n)
        distances = [abs(b * first_gap - a * n), *np.stack([at, after], axis=1).ravel().tolist()]
        inner = np.stack([points, points + 1], axis=1).ravel()
        starts = np.concatenate([[lattice.first], inner, [lattice.stop]])
        masses = np.diff(lattice.below(starts)).tolist()
        weights = [decay(rate * distance / b) for distance in distances]
        return Segments(lattice, starts, masses, weights)

    def exact(self) -> float:
        """Return the quantile itself: the first number with a distance of 0."""
        if not len(self.values):
            return self.lattices[0].value(self.lattices[0].first)
        place = math.ceil(self.q * len(self.values)) - 1
        return float(self.values[min(max(place, 0), len(self.values) - 1)])
