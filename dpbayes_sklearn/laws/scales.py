"""Scales and lattices on which noise can be drawn without rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational

__all__ = ["MAX_TERM", "check_grid", "laplace_scale", "lattice_scale", "representable_scale"]

MAX_TERM = 2**56
"""Largest numerator and denominator that the samplers take.

Then t*k < 2**64 for every k that `bernoulli_exp` reaches, and u + t*v < 2**63 for every
v that `geometric` returns: no product can overflow.
"""

_FINEST = 2**24  # a grid above would leave too few of 64 bits to the counts
_MOST_STEPS = 2**60  # of a noise


def representable_scale(scale: Fraction | int) -> Fraction:
    """Return the scale that is used: the given one or one just above.

    A scale with a numerator or denominator above 2**56 is rounded **up** (more noise,
    never less) by a relative 2**-55 at most; only scales below 2**-56, whose noise is 0
    except with probability exp(-2**56), are rounded by more.

    Examples
    --------
    >>> representable_scale(Fraction(100, 3))
    Fraction(100, 3)
    >>> rounded = representable_scale(Fraction(10**30, 3**60))
    >>> 0 < rounded / Fraction(10**30, 3**60) - 1 < Fraction(1, 2**55)
    True
    """
    if not isinstance(scale, Rational):
        raise TypeError(f"scale must be a Fraction or an int. Got {type(scale).__name__} instead.")
    scale = Fraction(int(scale.numerator), int(scale.denominator))
    if not 0 <= scale <= MAX_TERM:
        raise ValueError("scale must be between 0 and 2**56.")
    if scale == 0 or max(scale.numerator, scale.denominator) <= MAX_TERM:
        return scale
    if scale >= 1:  # the largest power of two as denominator, the numerator rounded up
        denominator = 1 << (int(MAX_TERM / scale).bit_length() - 1)
        return Fraction(math.ceil(scale * denominator), denominator)
    # the largest power of two as numerator, the denominator rounded down
    numerator = 1 << max(int(MAX_TERM * scale).bit_length() - 1, 0)
    return Fraction(numerator, min(int(numerator / scale), MAX_TERM))


def laplace_scale(sensitivity: Fraction | int, epsilon: Fraction) -> Fraction:
    """Return b = sensitivity / epsilon, or the next scale above that can be drawn exactly."""
    scale = Fraction(sensitivity) / epsilon
    if scale > MAX_TERM:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too small: the noise would not fit into 64 bits."
        )
    return representable_scale(scale)


def lattice_scale(size: int, sensitivity: int, epsilon: Fraction) -> tuple[Fraction, int]:
    """Return the scale of noise whose norm has this sensitivity, and a lattice 1/grid for it.

    With scale b in steps of the lattice, size/2b <= 1/2: samplers accept most proposals.
    """
    least = size * epsilon / sensitivity
    grid = 1 << max(0, (-(-least.numerator // least.denominator) - 1).bit_length())
    steps = sensitivity * grid / epsilon
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


def check_grid(grid: int) -> None:
    """Refuse a lattice on which floats would not be exact."""
    if not 1 <= grid <= _FINEST or grid & (grid - 1):
        raise ValueError(f"grid must be a power of two from 1 to {_FINEST}.")
