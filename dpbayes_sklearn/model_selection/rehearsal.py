r"""What is known of a search before it is charged: its cost, and that its candidates can be fitted.

Candidates are fitted to stand-ins of the records, which are made of public facts alone.

Guarantee
---------
*Precondition*: the container, the number, names and declared types of columns, and the number of
records (unless it is secret: then a constant) are public. *Claim*: stand-ins are a function of
these. *Proof*: a row is made of the table without its rows, or of the type and the number of
columns of an array; the target of its type; labels of persons are counted off. No row is looked at,
nor how many a part of the split has. A list has no type and no shape: the search makes an array of
all of it first, with a declared number of columns, or with one that its guarantee takes for public
as a condition (:func:`dpbayes_sklearn.data.reading.in_memory`). ∎

Cells are zeros, or empty texts: with declared domains every value has its place, and a domain that
is not declared can be read from them.

A rehearsal, its errors and warnings included, therefore depends on public facts alone. So nothing
that a step of a pipeline releases about the records exists before the search is charged, and no
error of a later step can show it.

**Cost** of the best of a random number of runs, each of them zCDP (Papernot and Steinke 2022,
Theorem 2): let the number of runs have the truncated negative binomial law of shape :math:`\eta`
and parameter :math:`\gamma`, with mean m. If a run has Rényi divergence at most :math:`\tau` of
order :math:`\alpha > 1` and :math:`\hat\tau` of order :math:`\beta \ge 1`, then the best of all
runs has at most, of order :math:`\alpha`,

.. math:: \tau + (1+\eta)\Big(1 - \frac1\beta\Big)\hat\tau + \frac{(1+\eta)\log(1/\gamma)}\beta
          + \frac{\log m}{\alpha - 1}.

For a :math:`\rho`-zCDP run :math:`\tau = \alpha\rho` and :math:`\hat\tau = \beta\rho`. It holds for
**every** pair of orders, so numerically found ones can only cost tightness; the sum itself is taken
in fractions, logarithms rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from dpbayes_sklearn._compat import _safe_indexing
from dpbayes_sklearn._presenting import silence
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import AnyEstimator
from dpbayes_sklearn.base.supervised import AnySupervised
from dpbayes_sklearn.data.arrow import ArrowFrame
from dpbayes_sklearn.data.reading import check_kind
from dpbayes_sklearn.data.records import is_frame, quiet_numpy
from dpbayes_sklearn.exceptions import warn_caller
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.model_selection.pipelines import (
    PrivatePipeline,
    as_one,
    refuse_others,
    steps_of,
    with_params,
)
from dpbayes_sklearn.model_selection.runs import candidates_of
from dpbayes_sklearn.noise.finite import PRICE
from dpbayes_sklearn.privacy import exact
from dpbayes_sklearn.privacy.budget import Exact, PrivacyUnit, round_up
from dpbayes_sklearn.privacy.composition import renyi_epsilon
from dpbayes_sklearn.release import GUESS
from dpbayes_sklearn.schema.values import Kind, kind_of, kind_of_column

# The cell of a rehearsal, by the kind of its column; 0 for all others.
_STAND_IN_CELLS: dict[Kind, Any] = {"text": "", "booleans": False}

# Logarithms of numbers above one have a smaller relative error than this.
_LOG_ERROR = Fraction(10**12 + 1, 10**12)


class StandIns(NamedTuple):
    """Public: made-up records, their targets, and whose they are."""

    X: Any
    y: AnyArray
    groups: AnyArray | None


def stand_ins(X: Any, y: AnyArray, groups: Any, kind: Kind, unit: PrivacyUnit) -> StandIns:
    """Return made-up records of the same shape and types; ``kind`` is what the type of y declares.

    >>> X, y = np.array([[3, 4], [5, 6]]), np.array([7, 8])
    >>> made = stand_ins(X, y, None, "integers", PrivacyUnit())
    >>> made.X.tolist(), made.y.tolist()
    ([[0, 0], [0, 0]], [0, 1])
    """
    n = GUESS if unit.size_is_secret else len(y)
    rows = _safe_indexing(_one_row(X), np.zeros(n, np.intp))
    persons = None if groups is None else np.arange(n) // unit.max_records
    # two different values: more than one class, if classes are not declared
    texts = kind in {"text", "objects"} or y.dtype.kind in "US"
    two = np.array(["0", "1"]) if texts else np.arange(2)
    return StandIns(rows, two.astype(y.dtype)[np.arange(n) % 2], persons)


def _one_row(X: Any) -> Any:
    """Return a table of one row in the same container."""
    if isinstance(X, ArrowFrame):
        return ArrowFrame(_row_of_arrow(X.native.schema))
    if is_frame(X):
        return _row_of_pandas(X.iloc[:0]) if hasattr(X, "iloc") else _row_of_polars(X[:0])
    if issparse(X):
        return type(X)((1, X.shape[1]), dtype=X.dtype)
    return np.zeros((1, X.shape[1]), X.dtype)


def _row_of_pandas(nobody: Any) -> Any:
    columns = [nobody.iloc[:, j] for j in range(nobody.shape[1])]
    row = type(nobody)({j: _cell(column) for j, column in enumerate(columns)})
    row.columns = nobody.columns
    return row


def _cell(column: Any) -> Any:
    """Return a column of one cell, of its type if that says what it holds."""
    series, dtype, kind = type(column), column.dtype, kind_of_column(column)
    cell = None if hasattr(dtype, "categories") else _STAND_IN_CELLS.get(kind, 0)
    with suppress(Exception):  # the types of columns are open-ended, and so are their errors
        if kind not in {"objects", "anything"}:
            return series([cell], dtype=dtype)
    return series([0], dtype=object if kind == "objects" else "category")


def _row_of_polars(nobody: Any) -> Any:
    """Return a frame of one row; a cell that a type cannot hold is missing."""

    def cell(column: Any) -> Any:
        with suppress(Exception):
            known = _STAND_IN_CELLS.get(kind_of(column.dtype), 0)
            return type(column)(column.name, [known], dtype=column.dtype)
        return type(column)(column.name, [None], dtype=column.dtype)

    return type(nobody)([cell(nobody[:, j]) for j in range(nobody.shape[1])])


def _row_of_arrow(schema: Any) -> Any:
    """Return a table of one row; a cell that a type cannot hold is missing."""
    import pyarrow as pa

    def cell(kind: Any) -> Any:
        with suppress(Exception):
            return pa.array([_STAND_IN_CELLS.get(kind_of(kind), 0)], kind)
        return pa.nulls(1, kind)

    return pa.table([cell(field.type) for field in schema], schema=schema)


def rehearsed(
    models: list[AnySupervised], X: Any, y: Any, groups: Any, kind: Kind
) -> tuple[str, ...]:
    """Fit every candidate to stand-ins; return the conditions of their guarantees.

    What cannot be fitted is refused here, and undeclared domains are warned of once: a warning in
    each run would reveal the number of runs. A guess stands for a secret number of records.
    """
    with silence() as warned:
        people = stand_ins(X, y, groups, kind, models[0]._unit)
        fitted = [_fitted(model, people) for model in models]
    for *_, model in fitted:  # y was read already, so that its declared type is gone
        check_kind(model.schema_.target, kind, "The target y")
    for category, text in dict.fromkeys(warned):
        warn_caller(text, category)
    steps = (step for candidate in fitted for step in candidate)
    return tuple(dict.fromkeys(c for step in steps for c in step.guarantee_.conditions))


def _fitted(model: AnySupervised, people: StandIns) -> list[Any]:
    """Fit the steps of a candidate, or the candidate itself.

    If columns are chosen, see what later steps say to each choice first.
    """
    steps = model.shared() if isinstance(model, PrivatePipeline) else [clone(model)]
    if any(isinstance(step, PrivateSelectKBest) for step in steps[:-1]):
        with quiet_numpy():
            _try_in_turn(steps, people)
    fitted: list[Any] = []
    for step in steps:
        X = fitted[-1].transform(people.X) if fitted else people.X
        people = people._replace(X=X)
        fitted.append(step._rehearse(*people))
    return fitted


def _try_in_turn(steps: list[AnyEstimator], people: StandIns) -> None:
    """Fit all steps but the last, which reads what it is given."""
    step, *later = steps
    trial = clone(step)
    if not later:
        trial._read(people.X, people.y, groups=people.groups)
        return
    trial._rehearse(*people)
    for form in _forms(trial, people.X):
        _try_in_turn(later, people._replace(X=form.transform(people.X)))


def _forms(step: Any, X: Any) -> Iterator[Any]:
    """Yield a fitted step in the forms that matter to later ones.

    Columns of a frame have names and types, so it matters which are chosen: every column is chosen
    in one form, and left out in another.
    """
    if not (isinstance(step, PrivateSelectKBest) and is_frame(X)):
        yield step
        return
    d, k = len(step._support), int(step._support.sum())
    for start in range(0, d, min(k, d - k) or d):
        form = copy(step)
        form._support = np.roll(np.arange(d) < k, start)
        yield form


class SearchCost(NamedTuple):
    """The privacy cost of a search, known before any data are read.

    Attributes
    ----------
    epsilon : float
        Of the whole search.
    epsilon_per_run : float
        Of each of its fits, the winner included.
    n_runs : int
        How many fits to expect; the actual number is random, and secret.
    n_train, n_test : int
        People that the candidates are fitted to, and people that they are scored on.
    """

    epsilon: float
    epsilon_per_run: float
    n_runs: int
    n_train: int
    n_test: int


def search_cost(
    estimator: Any,
    param_grid: Any,
    n: int,
    runs_per_candidate: int,
    stopping: str,
    test_size: float,
) -> SearchCost:
    """Return the cost of a search whose winner has the epsilon of the estimator.

    Refuses what a search without a delta refuses.
    """
    refuse_others(estimator)
    per_run = sum((exact(step.epsilon) for step in steps_of(estimator)), Fraction(0))
    candidates = with_params(estimator, candidates_of(param_grid))
    for model in map(as_one, candidates):
        model.set_params(epsilon=per_run)._validate_params()
        if model._mechanism.needs_delta:
            raise ValueError(
                "Gaussian noise needs a delta, and this is the cost of purely private "
                "candidates: set epsilon and delta of the search instead."
            )
    parts = train_test_split(range(n), test_size=test_size)
    n_runs = runs_per_candidate * len(candidates)
    total = round_up(PRICE[stopping] * per_run)
    return SearchCost(total, round_up(per_run), n_runs, *map(len, parts))


def winner_epsilon(rho: Exact, delta: Exact, eta: int, inverse: int, mean: float) -> Fraction:
    """Return an epsilon at which the best of all runs, each rho-zCDP, is (epsilon, delta)-DP.

    ``eta``, ``inverse`` (1/gamma) and ``mean`` describe the law of the number of runs.

    >>> float(winner_epsilon(Fraction(1, 250), Fraction(1, 10**6), 1, 60, 60.0))
    0.961...
    """
    rho = Fraction(rho)
    log_inverse, log_mean = (_LOG_ERROR * Fraction(math.log(x)) for x in (inverse, mean))
    beta = max(Fraction(1), Fraction(math.sqrt(float(log_inverse / rho)))) if rho else Fraction(1)
    shared = (1 + eta) * ((beta - 1) * rho + log_inverse / beta)

    def at(order: Fraction) -> Fraction:
        return renyi_epsilon(order, rho, delta) + shared + log_mean / (order - 1)

    def floating(x: float) -> float:
        return float(at(1 + Fraction(math.exp(x))))

    best = minimize_scalar(floating, bounds=(-3.0, 25.0), method="bounded")
    return at(1 + Fraction(math.exp(float(best.x))))


@lru_cache(maxsize=64)
def run_rho(epsilon: Exact, delta: Exact, eta: int, inverse: int, mean: float) -> Fraction:
    """Return a rho, the largest to a part in a thousand, whose best run is (epsilon, delta)-DP.

    >>> float(run_rho(Fraction(1), Fraction(1, 10**6), 1, 60, 60.0))
    0.0043...
    """
    low, high = Fraction(0), Fraction(1)
    while winner_epsilon(high, delta, eta, inverse, mean) <= epsilon:
        low, high = high, 2 * high
    for _ in range(60):
        if high - low <= low / 1000:
            break
        middle = Fraction(float((low + high) / 2 if low else high / 4))
        enough = winner_epsilon(middle, delta, eta, inverse, mean) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    if not low:
        raise ValueError("epsilon and delta are too small for a search.")
    return low
