"""PrivateSelectKBest: a selector of scikit-learn that finds what matters and tells nothing else."""

from __future__ import annotations

import json
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    check_set_output_transform,
    parametrize_with_checks,
)

from benchmarks.audit.tools.replaying import CHOKE_POINT, DRAWS, replay
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyLeakWarning,
    Schema,
    from_json,
)
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.feature_selection import PrivateSelectKBest, columns_for
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, (3000, 12))
LABELS = CODES[:, 3] ^ (RNG.random(3000) < 0.15)
DECLARED = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1]}


@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@parametrize_with_checks([PrivateSelectKBest(), PrivateSelectKBest("auto", bounds=(-5, 5))])
def test_scikit_learn_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "check",
    [
        check_dataframe_column_names_consistency,
        check_param_validation,
        check_set_output_transform,
    ],
)
def test_checks_that_are_not_among_them(check):
    check("PrivateSelectKBest", PrivateSelectKBest())


def test_the_column_that_matters_is_found_and_nothing_else_is_published():
    model = PrivateSelectKBest(1, epsilon=0.5, **DECLARED).fit(CODES, LABELS)
    assert model.get_support(indices=True).tolist() == [3]
    assert model.transform(CODES).shape == (3000, 1)
    assert not hasattr(model, "scores_")
    assert leaks(model, {"a column": CODES[:, 3], "labels": LABELS}) == []
    assert model.guarantee_.conditions == ()


def test_regression_and_text_in_a_frame():
    job = RNG.choice(["clerk", "nurse", "pilot"], 4000)
    frame = pd.DataFrame({"noise": RNG.random(4000), "job": job, "age": RNG.integers(18, 90, 4000)})
    wage = 1000.0 * (job == "pilot") + 100 * RNG.random(4000)
    columns = {
        "noise": Interval(0, 1),
        "job": Categories(["clerk", "nurse", "pilot"]),
        "age": Interval(18, 90),
    }
    schema = Schema(columns, target=Interval(0, 1200))
    model = PrivateSelectKBest(1, epsilon=1.0, schema=schema).fit(frame, wage)
    assert model.get_feature_names_out().tolist() == ["job"]
    assert model.transform(frame).columns.tolist() == ["job"]
    with pytest.warns(PrivacyLeakWarning, match="values of the target"):
        read = PrivateSelectKBest(1, schema=Schema(columns)).fit(frame, wage)
    assert "values of the target" in read.guarantee_.conditions[0]


def test_sparse_matrices_and_all_columns():
    model = PrivateSelectKBest(epsilon=5.0, **DECLARED).fit(csr_array(CODES), LABELS)
    assert model.get_support().all()
    assert model.transform(csr_array(CODES)).shape == CODES.shape


def test_dask_counts_where_the_records_are():
    dask = pytest.importorskip("dask.array")
    X, y = dask.from_array(CODES, chunks=(700, 12)), dask.from_array(LABELS, chunks=700)
    model = PrivateSelectKBest(1, epsilon=2.0, **DECLARED).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3]
    assert model.transform(X).compute().shape == (3000, 1)


@pytest.mark.parametrize("freeze", [CHOKE_POINT, DRAWS])
def test_a_neighbour_differs_in_nothing_but_the_release(freeze):
    model = PrivateSelectKBest(2, epsilon=0.5, bounds=(0, 2), n_bins=3, classes=[0, 1, 2])
    for _ in range(10):
        X, y = RNG.integers(0, 3, (7, 4)).astype(float), RNG.integers(0, 3, 7)
        X2, y2 = X.copy(), y.copy()
        X2[2], y2[2] = [np.nan, np.inf, 1e308, 1], RNG.integers(0, 9)
        found = replay(model, X, y, X2, y2, freeze=freeze)
        assert found.sound, found.divergences
        assert found.epsilon == 0.5


def test_in_a_pipeline_every_step_is_charged():
    ledger = BudgetAccountant()
    pipe = make_pipeline(
        PrivateSelectKBest(2, epsilon=0.3, **DECLARED),
        BayesianNaiveBayes(0.7, **DECLARED),
    )
    with ledger:
        pipe.fit(CODES, LABELS)
    assert [float(entry.epsilon) for entry in ledger] == [0.3, 0.7]
    assert np.mean(pipe.predict(CODES) == LABELS) > 0.8


def test_the_automatic_number_of_columns_is_a_public_rule():
    assert columns_for(Network.star([2] * 57, 2), 3200, 0.9) == 57
    assert columns_for(Network.star([8] * 60, 3), 2200, 0.9) == 11
    assert columns_for(Network.star([8] * 60, 3), 10, 0.1) == 1
    few = PrivateSelectKBest("auto", epsilon=0.001, **DECLARED).fit(CODES, LABELS)
    assert few.get_support().sum() == 1


def test_two_declarations_of_the_target_are_refused_before_anything_is_spent():
    ledger = BudgetAccountant()
    model = PrivateSelectKBest(bounds_y=(0, 1), accountant=ledger, **DECLARED)
    with pytest.raises(ValueError, match="either classes or bounds_y"):
        model.fit(CODES, LABELS)
    assert len(ledger) == 0


def test_nothing_to_select_is_refused_and_costs_nothing():
    ledger = BudgetAccountant()
    for k in (12, 100):
        with pytest.raises(ValueError, match=f"k={k} of 12 columns leaves nothing to select"):
            PrivateSelectKBest(k, accountant=ledger, **DECLARED).fit(CODES, LABELS)
    assert len(ledger) == 0


@pytest.mark.parametrize("k", [2, "auto", 11])
def test_it_comes_back_from_json(k):
    frame = pd.DataFrame(CODES).add_prefix("c")
    for data in (CODES, frame):
        fitted = PrivateSelectKBest(k, **DECLARED).fit(data, LABELS)
        again = from_json(fitted.to_json())
        assert again.guarantee_ == fitted.guarantee_
        assert np.array_equal(again.transform(data), fitted.transform(data))
        assert np.array_equal(again.get_feature_names_out(), fitted.get_feature_names_out())


@pytest.mark.parametrize("wrong", [[True], "all", [True] * 12, [False] * 12, [1] * 12])
def test_other_choices_in_json_are_refused(wrong):
    document = json.loads(PrivateSelectKBest(2, **DECLARED).fit(CODES, LABELS).to_json())
    document["fitted"]["_support"] = wrong
    with pytest.raises(ValueError, match="not a released model"):
        from_json(json.dumps(document))


def test_a_record_recodes_no_other_in_a_list() -> None:
    columns = {"a": Interval(0, 1), "b": Categories(["1.0", "2"])}
    schema = Schema(columns, target=Categories([0, 1]))
    rows, labels = [[0.5, 1.0], [0.25, 2.0], [1.0, 1.0]] * 20, [0, 1, 1] * 20
    select = PrivateSelectKBest(1, epsilon=5.0, schema=schema).fit(rows, labels)
    for odd in ("text", ["nested"], None, 10**400):
        changed = select.transform([*rows[:-1], [odd, odd]])
        assert changed[:-1].tolist() == select.transform(rows)[:-1].tolist()
    numbers = PrivateSelectKBest(1, epsilon=5.0, bounds=(0, 9), classes=[0, 1]).fit(rows, labels)
    assert numbers.transform([["text", 1.0], [2.0, "text"]]).dtype == np.float64


def test_dask_collections_are_like_arrays():
    dask = pytest.importorskip("dask.array")
    X, y = dask.from_array(CODES, chunks=(900, 12)), dask.from_array(LABELS, chunks=900)
    there = PrivateSelectKBest(2, random_state=0, **DECLARED).fit(X, y)
    here = PrivateSelectKBest(2, random_state=0, **DECLARED).fit(CODES, LABELS)
    assert np.array_equal(there.get_support(), here.get_support())
    assert np.array_equal(there.transform(X).compute(), here.transform(CODES))
    frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(CODES).add_prefix("c")
    lazy = frames.from_pandas(frame, npartitions=3)
    target = frames.from_pandas(pd.Series(LABELS), npartitions=3)
    there = PrivateSelectKBest(2, random_state=0, **DECLARED).fit(lazy, target)
    assert there.transform(lazy).compute().equals(here.fit(frame, LABELS).transform(frame))


def test_a_plain_grid_search_over_k_charges_every_step_of_every_fit():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 6))
    X[:, [1, 4]] += 1.5 * labels[:, None]
    coded = {"bounds": (0, 3), "n_bins": 4, "classes": [0, 1]}
    pipe = make_pipeline(
        PrivateKBinsDiscretizer(4, epsilon=4.0),
        PrivateSelectKBest(1, epsilon=4.0, **coded),
        BayesianNaiveBayes(4.0, temperature=1, inference="plug_in", **coded),
    )
    grid = {"privateselectkbest__k": [1, 2]}
    with (
        BudgetAccountant() as ledger,
        pytest.warns(PrivacyLeakWarning, match="Scores are computed from the data"),
    ):
        search = GridSearchCV(pipe, grid, cv=2).fit(X, labels)
    assert len(ledger) == (2 * 2 + 1) * 3
    assert ledger.total("sum").epsilon == 12.0 * 5
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    best = search.best_estimator_
    assert set(np.flatnonzero(best[1].get_support())) >= {1, 4}
    assert search.best_score_ > 0.8
    assert search.predict(X[:3]).shape == (3,)
