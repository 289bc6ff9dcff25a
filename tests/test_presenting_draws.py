"""Draws handed over: ArviZ, and the posterior predictive distribution of targets."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    DirichletMultinomial,
)
from dpbayes_sklearn.mechanisms import Sampler

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 1500)
X = (RNG.random((1500, 3)) < 0.2 + 0.6 * Y[:, None]).astype(int)
DECLARED = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}


def regression():
    rows = RNG.uniform(0, 1, (3000, 2))
    target = rows @ [2.0, -1.0] + RNG.normal(0, 0.3, 3000)
    model = BayesianLinearRegression(1.0, bounds_X=(0, 1), bounds_y=(-2, 3), random_state=0)
    return model.fit(rows, target), rows


def test_classes_are_drawn_with_their_probabilities():
    model = BayesianNaiveBayes(1.0, random_state=0, **DECLARED).fit(X, Y)
    drawn = model.sample_targets(X[:40], n_draws=4000, random_state=0)
    assert drawn.shape == (4000, 40)
    assert set(np.unique(drawn)) <= {0, 1}
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict_proba(X[:40])[:, 1], atol=0.05)
    again = model.sample_targets(X[:40], n_draws=4000, random_state=0)
    assert (drawn == again).all()


@pytest.mark.parametrize("mechanism", ["map", "sampler", "fourier"])
def test_classes_of_other_mechanisms(mechanism):
    model = BayesianNaiveBayes(1.0, mechanism=mechanism, **DECLARED).fit(X, Y)
    assert model.sample_targets(X[:5], n_draws=3).shape == (3, 5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"intervals": True}, {"mechanism": Sampler(50)}, {}])
def test_classes_of_a_logistic_regression_have_their_probabilities(options):
    model = BayesianLogisticRegression(
        3.0, classes=[0, 1], bounds=(0, 1), random_state=0, **options
    )
    drawn = model.fit(X, Y).sample_targets(X[:40], n_draws=3000, random_state=0)
    assert drawn.shape == (3000, 40)
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict_proba(X[:40])[:, 1], atol=0.12)
    by_draw = model.sample_targets(np.repeat(X[:1], 2000, axis=0), n_draws=40, random_state=0)
    shares = by_draw.mean(axis=1)
    chance = (shares.mean() * (1 - shares.mean()) / 2000) ** 0.5
    assert (shares.std() > 2 * chance) == bool(options)  # without any, parameters do not vary


def test_targets_have_mean_and_spread_of_the_predictions():
    model, rows = regression()
    drawn = model.sample_targets(rows[:30], n_draws=4000, random_state=0)
    mean, std = model.predict(rows[:30], return_std=True)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1 * std.max())
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.1)


@pytest.mark.parametrize("n_draws", [0, -1, 1.5])
def test_the_number_of_draws_is_checked(n_draws):
    model, rows = regression()
    with pytest.raises((TypeError, ValueError), match="n_draws"):
        model.sample_targets(rows, n_draws=n_draws)


def test_arviz_gets_named_draws():
    pytest.importorskip("arviz")
    tables = BayesianNaiveBayes(1.0, **DECLARED).fit(X, Y).posterior_.to_arviz(50).posterior
    assert set(tables) == {"feature_0", "feature_1", "feature_2", "class"}
    assert tables["feature_0"].shape == (1, 50, 2, 2)
    model, _ = regression()
    found = model.posterior_.to_arviz(2000, random_state=0).posterior["coefficients"]
    assert found.shape == (1, 2000, 3)
    np.testing.assert_allclose(found.mean(axis=(0, 1)), model.posterior_.mean(), atol=0.05)
    one = BetaBinomial(1.0).fit([0, 1, 1, 1]).posterior_.to_arviz(10).posterior
    assert one["probability"].shape == (1, 10)
    many = DirichletMultinomial(1.0, categories=3).fit([0, 1, 2, 2]).posterior_.to_arviz(10)
    assert many.posterior["probabilities"].shape == (1, 10, 3)


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        BetaBinomial(1.0).fit([0, 1]).posterior_.to_arviz()
