"""A linear model of few records: what it states about its residuals."""

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression


@pytest.mark.parametrize("seed", range(4))
def test_the_stated_spread_of_residuals_is_at_most_that_of_the_bounds(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(18, 66, 3000), rng.uniform(5, 60, 3000)])
    y = 3 + 0.15 * X[:, 0] + 0.4 * X[:, 1] + rng.normal(0, 4, 3000)
    public = {"bounds_X": ([18, 5], [66, 60]), "bounds_y": (0, 60), "random_state": seed}
    model = BayesianLinearRegression(0.35, **public).fit(X, y)
    assert [step.what for step in model.plan(n=3000).steps][-1] == "level"  # a mode alone
    assert 3 < 30 * np.sqrt(model.posterior_.noise_variance) < 15  # 4, and that of y is 7.5


@pytest.mark.parametrize("middle", [0.0, 3.0, 8.0])
def test_without_a_constant_windows_hold_columns_far_from_zero(middle):
    rng = np.random.default_rng(0)
    X = rng.normal(middle, 0.3, (10_000, 3))
    y = X @ [1.0, 0.5, -0.3] + 0.5 * rng.normal(size=len(X))
    public = {"bounds_X": (-10, 10), "bounds_y": (-20, 20), "fit_intercept": False}
    model = BayesianLinearRegression(1.0, mechanism="map", random_state=0, **public).fit(X, y)
    away = np.abs(model.posterior_.windows.halves - model.posterior_.windows.centres)
    assert (away >= (middle + 0.5) / 10).all()
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=0.2 + 0.03 * middle)
    assert np.abs(model.predict(X) - y).mean() < 2 * np.abs(y - y.mean()).mean()
