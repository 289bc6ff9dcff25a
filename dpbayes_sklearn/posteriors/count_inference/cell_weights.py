"""The prior's factor in a noisy count's posterior.

It is needed at integers and, where the noise is so wide that a coarser lattice does, at the points
``0, step, 2 step, ...``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, polygamma

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.count_inference.weights import LINEAR, LOG

__all__ = ["log_dirichlet_weight", "log_lattice_weight", "log_row_weight"]


_MOST_SUMMED = 2048  # lattice points near zero whose prior mass is summed, not approximated
_LEAST_SHARE = 1e-12  # of the mass between two lattice points, for either of them
_TINY_ALPHA = 1e-3  # below it differences of beta functions would leave rounding errors only


def log_dirichlet_weight(alpha: float, k: npt.ArrayLike) -> FloatArray:
    """Log of Gamma(alpha + k) / (Gamma(alpha) k!), a cell's factor in a Dirichlet-multinomial.

    Summed over all ways to split a row total N this gives the same expression in the sum of the
    alphas and N, which is why it also normalises a row. Written with the beta function, because
    the difference of two log-gammas loses seven digits at a hundred million records.
    """
    k = np.asarray(k, dtype=float)
    if alpha == 1.0:
        return np.zeros_like(k)
    weight: FloatArray = -betaln(alpha, k + 1.0) - np.log(alpha + k)
    return weight


def log_lattice_weight(alpha: float, index: npt.ArrayLike, step: float) -> FloatArray:
    """Log prior weight of lattice points ``index * step``, each standing for the counts near it.

    A count between two points is shared between them linearly, which keeps the mass and the mean.
    Away from zero, sharing only adds a variance of step^2 / 6: see :func:`_log_sharing`.
    """
    index = np.asarray(index)
    weight = log_dirichlet_weight(alpha, index * step)
    if step > 1.0:
        smooth_from = int(np.clip(2.0 * alpha, 12, _MOST_SUMMED))
        weight += np.log(step) + _log_sharing(alpha, np.maximum(index, smooth_from), step)
        near = index < smooth_from
        weight[near] = _shared_mass(alpha, smooth_from, step)[index[near]]
    return weight


def _log_sharing(alpha: float, index: npt.NDArray[Any], step: float) -> FloatArray:
    """Log of what linear sharing makes of a smooth weight, relative to the weight itself.

    With log weight a + s u + t u^2 / 2 at distance u from a point, in steps, the triangular
    average of exp(s u) is (2 sinh(s / 2) / s)^2, and the curvature
    t = -(alpha - 1) step^2 / ((alpha + k)(1 + k)) at the count k adds t / 12.
    """
    count = np.multiply(index, step, dtype=float)
    slope = step * np.log((alpha + count) / (1.0 + count))
    half = np.maximum(np.abs(slope) / 2.0, 1e-9)
    log_ratio = half + np.log(-np.expm1(-2.0 * half) / (2.0 * half))  # of sinh(half) and half
    curvature = -(alpha - 1.0) * (step / (alpha + count)) * (step / (1.0 + count))
    return np.asarray(2.0 * log_ratio + curvature / 12.0)


@lru_cache(maxsize=64)
def _shared_mass(alpha: float, points: int, step: float) -> FloatArray:
    """Log of sum_k max(0, 1 - |k/step - i|) w(k) for the first points i, w the Dirichlet weight.

    With S0(x) = sum_{k<=x} w(k) = w_{alpha+1}(x) and S1(x) = sum_{k<=x} k w(k)
    = alpha w_{alpha+2}(x-1), both telescoping, each side of a point is a difference. Every
    interval is scaled by its own largest term.
    """
    edges = np.arange(points + 1) * step
    last = np.floor(edges)
    log_mass = _log_mass(alpha, last)
    log_first = log_dirichlet_weight(alpha + 2.0, np.maximum(last - 1.0, 0.0)) + np.log(alpha)
    log_first[last < 1.0] = -np.inf
    scale = log_mass[1:]
    mass = -np.expm1(log_mass[:-1] - scale)
    first = np.exp(log_first[1:] - scale) - np.exp(log_first[:-1] - scale)
    # where weights are so steep that rounding hides a share, some of the mass is left to each end
    rising = np.clip((first - edges[:-1] * mass) / step, _LEAST_SHARE * mass, mass)
    falling = mass - rising
    with np.errstate(divide="ignore"):
        log_rising, log_falling = np.log(rising) + scale, np.log(falling) + scale
    log_falling[1:] = np.logaddexp(log_falling[1:], log_rising[:-1])
    log_falling[0] = np.logaddexp(log_falling[0], 0.0)  # zero itself has a Dirichlet weight of one
    shared: FloatArray = log_falling
    return shared


def _log_mass(alpha: float, x: FloatArray) -> FloatArray:
    """Log of w_{alpha+1}(x), the mass of all counts up to x; as precise as alpha if that is tiny.

    Then it is alpha (psi(x+1) - psi(1)) + alpha^2 (psi'(x+1) - psi'(1)) / 2 + O(alpha^3).
    """
    if alpha >= _TINY_ALPHA:
        return log_dirichlet_weight(alpha + 1.0, x)
    first, second = (polygamma(order, x + 1.0) - polygamma(order, 1.0) for order in (0, 1))
    mass: FloatArray = alpha * first + 0.5 * alpha**2 * second
    return mass


def log_row_weight(alphas: tuple[float, ...], lowest: int, highest: int, step: float) -> FloatArray:
    """Log of the prior mass of all splits of a row whose total is one of a range of points.

    At step one this is the Dirichlet weight of the total. On a coarser lattice the cells' shared
    masses are convolved as far as needed; beyond, sharing only adds the variance step^2 / 6 of
    each cell.
    """
    n_cells, alpha = len(alphas), float(sum(alphas))
    index = np.arange(lowest, highest + 1)
    weight = log_lattice_weight(alpha, index, step)
    if step > 1.0 and n_cells > 1:
        smooth_from = int(np.clip(alpha * np.sqrt(n_cells), 64, _MOST_SUMMED))
        sharing = _log_sharing(alpha, np.maximum(index, smooth_from), step)
        weight = log_dirichlet_weight(alpha, index * step) + np.log(step) + n_cells * sharing
        near = index < smooth_from
        if near.any():
            weight[near] = _split_mass(alphas, smooth_from, step)[index[near]]
    return weight


@lru_cache(maxsize=64)
def _split_mass(alphas: tuple[float, ...], length: int, step: float) -> FloatArray:
    """Log mass of all splits over these cells of totals 0, ..., length - 1; equal halves once."""
    if len(alphas) == 1:
        return log_lattice_weight(alphas[0], np.arange(length), step)
    middle = len(alphas) // 2
    left, right = (_split_mass(half, length, step) for half in (alphas[:middle], alphas[middle:]))
    algebra = LINEAR if max(np.ptp(left), np.ptp(right)) < 300.0 else LOG
    mass = algebra.convolve(algebra.of_log(left), algebra.of_log(right))[:length]
    scale = left.max() + right.max() if algebra is LINEAR else 0.0
    return algebra.to_log(mass) + scale
