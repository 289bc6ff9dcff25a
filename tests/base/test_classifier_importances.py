"""Importances and class shares from the released posterior, and advice from public facts."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.mechanisms import Laplace

TELLING = [1, 4, 6]


def data(n: int = 4000, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.integers(0, 2, (n, d))
    for j, share in zip(TELLING, (0.95, 0.85, 0.8), strict=True):
        X[:, j] = np.where(rng.random(n) < share, y, 1 - y)
    return X, y


def classifier(**options: Any) -> BayesianNaiveBayes:
    options = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1], "random_state": 0} | options
    return BayesianNaiveBayes(**options)


@pytest.mark.parametrize("temperature", ["auto", 1])
@pytest.mark.parametrize("inference", ["adaptive", "noise_aware", "plug_in"])
@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler"])
def test_importances_are_shares_of_what_features_tell(
    mechanism: str, inference: str, temperature: Any
) -> None:
    model = classifier(mechanism=mechanism, inference=inference, temperature=temperature)
    found = model.fit(*data()).feature_importances_
    assert found.shape == (8,)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    if mechanism != "sampler":
        assert sorted(np.argsort(-found)[:3]) == TELLING


def test_importances_cost_nothing_and_need_a_fit() -> None:
    ledger = BudgetAccountant(epsilon=1.0)
    model = classifier(accountant=ledger)
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    model.fit(*data())
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert ledger.total().epsilon == 1.0


def test_features_that_say_nothing_are_equally_important() -> None:
    model = classifier(epsilon=float("inf"))
    found = model.fit(np.zeros((10, 4)), [0, 1] * 5).feature_importances_
    np.testing.assert_allclose(found, 0.25)


def test_selection_by_importance() -> None:
    X, y = data()
    chosen = SelectFromModel(classifier(), max_features=3, threshold=-np.inf).fit(X, y)
    assert np.flatnonzero(chosen.get_support()).tolist() == TELLING


def test_elimination_by_importance() -> None:
    X, y = data()
    ledger = BudgetAccountant(epsilon=10.0)
    search = RFE(classifier(accountant=ledger), n_features_to_select=3, step=3).fit(X, y)
    assert np.flatnonzero(search.support_).tolist() == TELLING
    assert ledger.total().epsilon == len(ledger) == 3  # 8 and 5 features, then the last fit


# ------------------------------------------------------------------ advice


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, "dpbayes_sklearn")

    def lines() -> list[str]:
        return [r.getMessage() for r in caplog.records if "The noise is" in r.getMessage()]

    return lines


def test_noise_above_the_counts_is_said_by_every_fit(told: Any) -> None:
    X, y = data(50)
    for _ in range(3):
        classifier(epsilon=0.1).fit(X, y)
    assert len(told()) == 3
    (line,) = {*told()}
    assert "Fewer columns, fewer bins or values, more records or a larger epsilon" in line


@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
def test_nothing_is_said_of_little_noise(told: Any, epsilon: float) -> None:
    classifier(epsilon=epsilon).fit(*data())
    assert told() == []


def test_advice_follows_from_public_facts(told: Any) -> None:
    """Any records of the same number and shape get the same words, whatever was drawn."""
    X, y = data(50)
    for seed, (A, b) in enumerate(((X, y), (1 - X, 1 - y), (np.full_like(X, 9), np.zeros(50)))):
        classifier(epsilon=0.1, random_state=seed).fit(A, b)
    lines = told()
    assert len(lines) == 3
    assert len(set(lines)) == 1


def test_advice_counts_the_noise_that_is_added(told: Any) -> None:
    X, y = data(2000)
    options: dict[str, Any] = {"epsilon": 0.02, "mechanism": Laplace(noise="independent")}
    model = classifier(**options, temperature=1).fit(X, y)
    ratio = float(told()[0].split()[3])
    law = model.posterior_.released.laws[0]
    # eight tables of four cells and one of two; the cells of each share all records
    deviations = [np.sqrt(law.variance(node)) for node in range(9)]
    wanted = (4 * sum(deviations[:8]) + 2 * deviations[8]) / (9 * 2000)
    assert ratio == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("temperature", ["auto", 1])
def test_class_shares_are_in_the_order_of_the_classes(
    temperature: Any,
) -> None:
    X, y = data()
    labels = np.where(y[:2000] | (X[:2000, 0] == 1), "usual", "rare")
    model = classifier(classes=["usual", "rare"], temperature=temperature, epsilon=5.0)
    shares = model.fit(X[:2000], labels).class_prior_
    assert shares.sum() == pytest.approx(1.0)
    assert dict(zip(model.classes_, shares, strict=True))["rare"] == pytest.approx(0.25, abs=0.05)


def test_an_unfitted_model_has_no_class_shares() -> None:
    with pytest.raises(NotFittedError):
        _ = classifier().class_prior_
