r"""The public law of noise that all tables of naive Bayes share.

A record adds one to a cell of its class's row in every table. For each class the rows of noise
:math:`v_1, \dots, v_d` have the same sum s, that of its class count, and

.. math:: P(v) \propto e^{-\max_j \|v_j\|_1 / b}, \qquad v_{jk} \in \{0, \pm 1/g, \pm 2/g, \dots\}

Replacing a record moves :math:`\sum_c \max_j \|v_{cj}\|_1` by at most 2, so :math:`b =
2/\varepsilon` is enough for any number of tables. The unit ball of the norm is the convex hull of
what adding or removing a record can do, and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

from dpbayes_sklearn.laws.sup_norm import check_grid, lattice_scale
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_variance

__all__ = ["RowNoise", "rows_vary_less"]


@dataclass(frozen=True)
class RowNoise:
    """Noise of all tables at once, by class: exp(-max_j abs(v_j).sum() / scale).

    Attributes
    ----------
    scale : Fraction
        The b, in counts.
    sizes : tuple of int
        Number of values of every feature.
    grid : int
        The g: a power of two. Released counts are multiples of 1/g.

    Examples
    --------
    >>> law = RowNoise.of((2, 2, 4), movement=2, epsilon=Fraction(1))
    >>> law.scale, law.grid
    (Fraction(2, 1), 4)
    >>> [round(law.cell_variance(size), 1) for size in (2, 4)]
    [32.0, 15.1]
    """

    scale: Fraction
    sizes: tuple[int, ...]
    grid: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or any(size < 1 for size in self.sizes):
            raise ValueError("Joint noise needs a positive scale and at least one value a feature.")
        check_grid(self.grid)

    @classmethod
    def of(cls, sizes: tuple[int, ...], movement: int, epsilon: Fraction) -> RowNoise:
        """Return the law for rows whose norm moves by at most ``movement``, over all classes."""
        scale, grid = lattice_scale(_dimension(sizes), movement, epsilon)
        return cls(scale, sizes, grid)

    @property
    def dimension(self) -> int:
        """How many numbers of a class's rows are free: all but one of a row, and their sum."""
        return _dimension(self.sizes)

    @property
    def steps(self) -> Fraction:
        """Scale in steps of the grid."""
        return self.scale * self.grid

    @property
    def squared_radius(self) -> float:
        r"""Mean square of the radius, :math:`b^2 (m+1)(m+2)`: a Gamma law of order m + 1."""
        m = self.dimension
        return float(self.scale) ** 2 * (m + 1) * (m + 2)

    @cached_property
    def total_variance(self) -> float:
        r"""Variance of a class count's noise, near :math:`R^2/(3 + \sum_j n(n-1)/(2n-1))`.

        With n + 1 values a feature leaves a share :math:`(1 - u^2)^{n(n-1)/(4n-2)}` of its rows
        when the sum of a row is uR.
        """
        squeezed = sum(n * (n - 1) / (2 * n - 1) for n in (size - 1 for size in self.sizes) if n)
        return self.squared_radius / (3.0 + squeezed)

    def cell_variance(self, size: int) -> float:
        r"""Variance of one cell's noise in a table of features with ``size`` values.

        In a row of sum zero i of K entries are positive with weight
        :math:`\binom Ki \binom{K-2}{i-1}`, and their sum a, of mean square
        :math:`\frac{R^2}4 \frac{K-1}{K+1}`, is split evenly at random:
        :math:`\sum_k v_k^2 = a^2 (\frac2{i+1} + \frac2{K-i+1})` on average, and over i the factor
        is :math:`\frac{4(2K-1)}{K(K+1)}` by Vandermonde's identity.
        """
        if size == 1:
            return self.total_variance
        spread = self.squared_radius * (size - 1) * (2 * size - 1) / (size * (size + 1) ** 2)
        return spread / size + self.total_variance / size**2

    def laplace_scale(self, size: int | None) -> float:
        """Scale of Laplace noise as wide as that of one cell, or of a class count if None."""
        variance = self.total_variance if size is None else self.cell_variance(size)
        return sqrt(variance / 2.0)


def rows_vary_less(sizes: tuple[int, ...], movement: int, together: int, epsilon: Fraction) -> bool:
    """Tell whether cells vary less than under independent noise on average; all of it is public.

    >>> rows_vary_less((2,) * 16, 2, 2 * 17, Fraction(1))
    True
    >>> rows_vary_less((2,) * 16, 2, 2, Fraction(1))  # one feature of a record
    False
    """
    if movement == 0:  # nobody can move anything: there is no noise at all
        return False
    try:
        law = RowNoise.of(sizes, movement, epsilon)
    except ValueError:
        return False
    rows = sum(size * law.cell_variance(size) for size in sizes) + law.total_variance
    cells = sum(sizes) + 1
    return rows < cells * discrete_laplace_variance(Fraction(together) / epsilon)


def _dimension(sizes: tuple[int, ...]) -> int:
    """Return how many numbers of a class's rows are free: all but one of a row, and the sum."""
    return 1 + sum(size - 1 for size in sizes)
