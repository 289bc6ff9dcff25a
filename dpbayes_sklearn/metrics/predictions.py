"""What a model says about held-out records, and the truth: losses and cells of every record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.metrics.statistics import Range

__all__ = ["Classification", "Labelled", "Measured", "Regression", "Task", "checked", "score_step"]

_FARTHEST = 6.0  # logit of the outermost edge between bins of scores
_SURE = 0.998  # probability of the outermost edge between bins of confidence


class Labelled(NamedTuple):
    """**Sensitive:** true and predicted codes of classes, and predicted probabilities."""

    truth: IntArray
    predicted: IntArray
    proba: FloatArray


class Measured(NamedTuple):
    """**Sensitive:** true and predicted targets, within their public bounds."""

    truth: FloatArray
    predicted: FloatArray


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
        truth, predicted, proba = records
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
            return np.asarray(expit(np.linspace(-_FARTHEST, _FARTHEST, bins - 1)))
        ends = logit(1 / self.n_classes), logit(_SURE)
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
        truth, predicted, proba = records
        right = (truth == predicted).astype(np.int64)
        if edges is None:
            return truth, predicted if table == "confusion" else right
        stated = proba[:, 1] if table == "scores" else proba.max(axis=1, initial=0.0)
        place = np.searchsorted(edges, stated, side="right")
        return place, truth if table == "scores" else right


@dataclass(frozen=True)
class Regression:
    """Public facts of a regression: the bounds of its target, and of its errors."""

    low: float
    high: float
    largest_error: float

    metrics: ClassVar[tuple[str, ...]] = ("r2", "rmse", "mae")
    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "r2": ("squared_error", "target", "target_squared"),
        "rmse": ("squared_error",),
        "mae": ("absolute_error",),
    }

    @property
    def ranges(self) -> Mapping[str, Range]:
        """The range of every loss, and of the target about its middle and of its square."""
        half = (self.high - self.low) / 2
        return {
            "absolute_error": Range(0.0, self.largest_error),
            "squared_error": Range(0.0, self.largest_error**2),
            "target": Range(-half, half),
            "target_squared": Range(0.0, half**2),
        }

    def losses(self, records: Measured, name: str) -> FloatArray:
        """Return the loss of every record."""
        truth, predicted = records
        about = truth - (self.low + (self.high - self.low) / 2)
        if name == "target":
            return about
        if name == "target_squared":
            return about**2
        error = np.abs(predicted - truth)
        return error if name == "absolute_error" else error**2


Task = Classification | Regression


def score_step(bins: int) -> float:
    """Return the width of a bin of scores, on the scale of logits."""
    return 2 * _FARTHEST / (bins - 2)


def checked(name: str, value: Any, low: float, high: float) -> float:
    """Return a public bound as a float, or refuse it."""
    number = float(value) if isinstance(value, (int, float, np.number)) else math.nan
    if not low < number < high:
        raise ValueError(
            f"The {name!r} parameter of private_score must be a float in the range "
            f"({low:g}, {high:g}). Got {value!r} instead."
        )
    return number
