r"""Records of counts: a weighted logistic loss with a public cap.

Counts y from 0 to a public cap Y, with rates :math:`Ee^z` for an exposure E, have the negative
binomial loss of dispersion 1/Y,

.. math:: \ell(z) = (y + Y)\log(1 + Ee^z/Y) - yz .

Its slope lies in [-Y, Y] and its curvature is at most Y/2, whatever z and E are. With the part
:math:`s = y/Y` of the cap and :math:`t = z + \log(E/Y)`, loss over cap is

.. math:: \ell(z)/Y = (1 + s)\log(1 + e^t) - st + \text{const},

the loss of a logistic regression whose label is s and whose sigmoid has the weight 1 + s: slope
:math:`|(1 + s)\sigma(t) - s| \le 1`, curvature :math:`(1 + s)\sigma(1 - \sigma) \le \tfrac12`. For
a fixed Y it is a linear exponential family, so its minimum is consistent for the mean
:math:`Ee^z` of the clipped counts whatever their distribution (Gourieroux, Monfort and Trognon
1984).

An exposure is a block of one level, which has no coefficient, and adds log E to every z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.logistic.blocks import PLACES, Blocks, ColumnWeights
from dpbayes_sklearn.logistic.record_sums import CodedRecords, MappedRecords, on_lattice
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema import Interval

HEAVIEST = 2
"""The largest weight 1 + s."""
STEPS = 2**20
"""Steps from 0 to the largest value of what is added up."""


@dataclass(frozen=True)
class Cap:
    """The domain of counts: the parts y/Y of a cap, of whole numbers clipped to it.

    >>> Cap(Interval(0, 4)).encode(np.array([-1.0, 1.2, 9.0])).tolist()
    [0.0, 0.25, 1.0]
    """

    bounds: Interval

    def encode(self, values: npt.ArrayLike) -> FloatArray:
        """Return the part of the cap that every count is."""
        return np.asarray(np.rint(self.bounds.clip(values)) / self.bounds.high)

    def is_known(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are numbers."""
        return self.bounds.is_known(values)


@dataclass(frozen=True)
class Exposure:
    """The domain of exposures: a block of one level, whose codes are places of the logarithm."""

    bounds: Interval
    is_numeric: ClassVar[bool] = False
    marks_missing: ClassVar[bool] = False
    n_values: ClassVar[int] = 1

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return log exposures as codes: 0 at the lower bound, PLACES at the upper one."""
        low, high = self._ends
        place = (np.log(self.bounds.clip(values)) - low) * (PLACES / (high - low))
        return np.rint(np.clip(place, 0, PLACES)).astype(np.intp)

    def names_of_codes(self) -> list[str]:
        """Return one name: it is never shown."""
        return ["exposure"]

    @property
    def _ends(self) -> tuple[float, float]:
        return math.log(self.bounds.low), math.log(self.bounds.high)

    @cached_property
    def logs(self) -> FloatArray:
        """The logarithm at every place, on the lattice."""
        return on_lattice(np.linspace(*self._ends, PLACES + 1))

    @property
    def weights(self) -> ColumnWeights:
        """All places have the one level, and a known part of z."""
        nothing = np.zeros(PLACES + 1)
        return ColumnWeights(nothing.astype(np.intp), nothing, self.logs)


class RateBlocks(Blocks):
    """Blocks of coordinates; one of them may be an exposure."""

    @property
    def exposures(self) -> list[tuple[int, Exposure]]:
        """Place and domain of the exposure, if there is one."""
        return [(j, d) for j, d in enumerate(self.domains) if isinstance(d, Exposure)]

    @property
    def looked_at(self) -> tuple[int, ...]:
        """Columns but the exposure."""
        return tuple(j for j, d in enumerate(self.domains) if not isinstance(d, Exposure))

    def tables(self, nodes: FloatArray) -> tuple[ColumnWeights, ...]:
        """Return the weights of every column by code."""
        each = [*super().tables(nodes)]
        for j, exposure in self.exposures:
            each[j] = exposure.weights
        return tuple(each)


def noise_of_sums(columns: int, unit: PrivacyUnit, epsilon: Any) -> DiscreteLaplace:
    """Return the noise of sums of numbers from 0 to ``STEPS``: a record changes each by so much."""
    return DiscreteLaplace.of(laplace_scale(unit.max_records * STEPS * columns, epsilon), [columns])


@dataclass(frozen=True)
class LevelSums:
    """Sums over records: how many have a count, parts of the cap, and parts of the exposure."""

    blocks: RateBlocks

    @property
    def size(self) -> int:
        """How many sums there are."""
        return 2 + len(self.blocks.exposures)

    def law(self, unit: PrivacyUnit, epsilon: Any) -> DiscreteLaplace:
        """Return the noise of all sums."""
        return noise_of_sums(self.size, unit, epsilon)

    def ask(self, records: CodedRecords) -> list[IntArray]:
        """Return the sums in steps."""
        ask = partial(_level_sums, reader=records.reader, sums=self)
        return [records.records.total(ask)]


def _level_sums(shard: Shard, reader: Any, sums: LevelSums) -> IntArray:
    total = np.zeros(sums.size, np.int64)
    for codes, shares in reader.chunks(shard):
        rows: list[AnyArray] = [np.ones(len(shares)), shares]
        for j, exposure in sums.blocks.exposures:
            rows.append(np.exp(exposure.logs)[codes[:, j]] / exposure.bounds.high)
        total += np.rint(np.minimum(np.stack(rows), 1.0) * STEPS).astype(np.int64).sum(axis=1)
    return total


def sum_squares(mapped: MappedRecords, coefficients: FloatArray) -> IntArray:
    """Return the sum of square residuals, each at most 1, in steps."""
    ask = partial(_squares, reader=mapped.reader, values=mapped.values(coefficients))
    return np.array([mapped.records.total(ask)])


def _squares(shard: Shard, reader: Any, values: Any) -> int:
    total = 0
    for codes, shares in reader.chunks(shard):
        residuals = reader.weight(shares) * values.probability(codes) - shares
        total += int(np.rint(np.minimum(residuals**2, 1.0) * STEPS).astype(np.int64).sum())
    return total
