"""A public list of categories, to one of which every possible value is mapped."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.values import Kind, cells_of, number_of

__all__ = ["Categories"]

_FAR = 1000  # integers that lie no further apart are looked up in a table
_LARGE = 2**62  # no difference of a smaller integer and any other, if it overflows, is small
_TRUTH = frozenset({"True", "False"})
_TYPES = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _holds(dtype: str, values: tuple[Any, ...]) -> bool:
    """Tell whether an array of this type can hold the values as they are."""
    if dtype not in _TYPES or any(isinstance(value, str) for value in values):
        return False
    try:
        return bool(np.asarray(values, dtype).tolist() == [*values])
    except (TypeError, ValueError, OverflowError):
        return False


@dataclass(frozen=True, init=False)
class Categories:
    """One of a public list of values, such as strings, integers or booleans.

    A value that is not in the list counts as ``unseen``, and so does a missing value. If all
    categories are strings, other values are compared by their text, so ``3`` and ``3.0`` match
    ``"3"``. Booleans match ``"True"`` and ``"False"`` if one of these is a category, otherwise
    ``"1"`` and ``"0"``.

    Parameters
    ----------
    values : iterable
        The categories, at least one, all different.
    unseen : category, optional
        The category that any other value counts as; by default the first one.
    dtype : str, optional
        Type of the array of all categories, such as ``"int8"``. By default that of ``values`` if
        they are an array of numbers, otherwise the type that numpy infers.

    Examples
    --------
    >>> import numpy as np
    >>> job = Categories(["clerk", "nurse", "other"], unseen="other")
    >>> job.encode(np.array(["nurse", "pilot", None], dtype=object))
    array([1, 2, 2])
    """

    values: tuple[Hashable, ...]
    unseen: Hashable
    dtype: str | None = field(compare=False, repr=False)

    def __init__(
        self, values: Iterable[Hashable], unseen: Hashable = None, dtype: str | None = None
    ) -> None:
        given = getattr(values, "dtype", None)
        if dtype is None and isinstance(given, np.dtype) and given.name in _TYPES:
            dtype = given.name
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
        if not all(isinstance(value, Hashable) for value in plain):
            raise TypeError("Categories must be values such as strings or numbers, not lists.")
        if not plain:
            raise ValueError("Categories must hold at least one value. Got an empty list instead.")
        if any(isinstance(value, float) and math.isnan(value) for value in plain):
            raise ValueError("Categories must not hold NaN: a missing value counts as unseen.")
        if len(set(plain)) != len(plain):
            raise ValueError("Categories must be all different. Got a repeated value instead.")
        if unseen is not None and unseen not in plain:
            raise ValueError(
                f"Categories unseen must be one of the values. Got {unseen!r} instead."
            )
        if dtype is not None and not _holds(dtype, plain):
            raise ValueError(
                "Categories dtype must be a type of numbers that holds the values. "
                f"Got {dtype!r} instead."
            )
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "values", plain)
        object.__setattr__(self, "unseen", plain[0] if unseen is None else unseen)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the declared fields only, so that cached values reveal no earlier use."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def labels(self) -> npt.NDArray[Any]:
        """All categories as an array."""
        return np.asarray(self.values, dtype=self.dtype)

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
        if high - low > _FAR or max(-low, high) > _LARGE:
            return None
        return low, np.array([self._code(v) for v in range(low, high + 1)], np.intp)

    def takes(self, kind: Kind) -> bool:
        """Tell whether a column of this kind can hold any of the categories."""
        numbers = [self._matching(value) for value in self.values]
        if kind == "booleans":
            return bool({0, 1}.intersection(numbers)) or bool(_TRUTH.intersection(self.values))
        if kind in {"integers", "numbers"}:
            return any(number is not None for number in numbers)
        if kind == "text":
            return any(isinstance(value, str) for value in self.values)
        return kind == "anything" or not all(isinstance(value, Real) for value in self.values)

    def _matching(self, value: Any) -> float | None:
        """Return the number that matches a category, if there is one."""
        number = number_of(value) if self._all_text or isinstance(value, Real) else math.nan
        return None if math.isnan(number) else number

    @property
    def expects(self) -> str:
        """Kinds of the values, for error messages."""
        kinds = {bool: "booleans", int: "numbers", float: "numbers", str: "text"}
        return " or ".join(sorted({kinds.get(type(v), "other values") for v in self.values}))

    @property
    def short(self) -> str:
        """Short description of the categories."""
        return f"{self.n_values} categories"

    def _code(self, value: Any) -> int:
        code = self._find(value)
        return self._codes[self.unseen] if code is None else code

    def _find(self, value: Any) -> int | None:
        try:
            if self._all_text and not isinstance(value, str) and value is not None:
                value = self._text(value)
            return self._codes.get(value)
        except Exception:  # a value that has no hash or no text is no category
            return None

    def _text(self, value: Any) -> str:
        """Return the text by which a value that is none is compared."""
        if isinstance(value, (bool, np.bool_)) and not _TRUTH.isdisjoint(self._codes):
            return str(bool(value))
        number = number_of(value) if isinstance(value, (Real, np.generic)) else math.nan
        return str(int(number)) if number.is_integer() else str(value)

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the code of every value, from 0 to ``n_values`` - 1."""
        column = cells_of(values)
        if column.dtype.kind in "bi" and self._lookup is not None:
            low, codes = self._lookup
            # what is so far away that the difference overflows goes to one of the ends as well
            return codes.take(column.astype(np.intp, copy=False) - low, mode="clip")
        if column.dtype.kind in "biuf":  # few distinct numbers: look each of them up once
            distinct, inverse = np.unique(column, return_inverse=True)
            codes = np.fromiter((self._code(v) for v in distinct), np.intp, distinct.size)
            return codes[inverse]
        return np.fromiter((self._code(v) for v in column), np.intp, column.size)

    def holds(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are categories."""
        cells = cells_of(values)
        if self.n_values > 1 and cells.dtype.kind in "bi" and self._lookup is not None:
            # a value that is in the list has the same code whatever others are counted as
            other = Categories(self.values, unseen=self.values[self._codes[self.unseen] - 1])
            return np.asarray(self.encode(cells) == other.encode(cells))
        if cells.dtype.kind not in "biuf":
            return np.array([self._find(value) is not None for value in cells], bool)
        distinct, inverse = np.unique(cells, return_inverse=True)
        return np.array([self._find(value) is not None for value in distinct], bool)[inverse]

    def decode(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return the category of every code; no draw is needed."""
        return np.asarray(self.values, dtype=object if self._all_text else None)[codes]
