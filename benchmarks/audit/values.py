"""What values do: none makes a fit fail, speak or lose a bit, and what is not declared is said.

With declared domains no value decides whether a fit fails (but for BetaBinomial, which refuses
whatever is not 0 or 1, and says so in the conditions of its guarantee). Parameters that are refused
must be refused clearly, before anything is spent.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from benchmarks.audit._cases import Row, circumstance, crossings
from benchmarks.audit._models import line, naive_bayes
from benchmarks.audit.tools.fuzzing import (
    BAD_PARAMETERS,
    FRAMES,
    Example,
    Outcome,
    bad_shapes,
    every_case,
    everything_said,
    fit_with,
    heard,
    odd_records,
)
from benchmarks.audit.tools.recording import Recording
from dpbayes_sklearn import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.noise import made_by
from dpbayes_sklearn.regression.moments import gram
from dpbayes_sklearn.schema import Categories

VALUES = 24_000
IN_EACH = 12


def one_of_each() -> list[Example]:
    return [*{type(case.estimator): case for case in every_case(n=20)}.values()]


def clear(outcome: Outcome, name: str) -> bool:
    """Tell whether a refusal says what was wrong, and came before any charge."""
    expected = isinstance(outcome.error, (TypeError, ValueError))
    message = str(outcome.error)
    says = name.removesuffix("_X").removesuffix("_y") in message or "must" in message
    return expected and says and not outcome.spent


def run(scale: float) -> Iterator[Row]:
    yield odd_values(scale)
    yield shapes()
    yield parameters(scale)


def odd_values(scale: float) -> Row:
    """Try odd values in every container and in every state that a caller may leave numpy in."""
    rng, tried, failed, warned = np.random.default_rng(0), 0, 0, 0
    total = [case for case in every_case(n=20) if not isinstance(case.estimator, BetaBinomial)]
    each = [(case, container) for container in (None, *FRAMES) for case in total]
    for number, (case, container) in enumerate(cycle(each)):
        with circumstance(number):
            outcome = fit_with(case.estimator, *odd_records(case, IN_EACH, rng, container))
        tried += IN_EACH
        failed += outcome.error is not None
        warned += len(outcome.warned)
        if tried >= VALUES * scale:
            break
    figure = f"{failed} exceptions, {warned} warnings"
    passed = not failed and not warned
    return Row(f"odd values in declared domains: {tried:,}", figure, "0, 0", passed)


def shapes() -> Row:
    outcomes = [
        fit_with(case.estimator, X, y) for case in one_of_each() for X, y in bad_shapes(case)
    ]
    wrong = sum(not isinstance(o.error, (TypeError, ValueError)) or o.spent > 0 for o in outcomes)
    what = f"records of impossible shapes: {len(outcomes)}"
    return Row(what, f"{wrong} accepted or charged", "0", wrong == 0)


def parameters(scale: float) -> Row:
    refused = unclear = 0
    for case in one_of_each():
        for name in sorted(case.estimator.get_params(deep=False)):
            for value in BAD_PARAMETERS[:: 1 if scale >= 0.5 else 4]:
                outcome = fit_with(case.estimator, case.X, case.y, **{name: value})
                refused += outcome.error is not None
                unclear += outcome.error is not None and not clear(outcome, name)
    what = f"parameters refused: {refused:,}"
    return Row(what, f"{unclear} unclear or charged", "0", unclear == 0)


BAD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.3)
CANARY = "HIV+7391"


def short_values() -> Iterator[str]:
    """Try bad values, messages, orders of rows, types, and the lattices of what comes out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield from _bad_values()
        yield from _missing_values()
        yield from _same_statistics()
        yield from _lattices()
    yield from _messages()


def _bad_values() -> Iterator[str]:
    X = np.array(BAD * 3).reshape(-1, 2)
    y = np.array([np.nan, np.inf, 1e308, 0, 1, 9] * 2)
    kinds = (partial(naive_bayes, n_bins=3), line)
    for kind, mechanism in product(kinds, ("laplace", "fourier", "sampler", "map")):
        model = kind(mechanism=mechanism)
        name = f"{type(model).__name__}, {model.mechanism}"
        try:
            fitted = model.fit(X, y)
        except (Exception, Warning) as error:
            yield f"{name}: {type(error).__name__}"
            continue
        if (
            not np.isfinite(fitted_numbers(fitted)).all()
            or not np.isfinite(np.asarray(fitted.predict(X), float)).all()
        ):
            yield f"{name}: numbers that are not finite"
    odd = np.empty(5, object)
    odd[:] = ["a", None, 3.5, ("b",), CANARY]
    DirichletMultinomial(categories=Categories(["a", "b"])).fit(odd)


def _missing_values() -> Iterator[str]:
    """Check that a missing number counts as the middle of its bounds and changes nobody else.

    A record whose target is missing changes nothing at all.
    """
    X, y = np.array([[0.0], [0.5], [1.0], [0.7]]), np.array([1.0, 0.5, 0.0, np.nan])
    model, exact = line(), []
    for middle, there in ((0.5, slice(3)), (np.nan, slice(4))):
        X[1] = middle
        moments = model._read(X[there], y[there]).statistics
        exact.append(gram(moments, 2**10).tolist())
    if exact[0] != exact[1]:
        yield "a missing number is not the middle of its bounds"


def _messages() -> Iterator[str]:
    column = np.array([["1"], [CANARY], ["2"], ["3"]], dtype=object)
    labels = np.array([0, 1, 1, 0])
    for call in (
        lambda: naive_bayes(bounds=None, n_bins="auto").fit(column, labels),
        lambda: naive_bayes(n_bins=3).fit(column.ravel(), labels),
        lambda: line(bounds_X=None).fit(column, labels),
        lambda: DirichletMultinomial(categories=["1", "2"]).fit(column),
        lambda: naive_bayes(n_bins=3).fit(column, column.ravel()[:2]),
    ):
        with heard() as (caught, _):
            try:
                call()
                said = ""
            except (TypeError, ValueError) as error:
                said = everything_said(error)
        if CANARY in said + "".join(str(w.message) for w in caught):
            yield "a message shows a value"


def statistics_of(model: Any, X: Any, y: Any) -> Any:
    """Return the exact statistics that a fit hands to its mechanism."""
    with crossings() as seen:
        model.fit(X, y)
    return seen[0].counts


def _statistics(model: Any, X: Any, y: Any) -> Any:
    """Return them as one array."""
    exact = statistics_of(model, X, y)
    if hasattr(exact, "tables"):
        return np.concatenate([t.ravel() for t in exact.tables])
    return gram(exact, 2**10).ravel()


def _same_statistics() -> Iterator[str]:
    rng = np.random.default_rng(0)
    X, y = rng.random((700, 3)), rng.integers(0, 2, 700)
    order = rng.permutation(700)
    for model in (naive_bayes(n_bins=3), line()):
        name, there = type(model).__name__, _statistics(model, X, y)
        if not np.array_equal(there, _statistics(model, X[order], y[order])):
            yield f"{name}: sums depend on the order of the rows"
        halves = sum(_statistics(model, X[i::2], y[i::2]) for i in (0, 1))
        if not np.array_equal(there, halves):
            yield f"{name}: two halves do not add up to the whole"
        whole = (X > 0.5).astype(float)
        there = _statistics(model, whole, y)
        for kind in (np.int8, np.uint64, np.float32, bool):
            if not np.array_equal(there, _statistics(model, whole.astype(kind), y)):
                yield f"{name}: sums depend on the type {np.dtype(kind)}"


def _lattices() -> Iterator[str]:
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), rng.integers(0, 2, 30)
    for mechanism in ("laplace", "fourier"):
        model = naive_bayes(mechanism=mechanism, inference="plug_in", n_bins=3).fit(X, y)
        released = model.posterior_.released
        arrays = released.tables if mechanism == "laplace" else released.blocks.values()
        steps = [array * released.grid for array in arrays]
        if any((array != np.rint(array)).any() for array in steps):
            yield f"{mechanism}: released numbers are not on the lattice of their noise"
    fixed = Sampler(omega=0.1, n_points=9)
    drawn = naive_bayes(mechanism=fixed, temperature=1).fit(X, y).posterior_
    odds = np.log(drawn.draws[0]) - np.log1p(-drawn.draws[0])
    if not np.allclose(odds / np.log(9) * 4, np.rint(odds / np.log(9) * 4)):
        yield "sampler: draws are not on the grid"
    drawn = Recording()
    with made_by(drawn.noise):
        line(mechanism="laplace").fit(X, y)
    sums = [(step.law.grid, said) for step, (_, said) in zip(drawn.steps, drawn.said, strict=True)]
    if any((grid * x != np.rint(grid * x)).any() for grid, said in sums for x in said):
        yield "moments: released sums are not on the grid"


PATIENTS = 300
NAMES = [f"patient {i}" for i in range(PATIENTS)]
CODES = np.arange(PATIENTS) % 2


def declarations() -> Iterator[str]:
    """Leave out what should be declared, and declare what cannot be."""
    bayes = naive_bayes(bounds=None)
    frame = pd.DataFrame({"age": CODES.astype(float), "weight": CODES + 0.5, "name": NAMES})
    yield from _must_be_refused("text that is not declared", fit_with(bayes, frame, CODES))
    numbers = fit_with(bayes, frame[["age", "weight"]], CODES)
    if not all(any(name in text for text in numbers.warned) for name in ("age", "weight")):
        yield "a warning does not name the columns that were read from the data"
    if numbers.fitted is None or not numbers.fitted.guarantee_.conditions:
        yield "what was read from the data is no condition of the guarantee"
    unlabelled = naive_bayes(classes=None)
    X = CODES[:, None]
    yield from _must_be_refused("names as labels", fit_with(unlabelled, X, NAMES))
    texts = pd.Series(NAMES, dtype="string")
    yield from _must_be_refused("text as a target", fit_with(line(), X, texts))
    yield from _cells_that_are_stored_twice()


def _must_be_refused(what: str, outcome: Outcome) -> Iterator[str]:
    if outcome.error is None:
        yield f"{what}: taken, and {outcome.spent} charges"
    elif outcome.spent:
        yield f"{what}: refused after it was charged"


def _cells_that_are_stored_twice() -> Iterator[str]:
    """Count a sparse matrix that stores a cell twice: their sum is one value of one record."""
    data = np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    twice, once = csr_array(data, shape=(2, 2)), csr_array(np.array([[2.0, 0.0], [0.0, 1.0]]))
    tables = [statistics_of(naive_bayes(), X, np.array([0, 1])).tables for X in (twice, once)]
    if any(not np.array_equal(a, b) for a, b in zip(*tables, strict=True)):
        yield "a cell that is stored twice counts twice"
