r"""Tempered Beta laws on a public grid, and their exact privacy loss for one more observation.

A split is a coin whose left probability :math:`\theta` is one of J public points of
:math:`[\omega, 1-\omega]`, evenly spaced in :math:`\operatorname{logit}\theta`. After k turns to
the left and m to the right its law is

.. math:: P(\theta) \propto \theta^{a + \tau k} (1-\theta)^{b + \tau m},

for Beta(a, b) the prior (its density times the spacing of the grid, which is proportional to
:math:`\theta(1-\theta)`) and :math:`0 < \tau` the tempering.

**Loss.** One more turn to the left multiplies the weights by :math:`\theta^\tau`, so the log ratio
of the laws is :math:`\tau\ln\theta - \ln E_{k,m}\theta^\tau`. The expectation grows with k and
falls with m (monotone likelihood ratio), hence over all k + m < n it is extreme at (n-1, 0) and
(0, n-1), and the loss is extreme at an end of the grid: two expectations give the worst case.
A turn taken left instead of right multiplies by :math:`(\theta/(1-\theta))^\tau`, likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.finite import rounding_loss

__all__ = ["SplitGrid", "log_odds_of"]

_MOST_ENUMERATED = 1000


def log_odds_of(omega: float) -> float:
    """L = ln((1 - omega) / omega), the log odds of the grid's upper end.

    >>> log_odds_of(0.5)
    0.0
    """
    return float(np.log1p(-omega) - np.log(omega))


def _log_sum(log_terms: FloatArray) -> FloatArray:
    """Return log sum exp over the last axis, which is kept; scipy's costs ten times as much."""
    top = log_terms.max(axis=-1, keepdims=True)
    total: FloatArray = top + np.log(np.exp(log_terms - top).sum(axis=-1, keepdims=True))
    return total


@dataclass(frozen=True)
class SplitGrid:
    """Public grid of J points in [omega, 1 - omega], evenly spaced in log odds."""

    omega: float
    points: int

    @cached_property
    def log_left(self) -> FloatArray:
        """Return ln theta of every point."""
        odds = np.linspace(-1.0, 1.0, self.points) * log_odds_of(self.omega)
        return -np.logaddexp(0.0, -odds)

    @property
    def log_right(self) -> FloatArray:
        """Return ln(1 - theta) of every point; the grid is symmetric."""
        return self.log_left[::-1]

    @property
    def left(self) -> FloatArray:
        """Return theta of every point."""
        return np.exp(self.log_left)

    def log_weights(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
        """Return left * ln(theta) + right * ln(1 - theta) along a new last axis."""
        powers = np.asarray(left, np.float64)[..., None], np.asarray(right, np.float64)[..., None]
        return powers[0] * self.log_left + powers[1] * self.log_right

    def rounding(self, power: float) -> float:
        """Bound the loss that integer weights add when the powers sum to at most ``power``."""
        return rounding_loss(self.points, power * -float(self.log_left[0]))

    def loss_of_adding(self, a: float, b: float, tau: float, n: int) -> float:
        """Return the worst loss of one more turn, to either side, at up to n - 1 earlier ones."""
        return max(
            self._worst(a, b, tau * self.log_left, (tau * (n - 1), 0.0), (0.0, tau * (n - 1))),
            self._worst(a, b, tau * self.log_right, (tau * (n - 1), 0.0), (0.0, tau * (n - 1))),
        )

    def loss_of_turning(self, a: float, b: float, tau: float, n: int) -> float:
        """Return the worst loss of one turn taken to the other side, among up to n."""
        log_odds = tau * (self.log_left - self.log_right)
        return self._worst(a, b, log_odds, (tau * (n - 1), tau), (0.0, tau * n))

    def _worst(
        self, a: float, b: float, change: FloatArray, *corners: tuple[float, float]
    ) -> float:
        """Return max over corners and points of abs(change - ln E exp(change))."""
        losses = []
        for left, right in corners:
            log_law = self.log_weights(a + left, b + right)
            mean = (_log_sum(log_law + change) - _log_sum(log_law))[0]
            losses += [change.max() - mean, mean - change.min()]
        return float(max(losses))

    def law(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
        """Return the normalised masses of the points for these powers."""
        log_law = self.log_weights(left, right)
        masses: FloatArray = np.exp(log_law - _log_sum(log_law))
        return masses

    def mass_sensitivity(self, a: float, b: float, n: int) -> float:
        r"""Return the most that one more turn changes the posterior mass of any point.

        For n up to 1,000 by going through all reachable counts. Beyond, the bound
        :math:`\tanh(L/4)` that holds for every n: with mass p at :math:`\theta` and the rest at
        mean M, the mass changes by :math:`p(1-p)|\theta-M|/(p\theta+(1-p)M)`, which over p is
        largest at :math:`(\sqrt R - 1)/(\sqrt R + 1)`, :math:`R = \theta/M \le e^L`.

        Rounded up beyond floating-point error, which would matter for a score that hardly changes:
        the error of a mass is added, and the result is at least 2**-20.
        """
        power = abs(a) + abs(b) + n
        error = 2.0**-46 * (power * -float(self.log_left[0]) + self.points)
        moved = min(self._largest_move(a, b, n), float(np.tanh(log_odds_of(self.omega) / 4)))
        return max(moved + error, 2.0**-20) * (1 + 2.0**-20)

    def _largest_move(self, a: float, b: float, n: int) -> float:
        """Return the largest change of a mass, by going through all counts if n is not large."""
        if n > _MOST_ENUMERATED:
            return 1.0
        largest = 0.0
        for total in range(n):
            k = np.arange(total + 1)
            before = self.law(a + k, b + total - k)
            for change in (np.exp(self.log_left), np.exp(self.log_right)):
                factor = change / (before @ change)[:, None] - 1
                largest = max(largest, float(np.abs(before * factor).max()))
        return largest
