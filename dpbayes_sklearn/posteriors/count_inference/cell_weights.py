"""The two factors of a noisy count's posterior: the prior's weight and the noise law.

Both are needed at integers and, where the noise is so wide that a coarser lattice does, at the
points ``0, step, 2 step, ...``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.count_inference.weights import LINEAR, LOG

__all__ = ["NoiseLaw", "log_lattice_weight", "log_row_weight", "noise_bound"]


_MOST_SUMMED = 2048  # lattice points near zero whose prior mass is summed, not approximated
_EXACT_SCALE = 64.0  # sums of noises up to this scale are tabulated at every integer


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
    average of exp(s u) is (2 sinh(s / 2) / s)^2, and the curvature t = -(alpha - 1) / index^2
    adds t / 12.
    """
    slope = step * np.log((alpha + index * step) / (1.0 + index * step))
    half = np.maximum(np.abs(slope) / 2.0, 1e-9)
    return 2.0 * np.log(np.sinh(half) / half) - (alpha - 1.0) / (12.0 * index**2)


@lru_cache(maxsize=64)
def _shared_mass(alpha: float, points: int, step: float) -> FloatArray:
    """Log of sum_k max(0, 1 - |k/step - i|) w(k) for the first points i, w the Dirichlet weight.

    With S0(x) = sum_{k<=x} w(k) = w_{alpha+1}(x) and S1(x) = sum_{k<=x} k w(k)
    = alpha w_{alpha+2}(x-1), both telescoping, each side of a point is a difference. Every
    interval is scaled by its own largest term.
    """
    edges = np.arange(points + 1) * step
    last = np.floor(edges)
    log_mass = log_dirichlet_weight(alpha + 1.0, last)
    log_first = log_dirichlet_weight(alpha + 2.0, np.maximum(last - 1.0, 0.0)) + np.log(alpha)
    log_first[last < 1.0] = -np.inf
    scale = log_mass[1:]
    mass = -np.expm1(log_mass[:-1] - scale)
    first = np.exp(log_first[1:] - scale) - np.exp(log_first[:-1] - scale)
    rising = np.maximum(first - edges[:-1] * mass, 0.0) / step
    falling = np.maximum(edges[1:] * mass - first, 0.0) / step
    falling[0] += np.exp(-scale[0])  # the count zero itself, whose Dirichlet weight is one
    with np.errstate(divide="ignore"):
        log_rising, log_falling = np.log(rising) + scale, np.log(falling) + scale
    log_falling[1:] = np.logaddexp(log_falling[1:], log_rising[:-1])
    shared: FloatArray = log_falling
    return shared


class NoiseLaw:
    """Sum of independent discrete Laplace variables, P(x) proportional to exp(-|x| / scale).

    Parameters
    ----------
    scales : sequence of float
        Scale of each variable. Zero adds nothing; infinity means that nothing is known.

    Examples
    --------
    >>> NoiseLaw([2.0]).log_weight(np.array([0.0, -3.0, 4.0])).tolist()
    [-0.0, -1.5, -2.0]
    >>> NoiseLaw([0.0]).exact, NoiseLaw([2.0, 2.0]).exact
    (True, False)
    """

    def __init__(self, scales: Sequence[float]) -> None:
        self.scales = tuple(float(scale) for scale in scales if scale > 0.0)
        self.exact = not self.scales
        self.flat = np.inf in self.scales

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log probability of noise ``x``, up to a constant."""
        if self.flat:
            return np.zeros_like(x)
        if len(self.scales) == 1:
            return -np.abs(x) / self.scales[0]
        step, table = _table(self.scales)
        distance = np.abs(x) / step
        slope = table[-1] - table[-2]
        beyond = np.maximum(distance - (len(table) - 1), 0.0)
        inside = np.interp(distance, np.arange(len(table)), table)
        log_weight: FloatArray = inside + slope * beyond
        return log_weight

    def half_width(self, terms: int, nats: float) -> float:
        """Bound that the sum of ``terms`` such noises crosses with probability below exp(-nats)."""
        if self.flat or np.isinf(nats):
            return np.inf
        return noise_bound(Counter(self.scales * terms), nats)

    @property
    def variance(self) -> float:
        """Variance, that of the continuous law: 2 b^2 for each scale b."""
        return 2.0 * float(np.square(self.scales).sum())

    @property
    def sharpness(self) -> float:
        """Distance over which the law falls: the scale of a Laplace law with this variance."""
        return float(np.sqrt(self.variance / 2.0))


def noise_bound(scales: Mapping[float, int], nats: float) -> float:
    """Bound that a sum of Laplace variables crosses with probability below exp(-nats).

    Chernoff: P(X > x) <= exp(-s x) prod_i 1 / (1 - s^2 b_i^2), for the best s. ``scales`` says
    how many variables there are of each scale b.
    """
    if not scales:
        return 0.0
    b, number = np.array(list(scales)), np.array(list(scales.values()), dtype=float)
    s = np.linspace(0.02, 0.98, 49) / b.max()
    cost = -np.log1p(-(np.multiply.outer(s, b) ** 2)) @ number
    return float(((nats + cost) / s).min())


@lru_cache(maxsize=32)
def _table(scales: tuple[float, ...]) -> tuple[float, FloatArray]:
    """Step of, and log law at, the points 0, step, 2 step, ... of a sum of discrete Laplace.

    R of them with equal scale are the difference of two negative binomials of order R, so each
    distinct scale takes one convolution. A coarser lattice keeps every variance. The table ends
    where the law has fallen by at least 60 nats; from there its logarithm goes on linearly.
    """
    step = max(1.0, max(scales) / _EXACT_SCALE)
    nats = min(600.0, 60.0 * step * _EXACT_SCALE / max(scales))
    length = 1 + int(np.ceil(noise_bound(Counter(scales), nats) / step))
    law = np.zeros(2 * length - 1)
    law[length - 1] = 1.0
    for scale, order in sorted(Counter(scales).items()):
        points = np.arange(2 * length)
        log_binomial = points * np.log(_lattice_ratio(scale, step))
        log_binomial += log_dirichlet_weight(float(order), points)
        binomial = np.exp(log_binomial - log_binomial.max())
        difference = np.correlate(binomial, binomial, "full")[length : 3 * length - 1]
        law = np.convolve(law, difference / difference.sum(), "same")
    return step, np.log(law[length - 1 :] / law.max())


def _lattice_ratio(scale: float, step: float) -> float:
    """Ratio q of P(x) ~ q^|x / step| with the variance of exp(-|x| / scale) on the integers.

    The latter is 2 p / (1 - p)^2 with p = exp(-1 / scale), so q = p when the step is one.
    """
    variance: float = 0.5 / np.sinh(min(0.5 / scale, 350.0)) ** 2 / step**2
    return float(variance / (1.0 + variance + np.sqrt(1.0 + 2.0 * variance)))


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
