"""What a release may spend, as exact fractions, and printed to the private side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit

__all__ = ["LEAST_DELTA", "Budget", "Exact", "at_least", "at_most", "exact"]


Exact = Fraction | float
"""An exact non-negative number: a fraction, or the float infinity."""

LEAST_DELTA = Fraction(1, 10**300)
"""The least delta above 0: below, floats that bound probabilities would underflow."""


def exact(value: object, name: str = "epsilon") -> Exact:
    """Read a privacy parameter exactly; a delta is 0 or at least 1e-300.

    A float means the shortest decimal that prints it, so ``0.1`` is one tenth and
    ``0.1 + 0.2`` asked as two releases fits in ``0.3``. Infinity stays infinity.

    Examples
    --------
    >>> exact(0.1), exact(2), exact(float("inf"))
    (Fraction(1, 10), Fraction(2, 1), inf)
    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
        raise TypeError(f"{name} must be a real number. Got {type(value).__name__} instead.")
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    elif math.isnan(value):
        raise ValueError(f"{name} must not be NaN.")
    elif value == math.inf:
        return math.inf
    elif value == -math.inf:
        raise ValueError(f"{name} must not be negative.")
    else:
        # str of every numpy float and of Decimal is its shortest exact decimal reading
        number = Fraction(str(value))
    if number < 0:
        raise ValueError(f"{name} must not be negative.")
    if name == "delta" and 0 < number < LEAST_DELTA:
        raise ValueError("delta must be 0 or at least 1e-300.")
    return number


class Budget(NamedTuple):
    """The budget of one release, and the unit that it protects.

    ``rho`` is the zCDP of a release for which it is known, beside its (epsilon, delta). ``pure`` is
    the epsilon of a purely private release that is made after this one and has a budget of its own:
    together they may spend (epsilon + pure, delta).
    """

    epsilon: Exact
    delta: Exact = Fraction(0)
    unit: PrivacyUnit = RECORD
    rho: Exact | None = None
    pure: Exact = Fraction(0)

    @property
    def infinite(self) -> bool:
        """True where no privacy is asked for: exact Bayes, no noise."""
        return math.isinf(self.epsilon)


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
