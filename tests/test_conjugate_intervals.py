"""Intervals of released posteriors hold as often as they say, whatever released them."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.privacy.budget import PrivacyUnit

MECHANISMS = ["laplace", "laplace_improved", "gaussian", "exponential", "hellinger", "local"]


def held(n, epsilon, runs=300, **options) -> float:
    """Return how often the 95 % interval of a proportion holds it, drawn from the flat prior."""
    rng, found = np.random.default_rng(1), []
    for seed in range(runs):
        p = rng.random()
        model = BetaBinomial(epsilon, random_state=seed, **options).fit(rng.random(n) < p)
        low, high = model.posterior_.credible_interval()
        found.append(low <= p <= high)
    return float(np.mean(found))


@pytest.mark.parametrize(("n", "epsilon"), [(20, 0.3), (50, 0.1), (100, 0.1), (1000, 0.1)])
def test_intervals_of_a_proportion_hold(n: int, epsilon: float) -> None:
    assert 0.91 < held(n, epsilon) < 0.985


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_intervals_hold_with_every_mechanism(mechanism: str) -> None:
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    assert 0.89 < held(40, 0.5, 200, mechanism=mechanism, delta=delta) < 0.99


@pytest.mark.parametrize(
    "options",
    [
        {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")},
        {"privacy_unit": PrivacyUnit("person", max_records=3, by_construction=True)},
        {
            "privacy_unit": PrivacyUnit(
                "person", max_records=3, by_construction=True, neighbours="add_remove"
            )
        },
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_intervals_hold_for_other_units(options) -> None:
    assert 0.89 < held(60, 0.3, 200, **options) < 0.99


def test_a_count_that_is_taken_as_exact_has_narrow_intervals() -> None:
    assert held(50, 0.1, inference="plug_in") < 0.7
    assert held(50, 0.1, inference="median") < 0.7


def test_intervals_of_rare_categories_hold() -> None:
    p = np.array([0.5, 0.3, 0.1, 0.05, 0.04, 0.01])
    rng, found, alone = np.random.default_rng(2), [], []
    for seed in range(150):
        model = DirichletMultinomial(0.1, categories=6, random_state=seed)
        posterior = model.fit(rng.choice(6, 1000, p=p)).posterior_
        low, high = posterior.credible_interval().T
        found.append((low <= p) & (p <= high))
        a, b = posterior.marginals().T
        alone.append(a + b)
    assert np.mean(found, axis=0).min() > 0.85
    # noise is as wide in a rare category as in a common one, so it is known less precisely
    assert (np.mean(alone, axis=0)[:2].min() > np.mean(alone, axis=0)[2:]).all()
