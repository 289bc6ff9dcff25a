"""Odd values, shapes, dtypes and parameters, found by hypothesis: the reduced form of the audit."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from benchmarks.audit.tools.fuzzing import (
    BAD_PARAMETERS,
    MARK,
    OBJECTS,
    bad_shapes,
    every_case,
    everything_said,
    fit_with,
    odd_records,
    spiked,
)
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
)
from dpbayes_sklearn.audit.leaks import leaks

TOTAL = [case for case in every_case(n=12) if not isinstance(case.estimator, BetaBinomial)]
KINDS = {type(case.estimator).__name__: case for case in every_case(n=12)}
SCHEMA = Schema({"a": Interval(0, 2, bins=3), "b": Categories(["0", "v"])}, Categories([0, 1]))
LABELS = [0, 1] * 4

values = st.one_of(
    st.integers(0, len(OBJECTS) - 1).map(OBJECTS.__getitem__),  # some of them have no hash
    st.floats(),
    st.integers(),
    st.text(max_size=4),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.none(),
    st.lists(st.integers(), max_size=2),
)


def models():
    yield BayesianNaiveBayes(schema=SCHEMA)
    yield BayesianNaiveBayes(schema=SCHEMA, mechanism="sampler")
    yield BayesianLinearRegression(schema=Schema(SCHEMA.columns), bounds_y=(0, 1))


def object_table(rows):
    table = np.empty((len(rows), 2), object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            table[i, j] = value
    return table


@given(
    st.lists(st.tuples(values, values), min_size=8, max_size=8),
    st.lists(values, min_size=8, max_size=8),
)
@settings(max_examples=15)
def test_no_value_makes_a_fit_fail_or_warn(rows, labels):
    target = np.empty(8, object)
    for i, label in enumerate(labels):
        target[i] = label
    for model in models():
        for X in (object_table(rows), [list(row) for row in rows]):
            outcome = fit_with(model, X, target)
            assert (outcome.error, outcome.warned, outcome.spent) == (None, [], 1)
        outcome.fitted.predict(object_table(rows))
    counts = DirichletMultinomial(categories=Categories([0, 1, 2]))
    assert fit_with(counts, target, None).error is None


@given(
    hnp.arrays(
        st.one_of(
            hnp.boolean_dtypes(),
            hnp.integer_dtypes(),
            hnp.unsigned_integer_dtypes(),
            hnp.floating_dtypes(),
        ),
        (8, 2),
        elements=None,
    )
)
@settings(max_examples=12)
def test_no_number_of_any_dtype_makes_a_fit_fail_or_warn(X):
    for model in models():
        for table in (X, np.asfortranarray(X), pd.DataFrame(X, columns=["a", "b"])):
            outcome = fit_with(model, table, LABELS)
            assert (outcome.error, outcome.warned) == (None, [])


@given(hnp.arrays(np.int8, (20, 2), elements=st.integers(0, 2)))
@settings(max_examples=20)
def test_the_same_data_in_every_dtype_have_the_same_statistics(X):
    y = np.arange(20) % 2
    naive = BayesianNaiveBayes(bounds=(0, 2), classes=[0, 1], n_bins=3)
    linear = BayesianLinearRegression(bounds_X=(0, 2), bounds_y=(0, 1), epsilon=float("inf"))
    tables = [
        X.astype(kind) for kind in ("i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", object, "U1")
    ]
    tables += [X.tolist(), pd.DataFrame(X), pl.DataFrame(X)]
    exact = [naive._read(table, y).statistics.counts.tables for table in tables]
    for other in exact:
        assert all(np.array_equal(a, b) for a, b in zip(exact[0], other, strict=True))
    if np.ptp(X, axis=0).all():
        slopes = {linear.fit(table, y).coef_.tobytes() for table in tables}
        assert len(slopes) == 1


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(TOTAL))
@settings(max_examples=60)
def test_every_mechanism_bears_odd_records_and_forgets_them(seed, case):
    rng = np.random.default_rng(seed)
    outcome = fit_with(case.estimator, *odd_records(case, 6, rng))
    assert (outcome.error, outcome.warned) == (None, [])
    assert leaks(outcome.fitted, {"mark": MARK, "number": float(MARK)}) == []


@given(st.integers(0, 10**6), st.sampled_from([*KINDS]))
@settings(max_examples=60)
def test_refusals_do_not_tell_values(seed, name):
    case, rng = KINDS[name], np.random.default_rng(seed)
    nothing = {k: None for k in ("bounds", "bounds_X", "bounds_y", "classes", "categories")}
    known = case.estimator.get_params(deep=False)
    undeclared = {k: v for k, v in nothing.items() if k in known}
    outcome = fit_with(case.estimator, *odd_records(case, 6, rng), **undeclared)
    assert MARK not in outcome.said
    assert outcome.error is None or (
        isinstance(outcome.error, (TypeError, ValueError)) and not outcome.spent
    )


@pytest.mark.parametrize("name", KINDS)
def test_impossible_shapes_are_refused_before_any_charge(name):
    for X, y in bad_shapes(KINDS[name]):
        outcome = fit_with(KINDS[name].estimator, X, y)
        assert isinstance(outcome.error, (TypeError, ValueError)), (np.shape(X), np.shape(y))
        assert outcome.spent == 0


@given(st.sampled_from([*KINDS]), st.data())
@settings(max_examples=80)
def test_bad_parameters_are_refused_clearly_before_any_charge(name, data):
    case = KINDS[name]
    parameter = data.draw(st.sampled_from(sorted(case.estimator.get_params(deep=False))))
    value = data.draw(st.sampled_from(BAD_PARAMETERS))
    outcome = fit_with(case.estimator, case.X, case.y, **{parameter: value})
    if outcome.error is not None:
        message = str(outcome.error)
        assert isinstance(outcome.error, (TypeError, ValueError))
        assert "must" in message or parameter in message
        assert outcome.spent == 0


class Careless(BayesianNaiveBayes):
    """Looks at the values before it is told to."""

    def fit(self, X, y):
        for value in np.asarray(X, object).ravel():
            float(value)
        return super().fit(X, y)


class Chatty(BayesianNaiveBayes):
    """Logs what it sees."""

    def fit(self, X, y):
        logging.getLogger("dpbayes_sklearn").warning("first: %s", np.asarray(X, object)[0])
        return super().fit(X, y)


class Eager(BayesianNaiveBayes):
    """Charges before it checks."""

    def fit(self, X, y):
        self.accountant.spend(1.0)
        return super().fit(X, y)


def test_planted_faults_are_seen():
    case = KINDS["BayesianNaiveBayes"]
    options = {k: v for k, v in case.estimator.get_params().items() if k != "random_state"}
    marked = spiked(case.X, (f"HIV+{MARK}",), 3, np.random.default_rng(0))
    outcome = fit_with(Careless(**options), marked, case.y)
    assert isinstance(outcome.error, ValueError)
    assert MARK in outcome.said
    assert fit_with(Eager(**options), case.X, case.y[:-1]).spent == 1
    all_marked = np.full(case.X.shape, f"HIV+{MARK}", object)
    assert MARK in fit_with(Chatty(**options), all_marked, case.y).said


def test_a_canary_behind_an_error_is_heard():
    def hides_its_context():
        try:
            float(MARK + "x")
        except ValueError:
            raise TypeError("clean") from None

    with pytest.raises(TypeError) as raised:
        hides_its_context()
    assert MARK in everything_said(raised.value)
