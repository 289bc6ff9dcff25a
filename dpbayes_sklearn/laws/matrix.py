r"""Noise for matrices of sums of products: the difference of two Wishart matrices.

.. math:: Z_{ij} = \Big\lfloor \tfrac b2 \frac{(A - B)_{ij}}{a_i a_j} + \tfrac12 \Big\rfloor,
    \qquad i \le j

where A and B are independent Wishart matrices of p + 1 degrees of freedom, whose density is
:math:`\propto e^{-\operatorname{tr}/2}` on the positive semi-definite cone, and :math:`a_i` are
weights of the p coordinates.

**Privacy.** :math:`M = \tfrac b2(A - B)` has density
:math:`f(M) \propto \int e^{-(\operatorname{tr} M + 2 \operatorname{tr} B)/b}\,dB` over
:math:`B \succeq 0`, :math:`M + B \succeq 0`. For
:math:`P \succeq 0` substitute B + P: :math:`f(M) \ge e^{-\operatorname{tr} P/b} f(M + P)`, and by
symmetry :math:`f(M) \ge e^{-\operatorname{tr} P/b} f(M - P)`. A difference of neighbours, weighted
by :math:`a_i a_j`, is P - N with positive semi-definite P, N, so its loss is at most
:math:`(\operatorname{tr} P + \operatorname{tr} N)/b`: its nuclear norm over b. The sums are
integers, so adding rounded noise to them is rounding, a post-processing. ∎

One entry is a difference of two Gamma variables: order p + 1 and scale b/2 off the diagonal
(variance :math:`b^2(p+1)/2`), order (p + 1)/2 and scale b on it (twice that variance), over
:math:`a_ia_j`. Different entries are uncorrelated.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, kve

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.base import NoiseLaw
from dpbayes_sklearn.laws.marginals import deviation_bound

__all__ = ["GammaDifference", "MatrixNoise"]


@dataclass(frozen=True)
class MatrixNoise(NoiseLaw):
    """Joint noise of the upper triangle, row by row, of a symmetric matrix.

    Attributes
    ----------
    scale : Fraction
        The b, in units of the numbers.
    weights : tuple of Fraction
        The a_i, one for each coordinate.

    Examples
    --------
    >>> law = MatrixNoise(Fraction(4), (Fraction(1), Fraction(1)))
    >>> law.size, law.variances.tolist()
    (3, [48.0, 24.0, 48.0])
    >>> law.privacy_loss(np.array([1, 1, 1]))  # a record of (1, 1) comes
    0.5
    """

    scale: Fraction
    weights: tuple[Fraction, ...]

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) <= 0 or self.scale <= 0:
            raise ValueError("Matrix noise needs coordinates of positive weight and a scale.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """All entries are one array."""
        p = len(self.weights)
        return (p * (p + 1) // 2,)

    @cached_property
    def upper(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of the entries."""
        rows, columns = np.triu_indices(len(self.weights))
        return rows, columns

    @cached_property
    def variances(self) -> FloatArray:
        """Variance b² (p+1)/2 of every entry over its squared weights; twice on the diagonal."""
        rows, columns = self.upper
        a = np.array([float(weight) for weight in self.weights])
        size = float(self.scale) ** 2 * (len(a) + 1) / 2
        return np.asarray(np.where(rows == columns, 2.0, 1.0) * size / (a[rows] * a[columns]) ** 2)

    def marginal(self, array: int = 0) -> GammaDifference:
        """Return the distribution of the first entry, a diagonal one."""
        weight = float(self.weights[0]) ** 2
        return GammaDifference((len(self.weights) + 1) / 2, float(self.scale) / weight)

    def error_bound(self, delta: float) -> float:
        """Return a Chernoff bound for each entry, at the same share of ``delta``."""
        nats, order = float(np.log(self.size / delta)), (len(self.weights) + 1) / 2
        widest = float(self.scale) / float(min(self.weights)) ** 2
        entries = (GammaDifference(order, widest), GammaDifference(2 * order, widest / 2))
        return 0.5 + max(entry.half_width(1, nats) for entry in entries)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the nuclear norm of the weighted shift over the scale, from above."""
        matrix = np.zeros((len(self.weights),) * 2)
        matrix[self.upper[::-1]] = shift  # the lower half is all that is read of it
        eigenvalues = np.linalg.eigvalsh(matrix * self._weight_products, "L")
        return float(np.abs(eigenvalues).sum() / float(self.scale))

    @cached_property
    def _weight_products(self) -> FloatArray:
        a = np.array([float(weight) for weight in self.weights])
        return np.outer(a, a)


@dataclass(frozen=True)
class GammaDifference:
    r"""The difference of two Gamma variables: density :math:`|x|^{k-1/2}K_{k-1/2}(|x|/b)`.

    Examples
    --------
    >>> GammaDifference(1.0, 2.0).log_weight(np.array([0.0, -3.0, 4.0])).tolist()
    [0.0, -1.5, -2.0]
    """

    order: float
    scale: float

    @property
    def variance(self) -> float:
        """Variance 2 k b²."""
        return 2.0 * self.order * self.scale**2

    @property
    def sharpness(self) -> float:
        """The standard deviation, or the scale if it is less."""
        return min(self.scale, float(np.sqrt(self.variance)))

    @property
    def steepest(self) -> float:
        """The s at which E[exp(s Z)] becomes infinite, 1/b."""
        return 1.0 / self.scale

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log density less its value at 0."""
        v = self.order - 0.5
        y = np.maximum(np.abs(x) / self.scale, 1e-9)
        peak = gammaln(v) + (v - 1) * np.log(2.0)
        return np.asarray(v * np.log(y) + np.log(kve(v, y)) - y - peak)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """-k log(1 - s² b²)."""
        return -self.order * np.log1p(-((s * self.scale) ** 2))

    def half_width(self, terms: int, nats: float) -> float:
        """Chernoff bound of the sum of ``terms`` of them."""
        return deviation_bound([(1.0, terms, self)], nats)
