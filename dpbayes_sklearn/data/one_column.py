"""Reading one column of categories, without ever printing a value of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from dpbayes_sklearn.data.table import as_cells
from dpbayes_sklearn.schema.domains import Categories

__all__ = ["categories_from_data", "known_codes", "read_column"]


def read_column(X: Any) -> npt.NDArray[Any]:
    """Return X as a vector, without ever printing a value of it."""
    if issparse(X):
        raise TypeError("Sparse data was passed, but one dense column is required.")
    values = as_cells(X, 2)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"Expected one column, of shape (n_samples,) or (n_samples, 1). "
            f"Got shape {values.shape} instead."
        )
    if len(values) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return values


def known_codes(
    categories: Categories, values: npt.NDArray[Any], rule: str
) -> npt.NDArray[np.intp]:
    """Return the code of every value; refuse, with a fixed text, any that is no category.

    Examples
    --------
    >>> known_codes(Categories(["no", "yes"]), np.array(["yes", "no"]), "Say yes or no").tolist()
    [1, 0]
    """
    known = categories.values
    if None in known:
        raise ValueError("None cannot be a category; give missing values a name.")
    # a value that is in the list has the same code whatever others are counted as
    low, high = (Categories(known, unseen=other).encode(values) for other in (known[0], known[-1]))
    if (low != high).any():
        raise ValueError(f"{rule}; the input holds other values. Nothing was spent.")
    return low


def categories_from_data(values: npt.NDArray[Any]) -> Categories:
    """Read categories from the data, a leak: codes up to the largest, or all that occur."""
    whole = values.dtype.kind in "biuf" and (values == np.floor(values)).all()
    if whole and values.min() >= 0 and values.max() < 2**15:
        return Categories(range(max(int(values.max()) + 1, 2)))
    if values.dtype.kind in "OU" and all(isinstance(value, str) for value in values):
        return Categories(sorted(set(values.tolist())))
    raise ValueError(
        "Records must be codes 0, 1, ... or strings; the input holds other values. "
        "Declare what it holds with categories=[...]. Nothing was spent."
    )
