"""The public domain of one column: an interval of numbers, or a list of categories.

Both are *total*: every value there is, declared or not, finite or not, has a documented place, so
whether a fit succeeds can never depend on a record.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray

__all__ = ["Categories", "Domain", "Interval"]


_FAR = 1000  # integers that lie no further apart are looked up in a table
_LEAST_SPAN = 1e-290  # below it, the scale of a bin would overflow


def as_numbers(values: npt.NDArray[Any]) -> FloatArray:
    """Return ``values`` as float64, with NaN wherever there is no number to read."""
    # beyond the largest float is infinity, a signalling NaN is a NaN: both without a warning
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind in "biuf":
            return values.astype(np.float64, copy=False)
        return np.fromiter((_number(v) for v in values.ravel()), np.float64).reshape(values.shape)


def _number(value: object) -> float:
    """Return the number that a value is, NaN if none; never raises or warns, whatever it is."""
    if isinstance(value, (np.complexfloating, np.ndarray)):  # numpy would warn
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer or a fraction beyond the largest float
        if isinstance(value, Rational):
            return math.inf if int(value.numerator) > 0 else -math.inf
        return math.nan
    except Exception:
        return math.nan


@dataclass(frozen=True)
class Interval:
    """A number between two public bounds.

    Values below ``low`` count as ``low`` and values above ``high`` as ``high``, infinities
    included. A missing value, or one that is no number, counts as the middle of the interval.

    Parameters
    ----------
    low, high : float
        Public bounds, ``low < high``.
    bins : int, optional
        Number of equal-width bins a discrete model cuts the interval into. Left out, the
        estimator's ``n_bins`` decides.

    Examples
    --------
    >>> import numpy as np
    >>> age = Interval(17, 90, bins=4)
    >>> age.encode(np.array([3, 20, 60, 1e9, np.nan]))
    array([0, 0, 2, 3, 2])
    """

    low: float
    high: float
    bins: int | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            real = isinstance(value, Real) and not isinstance(value, bool)
            number = _number(value) if real else math.nan
            if not math.isfinite(number):
                raise ValueError(f"Interval {name} must be a finite number. Got {value!r} instead.")
            object.__setattr__(self, name, number)
        if not _LEAST_SPAN <= self.high - self.low < math.inf:
            raise ValueError(
                f"Interval bounds must have low < high. Got ({self.low:g}, {self.high:g}) instead."
            )
        if self.bins is not None:
            if not isinstance(self.bins, Integral) or isinstance(self.bins, bool) or self.bins < 2:
                raise ValueError(f"Interval bins must be an int >= 2. Got {self.bins!r} instead.")
            object.__setattr__(self, "bins", int(self.bins))

    @property
    def middle(self) -> float:
        """Return the value that stands for a missing one."""
        return self.low + (self.high - self.low) / 2

    @property
    def n_integers(self) -> int | None:
        """Number of integers in the interval if both bounds are integers, else None."""
        whole = self.low.is_integer() and self.high.is_integer()
        return int(self.high - self.low) + 1 if whole else None

    @property
    def n_values(self) -> int:
        """Number of codes of :meth:`encode`."""
        if self.bins is None:
            raise ValueError("This Interval has no bins; give Interval(low, high, bins=...).")
        return self.bins

    def clip(self, values: npt.ArrayLike) -> FloatArray:
        """Return every value as a number of the interval."""
        numbers = as_numbers(np.asarray(values))
        clipped: FloatArray = np.clip(numbers, self.low, self.high)
        return np.where(np.isnan(clipped), self.middle, clipped)

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the bin of every value, from 0 to ``bins`` - 1."""
        k = self.n_values
        position: npt.NDArray[np.intp] = self._position(self.clip(values)).astype(np.intp)
        return np.minimum(position, k - 1)

    def decode(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Return a value of every bin: its integer, or a number drawn evenly from it."""
        position = codes.astype(np.float64)
        if self.n_integers != self.bins:
            position += rng.random(len(codes))
            position *= (self.high - self.low) / self.n_values
        return self.low + position

    def _position(self, numbers: Any) -> Any:
        """Return where numbers lie, in bins from the low end."""
        return (numbers - self.low) * (self.n_values / (self.high - self.low))

    @property
    def second_bin(self) -> float:
        """Return the smallest number that :meth:`encode` does not put into the first bin."""
        first, second = self.low, self.high
        while first < (middle := first + (second - first) / 2) < second:
            first, second = (middle, second) if self._position(middle) < 1 else (first, middle)
        return second

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {"low": self.low, "high": self.high, "bins": self.bins}


@dataclass(frozen=True, init=False)
class Categories:
    """One of a public list of values, such as strings, integers or booleans.

    A value that is not in the list, missing ones included, counts as ``unseen``. If all
    categories are strings, other values are compared by their text, so ``3`` and ``3.0`` match
    ``"3"``.

    Parameters
    ----------
    values : iterable
        The categories, at least one, all different.
    unseen : category, optional
        The category that any other value counts as; the first one if left out.

    Examples
    --------
    >>> import numpy as np
    >>> job = Categories(["clerk", "nurse", "other"], unseen="other")
    >>> job.encode(np.array(["nurse", "pilot", None], dtype=object))
    array([1, 2, 2])
    """

    values: tuple[Hashable, ...]
    unseen: Hashable

    def __init__(self, values: Iterable[Hashable], unseen: Hashable = None) -> None:
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
        if not all(isinstance(value, Hashable) for value in plain):
            raise TypeError("Categories must be values such as strings or numbers, not lists.")
        if not plain:
            raise ValueError("Categories must hold at least one value. Got an empty list instead.")
        if len(set(plain)) != len(plain):
            raise ValueError("Categories must be all different. Got a repeated value instead.")
        if unseen is not None and unseen not in plain:
            raise ValueError(
                f"Categories unseen must be one of the values. Got {unseen!r} instead."
            )
        object.__setattr__(self, "values", plain)
        object.__setattr__(self, "unseen", plain[0] if unseen is None else unseen)

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was declared, so that a pickle does not tell what was encoded already."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_values(self) -> int:
        """Number of codes of :meth:`encode`."""
        return len(self.values)

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {value: code for code, value in enumerate(self.values)}

    @cached_property
    def _all_text(self) -> bool:
        return all(isinstance(v, str) for v in self.values)

    @cached_property
    def _lookup(self) -> tuple[int, npt.NDArray[np.intp]] | None:
        """For integers close together: the first place, and the codes from there on.

        The first and the last place are no categories, so all that lies beyond may go there.
        """
        whole = [v for v in self.values if type(v) is int]
        if len(whole) < len(self.values):
            return None
        low, high = min(whole) - 1, max(whole) + 1
        if high - low > _FAR:
            return None
        return low, np.array([self._code(v) for v in range(low, high + 1)], np.intp)

    def _code(self, value: Any) -> int:
        unseen = self._codes[self.unseen]
        try:
            if self._all_text and not isinstance(value, str) and value is not None:
                number = _number(value) if isinstance(value, (Real, np.generic)) else math.nan
                value = str(int(number)) if number.is_integer() else str(value)
            return self._codes.get(value, unseen)
        except Exception:  # a value that has no hash or no text is no category
            return unseen

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the code of every value, from 0 to ``n_values`` - 1."""
        column = np.asarray(values)
        if column.dtype.kind in "bi" and self._lookup is not None:
            low, codes = self._lookup
            places: npt.NDArray[np.intp] = np.clip(
                column.astype(np.intp), low, low + codes.size - 1
            )
            return codes[places - low]
        if column.dtype.kind in "biuf":  # few distinct numbers: look each of them up once
            distinct, inverse = np.unique(column, return_inverse=True)
            codes = np.fromiter((self._code(v) for v in distinct), np.intp, distinct.size)
            return codes[inverse]
        return np.fromiter((self._code(v) for v in column), np.intp, column.size)

    def decode(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return the category of every code; no draw is needed."""
        return np.asarray(self.values, dtype=object if self._all_text else None)[codes]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {"values": list(self.values), "unseen": self.unseen}


Domain = Interval | Categories
