"""The same column or table in every container that estimators read.

What a container does with one missing value must not depend on anybody else's value, and must not
change how anybody else's value is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CONTAINERS", "FRAMES", "Container", "column_in", "framed", "table_in"]

Container = Callable[[Sequence[Any]], Any]


def _objects(values: Sequence[Any]) -> Any:
    cells = np.empty(len(values), object)
    cells[:] = values
    return cells


def _pandas(dtype: str) -> Container:
    def series(values: Sequence[Any]) -> Any:
        pandas = import_module("pandas")
        return pandas.Series(_objects(values), dtype=dtype, name="a")

    return series


def _arrow(values: Sequence[Any]) -> Any:
    pandas, pyarrow = import_module("pandas"), import_module("pyarrow")
    array = pandas.arrays.ArrowExtensionArray(pyarrow.array(values))
    return pandas.Series(array, name="a")


def _polars(values: Sequence[Any]) -> Any:
    return import_module("polars").Series("a", values)


def _dask(values: Sequence[Any]) -> Any:
    frame = import_module("dask.dataframe")
    return frame.from_pandas(_pandas("Int64")(values), npartitions=min(2, len(values)))


CONTAINERS: dict[str, Container] = {
    "list": list,
    "array of objects": _objects,
    "pandas object": _pandas("object"),
    "pandas nullable": _pandas("Int64"),
    "pandas categorical": _pandas("category"),
    "pandas arrow": _arrow,
    "polars": _polars,
    "dask": _dask,
}
"""From a list of integers and None to one column; every one keeps integers above 2^53 apart."""

FRAMES = ("pandas", "pandas nullable", "pandas arrow", "polars", "dask")
"""Containers of floats whose columns have types and names."""


def column_in(name: str, values: Sequence[Any]) -> Any:
    """Return one column.

    >>> column_in("list", [1, None])
    [1, None]
    """
    return CONTAINERS[name](values)


def table_in(name: str, rows: Sequence[Sequence[Any]]) -> Any:
    """Return a table of columns ``a``, ``b``, ...; lists and arrays have no names.

    >>> table_in("list", [(1, 2), (3, None)])
    [[1, 2], [3, None]]
    """
    if name == "list":
        return [list(row) for row in rows]
    if name == "array of objects":
        return _objects([cell for row in rows for cell in row]).reshape(len(rows), -1)
    columns = [
        CONTAINERS["pandas nullable" if name == "dask" else name](c)
        for c in zip(*rows, strict=True)
    ]
    names = [chr(ord("a") + j) for j in range(len(columns))]
    together = dict(zip(names, columns, strict=True))
    if name == "polars":
        return import_module("polars").DataFrame(together)
    frame = import_module("pandas").DataFrame(together)
    if name == "dask":
        return import_module("dask.dataframe").from_pandas(frame, npartitions=min(2, len(rows)))
    return frame


def framed(name: str, values: npt.NDArray[Any]) -> Any:
    """Return an array as a frame or, if it has one dimension, as a series of one of `FRAMES`.

    Numbers have the type of numbers there; whatever else an array holds stays an object, which
    only pandas has.
    """
    pandas, flat = import_module("pandas"), values.ndim == 1
    columns = values.reshape(len(values), -1)
    frame = pandas.DataFrame(columns, columns=[f"x{j}" for j in range(columns.shape[1])])
    if values.dtype != object and name == "pandas nullable":
        frame = frame.astype("Float64")
    elif values.dtype != object and name == "pandas arrow":
        frame = frame.astype("double[pyarrow]")
    elif values.dtype != object and name == "polars":
        frame = import_module("polars").DataFrame(dict(zip(frame.columns, columns.T, strict=True)))
    elif values.dtype != object and name == "dask":
        frame = import_module("dask.dataframe").from_pandas(frame, npartitions=2)
    return frame["x0"] if flat else frame
