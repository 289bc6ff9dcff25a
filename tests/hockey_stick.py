r"""The exact delta between two discrete laws, by listing every outcome.

.. math:: \delta(\varepsilon) = \sum_x (P(x) - e^\varepsilon Q(x))_+
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Law = npt.NDArray[np.float64]


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Return delta between two laws given as arrays over the same points."""
    return float(np.clip(p - math.exp(epsilon) * q, 0, None).sum())


def gaussian_law(variance: Fraction | float, reach: int) -> Law:
    """Return the discrete Gaussian probabilities of -reach, ..., reach."""
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(z**2) / (2 * float(variance)))
    return np.asarray(weights / weights.sum())


def enumerated_delta(
    variance: Fraction | float, epsilon: float, shifts: list[tuple[int, int]]
) -> float:
    """Return delta by listing every outcome of every cell: for two or three cells.

    Cells are given by (amount of change, weight); the variance is that of weight 1.
    """
    reach = math.ceil(14 * math.sqrt(variance)) + max(shift for shift, _ in shifts)
    p, q = np.ones(1), np.ones(1)
    for shift, weight in shifts:
        law = np.pad(gaussian_law(variance / weight, reach), shift)
        p = np.multiply.outer(p, law).ravel()
        q = np.multiply.outer(q, np.roll(law, shift)).ravel()
    return hockey_stick(p, q, epsilon)
