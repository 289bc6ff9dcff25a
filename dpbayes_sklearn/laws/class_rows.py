r"""Joint noise of all naive Bayes tables: the K-norm mechanism of the changes one record can make.

A record adds one to a cell of its class's row in every table. For each class the rows of noise
:math:`v_1, \dots, v_d` have the same sum s, that of its class count, and

.. math:: P(v) \propto e^{-\max_j \|v_j\|_1 / b}, \qquad v_{jk} \in \{0, \pm 1/g, \pm 2/g, \dots\}

Replacing a record changes :math:`\sum_c \max_j \|v_{cj}\|_1` by at most 2, so :math:`b =
2/\varepsilon` is enough for any number of tables. The unit ball of the norm is the convex hull of
what adding or removing a record can do.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import gammainccinv, gammaln

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.base import Marginal, NoiseLaw
from dpbayes_sklearn.laws.discrete_gaussian import GaussianMarginal
from dpbayes_sklearn.laws.discrete_laplace import LaplaceMarginal
from dpbayes_sklearn.laws.scales import check_grid, lattice_scale

__all__ = ["ClassRows"]


@dataclass(frozen=True)
class ClassRows(NoiseLaw):
    """Joint noise of all tables, independent by class: exp(-max_j abs(v_j).sum() / scale).

    The arrays are the tables of the features, of shape (n_classes, values), and the class counts.

    Attributes
    ----------
    scale : Fraction
        The b, in counts.
    values : tuple of int
        Number of values of every feature.
    n_classes : int
        Number of classes, which have independent noises.
    grid : int
        The g: a power of two. Released counts are multiples of 1/g.

    Examples
    --------
    >>> law = ClassRows.of((2, 2, 4), n_classes=2, sensitivity=2, epsilon=Fraction(1))
    >>> law.scale, law.grid
    (Fraction(2, 1), 4)
    >>> [round(law.variance(table), 1) for table in (0, 2)]
    [33.6, 14.9]
    """

    scale: Fraction
    values: tuple[int, ...]
    n_classes: int
    grid: int

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.scale <= 0 or any(size < 1 for size in (*self.values, self.n_classes)):
            raise ValueError("Joint noise needs a positive scale and at least one value a feature.")
        check_grid(self.grid)

    @classmethod
    def of(
        cls, values: tuple[int, ...], n_classes: int, sensitivity: int, epsilon: Fraction
    ) -> ClassRows:
        """Return the law for rows whose norm, summed over classes, has this sensitivity."""
        scale, grid = lattice_scale(_dimension(values), sensitivity, epsilon)
        return cls(scale, values, n_classes, grid)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of cells of the tables, then of the class counts."""
        return tuple(self.n_classes * size for size in (*self.values, 1))

    @cached_property
    def dimension(self) -> int:
        """How many numbers of a class's rows are free: all but one of a row, and their sum."""
        return _dimension(self.values)

    @property
    def steps(self) -> Fraction:
        """Scale in steps of the grid."""
        return self.scale * self.grid

    @cached_property
    def squared_radius(self) -> float:
        r"""Mean square :math:`b^2 (m+1)(m+2)` of the radius T, which is Gamma(m + 1, b)."""
        m = self.dimension
        return float(self.scale) ** 2 * (m + 1) * (m + 2)

    @cached_property
    def shared_row_variance(self) -> float:
        r"""Variance :math:`E[T^2] E[u^2]` of a class count's noise uT."""
        u, weights = _direction(self.values)
        return self.squared_radius * float(weights @ u**2)

    def contrast_variance(self, array: int = 0) -> float:
        """Variance of a row's noise along any contrast: what cells have beyond the row's sum."""
        size = self.sizes[array] // self.n_classes
        cell = self.variance(array) - self.shared_row_variance / size**2
        return cell * size / max(size - 1, 1)

    def _cell_variance(self, size: int) -> float:
        r"""Variance of one cell in a table of features with ``size`` = n + 1 values.

        Given T and u, i of the n free entries are positive with weight
        :math:`\binom ni^2 x^i (1-x)^{n-i}`, :math:`x = \frac{1+u}2`, and share xT by uniform
        spacings, :math:`E v^2 = \frac{2x^2T^2}{(i+1)(i+2)}`; the others share (1 - x)T likewise.
        """
        n = size - 1
        if n == 0:
            return self.shared_row_variance
        u, weights = _direction(self.values)
        x, i = (1 + u) / 2, np.arange(n + 1.0)[:, None]
        log_ways = 2 * _log_binomial(n, i) + i * np.log(x) + (n - i) * np.log1p(-x)
        ways = np.exp(log_ways - log_ways.max(axis=0))
        above, below = (k / ((k + 1) * (k + 2)) for k in (i, n - i))
        squares = 2 * (above * x**2 + below * (1 - x) ** 2) / n
        return self.squared_radius * float(weights @ ((ways * squares).sum(0) / ways.sum(0)))

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of every cell, table after table, then of the class counts."""
        exact = {size: self._cell_variance(size) for size in {*self.values, 1}}
        return np.repeat([exact[size] for size in (*self.values, 1)], self.sizes)

    def marginal(self, array: int = 0) -> LaplaceMarginal:
        """Return Laplace noise of the same variance, which approximates that of one number."""
        return LaplaceMarginal(math.sqrt(self.variance(array) / 2.0))

    def row_marginal(self, array: int = 0) -> Marginal:
        """Return Gaussian noise of the variance that a row has along its contrasts.

        Given the largest norm, a row is uniform over a ball, which a Gaussian approximates better
        than a Laplace law does.
        """
        if (*self.values, 1)[array] == 1:
            return self.marginal(array)
        return GaussianMarginal(self.contrast_variance(array))

    @property
    def standard(self) -> tuple[ClassRows, float]:
        """The law whose scale is many steps, on the integers, and the factor."""
        steps = 64 * self.dimension
        law = ClassRows(Fraction(steps), self.values, self.n_classes, 1)
        return law, float(self.scale) / steps

    def error_bound(self, delta: float) -> float:
        r"""Return the bound of the largest error, from the Gamma law of the norm.

        .. math:: \max |z| \le b\,\Gamma^{-1}_m\Big(1 - \frac{\delta}{Ce^{t}\cosh t}\Big)
            + \frac{d}{g}, \qquad t = \frac{d}{gb}, \quad d = K - \tfrac12,

        for C classes, m free numbers in the rows of each, and features of at most K values. No
        cell is larger than the norm, which for continuous noise has the Gamma law of order m and
        scale b. Spread evenly over a cube of side 1/g in the free numbers, a point of the lattice
        shifts by u with :math:`\|u\| \le d/g`. That changes its weight by at most :math:`e^t`; and
        as the norm is convex, u and -u together change the sum of all weights by at most
        :math:`\cosh t`.
        """
        farthest = max(self.values, default=1) - 0.5
        t = farthest / float(self.steps)
        within = delta / self.n_classes / (math.exp(t) * math.cosh(t))
        radius = float(gammainccinv(self.dimension, within))
        return float(self.scale) * radius + farthest / self.grid

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the sum over classes of the largest row's L1 norm, over the scale.

        Infinite if the rows of a class have different sums: no two data sets differ so.
        """
        tables = np.split(shift, np.cumsum(self.sizes)[:-1])
        rows = [table.reshape(self.n_classes, -1) for table in tables]
        sums = np.stack([row.sum(axis=1) for row in rows])
        if (sums != sums[0]).any():
            return math.inf
        norms = np.stack([np.abs(row).sum(axis=1) for row in rows]).max(axis=0)
        return int(norms.sum()) / self.scale


def _dimension(values: tuple[int, ...]) -> int:
    """Return how many numbers of a class's rows are free: all but one of a row, and the sum."""
    return 1 + sum(size - 1 for size in values)


@lru_cache(maxsize=64)
def _direction(values: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    r"""Return nodes and weights of the distribution of u, the sum of a row over its radius.

    Its density is :math:`\prod_j w_{K_j-1}(u)` on [-1, 1]: the volumes of rows with this sum. A
    Gauss rule integrates the polynomial exactly if it has few features, and to 1e-12 otherwise.
    """
    m = _dimension(values) - 1
    u, weights = np.polynomial.legendre.leggauss(min(m // 2 + 3, 32 + 4 * math.isqrt(m)))
    log_volume = np.zeros_like(u)
    for free, features in Counter(size - 1 for size in values).items():
        log_volume += features * _log_row_volume(free, u)
    volume = weights * np.exp(log_volume - log_volume.max())
    return u, volume / volume.sum()


def _log_row_volume(n: int, u: FloatArray) -> FloatArray:
    r"""Return the log of :math:`w_n(u) = u^n P_n(1/u)`, P the Legendre polynomials.

    Rows of n free entries whose positive and negative parts add to at most
    :math:`\frac{1 \pm u}2`: :math:`w_0 = w_1 = 1` and
    :math:`(k+1) w_{k+1} = (2k+1) w_k - k u^2 w_{k-1}`, here by the ratios :math:`w_{k+1}/w_k`,
    as :math:`w_n` itself grows as :math:`2^n`.
    """
    log_volume, ratio = np.zeros_like(u), np.ones_like(u)
    for k in range(1, n):
        ratio = ((2 * k + 1) - k * u**2 / ratio) / (k + 1)
        log_volume += np.log(ratio)
    return log_volume


def _log_binomial(n: int, i: FloatArray) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1))
