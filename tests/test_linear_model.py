"""The model of BayesianLinearRegression: exact without noise, careful with it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import (
    BayesianLinearRegression,
    Categories,
    Interval,
    Schema,
    mechanisms,
)

INF = float("inf")
MECHANISMS = ["laplace", "fourier", "sampler", "map"]


def records(n=500, d=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = X @ np.linspace(-0.3, 0.4, d) / np.sqrt(d) + 0.1 + rng.normal(size=n) * noise
    return X, y


def declared(epsilon=1.0, **params):
    return BayesianLinearRegression(epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), **params)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_without_noise_it_is_ridge(mechanism, intercept):
    X, y = records()
    model = declared(
        INF, prior_precision=7.0, noise_variance=0.3, mechanism=mechanism, fit_intercept=intercept
    )
    ridge = Ridge(alpha=2.1, fit_intercept=intercept).fit(X, y)
    assert_allclose(model.fit(X, y).predict(X), ridge.predict(X), rtol=0, atol=1e-9)
    assert_allclose(model.coef_, ridge.coef_, atol=1e-9)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=1e-9)


@pytest.mark.parametrize("bounds_y", [(-3, 9), (-50, 0.75)])
def test_bounds_of_the_target_change_nothing_without_noise(bounds_y):
    X, y = records()
    y = np.clip(y, *bounds_y)
    model = BayesianLinearRegression(INF, bounds_X=(-1, 1), bounds_y=bounds_y, noise_variance=0.2)
    assert_allclose(model.fit(X, y).predict(X), Ridge(alpha=0.2).fit(X, y).predict(X), atol=1e-9)


def test_the_prior_is_on_the_scale_of_the_bounds():
    X, y = records()
    wide = X * [1, 10, 100, 1000] + [0, 5, -7, 1]
    half = np.array([1.0, 10, 100, 1000])
    low, high = np.array([0, 5, -7, 1]) - half, np.array([0, 5, -7, 1]) + half
    model = BayesianLinearRegression(
        INF, bounds_X=(low, high), bounds_y=(-1, 1), noise_variance=0.5
    ).fit(wide, y)
    ridge = Ridge(alpha=0.5).fit(X, y)
    assert_allclose(model.predict(wide), ridge.predict(X), atol=1e-9)
    assert_allclose(model.coef_ * half, ridge.coef_, atol=1e-9)
    assert_allclose(wide @ model.coef_ + model.intercept_, model.predict(wide), atol=1e-9)


def frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    y = 0.1 * data["age"] + (data["job"] == "nurse") + 0.5 * (data["sex"] == "m")
    return data, y + rng.normal(size=n) * 0.1


SCHEMA = Schema(
    {
        "age": Interval(20, 60),
        "job": Categories(["clerk", "nurse", "smith"]),
        "sex": Categories(["f", "m"]),
    },
    target=Interval(0, 10),
)


def test_categories_are_one_hot_and_the_same_as_ridge_on_indicators():
    data, y = frame()
    model = BayesianLinearRegression(INF, schema=SCHEMA, noise_variance=0.01).fit(data, y)
    indicators = np.column_stack(
        [(data["age"] - 40) / 20, pd.get_dummies(data[["job", "sex"]]).to_numpy(float)]
    )
    ridge = Ridge(alpha=0.01).fit(indicators, y)
    assert_allclose(model.predict(data), ridge.predict(indicators), atol=1e-9)
    assert_allclose(model.coef_ * [20, 1, 1, 1, 1, 1], ridge.coef_, atol=1e-9)


@pytest.mark.parametrize(
    "make", [lambda f: pl.DataFrame(f.to_dict("list")), lambda f: f[["sex", "age", "job"]]]
)
def test_frames_of_any_kind_and_order(make):
    data, y = frame()
    model = BayesianLinearRegression(INF, schema=SCHEMA).fit(data, y)
    other = BayesianLinearRegression(INF, schema=SCHEMA).fit(make(data), y)
    assert_allclose(other.predict(make(data)), model.predict(data), atol=1e-9)


def test_predictions_stay_as_they_are_at_the_bounds():
    model = declared(INF).fit(*records())
    edge, outside = np.array([[1.0, -1, 0, 1]]), np.array([[9.0, -np.inf, np.nan, 1e300]])
    assert_array_equal(model.predict(edge), model.predict(outside))


def test_learned_noise_variance_makes_calibrated_intervals_without_noise():
    X, y = records(5000)
    mean, std = declared(INF).fit(X, y).predict(X, return_std=True)
    assert np.mean(np.abs(y - mean) < 1.96 * std) == pytest.approx(0.95, abs=0.01)
    assert np.median(std) == pytest.approx(0.1, rel=0.05)


def coverage(n, epsilon, repeats, d=4, noise=0.1, **params):
    hits = []
    for seed in range(repeats):
        X, y = records(n + 500, d, seed, noise)
        model = declared(epsilon, random_state=seed, **params).fit(X[:n], y[:n])
        mean, std = model.predict(X[n:], return_std=True)
        hits.append(np.mean(np.abs(y[n:] - mean) < 1.96 * std))
    return np.mean(hits)


@pytest.mark.parametrize(
    ("n", "epsilon", "d", "noise"),
    [(10_000, 1.0, 4, 0.05), (20_000, 1.0, 4, 0.1), (1000, 10.0, 4, 0.1)],
)
def test_intervals_are_calibrated(n, epsilon, d, noise):
    """95 % intervals of targets over 20 releases from enough records for the whole recipe."""
    assert 0.93 <= coverage(n, epsilon, 20, d, noise) <= 0.995


@pytest.mark.parametrize(
    ("n", "epsilon", "d"),
    [(100, 1.0, 4), (500, 0.1, 4), (1000, 0.5, 4), (20, 1.0, 4), (2000, 1.0, 10), (400, 10.0, 4)],
)
def test_intervals_of_few_records_do_not_promise_far_too_much(n, epsilon, d):
    assert coverage(n, epsilon, 20, d, 0.1 if d < 10 else 0.2) >= 0.85


def test_targets_of_few_records_are_not_said_to_be_beyond_their_bounds():
    """The unseen tails of a noisy histogram end where the bounds do."""
    X, y = records(2000)
    for seed in range(5):
        deviations = declared(random_state=seed).fit(X, y).predict(X, return_std=True)[1]
        assert deviations.max() < 1


@pytest.mark.parametrize("d", [2, 10, 40, 75])
def test_it_never_blows_up(d):
    """R² >= -0.2 at n epsilon >= 1000 however many columns there are."""
    for seed in range(5):
        X, y = records(3000, d, seed)
        model = declared(1.0, random_state=seed).fit(X[:1000], y[:1000])
        assert model.score(X[1000:], y[1000:]) > -0.2


def test_it_learns():
    X, y = records(20_000)
    assert declared(1.0, random_state=0).fit(X, y).score(X, y) > 0.9 * Ridge().fit(X, y).score(X, y)


def test_the_noise_aware_model_beats_plugging_in():
    scores = {"noise_aware": [], "plug_in": []}
    for seed in range(10):
        X, y = records(2000, 6, seed)
        for inference, found in scores.items():
            model = declared(0.5, mechanism="laplace", inference=inference, random_state=seed)
            model.fit(X, y)
            found.append(model.score(X, y))
    best = Ridge().fit(X, y).score(X, y)
    regret = {k: best - np.mean(v) for k, v in scores.items()}
    assert regret["noise_aware"] < 0.5 * regret["plug_in"]


def test_a_smaller_ball_means_better_draws():
    scores = {}
    for bound in (None, 10.0):  # the default, and that of the paper
        scores[bound] = np.mean(
            [
                declared(1.0, mechanism="sampler", coef_bound=bound, random_state=s)
                .fit(*records(4000, seed=s))
                .score(*records(4000, seed=s))
                for s in range(8)
            ]
        )
    assert scores[None] > 0.5
    assert scores[None] > scores[10.0] + 0.05


def test_more_budget_brings_the_map_to_the_ridge():
    X, y = records(2000)
    model = declared(1e7, mechanism="map", coef_bound=1.0, noise_variance=0.01, random_state=0)
    assert_allclose(model.fit(X, y).coef_, Ridge(alpha=0.01).fit(X, y).coef_, atol=2e-3)


def test_the_same_seed_gives_the_same_model_and_no_seed_another():
    X, y = records()
    a, b, c = (declared(random_state=s).fit(X, y) for s in (0, 0, None))
    assert_array_equal(a.coef_, b.coef_)
    assert not np.array_equal(a.coef_, c.coef_)


def test_inside_scikit_learn():
    X, y = records()
    model = declared(mechanism=mechanisms.Sampler(n_samples=2))
    grid = {"epsilon": [1.0, 2.0], "mechanism__n_samples": [1, 2]}
    assert len(GridSearchCV(model, grid, cv=2).fit(X, y).cv_results_["params"]) == 4
    pipe = make_pipeline(FunctionTransformer(), declared())
    assert cross_val_score(pipe, X, y, cv=3, n_jobs=2).shape == (3,)
    fitted = declared(random_state=1).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()
    assert not any("alpha" in name for name in vars(fitted))


@pytest.mark.parametrize(("epsilon", "said"), [(0.01, True), (1.0, False), (INF, False)])
def test_a_regression_that_can_learn_nothing_says_so(epsilon, said, caplog):
    X, y = records(500, d=4)
    for _ in range(2):
        declared(epsilon).fit(X, y)
    lines = [r.getMessage() for r in caplog.records if "no better than the mean" in r.getMessage()]
    assert len(lines) == 2 * said
    assert all("n * epsilon is 1.2 for each of 4 coefficients" in line for line in lines)
