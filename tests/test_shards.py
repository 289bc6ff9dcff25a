"""Shards: merged they are all records at once; sensitive, so never pickled and never kept."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.shards import ExactStatistics, merge

RNG = np.random.default_rng(0)
N = 600
X = RNG.random((N, 3))
Y = RNG.integers(0, 3, N)
TARGET = X.sum(axis=1)
NAMED = pd.DataFrame(X, columns=["a", "b", "c"])
SCHEMA = Schema({name: Interval(0, 1, bins=3) for name in "abc"}, Categories([0, 1, 2]))


def classifier(**options: Any) -> BayesianNaiveBayes:
    return BayesianNaiveBayes(
        **{"bounds": (0, 1), "n_bins": 3, "classes": [0, 1, 2], "temperature": 1}
        | {"random_state": 0}
        | options
    )


def regression(**options: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(
        **{"bounds_X": (0, 1), "bounds_y": (0, 3), "random_state": 0, **options}
    )


def shards(model: Any, y: Any, *cuts: int, data: Any = X) -> list[ExactStatistics]:
    ends = [0, *sorted(cuts), N]
    return [model.exact_statistics(data[a:b], y[a:b]) for a, b in pairwise(ends) if b > a]


@given(st.lists(st.integers(1, N - 1), max_size=4), st.randoms())
def test_counts_of_shards_are_counts_of_all(cuts: list[int], order: Any) -> None:
    parts = shards(classifier(), Y, *cuts)
    order.shuffle(parts)
    whole = classifier().exact_statistics(X, Y)
    merged = merge(parts)
    assert merged.n == N
    pairs = zip(merged._sums.tables, whole._sums.tables, strict=True)
    assert all((a == b).all() and a.dtype == b.dtype for a, b in pairs)


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler", "map"])
@pytest.mark.parametrize("make", [classifier, regression])
def test_a_fit_to_merged_shards_is_a_fit_to_all_records(make: Any, mechanism: str) -> None:
    y = Y if make is classifier else TARGET
    model = make(mechanism=mechanism)
    expected = model.fit(X, y).predict(X)
    fitted = make(mechanism=mechanism)
    result = fitted.fit_statistics(merge(shards(model, y, 7, 100)))
    assert result is fitted
    assert (fitted.predict(X) == expected).all()
    assert fitted.n_features_in_ == 3
    assert fitted.guarantee_.epsilon == model.guarantee_.epsilon
    assert any("shards" in condition for condition in fitted.guarantee_.conditions)


def test_every_nth_residual_is_the_same_record_in_shards() -> None:
    model = regression(epsilon=1000.0)  # so large that only each 30th residual is asked for
    whole = model.fit(X, TARGET).posterior_.noise_variance
    parts = merge(shards(model, TARGET, 11, 302, 303))
    assert model.fit_statistics(parts).posterior_.noise_variance == whole


def test_one_release_is_charged_once_and_shards_cost_nothing() -> None:
    ledger = BudgetAccountant(1.0)
    model = classifier(accountant=ledger)
    merged = merge(shards(model, Y, 50))
    assert len(ledger) == 0
    model.fit_statistics(merged)
    assert (ledger.total().epsilon, len(ledger)) == (1, 1)
    with pytest.raises(BudgetError):
        model.fit_statistics(merged)
    assert len(ledger) == 1


def test_names_of_columns_come_with_the_shards() -> None:
    model = BayesianNaiveBayes(schema=SCHEMA, temperature=1, random_state=0).fit(X, Y)
    parts = shards(model, Y, 9, data=NAMED)
    model.fit_statistics(merge(parts))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    model.fit_statistics(merge(shards(model, Y, 9)))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("save", [pickle.dumps, copy.copy, copy.deepcopy, joblib.hash])
def test_exact_statistics_refuse_to_be_pickled(save: Any) -> None:
    shard = classifier().exact_statistics(X, Y)
    with pytest.raises(TypeError, match="sensitive"):
        save(shard)
    model = classifier()
    model.kept = shard
    with pytest.raises(TypeError, match="sensitive"):
        pickle.dumps(model)


def test_a_fitted_estimator_keeps_no_exact_statistics() -> None:
    for make, y in ((classifier, Y), (regression, TARGET)):
        model, merged = make(), merge(shards(make(), y, 9))
        stored = pickle.dumps(model.fit_statistics(merged))
        assert len(stored) == len(pickle.dumps(make().fit_statistics(merged)))
        assert not any(isinstance(value, ExactStatistics) for value in vars(model).values())
        assert b"CountTables" not in stored
        assert b"LocalRecords" not in stored


def test_they_say_that_they_are_sensitive_and_no_more() -> None:
    text = repr(classifier().exact_statistics(X, Y))
    assert text == "<ExactStatistics: counts of n=600 records, SENSITIVE>"


@pytest.mark.parametrize(
    "other",
    [
        {"n_bins": 2},
        {"bounds": (0, 2)},
        {"classes": [0, 1, 2, 3]},
        {"classes": [2, 1, 5]},
        {"bounds": None, "schema": SCHEMA},
    ],
)
def test_shards_of_other_domains_are_refused(other: dict[str, Any]) -> None:
    mine, theirs = classifier(), classifier(**other)
    pair = [mine.exact_statistics(X[:9], Y[:9]), theirs.exact_statistics(X[9:], Y[9:])]
    with pytest.raises(ValueError, match="same"):
        merge(pair)
    with pytest.raises(ValueError, match="another model"):
        mine.fit_statistics(pair[1])


def test_columns_in_another_order_are_refused() -> None:
    model = BayesianNaiveBayes(schema=SCHEMA, temperature=1)
    other = model.exact_statistics(NAMED[["b", "a", "c"]], Y)
    with pytest.raises(ValueError, match="same order"):
        merge([model.exact_statistics(NAMED, Y), other])


def test_statistics_of_another_structure_are_refused() -> None:
    star = classifier().exact_statistics(X, Y)
    chain = BayesianNetworkClassifier(
        parents={0: [1]}, bounds=(0, 1), n_bins=3, classes=[0, 1, 2], temperature=1
    ).exact_statistics(X, Y)
    with pytest.raises(ValueError, match="networks"):
        merge([star, chain])
    with pytest.raises(ValueError, match="another model"):
        classifier().fit_statistics(chain)
    with pytest.raises(ValueError, match="another model"):
        regression(fit_intercept=False).fit_statistics(regression().exact_statistics(X, TARGET))
    with pytest.raises(ValueError, match="models"):
        merge(
            [
                regression(fit_intercept=False).exact_statistics(X, TARGET),
                regression().exact_statistics(X, TARGET),
            ]
        )


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (classifier(n_bins="auto"), "n_bins"),
        (classifier(bounds=None), "bounds"),
        (classifier(classes=None), "classes"),
        (classifier(bounds=None, schema=Schema({"a": Interval(0, 1)}), n_bins="auto"), "n_bins"),
        (regression(bounds_X=None), "bounds_X"),
        (regression(bounds_y=None), "bounds_y"),
    ],
)
def test_what_is_not_declared_is_not_read_from_a_shard(model: Any, parameter: str) -> None:
    with pytest.raises(ValueError, match=parameter):
        model.exact_statistics(X, Y)


@pytest.mark.parametrize("given_", [[], [X], "ab", [1]])
def test_merge_takes_exact_statistics_only(given_: Any) -> None:
    with pytest.raises(TypeError, match="exact_statistics"):
        merge(given_)


def test_a_shard_that_was_merged_before_is_refused() -> None:
    for make, y in ((classifier, Y), (regression, TARGET)):
        first, second = shards(make(), y, 2)
        with pytest.raises(ValueError, match="twice"):
            merge([merge([first]), first])
        with pytest.raises(ValueError, match="twice"):
            merge([merge([first, second]), merge([second])])
        assert merge([merge([first]), second]).n == len(y)


def test_a_shard_that_was_sent_twice_is_refused() -> None:
    first, second = shards(classifier(), Y, 2)
    sent = ExactStatistics.from_bytes(merge([first, second]).to_bytes())
    for again in (first, sent, ExactStatistics.from_bytes(second.to_bytes())):
        with pytest.raises(ValueError, match="twice"):
            merge([sent, again])


def test_a_shard_given_twice_is_refused() -> None:
    shard = classifier().exact_statistics(X, Y)
    with pytest.raises(ValueError, match="twice"):
        merge([shard, shard])


def test_fit_statistics_takes_exact_statistics_only() -> None:
    with pytest.raises(TypeError, match="exact_statistics"):
        classifier().fit_statistics(X)


def test_counts_travel_as_bytes() -> None:
    model = BayesianNaiveBayes(schema=SCHEMA, temperature=1, random_state=0)
    parts = shards(model, Y, 200, data=NAMED)
    sent = [ExactStatistics.from_bytes(part.to_bytes()) for part in parts]
    expected = model.fit(NAMED, Y).predict_proba(NAMED)
    assert (model.fit_statistics(merge(sent)).predict_proba(NAMED) == expected).all()
    with pytest.raises(TypeError, match="regression"):
        regression().exact_statistics(X, TARGET).to_bytes()


def test_records_without_a_class_travel_as_bytes() -> None:
    labels = np.where(np.arange(N) % 7, Y, np.nan)
    sent = [ExactStatistics.from_bytes(s.to_bytes()) for s in shards(classifier(), labels, 200)]
    assert merge(sent).n == N
    expected = classifier().fit(X, labels).predict_proba(X)
    assert (classifier().fit_statistics(merge(sent)).predict_proba(X) == expected).all()


def forged(content: bytes, counts: Any = lambda c: c, **fields: Any) -> bytes:
    """Return the bytes of statistics with other counts, or other fields of the header."""
    head, _, tail = content.partition(b"\n")
    known = json.loads(head)
    fields = {name: f(known[name]) if callable(f) else f for name, f in fields.items()}
    cells = np.asarray(counts(np.frombuffer(tail, "<i8").copy()))
    return json.dumps({**known, **fields}).encode() + b"\n" + cells.tobytes()


def moved(counts: Any) -> Any:
    """Return the same totals with one cell below 0."""
    counts[:2] += np.array([-1, 1]) * (counts[0] + 1)
    return counts


WRAPPED = 2**62  # four times this is 0 in 64 bits


def wrapped(counts: Any) -> Any:
    counts[:4] += WRAPPED
    return counts


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: b"",
        lambda c: b"CANARY",
        lambda c: None,
        lambda c: c[:-30],
        lambda c: c + bytes(8),
        lambda c: pickle.dumps([1]),
        lambda c: b"[" * 10**6,
        lambda c: forged(c, moved),
        lambda c: forged(c, wrapped),
        lambda c: forged(c, wrapped, n=2**63 - 1),
        lambda c: forged(c, lambda counts: counts.astype(np.int16)),
        lambda c: forged(c, n=N - 1),
        lambda c: forged(c, n=float(N)),
        lambda c: forged(c, max_weight=2.0),
        lambda c: forged(c, names=["a"]),
        lambda c: forged(c, parents=lambda p: p[:-1]),
        lambda c: forged(c, shards=[1]),
        lambda c: forged(c, schema=lambda s: s.replace('"bins": 3', '"bins": 60000')),
    ],
)
def test_other_bytes_are_refused(wrong: Any) -> None:
    content = classifier().exact_statistics(X, Y).to_bytes()
    assert forged(content) == content
    given_ = wrong(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match="not written by") as raised:
        ExactStatistics.from_bytes(given_)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert most < 2**25


def test_statistics_of_weighted_records_need_the_noise_of_their_weights() -> None:
    weighted, plain = classifier(max_weight=50), classifier()
    counts = weighted.exact_statistics(X, Y, sample_weight=np.full(N, 50))
    sent = ExactStatistics.from_bytes(counts.to_bytes())
    for statistics in (counts, sent, merge([sent])):
        for model in (plain, classifier(max_weight=1)):
            with pytest.raises(ValueError, match="computed with max_weight=50"):
                model.fit_statistics(statistics)
        weighted.fit_statistics(statistics)
    with pytest.raises(ValueError, match="max_weight"):
        merge([counts, plain.exact_statistics(X, Y)])
    with pytest.raises(ValueError, match="computed with max_weight=None"):
        weighted.fit_statistics(plain.exact_statistics(X, Y))
