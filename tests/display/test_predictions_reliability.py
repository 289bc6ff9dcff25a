from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.naive_bayes import GaussianNB

from dpbayes_sklearn import BayesianNaiveBayes, ReliabilityDisplay
from dpbayes_sklearn.display import reliability_curve

rng = np.random.default_rng(0)


def drawn(chances: np.ndarray, truth: np.ndarray, **options) -> ReliabilityDisplay:
    options = {"classes": ["a", "b", "c"], "ax": Figure().subplots()} | options
    return ReliabilityDisplay.from_predictions(truth, chances, **options)


def test_right_probabilities_lie_on_the_diagonal_and_overconfident_ones_below() -> None:
    chances = rng.dirichlet([1, 1, 1], 30_000)
    truth = np.array(["a", "b", "c"])[
        (chances.cumsum(axis=1) < rng.random((30_000, 1))).sum(axis=1)
    ]
    right = drawn(chances, truth)
    assert right.calibration_error_ < 0.02
    sharper = chances**3 / (chances**3).sum(axis=1, keepdims=True)
    too_sure = drawn(sharper, truth)
    assert too_sure.calibration_error_ > 0.1
    assert (too_sure.curve.accuracy < too_sure.curve.confidence)[3:].all()


def test_groups_have_equally_many_records() -> None:
    curve = reliability_curve(rng.random(103), rng.random(103) < 0.5, n_groups=10)
    assert curve.n_records.sum() == 103
    assert set(curve.n_records) == {10, 11}
    assert len(reliability_curve([0.5, 0.9], [True, True], n_groups=10).confidence) == 2


def test_any_classifier_may_be_drawn_on_given_axes() -> None:
    y = rng.integers(0, 2, 400)
    X = rng.normal(y[:, None], 1.0, (400, 2))
    ax = Figure().subplots()
    ours = BayesianNaiveBayes(bounds=(-3, 4), classes=[0, 1], random_state=0).fit(X, y)
    display = ReliabilityDisplay.from_estimator(ours, X, y, ax=ax, n_groups=5)
    other = ReliabilityDisplay.from_estimator(GaussianNB().fit(X, y), X, y, ax=ax, color="red")
    assert display.ax_ is ax
    assert other.line_.get_color() == "red"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["BayesianNaiveBayes", "GaussianNB"]
    np.testing.assert_array_equal(display.line_.get_xdata(), display.curve.confidence)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        drawn(np.full((3, 3), 1 / 3), np.array(["a", "b"]))
