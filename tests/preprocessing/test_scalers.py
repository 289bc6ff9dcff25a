"""The transformers: ranges learned from any column, public domains out, one charge for each fit."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from benchmarks.audit.tools.replaying import CHOKE_POINT, DRAWS, replay
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError, from_json
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)

ALL = [
    PrivateMinMaxScaler(),
    PrivateMinMaxScaler(feature_range=(-1, 1), bounds=(0, 50)),
    PrivateStandardScaler(clip=2.5),
    PrivateKBinsDiscretizer(4),
    PrivateKBinsDiscretizer(5, strategy="uniform"),
]
DOMAINS = [(0, 1), (-1, 1), (-2.5, 2.5), (0, 3), (0, 4)]
ODD = np.array([[np.nan, 1e308], [np.inf, -0.0], [-np.inf, 5e-324], [3.0, 1.0], [4.0, -1e308]])
RNG = np.random.default_rng(0)


@pytest.fixture
def X():
    return np.stack([RNG.normal(20, 5, 3000), RNG.lognormal(3, 1, 3000)], axis=1)


@pytest.mark.parametrize(("model", "domain"), zip(ALL, DOMAINS, strict=True), ids=repr)
def test_the_output_has_a_public_domain_whatever_comes_in(model, domain, X):
    for fitted in (model.fit(X), model.fit(ODD)):
        for data in (X, ODD, ODD.astype(object), [["old", None], [10**400, "3"]]):
            out = np.asarray(fitted.transform(data), float)
            assert np.isfinite(out).all()
            assert domain[0] <= out.min() <= out.max() <= domain[1]


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_codes_and_numbers_come_back(model, X):
    model.set_params(epsilon=float("inf")).fit(X)
    there = model.transform(X)
    back = model.inverse_transform(there)
    assert np.array_equal(model.transform(back), there) or np.allclose(model.transform(back), there)
    with pytest.raises(ValueError, match="features, but"):
        model.inverse_transform([[0.0]])


def test_exact_ranges_are_scikit_learns():
    X = np.arange(1.0, 102.0)[:, None]
    ours = PrivateMinMaxScaler(float("inf"), quantiles=(0.0, 1.0)).fit(X)
    assert np.allclose(ours.transform(X), MinMaxScaler().fit_transform(X))


def test_bins_hold_about_as_many_records_each(X):
    codes = PrivateKBinsDiscretizer(8, epsilon=2.0, random_state=0).fit_transform(X)
    assert codes.dtype == np.uint8
    shares = np.stack([np.bincount(codes[:, j], minlength=8) / len(X) for j in range(2)])
    assert shares.min() > 0.09
    assert shares.max() < 0.16


def test_n_bins_may_differ_between_columns(X):
    model = PrivateKBinsDiscretizer([2, 300], epsilon=float("inf")).fit(X)
    codes = model.transform(X)
    assert codes.dtype == np.uint16
    assert codes.max(axis=0).tolist() == [1, 299]
    with pytest.raises(ValueError, match="one for each of the 2 features"):
        PrivateKBinsDiscretizer([2, 3, 4]).fit(X)


def test_dates_and_frames_keep_their_names():
    rng = np.random.default_rng(5)
    days = [date(2020, 1, 1) + timedelta(days=int(k)) for k in rng.integers(0, 1000, 2000)]
    frame = pd.DataFrame({"day": pd.to_datetime(days), "age": rng.integers(18, 90, 2000)})
    model = PrivateMinMaxScaler(random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert out.columns.tolist() == ["day", "age"]
    assert 0.2 < out["day"].mean() < 0.8
    low = pd.Timestamp(model.data_min_[0], unit="s")
    assert pd.Timestamp("2019-01-01") < low < pd.Timestamp("2020-06-01")


def test_a_column_of_text_is_refused_by_its_type_before_anything_is_spent():
    ledger = BudgetAccountant()
    frame = pd.DataFrame({"job": pd.Series(["nurse", "clerk"], dtype="string"), "age": [3, 4]})
    with pytest.raises(ValueError, match="text in the column 'job'") as caught:
        PrivateMinMaxScaler(accountant=ledger).fit(frame)
    assert "nurse" not in str(caught.value)
    assert len(ledger) == 0


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_a_fit_is_charged_once_and_promises_that(model, X):
    ledger = BudgetAccountant(1.0)
    fitted = model.set_params(epsilon=0.6, accountant=ledger).fit(X)
    (entry,) = ledger
    assert (entry.epsilon, fitted.guarantee_.epsilon) == (0.6, 0.6)
    assert type(model).__name__ in entry.label
    with pytest.raises(BudgetError):
        fitted.fit(X)


@pytest.mark.parametrize("model", ALL, ids=repr)
@pytest.mark.parametrize("freeze", [CHOKE_POINT, DRAWS])
def test_a_neighbour_differs_in_nothing_but_the_release(model, freeze):
    rng = np.random.default_rng(1)
    model.set_params(epsilon=0.5, accountant=None)
    for _ in range(10):
        X = ODD.astype(float)[rng.integers(0, 5, rng.integers(1, 9))]
        other = X.copy()
        other[rng.integers(len(X))] = rng.choice([np.nan, 7.0, np.inf, -3e300, 0.0], 2)
        found = replay(model, X, None, other, None, freeze=freeze)
        assert found.sound, found.divergences
        assert found.status == "fitted"
        assert found.epsilon == 0.5
        assert all(shift.sensitivity == 1 for shift in found.shifts)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_no_record_survives(model, X):
    fitted = model.set_params(epsilon=0.1, accountant=None).fit(X)
    assert leaks(fitted, {"a column": X[:, 0], "sorted": np.sort(X[:, 1])}) == []


def test_with_a_classifier_nothing_downstream_needs_to_be_told(X):
    y = (X[:, 1] > np.median(X[:, 1])).astype(int)
    ledger = BudgetAccountant()
    pipe = make_pipeline(
        PrivateKBinsDiscretizer(8, epsilon=0.2, accountant=ledger, random_state=0),
        BayesianNaiveBayes(
            0.8, bounds=(0, 7), n_bins=8, classes=[0, 1], accountant=ledger, random_state=0
        ),
    ).fit(X, y)
    assert float(ledger.total().epsilon) == 1.0
    assert np.mean(pipe.predict(X) == y) > 0.85
    assert pipe[-1].guarantee_.conditions == pipe[0].guarantee_.conditions


def test_in_a_search_and_by_column(X):
    y = (X[:, 0] > 20).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b"])
    columns = make_column_transformer((PrivateKBinsDiscretizer(4), ["a", "b"]))
    model = make_pipeline(columns, BayesianNaiveBayes(bounds=(0, 3), n_bins=4, classes=[0, 1]))
    grid = {"columntransformer__privatekbinsdiscretizer__strategy": ["quantile", "uniform"]}
    found = GridSearchCV(model, grid, cv=2).fit(frame, y)
    assert found.best_score_ > 0.7


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"quantiles": (0.6, 0.9)}, "low < 0.5 < high"),
        ({"quantiles": (0.1, 0.2, 0.9)}, "tuple"),
        ({"quantiles": (-0.1, 0.9)}, "from 0 to 1"),
        ({"feature_range": (1, 0)}, "low < high"),
        ({"feature_range": ("a", "b")}, "feature_range"),
        ({"bounds": (0, [1, 2, 3])}, "bounds"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_spent(options, text, X):
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match=text):
        PrivateMinMaxScaler(accountant=ledger, **options).fit(X)
    assert len(ledger) == 0


@pytest.mark.parametrize("model", ALL, ids=repr)
@pytest.mark.parametrize("epsilon", [0.5, float("inf")])
def test_a_transformer_comes_back_from_json(model, epsilon, X):
    frame = pd.DataFrame(X, columns=["age", "wage"])
    for data in (X, frame):
        fitted = clone(model).set_params(epsilon=epsilon, random_state=3).fit(data)
        again = from_json(fitted.to_json())
        assert type(again) is type(fitted)
        assert again.guarantee_ == fitted.guarantee_
        assert again.random_state is None
        assert np.array_equal(again.transform(data), fitted.transform(data))
        assert np.array_equal(again.get_feature_names_out(), fitted.get_feature_names_out())


def test_other_numbers_in_json_are_refused(X):
    bins = PrivateKBinsDiscretizer(3).fit(X)
    standard = PrivateStandardScaler().fit(X)
    minmax = PrivateMinMaxScaler(bounds=(0, [50, 60])).fit(X)
    for model, answers in (
        (bins, [[1.0, 2.0]]),
        (bins, [[1.0, 2.0], [1.0]]),
        (bins, [[1.0, 2.0], [2.0, 1.0]]),
        (bins, [[1.0, 2.0], [1.0, "2"]]),
        (standard, [[1.0, 2.0], [1.0, -2.0]]),
        (minmax, [[1.0, 2.0], [3.0, 2.0]]),
        (minmax, [[1.0, 2.0]] * 3),
    ):
        document = json.loads(model.to_json())
        document["fitted"]["_answers"] = answers
        with pytest.raises(ValueError, match="not a released model"):
            from_json(json.dumps(document))
    document = json.loads(minmax.to_json())
    document["fitted"]["feature_names_in_"] = ["age"]
    with pytest.raises(ValueError, match="names of the columns"):
        from_json(json.dumps(document))


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_dask_collections_are_like_arrays(model, X):
    dask = pytest.importorskip("dask.array")
    there = dask.from_array(X, chunks=(700, 1))
    here = clone(model).set_params(random_state=0).fit(X)
    fitted = clone(model).set_params(random_state=0).fit(there)
    assert fitted._answers == here._answers
    transformed = fitted.transform(there)
    assert transformed.dtype == here.transform(X).dtype
    assert np.array_equal(transformed.compute(), here.transform(X))
