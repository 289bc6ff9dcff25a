"""The noise of every step of a regression, on an exact grid."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.moments import largest_grid

__all__ = ["ReleaseStep", "add_noise", "gaussian_grid", "grid_for", "widening"]


class ReleaseStep(Protocol):
    """Sums that are released together and know the noise that they need."""

    def law(self, share: Fraction, grid: int, /) -> NoiseLaw:
        """Return the law for a share of epsilon, or of rho, on sums in units of 1/grid²."""


def grid_for(design: Design, n: int, epsilon: Fraction) -> int:
    """Return the finest grid on which noise for the smallest share of epsilon is exact."""
    entries = (design.width + 2) ** 2
    return largest_grid(n, 100 * entries / float(epsilon))


def gaussian_grid(design: Design, n: int, rho: Fraction) -> int:
    """Return the finest grid on which Gaussian noise for the smallest share of rho is exact.

    No deviation of any step exceeds 100 times the number of coordinates over sqrt(2 rho), and the
    sampler needs it to be below 2**40, a thousandth of what Laplace noise may be.
    """
    if not rho:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    return largest_grid(n, 1024 * 100 * (design.width + 2) / math.sqrt(2 * rho))


def add_noise(
    sums: IntArray, step: ReleaseStep, grid: int, share: Fraction, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    r"""Return sums plus noise, and the variance of the noise in every entry.

    The law is the step's own: :math:`P(z) \propto e^{-\varepsilon\|z\|/\Delta}` in the L1 norm, if
    one record changes few entries at a time (independent noise), in the sup norm, if it can change
    all of them at once, or matrix noise; or it is Gaussian, and the share one of rho.
    """
    law, unit = step.law(share, grid), grid**2
    groups = np.split(sums, np.cumsum(law.sizes)[:-1])
    noisy = np.concatenate(noise.add(groups, law))
    return noisy / unit, law.variances / unit**2


def widening(n_epsilon: float, from_records: float = 5000) -> float:
    """Return how much farther to clip with more data, so that the bias vanishes."""
    return float(max(1.0, n_epsilon / from_records) ** 0.25)
