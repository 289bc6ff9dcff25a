"""What is charged is exactly what the guarantee of the release says: epsilon, delta and zCDP."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
)
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.privacy.budget import PrivacyUnit, round_up
from dpbayes_sklearn.regression import plans as moment_plans

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 2, (300, 3)), RNG.integers(0, 2, 300)
DISCRETE = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
CONTINUOUS = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
GROUPS = np.arange(300) // 2
UNITS = [
    {},
    {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")},
    {"privacy_unit": PrivacyUnit("person", max_records=2, by_construction=True)},
]
MOMENTS = sorted(moment_plans.mechanism_names())
SAMPLERS = [Sampler(1), Sampler(3), Sampler(40), Sampler(omega=0.05)]


def assert_charged_is_released(model: Any) -> None:
    ledger = BudgetAccountant(delta=1)
    groups = GROUPS if getattr(model, "privacy_unit", "") == "person" else None
    guarantee = model.set_params(accountant=ledger).fit(X, Y, groups=groups).guarantee_
    entries = list(ledger)
    assert guarantee.epsilon == round_up(sum(entry.cost.epsilon for entry in entries))
    assert guarantee.delta == round_up(sum(entry.cost.delta for entry in entries))
    *first, last = entries  # the first one is a secret number of records
    sizes = sum((Fraction(entry.cost.epsilon) ** 2 / 2 for entry in first), Fraction(0))
    rho = None if last.rho is None else Fraction(str(round_up(last.spend.rho))) + sizes
    assert guarantee.rho == (None if rho is None else round_up(rho))


@pytest.mark.parametrize("mechanism", [*sorted(plans.mechanism_names()), *SAMPLERS], ids=str)
@pytest.mark.parametrize("unit", [*UNITS, {"privacy_unit": "feature"}], ids=str)
def test_of_counts(mechanism: Any, unit: dict[str, Any]) -> None:
    for epsilon, delta, temperature in product((0.1, 1.0, 3.0), (0.0, 1e-6), (1, "auto")):
        if delta or mechanism != "gaussian":
            options = {"delta": delta, "temperature": temperature, "mechanism": mechanism}
            assert_charged_is_released(BayesianNaiveBayes(epsilon, **options, **unit, **DISCRETE))


@pytest.mark.parametrize("mechanism", [*MOMENTS, *SAMPLERS[:3]], ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_moments_are_charged_as_released(mechanism: Any, unit: dict[str, Any]) -> None:
    for epsilon, delta in product((0.3, 2.0), (0.0, 1e-6)):
        if delta or mechanism != "gaussian":
            options = {"delta": delta, "mechanism": mechanism}
            model = BayesianLinearRegression(epsilon, **options, **unit, **CONTINUOUS)
            assert_charged_is_released(model)


@pytest.mark.parametrize("mechanism", ["gaussian", "sampler"])
def test_networks_are_charged_as_released(mechanism: str) -> None:
    for epsilon in (0.1, 1.0, 3.0):
        model = BayesianNetworkClassifier(epsilon, delta=1e-6, mechanism=mechanism, **DISCRETE)
        assert_charged_is_released(model)
