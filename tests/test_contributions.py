"""Contributions add up to predictions, and their bands hold the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    ContributionDisplay,
    Interval,
    Schema,
)
from dpbayes_sklearn.mechanisms import Sampler

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": RNG.uniform(0, 10, 3000),
        "b": RNG.choice(list("xyz"), 3000),
        "c": RNG.choice(["n", "y"], 3000),
    }
)
TABLE.loc[::7, "a"] = np.nan
SCHEMA = Schema(
    {
        "a": Interval(0, 10, bins=5, missing="indicator"),
        "b": Categories([*"xyz"]),
        "c": Categories([*"ny"]),
    }
)
SCORE = TABLE["a"].fillna(5) - 5 + 3 * (TABLE["b"] == "z") + RNG.normal(size=3000)


def classifier(n_classes=2, **options):
    y = np.digitize(SCORE, [0.0] if n_classes == 2 else [-1.0, 2.0])
    options = {"epsilon": 2.0, "random_state": 0, **options}
    return BayesianNaiveBayes(schema=SCHEMA, classes=range(n_classes), **options).fit(TABLE, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 1},
        {"inference": "plug_in"},
        {"mechanism": "map"},
        {"mechanism": "sampler"},
        {"mechanism": "fourier"},
        {"epsilon": np.inf},
    ],
    ids=str,
)
def test_log_odds_of_two_classes(options):
    model = classifier(**options)
    found = model.contributions(TABLE)
    joint = model.predict_joint_log_proba(TABLE)
    np.testing.assert_allclose(found.total, joint[:, 1] - joint[:, 0], atol=1e-9)
    assert found.values.shape == (3000, 3)
    assert found.names == ("a", "b", "c")
    assert found.what == "log-odds of 1"


def test_three_classes_have_one_number_each():
    model = classifier(3)
    found = model.contributions(TABLE)
    joint = model.predict_joint_log_proba(TABLE)
    np.testing.assert_allclose(found.total, joint - joint.mean(axis=1, keepdims=True), atol=1e-9)
    assert (model.classes_[found.total.argmax(axis=1)] == model.predict(TABLE)).all()
    assert found.to_frame().shape == (3000, 9)
    assert model.effect("b").value.shape == (3, 3)


def test_averages_over_draws_are_no_sums():
    model = classifier(mechanism=Sampler(n_samples=2))
    with pytest.raises(ValueError, match="averages over several draws"):
        model.contributions(TABLE)

    assert "## Contributions" not in model.card()


def test_sparse_rows():
    X = csr_matrix((RNG.random((50, 6)) < 0.2).astype(float))
    y = np.arange(50) % 2
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2).fit(X, y)
    dense = model.contributions(X.toarray())
    np.testing.assert_array_equal(model.contributions(X).values, dense.values)


@pytest.mark.parametrize("mechanism", ["laplace", "map", "sampler"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_regression_adds_up_in_units_of_the_target(mechanism, intercept):
    model = BayesianLinearRegression(
        2.0,
        schema=SCHEMA,
        bounds_y=(-15, 15),
        mechanism=mechanism,
        fit_intercept=intercept,
        random_state=0,
    ).fit(TABLE, SCORE)
    found = model.contributions(TABLE)
    np.testing.assert_allclose(found.total, model.predict(TABLE), atol=1e-9)
    for name in TABLE:
        effect = model.effect(name)
        rows = TABLE[TABLE["a"].notna()].head(40)
        at = rows[name].to_numpy()
        own = found.values[rows.index][:, list(TABLE).index(name)]
        if name == "a":
            np.testing.assert_allclose(np.interp(at, effect.places, effect.value), own, atol=0.2)
        else:
            values = dict(zip(effect.labels, effect.value, strict=True))
            np.testing.assert_allclose([values[label] for label in at], own, atol=1e-9)
        assert np.isnan(effect.low).all() == (mechanism != "laplace")


def test_bands_of_naive_bayes_hold_the_truth():
    """Of 40 releases, at least 85 % of the bands hold the log-odds of the population."""
    hits, rng = [], np.random.default_rng(1)
    p = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    for seed in range(40):
        y = rng.integers(0, 2, 800)
        X = np.array([rng.choice(3, p=p[c]) for c in y])[:, None]
        model = BayesianNaiveBayes(
            1.0, classes=[0, 1], bounds=(0, 2), n_bins=3, temperature=1, random_state=seed
        ).fit(X, y)
        effect = model.effect(0)
        truth = np.log(p[1] / p[0])
        hits.append((effect.low <= truth) & (truth <= effect.high))
    assert np.mean(hits) > 0.85


def test_a_column_is_given_by_name_or_number():
    model = classifier()
    assert model.effect(1).name == model.effect("b").name == "b"
    for wrong in ("d", 3, -1, None):
        with pytest.raises(ValueError, match="feature must be the name of a column"):
            model.effect(wrong)


def test_figures():
    model = classifier(3)
    bars = ContributionDisplay.from_record(model, TABLE.head(1), n_features=1)
    assert bars.ax_.get_yticklabels()[0].get_text() == "baseline"
    assert bars.ax_.get_xlabel() == model.contributions(TABLE.head(1)).what
    curve = ContributionDisplay.from_feature(model, "a")
    assert curve.ax_.get_xlabel() == "a"
    with pytest.raises(ValueError, match="one record"):
        ContributionDisplay.from_record(model, TABLE.head(2))


def test_the_card_lists_the_columns_that_matter():
    card = classifier().card()
    assert "## Contributions" in card
    assert "| a |" in card.partition("## Contributions")[2]
