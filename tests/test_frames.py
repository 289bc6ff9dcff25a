"""Data frames of pandas and polars go in, and the names of their columns stay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
)

rng = np.random.default_rng(0)
DATA = {
    "age": rng.uniform(20, 60, 100).tolist(),
    "job": rng.choice(["clerk", "nurse"], 100).tolist(),
    "kids": rng.integers(0, 4, 100).tolist(),
}
LABELS, WAGES = rng.choice(["no", "yes"], 100).tolist(), rng.uniform(0, 1, 100).tolist()
NAMES = [*DATA]
COLUMNS = {
    "age": Interval(20, 60, bins=3),
    "job": Categories(["clerk", "nurse"]),
    "kids": Interval(0, 3, bins=4),
}
CLASSES = Schema(COLUMNS, target=Categories(["no", "yes"]))
MODELS = {
    "naive": (BayesianNaiveBayes(schema=CLASSES), LABELS),
    "network": (
        BayesianNetworkClassifier(schema=CLASSES, parents={"age": ["job", "class"]}),
        LABELS,
    ),
    "linear": (BayesianLinearRegression(schema=Schema(COLUMNS, target=Interval(0, 1))), WAGES),
    "search": (
        PrivateSearchCV(BayesianNaiveBayes(schema=CLASSES), {"alpha": [1.0, 2.0]}, epsilon=3),
        LABELS,
    ),
}
libraries = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


@libraries
@pytest.mark.parametrize("kind", MODELS)
def test_names_are_kept_and_asked_for(library, kind):
    model, target = MODELS[kind]
    X = library.DataFrame(DATA)
    model.fit(X, library.Series(target))
    assert model.feature_names_in_.tolist() == NAMES
    assert len(model.predict(X)) == 100
    again = model.predict(X[["job", "age", "kids"]])  # any order: columns go by name
    assert np.array_equal(again, model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["job", "age"]])


@libraries
def test_schemas_go_by_name_not_by_place(library):
    X = library.DataFrame({name: DATA[name] for name in ("kids", "age", "job")})
    model = BayesianNaiveBayes(np.inf, schema=CLASSES).fit(X, LABELS)
    assert [*model.schema_.columns] == ["kids", "age", "job"]
    same = BayesianNaiveBayes(np.inf, schema=CLASSES).fit(library.DataFrame(DATA), LABELS)
    np.testing.assert_allclose(
        model.predict_proba(X), same.predict_proba(library.DataFrame(DATA)), rtol=1e-12
    )


@libraries
def test_both_libraries_mean_the_same(library):
    X = library.DataFrame(DATA)
    model = BayesianNaiveBayes(schema=CLASSES, random_state=0).fit(X, LABELS)
    array = np.array([*zip(*DATA.values(), strict=True)], dtype=object)
    plain = BayesianNaiveBayes(schema=CLASSES, random_state=0).fit(array, LABELS)
    assert (model.predict_proba(X) == plain.predict_proba(array)).all()


@libraries
def test_batches_keep_the_names(library):
    X = library.DataFrame(DATA)
    model = BayesianNaiveBayes(schema=CLASSES).partial_fit(X, LABELS).partial_fit(X, LABELS)
    assert model.feature_names_in_.tolist() == NAMES


@libraries
def test_one_column_of_a_frame_is_read_as_a_series_is(library):
    jobs = library.DataFrame(DATA)[["job"]]
    model = DirichletMultinomial(categories=["clerk", "nurse"]).fit(jobs)
    assert model.feature_names_in_.tolist() == ["job"]
    assert np.isfinite(model.score(jobs))
    model.fit(library.DataFrame(DATA)["job"])
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 1
    assert BetaBinomial().fit(library.Series([True, False] * 20)).n_features_in_ == 1


def test_an_array_has_the_names_of_the_schema():
    array = np.array([*zip(*DATA.values(), strict=True)], dtype=object)
    for kind in ("naive", "linear"):
        model, target = MODELS[kind]
        assert [*model.fit(array, target).schema_.columns] == NAMES
