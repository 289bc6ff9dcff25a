"""What a fit is handed, as frames: tables in memory, streams read once, and frames of Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpbayes_sklearn.data.arrow import as_frame, is_stream, spooled
from dpbayes_sklearn.data.spark import SparkFrame, SparkSource, is_spark
from dpbayes_sklearn.schema import Schema

_BY_NAME = "pass the name of a column of X, as in fit(X, target='...', groups='...')."


def framed(X: Any, declared: Mapping[Any, Any] | None = None, coded: Collection[str] = ()) -> Any:
    """Return tables and streams of Arrow and data frames of Spark as frames, others as they are.

    Of a stream, declared texts may be sent as codes, and some columns are only kept as codes.
    """
    if is_spark(X):
        return SparkFrame(SparkSource(X))
    return spooled(X, declared, coded) if is_stream(X) else as_frame(X)


def framed_column(values: Any, name: str) -> Any:
    """Return one column as a frame if it is of Arrow; refuse streams.

    A second query may list the records in another order than the first.
    """
    if is_spark(values) or is_stream(values):
        raise TypeError(
            f"{name} is a {type(values).__name__}, whose rows may come in another order than those "
            f"of X: {_BY_NAME}"
        )
    return here(as_frame(values))


def here(X: Any) -> Any:
    """Return a frame of Spark as one in memory, and anything else as it is."""
    return X.here() if isinstance(X, SparkFrame) else X


def named_columns(
    X: Any,
    y: Any,
    target: str | None,
    *others: Any,
    schema: Schema | None = None,
    only_codes: bool = False,
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return X as a frame without the columns that are named, y, and the others as columns.

    The others are groups and weights: columns, or names of columns of X. What the schema declares
    may be read by it, and is kept as codes where nothing else is used.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [31, 48], "ill": [0, 1]})
    >>> X, y, _ = named_columns(frame, None, "ill", None)
    >>> X.columns, y.to_list()
    (['age'], [0, 1])
    """
    names = [name for name in (target, *others) if isinstance(name, str)]
    if is_spark(X):
        if y is not None or any(not isinstance(other, str | None) for other in others):
            raise TypeError(
                f"X is a data frame of Spark, whose rows have no order of their own: {_BY_NAME}"
            )
        fixed = tuple(name for name in others if isinstance(name, str))
        X = SparkFrame(SparkSource(X, fixed, None if schema is None else (*schema.columns, *names)))
    elif schema is not None:
        features: dict[Any, Any] = {c: d for c, d in schema.columns.items() if c not in names}
        X = framed(X, {**features, target: schema.target}, features if only_codes else ())
    X = framed(X)
    if not names:
        return X, y, others
    if target is not None and y is not None:
        raise ValueError("Pass y or the name of the target, not both.")
    columns = [*getattr(X, "columns", ())]
    for name in names:
        if columns.count(name) != 1:
            raise ValueError(f"X must have one column {name!r}: it has {columns.count(name)}.")
    rest = X[[name for name in columns if name not in names]]
    found = tuple(X[other] if isinstance(other, str) else other for other in others)
    return rest, y if target is None else X[target], found
