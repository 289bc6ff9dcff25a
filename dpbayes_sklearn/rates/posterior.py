"""What a release of rates leaves: a mode with what is known about its error, and rate ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.logistic.blocks import Blocks
from dpbayes_sklearn.logistic.curvature import Bend
from dpbayes_sklearn.logistic.posterior import (
    LogisticPosterior,
    OddsTable,
    odds_table,
    positive_part,
)
from dpbayes_sklearn.schema import Schema


@dataclass(frozen=True)
class RatePosterior(LogisticPosterior):
    """A released mode of a regression of counts.

    Attributes
    ----------
    cap : float
        Counts are clipped to it.
    level : float
        The logarithm of the rate that parameters are relative to, in units of the cap.
    usual : float
        The logarithm of a usual exposure.
    scores : array of the shape of the curvature
        The variance of the score, of the loss over the cap, where the curvature is.
    """

    cap: float = 1.0
    level: float = 0.0
    usual: float = 0.0
    scores: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def fits(self, blocks: Blocks, n_classes: int = 2) -> bool:
        """Tell whether all arrays have the shapes and signs that a model needs."""
        fits = self.scores.shape == self.curvature.shape and self.cap >= 1
        fits = fits and bool((self.scores.diagonal() >= 0).all())
        return fits and np.array_equal(self.scores, self.scores.T) and super().fits(blocks)

    @property
    def _bend(self) -> Bend:
        return bend_of_rates(self.level + self.usual)

    @property
    def _variance(self) -> FloatArray:
        return positive_part(self.scores)

    def rates(self, z: FloatArray) -> FloatArray:
        """Return the mean counts of sums z of coefficients and exposures, at most the cap."""
        return np.asarray(self.cap * np.exp(np.minimum(z + self.level, 0.0)))


def bend_of_rates(level: float) -> Bend:
    r"""Return the expected curvature of loss over cap: :math:`\sigma`."""
    return lambda z: np.asarray(expit(z + level))


@dataclass(frozen=True, repr=False)
class RateTable(OddsTable):
    """Effects on the logarithm of the rate of counts clipped at a cap, with rate ratios.

    Attributes
    ----------
    rows : tuple of OddsRatio
        Of which ``odds_ratio`` is the rate ratio.
    """

    title: ClassVar[str] = "Rate ratios"
    model: ClassVar[str] = "Regression of counts"
    cap: float = math.inf

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        names: Sequence[str] = super().heads
        words = {"log odds": "log rate", "odds ratio": "rate ratio"}
        return tuple(words.get(name, name) for name in names)

    @property
    def remark(self) -> str:
        """Which counts the ratios are of, and what else is to be said."""
        clipped = f"Ratios of the mean of counts clipped at {self.cap:g}."
        return " ".join(each for each in (clipped, super().remark) if each)

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each effect."""
        frame = super().to_frame()
        return frame.rename(columns=lambda name: name.replace("odds_ratio", "rate_ratio"))


def rate_table(schema: Schema, blocks: Blocks, posterior: RatePosterior, level: float) -> RateTable:
    """Return the table of all effects; the intercept is the log rate of clipped counts."""
    found = odds_table(schema, blocks, posterior, level)
    shift = posterior.level + math.log(posterior.cap)
    rows = tuple(row.shifted(shift) if row.name == "intercept" else row for row in found.rows)
    return RateTable(rows, level, found.no_intervals, found.ranges, posterior.cap)
