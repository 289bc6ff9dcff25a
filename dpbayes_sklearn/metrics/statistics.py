r"""What a private evaluation releases: tables of counts and sums of bounded losses.

**Sensitivity.** A record is in one cell of a table, and adds to each sum a whole number between
:math:`-H` and :math:`H`. If at most m records come or go (:attr:`PrivacyUnit.n_changed`; one that
is replaced goes, and another comes), a table changes by at most m in L1, and each sum by at most
mH.

* *Tables*: independent discrete Laplace noise of scale :math:`m/\varepsilon`.
* *Sums*: joint noise whose density decays with its largest entry (`SupNorm`), of sensitivity m in
  units of H, for any number of sums at once.
* *Records without a target* are in no cell and add nothing to sums. With the sums comes their
  number, with independent Laplace noise of scale :math:`m/\varepsilon`: the density of both falls
  with :math:`\max_i |z_i|/H + |z_0|`. If j of the :math:`k = m/2` records that are replaced lose
  their target, this norm changes by at most :math:`(2k - j) + j = m`.
* *With a delta*: discrete Gaussian noise. The squared L2 sensitivity of a table is :math:`k^2` if k
  records are added and :math:`2k^2` if they are replaced (all from one cell to another); that of s
  sums is :math:`s(mH)^2`. If j records lose their target, sums lose :math:`\rho(1 - j/2k)^2`, and
  their number with variance :math:`k^2/\rho` the :math:`\rho j^2/2k^2`: together at most
  :math:`\rho`.

A loss with the public range [a, b] is written as :math:`H(2x - a - b)/(b - a)`, rounded. Centred
like that, replacing a record changes its sum by at most b - a and adding one by half of it.

A task (:class:`Classification`, :class:`Regression`) turns what a model says about a record, and
the truth, into the losses and cells of that record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.discrete_gaussian import representable_variance
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import PrivacyUnit

SCORE_STEPS = 2**20
"""The H: half the range of a loss, in steps."""

_MOST_RECORDS = 2**40  # With this many records no sum of steps exceeds 64 bits.

OUTERMOST_LOGIT = 6.0
"""Logit of the outermost edge between bins of scores."""
_OUTERMOST_CONFIDENCE = 0.998  # Probability of the outermost edge between bins of confidence.


@dataclass(frozen=True)
class Range:
    """The public range of a loss; values outside are clipped.

    >>> Range(0.0, 4.0).steps(np.array([0.0, 3.0, 9.0])) / SCORE_STEPS
    array([-1. ,  0.5,  1. ])
    """

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Halfway between the ends."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2

    def steps(self, values: FloatArray) -> IntArray:
        """Return values as whole steps of at most SCORE_STEPS; NaN counts as the largest."""
        inside = np.clip(np.nan_to_num(values, nan=self.high), self.low, self.high)
        return np.rint((inside - self.middle) / self.half * SCORE_STEPS).astype(np.int64)

    def centred(self, steps: FloatArray) -> FloatArray:
        """Return sums of steps as sums of (value - middle)."""
        return steps * (self.half / SCORE_STEPS)


@dataclass(frozen=True)
class CellCounts:
    """**Sensitive:** how many records are in each cell of a table, every record in one cell.

    >>> table = CellCounts.of(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2))
    >>> table.counts.tolist(), table.sensitivity(PrivacyUnit("record"))
    ([[1, 0], [1, 1]], 2)
    """

    counts: IntArray

    @classmethod
    def of(cls, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> CellCounts:
        """Count records by the row and the column of their cell."""
        cells = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
        return cls(cells.astype(np.int64).reshape(shape))

    @staticmethod
    def sensitivity(unit: PrivacyUnit) -> int:
        """Return by how much the counts of neighbours differ in L1."""
        return unit.n_changed

    @staticmethod
    def squared_l2(unit: PrivacyUnit) -> int:
        """Return the squared L2 sensitivity."""
        return unit.max_records**2 * (1 if unit.size_is_secret else 2)

    @classmethod
    def law(
        cls, shape: tuple[int, ...], unit: PrivacyUnit, epsilon: Fraction, rho: Fraction | None
    ) -> NoiseLaw:
        """Return the noise of a table: Laplace for an epsilon, Gaussian for a rho."""
        numbers = int(np.prod(shape))
        if rho is not None:
            variance = representable_variance(cls.squared_l2(unit) / (2 * rho))
            return DiscreteGaussian((variance,), (numbers,))
        return DiscreteLaplace.of(laplace_scale(cls.sensitivity(unit), epsilon), [numbers])


@dataclass(frozen=True)
class ScoreSums:
    """**Sensitive:** sums over records of whole numbers from -SCORE_STEPS to SCORE_STEPS.

    >>> sums = ScoreSums.of(np.array([[SCORE_STEPS, -SCORE_STEPS], [SCORE_STEPS, 7]]))
    >>> int(sums.sums[0]) // SCORE_STEPS, sums.sensitivity(PrivacyUnit("record")) // SCORE_STEPS
    (2, 2)
    """

    sums: IntArray

    @classmethod
    def of(cls, steps: IntArray) -> ScoreSums:
        """Add up steps of shape (n_records, n_sums)."""
        if len(steps) > _MOST_RECORDS:
            raise ValueError("There are too many records to evaluate at once.")
        return cls(steps.sum(axis=0, dtype=np.int64))

    @staticmethod
    def sensitivity(unit: PrivacyUnit) -> int:
        """Return by how much one sum of neighbours differs."""
        return unit.n_changed * SCORE_STEPS

    @classmethod
    def law(
        cls, number: int, unit: PrivacyUnit, epsilon: Fraction, rho: Fraction | None
    ) -> NoiseLaw:
        """Return the noise of some sums: joint for an epsilon, Gaussian for a rho."""
        if rho is not None:
            variance = representable_variance(number * cls.sensitivity(unit) ** 2 / (2 * rho))
            return DiscreteGaussian((variance,), (number,))
        return SupNorm.of((SCORE_STEPS,) * number, unit.n_changed, epsilon)


class Labelled(NamedTuple):
    """**Sensitive:** true and predicted codes of classes, and predicted probabilities.

    ``missing`` records more have no class.
    """

    truth: IntArray
    predicted: IntArray
    proba: FloatArray
    missing: int = 0


class Measured(NamedTuple):
    """**Sensitive:** true and predicted targets; as above."""

    truth: FloatArray
    predicted: FloatArray
    missing: int = 0


@dataclass(frozen=True)
class Classification:
    """Public facts of a classifier: how many classes it has, and how its losses are bounded."""

    n_classes: int
    least_probability: float

    metrics: ClassVar[tuple[str, ...]] = (
        "accuracy",
        "balanced_accuracy",
        "log_loss",
        "brier_score",
        "roc_auc",
        "calibration_curve",
        "confusion_matrix",
    )

    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        name: (name,) for name in ("accuracy", "log_loss", "brier_score")
    }
    """The sums that a metric needs; the others need a table."""

    @property
    def ranges(self) -> Mapping[str, Range]:
        """The range of every loss; that of Brier's is [0, 2] from three classes on."""
        return {
            "accuracy": Range(0.0, 1.0),
            "log_loss": Range(0.0, -math.log(self.least_probability)),
            "brier_score": Range(0.0, 1.0 if self.n_classes == 2 else 2.0),
        }

    def losses(self, records: Labelled, name: str) -> FloatArray:
        """Return the loss of every record, or whether it is classified correctly."""
        truth, predicted, proba, _ = records
        if name == "accuracy":
            return np.asarray(truth == predicted, np.float64)
        told = proba[np.arange(len(truth)), truth]
        if name == "log_loss":
            return np.asarray(-np.log(np.maximum(told, self.least_probability)))
        squares = (proba**2).sum(axis=1) - told**2 + (1 - told) ** 2
        return np.asarray(squares / 2 if self.n_classes == 2 else squares)

    def edges(self, table: str, bins: int) -> FloatArray:
        """Return the public edges between bins: of scores, or of the confidence."""
        if table == "scores":
            return np.asarray(expit(np.linspace(-OUTERMOST_LOGIT, OUTERMOST_LOGIT, bins - 1)))
        ends = logit(1 / self.n_classes), logit(_OUTERMOST_CONFIDENCE)
        return np.asarray(expit(np.linspace(*ends, bins)))[1:]

    def confidences(self, bins: int) -> FloatArray:
        """Return the probability in the middle, by its logit, of every bin of confidence."""
        ends = logit([1 / self.n_classes, *self.edges("confidence", bins)])
        step = ends[1] - ends[0]
        return np.asarray(expit(ends + step / 2))

    def cells(
        self, records: Labelled, table: str, edges: FloatArray | None
    ) -> tuple[IntArray, IntArray]:
        """Return the row and the column of every record's cell."""
        truth, predicted, proba, _ = records
        right = (truth == predicted).astype(np.int64)
        if edges is None:
            return truth, predicted if table == "confusion" else right
        stated = proba[:, 1] if table == "scores" else proba.max(axis=1, initial=0.0)
        place = np.searchsorted(edges, stated, side="right")
        return place, truth if table == "scores" else right


@dataclass(frozen=True)
class Regression:
    """Public facts of a regression: the bounds of its target, and of its errors.

    A target that is further than ``largest_error`` from its prediction is moved to that distance,
    wherever it is used: in errors, and in the variance that R² compares them with. Losses are in
    units of the largest error, and targets in units of half the distance of their bounds, so that
    no square leaves the range of floats.
    """

    low: float
    high: float
    largest_error: float

    metrics: ClassVar[tuple[str, ...]] = ("r2", "rmse", "mae")
    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "r2": ("squared_error", "target", "target_squared"),
        "rmse": ("squared_error",),
        "mae": ("absolute_error",),
    }

    ranges: ClassVar[Mapping[str, Range]] = {
        name: Range(-1.0 if name == "target" else 0.0, 1.0)
        for name in ("absolute_error", "squared_error", "target", "target_squared")
    }
    """The range of every loss, and of the target about its middle and of its square."""

    @property
    def reach(self) -> float:
        """The largest error in units of targets: half the distance of their bounds."""
        return self.largest_error / (self.high - self.low) * 2

    def _in_units(self, targets: FloatArray) -> FloatArray:
        half = (self.high - self.low) / 2
        return np.clip((targets - (self.low + half)) / half, -1.0, 1.0)

    def losses(self, records: Measured, name: str) -> FloatArray:
        """Return the loss of every record."""
        predicted = self._in_units(records.predicted)
        error = np.clip(self._in_units(records.truth) - predicted, -self.reach, self.reach)
        found = predicted + error if name.startswith("target") else np.abs(error) / self.reach
        return found**2 if name.endswith("squared") or name == "squared_error" else found

    def cells(self, records: Measured, table: str, edges: None = None) -> tuple[IntArray, IntArray]:
        """Return the row and the column of every record's cell: whether its error is cut."""
        error = self._in_units(records.truth) - self._in_units(records.predicted)
        cut = (np.abs(error) > self.reach).astype(np.int64)
        return np.zeros_like(cut), cut


Task = Classification | Regression


def checked(name: str, value: Any, low: float, high: float) -> float:
    """Return a public bound as a float, or refuse it."""
    number = float(value) if isinstance(value, (int, float, np.number)) else math.nan
    if not low < number < high:
        raise ValueError(
            f"The {name!r} parameter of private_score must be a float in the range "
            f"({low:g}, {high:g}). Got {value!r} instead."
        )
    return number
