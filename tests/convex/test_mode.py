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
