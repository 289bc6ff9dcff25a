"""Persons and secret numbers of records, through transformers, schemas and trees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    Schema,
    from_json,
    tree_augmented,
)
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.data.persons import COUNTED, PERSONS_STREAM, PROMISED, counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import boundary

ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=3)}
BOTH = {"privacy_unit": PrivacyUnit("person", max_records=3, neighbours="add_remove")}
WHOM = [ADDED, PERSON, BOTH]
COIN = Categories([0, 1])
TRANSFORMERS = [
    PrivateMinMaxScaler(),
    PrivateMinMaxScaler(bounds=(0, 100)),
    PrivateStandardScaler(),
    PrivateKBinsDiscretizer(4),
    PrivateKBinsDiscretizer(4, strategy="uniform"),
    PrivateSelectKBest(2, bounds=(0, 100), classes=[0, 1]),
    PrivateSelectKBest("auto", bounds=(0, 100), classes=[0, 1]),
]
whom = pytest.mark.parametrize("whom", WHOM, ids=str)


def visits(n=900, seed=0):
    """Return records of persons with one to five records each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    y = rng.integers(0, 2, n)
    return rng.gamma(5.0, 2.0 + 4.0 * y[:, None], (n, 3)), y, who


def labels(whom, who):
    return who if whom["privacy_unit"].name == "person" else None


@whom
@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
def test_a_fit_says_whom_it_protects_and_spends_epsilon(model, whom):
    X, y, who = visits()
    ledger = BudgetAccountant(epsilon=1)
    model = clone(model).set_params(accountant=ledger, **whom).fit(X, y, groups=labels(whom, who))
    assert ledger.total().epsilon == model.guarantee_.epsilon == 1
    released = whom["privacy_unit"].size_is_secret and model._uses_n != "nowhere"
    assert len(ledger) == 1 + released
    assert model.guarantee_.privacy_unit == whom["privacy_unit"]
    assert all(entry.label.endswith(whom["privacy_unit"].label) for entry in ledger)
    assert model.guarantee_.conditions == (COUNTED.format(3),) * (whom == PERSON)
    again = from_json(model.to_json())
    assert again.guarantee_ == model.guarantee_
    assert np.array_equal(again.transform(X), model.transform(X))
    with pytest.raises(BudgetError):
        model.fit(X, y, groups=labels(whom, who))


@pytest.mark.parametrize("model", TRANSFORMERS[2:6], ids=str)
def test_only_records_that_count_are_looked_at(model):
    X, y, who = visits()
    counted = counted_records(who, 3, Noise.of(0, PERSONS_STREAM))
    model = clone(model).set_params(epsilon=float("inf"), random_state=0, **PERSON)
    one = clone(model).fit(X, y, groups=who)
    other = clone(model).fit(X[counted], y[counted], groups=who[counted])
    assert np.array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
def test_no_table_is_too_small_where_the_number_of_records_is_secret(model):
    for n in (0, 1):
        fitted = clone(model).set_params(**ADDED).fit(np.ones((n, 3)), np.ones(n, int))
        assert fitted.transform(np.full((2, 3), 7.0)).shape[0] == 2
        with pytest.raises(ValueError, match="minimum of 1"):
            clone(model).fit(np.ones((0, 3)), np.ones(0, int))


def test_without_groups_the_promise_is_a_condition():
    X, _, _ = visits()
    with pytest.raises(ValueError, match="groups, whose record each row is, were not given"):
        PrivateMinMaxScaler(**PERSON).fit(X)
    few = PrivacyUnit("person", max_records=3, by_construction=True)
    model = PrivateMinMaxScaler(privacy_unit=few).fit(X)
    assert model.guarantee_.conditions == (PROMISED.format(3),)


@pytest.mark.parametrize("model", TRANSFORMERS[3:6], ids=str)
@pytest.mark.parametrize(
    ("options", "groups", "text"),
    [
        ({"privacy_unit": "person"}, None, "max_records=4"),
        (
            {"privacy_unit": PrivacyUnit("person", max_records=901)},
            None,
            "more than there are records",
        ),
        ({"privacy_unit": "feature"}, None, "privacy_unit"),
        (PERSON, np.arange(899), "inconsistent numbers of samples"),
        (PERSON, np.full(900, np.nan), "no record has one"),
        ({}, np.arange(900), "PrivacyUnit"),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(model, options, groups, text):
    X, y, _ = visits()
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match=text):
        clone(model).set_params(accountant=ledger, **options).fit(X, y, groups=groups)
    assert len(ledger) == 0


@whom
def test_a_pipeline_protects_persons_with_one_ledger(whom):
    X, y, who = visits()
    ledger = BudgetAccountant(epsilon=2)
    common = {"accountant": ledger, **whom}
    pipe = make_pipeline(
        PrivateKBinsDiscretizer(4, epsilon=1.0, **common),
        BayesianNaiveBayes(bounds=(0, 3), n_bins=4, classes=[0, 1], **common),
    )
    with sklearn.config_context(enable_metadata_routing=True):
        whose = {} if labels(whom, who) is None else {"groups": who}
        for step in pipe:
            step.set_fit_request(groups=True)
        assert np.mean(pipe.fit(X, y, **whose).predict(X) == y) > 0.7
    assert ledger.total().epsilon == 2
    assert pipe[0].guarantee_.privacy_unit == pipe[1].guarantee_.privacy_unit
    assert all("no person has more" not in c for step in pipe for c in step.guarantee_.conditions)


def test_without_routing_every_step_is_told_by_name():
    X, y, who = visits()
    pipe = make_pipeline(
        PrivateMinMaxScaler(**PERSON),
        BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=4, **PERSON),
    )
    pipe.fit(X, y, privateminmaxscaler__groups=who, bayesiannaivebayes__groups=who)
    assert [step.guarantee_.conditions for step in pipe] == [(COUNTED.format(3),)] * 2


def test_groups_reach_columns_and_folds():
    X, y, who = visits()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BayesianNaiveBayes(bounds=(0, 3), n_bins=4, classes=[0, 1], **PERSON)
    with sklearn.config_context(enable_metadata_routing=True):
        bins = PrivateKBinsDiscretizer(4, **PERSON).set_fit_request(groups=True)
        pipe = make_pipeline(
            make_column_transformer((bins, ["a", "b"])), model.set_fit_request(groups=True)
        )
        pipe.fit(frame, y, groups=who)
        (inner,) = [step for _, step, _ in pipe[0].transformers_ if hasattr(step, "guarantee_")]
        assert inner.guarantee_.conditions == (COUNTED.format(3),)
        scores = cross_val_score(pipe, frame, y, cv=GroupKFold(3), params={"groups": who})
    assert scores.mean() > 0.6


def test_a_ledger_has_one_unit_for_steps_too():
    X, y, who = visits()
    ledger = BudgetAccountant()
    PrivateMinMaxScaler(accountant=ledger, **PERSON).fit(X, groups=who)
    with pytest.raises(ValueError, match="unit"):
        BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], accountant=ledger).fit(X, y)


@whom
@pytest.mark.parametrize("bins", [8, None])
def test_a_schema_is_learned_for_persons(whom, bins):
    X, y, who = visits(3000)
    frame = pd.DataFrame(X[:, :1], columns=["wage"])
    frame["job"] = np.where(y, "nurse", "clerk")
    frame.loc[7, "job"] = "astronaut"
    ledger = BudgetAccountant(delta=1e-6)
    schema = Schema.learn(
        frame,
        3.0,
        target=COIN,
        bins=bins,
        delta=1e-6,
        groups=labels(whom, who),
        accountant=ledger,
        verbose=False,
        **whom,
    )
    assert schema.columns["job"].values == ("clerk", "nurse", "other")
    assert schema.guarantee.privacy_unit == whom["privacy_unit"]
    assert len(ledger) == 1 + (whom["privacy_unit"].size_is_secret)
    assert ledger.total().epsilon == 3
    model = BayesianNaiveBayes(schema=schema, **whom).fit(frame, y, groups=labels(whom, who))
    assert "another unit" not in str(model.guarantee_)
    assert "another unit" in str(BayesianNaiveBayes(schema=schema).fit(frame, y).guarantee_)


@whom
def test_a_tree_is_learned_for_persons(whom):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (2000, 1)) ^ (rng.random((2000, 3)) < [0, 0.02, 0.5])
    y, who = rng.integers(0, 2, 2000), np.repeat(np.arange(500), 4)
    schema = Schema(dict.fromkeys("abc", COIN), COIN)
    ledger = BudgetAccountant(epsilon=2)
    parents = tree_augmented(
        x.astype(int), y, schema, epsilon=2, groups=labels(whom, who), accountant=ledger, **whom
    )
    assert parents["b"] == ["class", "a"]
    assert len(ledger) == 1
    model = BayesianNetworkClassifier(parents=parents, schema=schema, **whom)
    model.fit(x.astype(int), y, groups=labels(whom, who))
    assert "another unit" not in str(model.guarantee_)


@pytest.mark.parametrize("whom", [{"groups": [0, 1]}, ADDED, PERSON], ids=str)
def test_an_exact_tree_protects_nobody(whom):
    schema = Schema(dict.fromkeys("ab", COIN), COIN)
    with pytest.raises(ValueError, match="give epsilon"):
        tree_augmented([[0, 1], [1, 0]], [0, 1], schema, **whom)


@whom
@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
def test_nothing_exact_survives(model, whom):
    X, y, who = visits(400)
    seen = []

    def watched(release, plan, statistics, noise):
        seen.append(statistics)
        return release(plan, statistics, noise)

    with boundary(watched):
        fitted = clone(model).set_params(epsilon=0.1, **whom).fit(X, y, groups=labels(whom, who))
    secrets = {"a column": X[:, 0], "sorted": np.sort(X[:, 1]), "persons": who}
    if hasattr(seen[-1], "scores"):
        secrets["scores"] = seen[-1].scores
    assert leaks(fitted, secrets) == []


def test_ranges_are_found_with_a_secret_number_of_records():
    """Half the noise of the quantiles makes up for what the number of records costs."""
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, (2000, 1))
    for neighbours in ("replace", "add_remove"):
        ends = []
        for seed in range(20):
            scaler = PrivateMinMaxScaler(
                0.5, privacy_unit=PrivacyUnit("record", neighbours=neighbours), random_state=seed
            ).fit(X)
            ends.append([scaler.data_min_[0], scaler.data_max_[0]])
        low, high = np.median(ends, axis=0)
        assert 15 < low < 32
        assert 68 < high < 85


def test_intervals_of_dates_are_learned_for_persons():
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(3000) % 700, unit="D")
    frame = pd.DataFrame({"day": days})
    schema = Schema.learn(frame, 2.0, groups=np.arange(3000) // 2, verbose=False, **PERSON)
    assert isinstance(schema.columns["day"], Interval)
    assert schema.columns["day"].dates
