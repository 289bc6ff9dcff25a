"""Weights: a record counts as often as its weight says, and no more than is declared."""

from __future__ import annotations

import inspect
import math
import tracemalloc
from fractions import Fraction
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import has_fit_parameter

from benchmarks.audit._units import worst_weighted_loss
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    DirichletMultinomial,
    PosteriorQuerySession,
    PrivacyUnit,
    PrivateSearchCV,
    from_json,
    metrics,
)
from dpbayes_sklearn.audit import audit
from dpbayes_sklearn.data.persons import OWN_WEIGHTS, copies_of
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.privacy.budget import Budget, Copies

BITS: dict[str, Any] = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
NAIVE = BayesianNaiveBayes(max_weight=5, temperature=1.0, **BITS)
NETWORK = BayesianNetworkClassifier(max_weight=5, temperature=1.0, **BITS)
LINEAR = BayesianLinearRegression(max_weight=5, bounds_X=(0, 1), bounds_y=(0, 1))
LOGISTIC = BayesianLogisticRegression(max_weight=5, **BITS)
BETA = BetaBinomial(max_weight=5)
SHARES = DirichletMultinomial(categories=[0, 1], max_weight=5)
PREDICTORS = [NAIVE, NETWORK, LINEAR, LOGISTIC]
ALL = [*PREDICTORS, BETA, SHARES]


def records(n: int = 60) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = (rng.random((n, 2)) < 0.3 + 0.4 * y[:, None]).astype(int)
    return X, y, rng.integers(0, 6, n)


def data_of(model: Any, *arrays: Any) -> list[Any]:
    """Return what a model is fitted to: one column, or X and y."""
    X, y, *rest = arrays
    return [X, y, *rest] if hasattr(model, "predict") else [y, None, *rest]


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_weight_is_as_many_copies(model: Any, epsilon: float) -> None:
    X, y, w = records()
    first, second = (clone(model).set_params(epsilon=epsilon, random_state=0) for _ in range(2))
    a, b, c = data_of(model, X, y, w)
    first.fit(a, b, sample_weight=c)
    copies = [None if rows is None else np.repeat(rows, c, axis=0) for rows in (a, b)]
    second.fit(*copies)
    if hasattr(model, "predict"):
        np.testing.assert_allclose(first.predict(X), second.predict(X))
    else:
        np.testing.assert_allclose(first.posterior_.mean(), second.posterior_.mean())


# the total weight is secret, so that it is zero cannot be told
NO_ERROR = {"check_all_zero_sample_weights_error"}


@pytest.mark.parametrize("model", PREDICTORS, ids=lambda m: type(m).__name__)
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
def test_checks_of_scikit_learn_on_weights(model: Any) -> None:
    seen = set()
    for estimator, check in estimator_checks_generator(type(model)(max_weight=10)):
        name = check.func.__name__
        if "sample_weight" in name and name not in NO_ERROR:
            if "one_label" in name:  # ten records: the check wants no noise
                estimator.set_params(epsilon=math.inf)
            check(estimator)
            seen.add(name)
    assert {"check_sample_weights_shape", "check_sample_weight_equivalence_on_dense_data"} <= seen


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_weights_need_a_public_bound(model: Any) -> None:
    X, y, w = records()
    a, b, c = data_of(model, X, y, w)
    ledger = BudgetAccountant()
    plain = clone(model).set_params(max_weight=None, accountant=ledger)
    assert has_fit_parameter(model, "sample_weight")
    assert not has_fit_parameter(plain, "sample_weight")
    assert "sample_weight" in inspect.signature(type(model).fit).parameters
    with pytest.raises(ValueError, match="max_weight"):
        plain.fit(a, b, sample_weight=c)
    assert not len(ledger)


def test_other_ways_take_no_weights() -> None:
    X, y, w = records()
    ledger = BudgetAccountant(9)
    plain = clone(NAIVE).set_params(max_weight=None)
    for method in (plain.partial_fit, plain.exact_statistics):
        with pytest.raises(ValueError, match="max_weight"):
            method(X, y, sample_weight=w)
    with pytest.raises(ValueError, match="PrivateSearchCV passes no weights on"):
        PrivateSearchCV(NAIVE, {"alpha": [1.0]}, accountant=ledger).fit(X, y)
    with pytest.raises(ValueError, match="private_cross_validate passes no weights on"):
        metrics.private_cross_validate(
            NAIVE, X, y, scoring="accuracy", epsilon=1, accountant=ledger
        )
    with pytest.raises(ValueError, match="PosteriorQuerySession passes no weights on"):
        PosteriorQuerySession(clone(NAIVE).set_params(mechanism="sampler"), X, y, accountant=ledger)
    with pytest.raises(ValueError, match="a weight belongs to a whole record"):
        clone(NAIVE).set_params(privacy_unit="feature", accountant=ledger).fit(X, y)
    assert not len(ledger)


def test_no_weight_stops_a_fit() -> None:
    X, y, _ = records(8)
    odd = [math.nan, math.inf, -math.inf, -3, None, "many", 1e308, 2]
    model = clone(NAIVE).set_params(epsilon=math.inf).fit(X, y, sample_weight=odd)
    assert model.posterior_.released.n == 5 + 5 + 2
    for wrong in (np.ones((8, 2)), np.ones(7)):
        with pytest.raises(ValueError, match=r"sample_weight|inconsistent"):
            clone(NAIVE).fit(X, y, sample_weight=wrong)


def test_rounding_is_right_on_average() -> None:
    n = 40_000
    copies = copies_of(np.full(n, 2.3), n, 5, random_state=0)
    assert set(copies.tolist()) == {2, 3}
    assert copies.mean() == pytest.approx(2.3, abs=5 * math.sqrt(0.21 / n))
    assert copies_of([0.0, 4.9999, 5.0001], 3, 5).max() <= 5


UNITS = [
    PrivacyUnit("record"),
    PrivacyUnit("record", neighbours="add_remove"),
    PrivacyUnit("person", max_records=2),
]


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.label)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_exactly_the_budget_is_charged(unit: PrivacyUnit, mechanism: str) -> None:
    X, y, w = records()
    ledger = BudgetAccountant(1, 1e-6)
    groups = np.arange(len(y)) // 2 if unit.name == "person" else None
    model = clone(NAIVE).set_params(
        mechanism=mechanism, delta=1e-6, privacy_unit=unit, accountant=ledger
    )
    model.fit(X, y, groups, sample_weight=w)
    spent = [entry.spend.cost for entry in ledger]
    assert sum(cost.epsilon for cost in spent) == 1
    assert model.guarantee_.epsilon == 1
    assert model.guarantee_.privacy_unit == unit
    planned = model.plan(n=150)
    assert (planned.cost.epsilon, planned.cost.unit) == (1, unit)
    if mechanism == "gaussian":
        assert 0.9e-6 < spent[-1].delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("unit", UNITS[:2], ids=lambda u: u.label)
def test_the_cost_of_copies_is_that_of_two_steps(unit: PrivacyUnit) -> None:
    copies = Copies(unit, 3)
    budget = Budget(Fraction(2), Fraction(1, 10**6), unit)
    inner = copies.inner(budget)
    steps = 1 if unit.size_is_secret else 2
    assert (inner.epsilon, inner.unit.n_changed) == (Fraction(2, steps), 3)
    outer = copies.outer(inner._replace(rho=Fraction(1)))
    assert outer == budget._replace(rho=Fraction(steps**2))
    if steps == 2:  # P <= e P' + d <= e (e P'' + d) + d
        assert float(inner.delta) == pytest.approx(1e-6 / (1 + math.e), rel=1e-9)
        assert inner.delta * (1 + Fraction(math.e)) <= budget.delta


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS[:2], ids=lambda u: u.label)
def test_all_weighted_tables_of_two_records(unit: PrivacyUnit) -> None:
    # two records of the same total differ in the tables only, which have 24/25 of epsilon
    assert worst_weighted_loss(unit) == (1 if unit.size_is_secret else Fraction(24, 25))


class Survey(BetaBinomial):
    """A share of answers; every record is an answer and its weight."""

    def fit(self, X: Any, y: Any = None) -> Any:
        answers, weights = np.asarray(X).T
        return super().fit(answers, sample_weight=weights)


# the first of four people says yes or no, with all the weight that one can have
ONE, OTHER = ([[said, 9.0], [0.0, 1.0], [0.0, 2.0], [1.0, 1.0]] for said in (1.0, 0.0))
CLAIM = 2.0


def epsilon_seen(runs: int) -> float:
    model = Survey(CLAIM, max_weight=4, inference="plug_in")
    found = audit(model, ONE, None, OTHER, None, runs, random_state=0, verbose=False)
    return found.epsilon


def test_an_attacker_sees_no_more_than_epsilon() -> None:
    assert 0.5 < epsilon_seen(400) <= CLAIM


def test_an_attacker_sees_noise_for_a_weight_of_one() -> None:
    with planted((Copies, "counted", property(lambda self: UNITS[1]))):
        assert epsilon_seen(400) > CLAIM


def test_scikit_learn_passes_weights_on() -> None:
    X, y, w = records()
    step = make_pipeline(FunctionTransformer(), clone(NAIVE).set_params(epsilon=math.inf))
    step.fit(X, y, bayesiannaivebayes__sample_weight=w)
    assert step[-1].posterior_.released.n == w.sum()
    with config_context(enable_metadata_routing=True):
        model = clone(NAIVE).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, y, params={"sample_weight": w}, cv=2)
    assert len(scores) == 2


def test_batches_and_shards_take_weights() -> None:
    X, y, w = records()
    model = clone(NAIVE).set_params(epsilon=math.inf)
    for rows in (slice(0, 30), slice(30, 60)):
        model.partial_fit(X[rows], y[rows], sample_weight=w[rows])
    whole = clone(model).fit(X, y, sample_weight=w)
    merged = clone(model).fit_statistics(model.exact_statistics(X, y, sample_weight=w))
    for one, other in pairwise([model, whole, merged]):
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X))


def test_weights_are_a_column_of_any_container() -> None:
    pd = pytest.importorskip("pandas")
    X, y, w = records()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": w})
    model = clone(NAIVE).set_params(epsilon=math.inf).fit(frame, target="y", sample_weight="w")
    assert model.n_features_in_ == 2
    assert model.posterior_.released.n == w.sum()
    da = pytest.importorskip("dask.array")
    far = [da.from_array(rows, chunks=20) for rows in (X, y, w)]
    lazy = clone(model).fit(*far[:2], sample_weight=far[2])
    np.testing.assert_allclose(lazy.predict_proba(X), model.predict_proba(frame[["a", "b"]]))


def test_the_card_says_that_the_total_is_a_weight() -> None:
    X, y, w = records()
    assert "fitted to a total weight of about" in clone(NAIVE).fit(X, y, sample_weight=w).card()


def test_the_guarantee_names_what_weights_must_not_depend_on() -> None:
    X, y, w = records()
    given, left_out = (clone(NAIVE).fit(X, y, sample_weight=each) for each in (w, None))
    assert OWN_WEIGHTS in given.guarantee_.conditions
    assert OWN_WEIGHTS not in left_out.guarantee_.conditions
    assert OWN_WEIGHTS in from_json(given.to_json()).guarantee_.conditions
    shard = given.exact_statistics(X, y, sample_weight=w)
    assert OWN_WEIGHTS in given.fit_statistics(shard).guarantee_.conditions


def test_a_delta_too_small_for_two_steps_is_refused_before_the_charge() -> None:
    X, y, w = records()
    ledger = BudgetAccountant(2000.0, 0.5)
    model = clone(NAIVE).set_params(
        epsilon=1500.0, delta=1e-6, mechanism="gaussian", accountant=ledger
    )
    with pytest.raises(ValueError, match="delta"):
        model.fit(X, y, sample_weight=w)
    assert not len(ledger)


# ------------------------------------------------------------------ multiplied, not copied

SAME: dict[str, Any] = {
    "counts": NAIVE,
    "temperature": clone(NAIVE).set_params(temperature="auto"),
    "network": NETWORK,
    "moments": LINEAR,
    "draws of a regression": clone(LINEAR).set_params(mechanism="map"),
    "mode": LOGISTIC,
    "mode with intervals": clone(LOGISTIC).set_params(intervals=True, epsilon=20.0),
    "proportion": BETA,
    "shares": SHARES,
}


@pytest.mark.parametrize("container", ["memory", "dask"])
@pytest.mark.parametrize("name", SAME)
def test_seeded_releases_are_those_of_copies(name: str, container: str) -> None:
    """The same seed gives the same release, so every exact statistic is the same."""
    X, y, weights = records(400)
    model = clone(SAME[name]).set_params(random_state=0)
    column = isinstance(model, (BetaBinomial, DirichletMultinomial))
    y = y if column else np.where(np.arange(400) % 50, y, -1)  # some have no class
    if name in ("moments", "draws of a regression"):
        y = np.where(y < 0, np.nan, y)
    copies = np.repeat(np.arange(400), weights)
    found = []
    for rows, times in ((np.arange(400), weights), (copies, np.ones(len(copies), int))):
        data = data_of(model, X[rows], y[rows])
        if container == "dask" and not column:
            data = [da.from_array(part, chunks=(150, *part.shape[1:])) for part in data]
        released = clone(model).fit(*data, sample_weight=times)
        found.append(released.to_json())
    assert found[0] == found[1]


@pytest.mark.parametrize("parts", [1, 3])
def test_the_total_over_copies_is_exact_for_every_weight(parts: int) -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.integers(-(2**40), 2**40, 60), rng.integers(0, 2**15, 60)
    pieces = np.array_split(np.arange(60), parts)
    all_records = LocalRecords((Table(values[own, None]), values[own]) for own in pieces)
    counted = all_records.weighted(weights)
    assert counted.n == weights.sum()
    assert counted.total(lambda shard: shard.target.sum()) == (values * weights).sum()
    some = np.flatnonzero(rng.random(counted.n) < 1e-4)
    copies = np.repeat(values, weights)
    assert counted.total(lambda shard: shard.target.sum(), some) == copies[some].sum()
    assert counted.at(some).total(lambda shard: shard.target.sum()) == copies[some].sum()
    positive = counted.having(lambda shard: (shard.target > 0).tobytes())
    assert positive.total(lambda s: s.target.sum()) == (values * weights)[values > 0].sum()
    both = positive + all_records
    assert both.n == positive.n + 60
    assert both.total(lambda s: s.target.sum()) == copies[copies > 0].sum() + values.sum()


def test_memory_does_not_grow_with_the_total_weight() -> None:
    X, y, _ = records(20_000)
    peaks = []
    for weight in (1, 2000):
        model = clone(NAIVE).set_params(max_weight=2000)
        model.fit(X, y, sample_weight=np.full(20_000, 1))  # what is imported and kept
        tracemalloc.start()
        model.fit(X, y, sample_weight=np.full(20_000, weight))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 3 * peaks[0]
