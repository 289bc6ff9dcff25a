"""One column of any container, read so that no value influences how another one is read.

numpy chooses the dtype of a list, a nullable or a categorical column by its values: with one value
missing, integers become floats, and 2^53 + 1 becomes 2^53. One record would recode all others. So
only columns of a fixed dtype are converted by numpy; all others are read cell by cell, as objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_cells", "cells_of"]

_LISTS = ("to_list", "to_pylist", "tolist")  # of pandas and polars, pyarrow, anything like numpy
_POLARS = ("Float32", "Float64", "Date", "Datetime")  # what is missing is NaN or NaT there


def cells_of(column: Any) -> npt.NDArray[Any]:
    """Return a series, array or list as an array: of its own numpy type, or of objects.

    Examples
    --------
    >>> cells_of([2**53 + 1, None]).tolist() == [2**53 + 1, None]
    True
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) or repr(dtype).split("(")[0] in _POLARS:
        return np.asarray(column)
    for name in _LISTS:
        if hasattr(column, name):
            return as_cells(getattr(column, name)(), len(getattr(column, "shape", "n")))
    return as_cells(column, 2)


def as_cells(values: Any, ndim: int) -> npt.NDArray[Any]:
    """Return an array; of a list every cell as it is, row by row."""
    if hasattr(values, "__array__") or not isinstance(values, Sequence) or _is_text(values):
        return np.asarray(values)
    if ndim == 1 or not all(hasattr(row, "__len__") and not _is_text(row) for row in values):
        return np.fromiter(values, dtype=object, count=len(values))
    widths = {len(row) for row in values}
    if len(widths) > 1:
        raise ValueError("All rows of the data must have the same number of values.")
    cells = np.fromiter(chain.from_iterable(values), dtype=object)
    return cells.reshape(len(values), *widths)


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))
