"""What BayesianLinearRegression promises, and that nothing else leaves a fit."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.audit.tools import replay
from benchmarks.audit.tools.replaying import DRAWS
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    PrivacyLeakWarning,
    Schema,
)

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
CANARY, NUMBER, MARK = "HIV+7391", 73917391.25, "7391"


def records(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def declared(epsilon=1.0, **params):
    return BayesianLinearRegression(epsilon, **{"bounds_X": (-1, 1), "bounds_y": (-1, 1), **params})


def texts_of(error):
    while error is not None:
        yield from (str(error), repr(error))
        error = error.__cause__ or error.__context__


def refusal(model, X, y):
    """Return the text of an error that spends, attaches and shows nothing."""
    accountant = BudgetAccountant()
    model.set_params(accountant=accountant)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises((TypeError, ValueError)) as raised:
            model.fit(X, y)
    assert len(accountant) == 0
    assert not [name for name in vars(model) if name.endswith("_")]
    for text in (*texts_of(raised.value), *(str(w.message) for w in caught)):
        assert MARK not in text
    return str(raised.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0}, "The 'epsilon' parameter of BayesianLinearRegression must be"),
        ({"epsilon": float("nan")}, "The 'epsilon' parameter"),
        ({"epsilon": "1"}, "The 'epsilon' parameter"),
        ({"epsilon": 1e-300}, "use a larger epsilon"),
        ({"epsilon": 1e-300, "mechanism": "sampler"}, "use a larger epsilon"),
        ({"mechanism": "magic"}, "The 'mechanism' parameter"),
        ({"mechanism": "hellinger"}, "The 'mechanism' parameter"),
        ({"inference": "guess"}, "The 'inference' parameter"),
        ({"prior_precision": 0}, "The 'prior_precision' parameter"),
        ({"prior_precision": float("inf")}, "The 'prior_precision' parameter"),
        ({"noise_variance": 0.0}, "The 'noise_variance' parameter"),
        ({"noise_variance": "learn"}, "The 'noise_variance' parameter"),
        ({"coef_bound": -1}, "The 'coef_bound' parameter"),
        ({"fit_intercept": "yes"}, "The 'fit_intercept' parameter"),
        ({"bounds_X": (1, -1)}, "low < high"),
        ({"bounds_X": (0, [1, 1])}, "bounds_X must be a pair"),
        ({"bounds_X": (0, float("inf"))}, "finite"),
        ({"bounds_y": (1, 1)}, "low < high"),
        ({"bounds_y": (0, [1, 2])}, "bounds_y must be a pair"),
        ({"bounds_y": ("a", "b")}, "bounds_y must be a pair"),
        ({"schema": Schema({"x": Interval(0, 1)})}, "either schema or bounds"),
        (
            {"schema": Schema({"x": Interval(0, 1)}), "bounds_X": None},
            "The schema declares 1 columns, but X has 3 features",
        ),
        (
            {
                "schema": Schema(dict.fromkeys("abc", Interval(0, 1)), Categories([*"uv"])),
                "bounds_X": None,
                "bounds_y": None,
            },
            "needs the target of its schema to be an Interval",
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(params, message):
    assert message in refusal(declared(**params), *records())


X, Y = records()
SPIKED = X.copy()
SPIKED[3, 1] = NUMBER
TEXT = X.astype(object)
TEXT[3, 1] = CANARY


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (np.empty((0, 3)), [], "0 sample(s)"),
        (np.empty((40, 0)), Y, "0 feature(s)"),
        (SPIKED[3], Y, "expected 2d array"),
        (SPIKED + 1j, Y, "complex data not supported"),
        (SPIKED, Y + NUMBER * 1j, "complex data not supported"),
        (sparse.csr_array(SPIKED), Y, "sparse"),
        (SPIKED, None, "requires y to be passed"),
        (SPIKED, Y[:-1], "inconsistent numbers of samples"),
        (SPIKED, np.full((40, 2), NUMBER), "y should be a 1d array"),
    ],
)
@pytest.mark.parametrize("declares", [True, False])
def test_bad_data_are_refused(data, target, message, declares):
    model = declared() if declares else BayesianLinearRegression()
    assert message in refusal(model, data, target).lower()


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (TEXT, Y, "must be a string of digits or a number"),
        (np.where(SPIKED > 1, np.nan, SPIKED), Y, "NaN"),
        (SPIKED, np.where(Y > 0, np.inf, Y), "infinity"),
        (SPIKED, np.array([CANARY] * 40), "NaN"),
    ],
)
def test_bad_values_where_nothing_is_declared(data, target, message):
    assert message in refusal(BayesianLinearRegression(), data, target)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("intercept", [True, False])
def test_no_value_whatever_fails_where_all_is_declared(mechanism, intercept):
    wild = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, CANARY, None, [1], NUMBER]
    rng = np.random.default_rng(0)
    for _ in range(5):
        data, target = np.empty((20, 3), object), np.empty(20, object)
        for i in range(20):
            target[i] = wild[rng.integers(len(wild))]
            for j in range(3):
                data[i, j] = wild[rng.integers(len(wild))]
        model = declared(mechanism=mechanism, fit_intercept=intercept).fit(data, target)
        assert np.isfinite(model.predict(data, return_std=True)).all()
        shown = repr(model) + str(vars(model))
        assert CANARY not in shown
        assert "73917391" not in shown


def test_what_is_not_declared_is_announced_at_the_line_of_the_fit():
    with pytest.warns(PrivacyLeakWarning) as caught:
        model = BayesianLinearRegression().fit(X, Y)
    assert [str(w.message).split(" were")[0] for w in caught] == [
        "bounds of the features",
        "bounds of the target",
    ]
    assert {w.filename for w in caught} == {__file__}
    assert len(model.guarantee_.conditions) == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_guarantee_says_what_was_asked(mechanism):
    accountant = BudgetAccountant(epsilon=0.5)
    model = declared(0.25, mechanism=mechanism, accountant=accountant).fit(X, Y)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (0.25, 0)
    assert (model.guarantee_.unit, model.guarantee_.mechanism) == ("record", mechanism)
    model.fit(X, Y)
    assert accountant.total().epsilon == 0.5
    with pytest.raises(BudgetError):
        model.fit(X, Y)


def test_a_seed_is_a_condition():
    assert any(
        "random_state" in c for c in declared(random_state=0).fit(X, Y).guarantee_.conditions
    )
    assert not declared().fit(X, Y).guarantee_.conditions


anything = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=40)
@given(row=st.lists(anything, min_size=3, max_size=3), value=anything, which=st.integers(0, 39))
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_replay_gives_the_same_bytes(mechanism, row, value, which):
    """What was released on one data set, played to a neighbour, leaves the same bytes."""
    neighbour, target = X.copy(), Y.copy()
    neighbour[which], target[which] = row, value
    found = replay(declared(mechanism=mechanism), X, Y, neighbour, target, freeze=DRAWS)
    assert found.sound, found.divergences
    assert found.calls


def test_replay_would_notice_an_exact_value_that_is_kept(monkeypatch):
    real = BayesianLinearRegression._attach

    def leaky(self, public, release):
        self.exact_mean_ = self._leaked
        return real(self, public, release)

    def reading(self, data, target, **options):
        self._leaked = float(np.mean(target))
        return read(self, data, target, **options)

    read = BayesianLinearRegression._read
    monkeypatch.setattr(BayesianLinearRegression, "_attach", leaky)
    monkeypatch.setattr(BayesianLinearRegression, "_read", reading)
    with pytest.raises(AssertionError):
        test_a_replay_gives_the_same_bytes.hypothesis.inner_test("laplace", [0.0, 0.0, 0.0], 1.0, 5)


def test_exactly_epsilon_is_charged():
    accountant = BudgetAccountant()
    declared(0.1, accountant=accountant).fit(X, Y)
    (entry,) = accountant
    assert entry.cost.epsilon == Fraction(1, 10)


@pytest.mark.parametrize(("mechanism", "coef_bound"), [("sampler", None), ("map", 1.0)])
def test_budgets_that_floats_cannot_hold_are_refused_before_the_charge(mechanism, coef_bound):
    ledger = BudgetAccountant()
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 2))
    model = BayesianLinearRegression(
        1e15, mechanism=mechanism, coef_bound=coef_bound, bounds_X=(0, 1), bounds_y=(0, 2),
        accountant=ledger,
    )  # fmt: skip
    with pytest.raises(ValueError, match="too large for draws of coefficients"):
        model.fit(X, X.sum(axis=1))
    assert len(ledger) == 0


def test_few_records_are_fitted_with_any_epsilon():
    """Without noise to speak of their moments are singular, up to rounding."""
    schema = Schema({"a": Interval(0, 1), "b": Categories([1, 2, 3, 4])}, Interval(0, 1))
    model = BayesianLinearRegression(1e15, schema=schema, mechanism="fourier", random_state=0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.random(5), rng.integers(1, 5, 5)])
        assert np.isfinite(model.fit(X, rng.random(5)).predict(X)).all()
