r"""Public lattices that a quantile is chosen from, and the rank error of each of their points.

**Public lattices that a quantile is chosen from, each with a public measure in exact integers.**

`Magnitudes` needs no bounds. Its points are the floats with 33 significant bits, on either side of
an origin: signed powers of two, each cut into :math:`2^{32}` steps. A power :math:`2^e` has the
weight `power_weights`, which falls slowly, so a column of any unit is found, one in hundredths or
millions sooner than one in :math:`10^{300}`. Below one it falls faster at first: otherwise most of
the measure would be next to the origin, and the median of a column that is centred there would
be drawn towards it. Within a power of two the measure is the mean of 33 even ones, on 1, 2, 4, ...,
:math:`2^{32}` points: short binary numbers, integers among them, weigh more. The origin, where data
often have ties, weighs as much as 1/64 of all numbers on one side of it.

`Even` has :math:`2^{32}` steps between two public bounds, and 1/32 of the measure on each. It has
about ten times the measure of `Magnitudes`, because where bounds are known, evenly spread numbers
are likelier than those near zero.

A quantile may be looked for in several lattices at once, each with its own candidates: distances
from a number that is known already find a column far from zero, whole numbers and zero find ties.

Keys number the points in order; the measure of a range of keys is a difference of `below`.

**How far every point of a lattice is from being the quantile of some records, in ranks.**

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

LARGEST_NUMBER = 2.0**1022
"""Numbers beyond it, infinities included, count as it; sums and differences then are finite."""

_FRACTION_BITS = 32  # The fraction of a lattice point has this many bits.
_FRACTION_STEPS = 1 << _FRACTION_BITS  # A power of two is divided into this many steps.
_DROPPED = 52 - _FRACTION_BITS  # Bits of a float's fraction that the lattice leaves out.
_POWERS = 2047  # A float that is finite has one of this many exponents.
_STOP = _POWERS << _FRACTION_BITS  # Keys of positive numbers end here.

_FAN_OUT = 256  # Every round of the search divides a range into this many parts.
ROUNDING = Fraction(1, 2**35)
"""What integers for real numbers can add to the privacy loss of two draws."""
# The largest weight of a point is two to the first power; none is below the second number.
_TOP_BITS, _LEAST_WEIGHT = 100, 1 << 40
# From this many nats on, all points weigh the floor.
_LEAST_WEIGHT_NATS = (_TOP_BITS - 40) * math.log(2)


def power_weights(e: FloatArray) -> FloatArray:
    r"""Return the weights of powers :math:`2^e`, 1 for e = 0.

    :math:`(1 + e/16)^{-4}`; for e < 0 only a 64th of :math:`(1 + |e|/16)^{-3}`, and
    :math:`2^{e/2}` for the rest.

    >>> power_weights(np.array([-1000.0, -10.0, 0.0, 10.0, 1000.0])).round(8).tolist()
    [6e-08, 0.03440305, 1.0, 0.14341234, 6e-08]
    """
    away = 1 + np.abs(e) / 16
    return np.where(e < 0, away**-3 / 64 + np.exp2(np.minimum(e, 0) / 2) * 63 / 64, away**-4)


# Whole weights of every power of two, and 0 for the end.
_WEIGHTS = np.append(
    1 + (2.0**15 * power_weights(np.arange(-1023.0, _POWERS - 1023))).astype(np.int64), 0
)
# The weight of all numbers below each power of two.
_BEFORE = np.concatenate([[0], np.cumsum(_WEIGHTS[:-1]) * ((_FRACTION_BITS + 1) * _FRACTION_STEPS)])


def shortened(values: FloatArray) -> FloatArray:
    """Return numbers of 33 significant bits, at most `LARGEST_NUMBER`: points of `Magnitudes`.

    >>> shortened(np.array([-np.inf, 1 / 3, 2**33 - 1])).tolist()
    [-4.49423283715579e+307, 0.33333333331393078, 8589934591.0]
    """
    bits = np.clip(values, -LARGEST_NUMBER, LARGEST_NUMBER).view(np.int64)
    return (bits & ~((1 << _DROPPED) - 1)).view(np.float64)


@dataclass(frozen=True)
class Magnitudes:
    """Numbers of any magnitude around an origin, of which only a range may be meant.

    >>> lattice = Magnitudes()
    >>> [lattice.value(int(k)) for k in lattice.keys(np.array([-1e300, -0.25, 0.0, 37.0]))]
    [-9.99999999995523e+299, -0.25, 0.0, 37.0]
    >>> above = Magnitudes.between(10.0, low=10.0)
    >>> [above.value(int(k)) for k in above.keys(np.array([-1e300, 9.0, 37.0]))]
    [10.0, 10.0, 37.0]
    """

    origin: float = 0.0
    first: int = 1 - _STOP
    stop: int = _STOP

    @classmethod
    def between(
        cls, origin: float, low: float | None = None, high: float | None = None
    ) -> Magnitudes:
        """Return the lattice around an origin between two numbers; either may be left out."""
        ends = cls(origin).keys(np.array([-LARGEST_NUMBER if low is None else low, high or 0.0]))
        first = 1 - _STOP if low is None else int(ends[0])
        return cls(origin, first, _STOP if high is None else max(int(ends[1]), first) + 1)

    def keys(self, values: FloatArray) -> IntArray:
        """Return the keys of numbers, truncated towards the origin."""
        away = np.clip(values, -LARGEST_NUMBER, LARGEST_NUMBER) - self.origin
        magnitudes = np.abs(away).view(np.int64) >> _DROPPED
        keys = np.where(away < 0, -magnitudes, magnitudes)
        return np.clip(keys, self.first, self.stop - 1)

    def value(self, key: int) -> float:
        """Return the number of a key."""
        magnitude = np.array([abs(key) << _DROPPED]).view(np.float64)[0]
        away = float(-magnitude if key < 0 else magnitude)
        return float(np.clip(self.origin + away, -LARGEST_NUMBER, LARGEST_NUMBER))

    def below(self, keys: IntArray) -> IntArray:
        """Return the measure of all points before each key, up to a constant."""
        beyond = _before(np.abs(keys) + (keys <= 0)) - _ZERO  # of the magnitudes between
        return np.where(keys > 0, _ORIGIN + beyond, -beyond)


def _before(magnitudes: IntArray) -> IntArray:
    """Return the measure of the magnitudes 0, ..., m - 1, with 0 an ordinary point."""
    power, step = magnitudes >> _FRACTION_BITS, magnitudes & (_FRACTION_STEPS - 1)
    return np.asarray(_BEFORE[power] + _WEIGHTS[power] * _of_multiples(step))


def _of_multiples(step: IntArray) -> IntArray:
    r"""Return the measure of the steps before each step: a multiple of 2^b weighs 2^b, for all b.

    Multiples of :math:`2^b` weigh :math:`2^b \lceil s/2^b \rceil = s + (-s \bmod 2^b)`, so bit i of
    -s counts for :math:`b = i + 1, \dots, 32`. Tables of bytes add up eight bits at a time.
    """
    total, rest = (_FRACTION_BITS + 1) * step, -step & (_FRACTION_STEPS - 1)
    for table in _WEIGHT_OF_BYTES:
        total += table[rest & 255]
        rest >>= 8
    return total


_POSITIONS = np.arange(_FRACTION_BITS).reshape(-1, 8)  # The positions of bits in a step, by bytes.
_BITS_OF_BYTES = np.arange(256)[:, None] >> np.arange(8) & 1  # The bits of every byte.
# What every value of each byte of a step adds to the weight below it.
_WEIGHT_OF_BYTES = [(_BITS_OF_BYTES * ((_FRACTION_BITS - i) << i)).sum(axis=1) for i in _POSITIONS]


_ZERO = int(_before(np.array([1]))[0])  # The weight that lies below the first key.
_ORIGIN = int(_BEFORE[-1]) // 64  # Place of the positive numbers: this many points lie below.


@dataclass(frozen=True)
class Even:
    """Evenly spaced numbers between two bounds.

    >>> lattice = Even(10.0, 20.0)
    >>> [round(lattice.value(int(k)), 6) for k in lattice.keys(np.array([3.0, 12.5, 99.0]))]
    [10.0, 12.5, 20.0]
    """

    low: float
    high: float

    first = 0
    stop = _FRACTION_STEPS + 1
    _END = _FRACTION_STEPS // 30  # 1/32 of the whole at each end
    _UNIT = 1 << 28  # about ten times as much in all as `Magnitudes`

    def keys(self, values: FloatArray) -> IntArray:
        """Return the keys of numbers, truncated towards the low end."""
        clipped = np.clip(values, self.low, self.high)
        span = self.high / 2 - self.low / 2
        shares = (clipped / 2 - self.low / 2) / span if span > 0 else np.zeros(len(clipped))
        return np.minimum(np.floor(shares * _FRACTION_STEPS), _FRACTION_STEPS).astype(np.int64)

    def value(self, key: int) -> float:
        """Return the number of a key."""
        share = key / _FRACTION_STEPS
        mixed = (1 - share) * self.low + share * self.high
        return min(max(mixed, self.low), self.high)

    def below(self, keys: IntArray) -> IntArray:
        """Return the measure of all points before each key."""
        ends = self._END * (keys > 0) + self._END * (keys > _FRACTION_STEPS)
        return np.asarray((keys + ends) * self._UNIT)


Lattice = Magnitudes | Even
"""Points in order, numbered by keys from ``first`` to ``stop`` - 1, with a public measure."""


def key_at(lattice: Lattice, start: int, stop: int, offset: int) -> int:
    """Return the key in [start, stop) whose point holds unit ``offset`` of the measure from start.

    >>> one = Even._UNIT
    >>> [key_at(Even(0.0, 1.0), 0, 10, one * (Even._END + k)) for k in (-Even._END, 0, 5)]
    [0, 0, 5]
    """
    wanted = int(lattice.below(np.array([start]))[0]) + offset
    while stop - start > 1:
        step = -(-(stop - start) // _FAN_OUT)
        tried = np.arange(start, stop, step)
        start = int(tried[np.searchsorted(lattice.below(tried), wanted, side="right") - 1])
        stop = min(start + step, stop)
    return start


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
    mantissa, power = math.frexp(math.exp(-min(exponent, _LEAST_WEIGHT_NATS + 1)))
    whole, shift = int(math.ldexp(mantissa, 53)), power + _TOP_BITS - 53
    return max(_LEAST_WEIGHT, whole << shift if shift > 0 else whole >> -shift)


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
        reach = min(_LEAST_WEIGHT_NATS / rate + 2, n + 2) if rate > 0 else n + 2
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
