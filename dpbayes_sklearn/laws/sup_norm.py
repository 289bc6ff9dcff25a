r"""The public law of noise that all character sums share: the Laplace law of the sup norm.

.. math:: P(z) \propto e^{-\max_i |z_i| / b}, \qquad z_i \in \{0, \pm 1/g, \pm 2/g, \dots\}

One record moves every sum by at most :math:`\Delta`, so :math:`b = \Delta/\varepsilon` is enough
for any number m of sums. The law is that of a point even in a cube of half side R, where R has
the Gamma law of order m + 1 and scale b: a single entry has variance
:math:`b^2 (m+1)(m+2)/3`. The sums lie on the lattice 1/g; g is a power of two, so that floats
are exact, and so large that the sampler accepts most of its proposals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpbayes_sklearn.noise.discrete_laplace import (
    MAX_TERM,
    discrete_laplace_variance,
    representable_scale,
)
from dpbayes_sklearn.noise.sup_norm import box_variance

__all__ = ["JointNoise", "check_grid", "joint_varies_less", "lattice_scale"]

_FINEST = 2**24  # a grid above would leave too few of 64 bits to the counts
_MOST_STEPS = 2**60  # of a noise


@dataclass(frozen=True)
class JointNoise:
    """Noise of all sums at once, P(z) proportional to exp(-max_i abs(z_i) / scale).

    Attributes
    ----------
    scale : Fraction
        The b, in units of the sums.
    size : int
        The number m of sums.
    grid : int
        The g: a power of two. Sums and noises are multiples of 1/g.

    Examples
    --------
    >>> JointNoise.of(size=9, movement=2, epsilon=Fraction(1))
    JointNoise(scale=Fraction(2, 1), size=9, grid=8)
    """

    scale: Fraction
    size: int
    grid: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.scale <= 0:
            raise ValueError("Joint noise needs a sum to be added to, and a positive scale.")
        check_grid(self.grid)

    @classmethod
    def of(cls, size: int, movement: int, epsilon: Fraction) -> JointNoise:
        """Return the law for ``size`` sums each of which moves by at most ``movement``."""
        scale, grid = lattice_scale(size, movement, epsilon)
        return cls(scale, size, grid)

    @property
    def steps(self) -> Fraction:
        """Scale in steps of the grid."""
        return self.scale * self.grid

    @property
    def variance(self) -> float:
        """Variance of the noise of one sum, that of the continuous law."""
        return float(box_variance(np.ones(self.size, np.int64), float(self.scale))[0])


def check_grid(grid: int) -> None:
    """Refuse a lattice on which floats would not be exact."""
    if not 1 <= grid <= _FINEST or grid & (grid - 1):
        raise ValueError(f"grid must be a power of two from 1 to {_FINEST}.")


def lattice_scale(size: int, movement: int, epsilon: Fraction) -> tuple[Fraction, int]:
    """Return the scale for a norm that moves by ``movement``, and a lattice 1/grid fine enough.

    With scale b in steps of the lattice, size/2b <= 1/2: samplers accept most proposals.
    """
    least = size * epsilon / movement
    grid = 1 << max(0, (-(-least.numerator // least.denominator) - 1).bit_length())
    steps = movement * grid / epsilon
    if grid > _FINEST:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too large for joint noise on {size} sums; "
            "use noise='independent'."
        )
    if steps > MAX_TERM or 64 * (size + 1) * steps > _MOST_STEPS:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too small: the noise would not fit into 64 bits."
        )
    return representable_scale(steps) / grid, grid


def joint_varies_less(size: int, movement: int, together: int, epsilon: Fraction) -> bool:
    """Tell whether joint noise has less variance than independent noise; all of it is public.

    Boolean naive Bayes with d features has 2d + 1 sums, which move by 2 each and 4d together:

    >>> joint_varies_less(2 * 16 + 1, 2, 4 * 16, Fraction(1))
    True
    >>> joint_varies_less(2 * 16 + 1, 2, 4, Fraction(1))  # one feature of a record
    False
    """
    if movement == 0:  # nobody can move anything: there is no noise at all
        return False
    try:
        joint = JointNoise.of(size, movement, epsilon)
    except ValueError:
        return False
    return joint.variance < discrete_laplace_variance(Fraction(together) / epsilon)
