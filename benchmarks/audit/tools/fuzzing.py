"""Fit estimators to unusual values and parameters, and record their errors and warnings.

With declared domains no value may make a fit fail or warn. Every text and most numbers carry the
digits of :data:`MARK`, so that they can be looked for in whatever is shown. What a container does
with one missing value must not change how anybody else's value is read. What audits go through is
every estimator with every mechanism on small made-up data: the catalogue.
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
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import AnyEstimator
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier
from dpbayes_sklearn.classifier import BayesianClassifier
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.count_regression import BayesianCountRegression
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.means import GammaExponential, NormalMean
from dpbayes_sklearn.mechanisms import Fourier, Laplace, Mechanism, resolve_mechanism
from dpbayes_sklearn.moments import PrivateMoments
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.survival import LifeTable

# The inferences of a model of counts that are tried with every mechanism.
_INFERENCES = ("plug_in", "noise_aware")
_DELTA = 1e-3  # It is below one over the number of records; only some mechanisms spend it.


class Example(NamedTuple):
    """An estimator whose domains are all declared, and records for it."""

    name: str
    estimator: AnyEstimator
    X: AnyArray
    y: AnyArray | None


def names_of(estimator: type[AnyEstimator]) -> set[str]:
    """Return the names of the mechanisms that an estimator takes."""
    names: set[str] = estimator._parameter_constraints["mechanism"][0].options
    return names


def every_case(n: int = 40, epsilon: float = 1.0, seed: int = 0) -> Iterator[Example]:
    """Yield every estimator with every mechanism and way of inference.

    >>> len([*every_case()])
    89
    """
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (n, 3)), rng.integers(0, 2, n)
    numbers = rng.uniform(-1, 3, (n, 2)), rng.uniform(0, 5, n)
    families: list[tuple[str, type[AnyEstimator], dict[str, Any], Any, Any]] = [
        ("counts", BayesianNaiveBayes, {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3}, X, y),
        (
            "counts",
            BayesianNetworkClassifier,
            {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3, "parents": _GRAPH},
            X,
            y,
        ),
        ("moments", BayesianLinearRegression, {"bounds_X": (-1, 3), "bounds_y": (0, 5)}, *numbers),
        ("simplex", BetaBinomial, {}, y.astype(bool), None),
        ("simplex", DirichletMultinomial, {"categories": Categories([0, 1, 2])}, X[:, 0], None),
    ]
    for kind, estimator, options, data, target in families:
        mechanisms: dict[str, str | Mechanism] = {m: m for m in names_of(estimator)}
        if kind == "counts":
            mechanisms["fourier with joint noise"] = Fourier(noise="joint")
        if estimator is BayesianNaiveBayes:
            mechanisms["laplace with joint noise"] = Laplace(noise="joint")
        for label, mechanism in sorted(mechanisms.items(), key=itemgetter(0)):
            for inference in _INFERENCES:
                given = {**options, "mechanism": mechanism, "inference": inference}
                if resolve_mechanism(mechanism).spends_delta:
                    given["delta"] = _DELTA
                name = f"{estimator.__name__}, {label}, {inference}"
                yield Example(name, estimator(epsilon=epsilon, **given), data, target)
    for means, options in (
        (NormalMean, {"bounds": (-1, 3)}),
        (GammaExponential, {"bounds": (-1, 3), "data": "laplace", "location": 1.0}),
    ):
        for mechanism in ("laplace", "sampler"):
            model = means(epsilon=epsilon, mechanism=mechanism, **options)
            yield Example(f"{means.__name__}, {mechanism}", model, numbers[0], None)
    yield Example("PrivateMoments", PrivateMoments(epsilon, bounds=(-1, 3)), numbers[0], None)
    table = LifeTable(epsilon, bounds=(-1, 3), n_bins=4)
    yield Example("LifeTable", table, numbers[0][:, :1], y)
    for scale in (0.1, 10):  # naive Bayes, and logistic regression
        front = BayesianClassifier(scale * epsilon, bounds=(-1, 3.5), classes=[0, 1])
        yield Example(f"BayesianClassifier, {scale:g}", front, numbers[0], y)
    for effects in ("smooth", "linear"):
        logistic = BayesianLogisticRegression(
            epsilon, bounds=(-1, 3), classes=[0, 1], effects=effects, intervals=effects == "linear"
        )
        yield Example(f"BayesianLogisticRegression, map, {effects}", logistic, numbers[0], y)
    several = clone(logistic).set_params(classes=[0, 1, 2], intervals="auto")
    yield Example("BayesianLogisticRegression, three classes", several, numbers[0], y)
    ordered = clone(several).set_params(ordered=True)
    yield Example("BayesianLogisticRegression, ordered classes", ordered, numbers[0], y)
    for intervals in (False, True):
        counted = BayesianCountRegression(epsilon, cap=4, bounds=(-1, 3), intervals=intervals)
        name = f"BayesianCountRegression, intervals={intervals}"
        yield Example(name, counted, numbers[0], np.rint(numbers[1]))
    draws = clone(logistic).set_params(mechanism="sampler", intervals=False)
    yield Example("BayesianLogisticRegression, sampler", draws, numbers[0], y)


# A network in which the class has a parent, and features depend on each other.
_GRAPH = {"class": [0], 1: ["class", 0], 2: [1]}


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
    """What a fit did."""

    fitted: Any  # None if the fit was refused.
    error: Exception | None
    warned: list[str]
    logged: list[str]
    spent: int  # Entries in the ledger.

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


# Numbers that code for usual ones trips over.
NUMBERS: tuple[float, ...] = (
    *(math.nan, math.inf, -math.inf, -0.0, 5e-324, -2.2e-308, 1e308, -1.7391e308),
    *(float(MARK), -float(MARK) - 0.5, 2.0**53, 0.1 + 0.2),
)

# Cells of columns of objects that do the same.
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
    values: AnyArray, odd: tuple[Any, ...], count: int, rng: np.random.Generator
) -> AnyArray:
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


def framed(name: str, values: AnyArray) -> Any:
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
