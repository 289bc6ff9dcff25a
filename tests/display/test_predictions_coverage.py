from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import BayesianRidge

from dpbayes_sklearn import BayesianLinearRegression, CoverageDisplay
from dpbayes_sklearn.display import coverage_curve

rng = np.random.default_rng(0)


@pytest.mark.parametrize(("factor", "above"), [(1.0, None), (0.5, False), (2.0, True)])
def test_coverage_is_right_too_small_or_too_large(factor: float, above: bool | None) -> None:
    y = rng.normal(0, 1, 20_000)
    display = CoverageDisplay.from_predictions(
        y, np.zeros(20_000), np.full(20_000, factor), ax=Figure().subplots()
    )
    if above is None:
        np.testing.assert_allclose(display.coverage, display.levels, atol=0.02)
    else:
        assert ((display.coverage > display.levels) == above).all()


def test_intervals_have_the_asked_levels() -> None:
    covered = coverage_curve([0.0, 0.6, 1.9, 2.5], np.zeros(4), np.ones(4), [0.5, 0.95])
    assert covered.tolist() == [0.5, 0.75]


def test_any_regression_with_standard_deviations_may_be_drawn() -> None:
    X = rng.random((1000, 2))
    y = X @ [1.0, -1.0] + rng.normal(0, 0.2, 1000)
    ax = Figure().subplots()
    ours = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(-2, 2), random_state=0).fit(X, y)
    display = CoverageDisplay.from_estimator(ours, X, y, ax=ax)
    CoverageDisplay.from_estimator(BayesianRidge().fit(X, y), X, y, ax=ax, label="ridge")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["BayesianLinearRegression", "ridge"]
    np.testing.assert_array_equal(display.line_.get_ydata(), display.coverage)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        coverage_curve([1.0, 2.0], [1.0], [1.0])
