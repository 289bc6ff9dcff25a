"""Privacy figures as short text, rounded to the private side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dpbayes_sklearn.privacy.budget import exact

__all__ = ["at_least", "at_most"]

_DIGITS = 6  # those of the format "g"


def at_least(number: object, digits: int = _DIGITS) -> str:
    """Return a number in few digits, rounded up: for what is spent or promised.

    >>> at_least(0.3), at_least(1.0000004), at_least(1e-6), at_least(0.0243559, digits=3)
    ('0.3', '1.00001', '1e-06', '0.0244')
    """
    return _shown(number, Context(digits, ROUND_CEILING))


def at_most(number: object, digits: int = _DIGITS) -> str:
    """Return a number in few digits, rounded down: for what is left.

    >>> at_most(0.3), at_most(0.99999996), at_most(float("inf"))
    ('0.3', '0.999999', 'inf')
    """
    return _shown(number, Context(digits, ROUND_FLOOR))


def _shown(number: object, rounding: Context) -> str:
    fraction = exact(number)
    if isinstance(fraction, float):
        return "inf"
    parts = Decimal(fraction.numerator), Decimal(fraction.denominator)
    shown = rounding.divide(*parts)
    return f"{float(shown):.{rounding.prec}g}" if _is_float(shown) else f"{shown.normalize():e}"


def _is_float(number: Decimal) -> bool:
    return not number or 1e-300 < abs(number) < Decimal(math.nextafter(math.inf, 0))
