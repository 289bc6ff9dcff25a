"""Fit estimators to unusual values and parameters, and record their errors and warnings.

With declared domains no value may make a fit fail or warn. Every text and most numbers carry the
digits of :data:`MARK`, so that they can be looked for in whatever is shown. What a container does
with one missing value must not change how anybody else's value is read.
"""

from __future__ import annotations

import datetime
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.audit.catalogue import Example
from dpbayes_sklearn.privacy import BudgetAccountant

BAD_PARAMETERS: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 0.0, -0.5, math.nan, math.inf, -math.inf, 1e-320, 1e308, 1j),
    *("x", "", "0.5", b"x", object(), int, len, ...),
    *(10**400, -(10**400), 2**70, Fraction(-1, 2), Fraction(0), Decimal("1"), np.float32("nan")),
    *([], [math.nan], [[1]], (), (1,), (1, 2, 3), (2, 1), (math.nan, 1), (0, 10**400), ("a", "b")),
    *({}, {"x": [1]}, {1: ["class", 7]}, {0: [0]}, [(0,)], [(0, 1), (1, 0)]),
    *(np.array([]), np.array([np.nan]), np.array(["a"])),
)
"""Values that hardly any parameter takes; which ones it does take is for the estimator to say."""


class Outcome(NamedTuple):
    """What a fit did.

    Attributes
    ----------
    fitted : estimator or None
        None if the fit was refused.
    error : Exception or None
    warned : list of str
    logged : list of str
    spent : int
        Entries in the ledger.
    """

    fitted: Any
    error: Exception | None
    warned: list[str]
    logged: list[str]
    spent: int

    @property
    def said(self) -> str:
        """All texts of the error, its causes, the warnings and the log."""
        error = "" if self.error is None else everything_said(self.error)
        return "\n".join([error, *self.warned, *self.logged])


class Ear(logging.Handler):
    """Remembers what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.heard.append(record.getMessage())


@contextmanager
def heard(
    name: str | None = "dpbayes_sklearn",
) -> Iterator[tuple[list[warnings.WarningMessage], list[str]]]:
    """Listen to the warnings, and to what a logger is told, while a block runs."""
    ear, logger = Ear(), logging.getLogger(name)
    logger.addHandler(ear)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught, ear.heard
    finally:
        logger.removeHandler(ear)


def fit_with(estimator: Any, X: Any, y: Any, **parameters: Any) -> Outcome:
    """Fit a copy that charges a ledger of its own; errors and warnings are caught, not raised."""
    ledger, error = BudgetAccountant(delta=1), None
    model = deepcopy(estimator).set_params(accountant=ledger).set_params(**parameters)
    with heard(None) as (caught, logged):
        try:
            model.fit(X, y)
        except Exception as raised:
            error = raised
    fitted = None if error is not None else model
    return Outcome(fitted, error, [str(w.message) for w in caught], logged, len(ledger))


def odd_records(
    case: Example, count: int, rng: np.random.Generator, container: str | None = None
) -> tuple[Any, Any]:
    """Return the records of a case with ``count`` odd values in them, in a container.

    One of `FRAMES`, where it is named; otherwise a list or an array.
    """
    odd = NUMBERS if container is not None or rng.random() < 0.3 else OBJECTS
    if container is not None and rng.random() < 0.3:
        odd, container = OBJECTS, "pandas"
    if case.y is None:
        container = "pandas" if container == "dask" else container
        return _contained(spiked(case.X, odd, count, rng), rng, container), None
    in_y = count // 4
    X, y = spiked(case.X, odd, count - in_y, rng), spiked(case.y, odd, in_y, rng)
    return _contained(X, rng, container), _contained(y, rng, container)


def _contained(values: Any, rng: np.random.Generator, container: str | None) -> Any:
    if container is not None:
        return framed(container, values)
    kind = rng.integers(4)
    if kind == 0:
        return values.tolist()
    if kind == 1:
        return np.asfortranarray(values)
    if kind == 2 and values.ndim == 2:
        return [tuple(row) for row in values]
    return values


def bad_shapes(case: Example) -> Iterator[tuple[Any, Any]]:
    """Yield records whose shapes no estimator takes, whatever is in them."""
    X, y = case.X, case.y
    columns = X.reshape(len(X), -1)
    yield from ((X[:0], y if y is None else y[:0]), (X[None, None], y), (np.float64(1.0), y))
    yield from ((columns[:, :0], y), (None, y), (columns[:, :, None, None], y))
    if y is not None:
        yield from ((X, y[:-1]), (X[:-1], y), (X, None), (X, np.column_stack([y, y])), (X, y[:0]))


# Digits that hostile values show and nothing else does, so that leaks can be searched for.
MARK = "73917391"


class Hostile:
    """Refuses whatever it is asked."""

    def _refuse(self, *arguments: Any) -> Any:
        raise RuntimeError(f"hostile {MARK}")

    __eq__ = __lt__ = __float__ = __int__ = __str__ = __bool__ = __len__ = __iter__ = _refuse
    __index__ = __array__ = __hash__ = _refuse

    def __repr__(self) -> str:
        return f"Hostile({MARK})"


class Unstable(float):
    """A float that converts to something else."""

    def __float__(self) -> float:
        raise OverflowError(MARK)


NUMBERS: tuple[float, ...] = (
    *(math.nan, math.inf, -math.inf, -0.0, 5e-324, -2.2e-308, 1e308, -1.7391e308),
    *(float(MARK), -float(MARK) - 0.5, 2.0**53, 0.1 + 0.2),
)

OBJECTS: tuple[Any, ...] = (
    *NUMBERS,
    *(int(MARK), 2**63, -(2**63) - 1, 2**70 + int(MARK), 10**400, -(10**400)),
    *(Fraction(int(MARK), 7), Fraction(10**400, 3), complex(float(MARK), 1), None, True),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("1e9999"), Decimal(MARK)),
    *("", "nan", "-inf", "\x00", "\ud800", "٣", " 1 ", "1_0", f"HIV+{MARK}", MARK),
    *(f"b{MARK}".encode(), [1, MARK], (0,), {"a": MARK}, {1}),
    *(np.array(1), np.array([0.0, float(MARK)]), np.float16("nan"), np.float32(3e38)),
    *(np.int8(-128), np.uint64(2**64 - 1), np.longdouble("1e400"), np.complex64(1j)),
    *(np.datetime64("NaT"), np.timedelta64(int(MARK), "s"), np.str_(MARK), np.bool_(False)),
    *(datetime.date(2020, 1, 1), datetime.timedelta.max, Hostile(), Unstable(1.0)),
    *(Ellipsis, NotImplemented, int, np, len),
)


def spiked(
    values: npt.NDArray[Any], odd: tuple[Any, ...], count: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Return a copy of an array with some odd values at random places.

    >>> spiked(np.zeros((2, 2)), (7.0,), 4, np.random.default_rng(0)).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    plain = all(isinstance(value, float) for value in odd)
    table = values.astype(float if plain else object)
    places = rng.permutation(table.size)[:count]
    for place in places:
        table[np.unravel_index(place, table.shape)] = odd[rng.integers(len(odd))]
    return table


def everything_said(error: BaseException) -> str:
    """Return the texts of an error, of its causes and contexts, suppressed ones too, and notes."""
    texts: list[str] = []
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            texts += [str(one), repr(one), *getattr(one, "__notes__", [])]
            waiting += [one.__cause__, one.__context__]
    return "\n".join(texts)


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
    "polars": lambda values: import_module("polars").Series("a", values),
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
