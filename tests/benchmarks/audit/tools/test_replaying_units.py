"""Replay of neighbours of different size, and of persons: nothing but releases tells them apart."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.audit.tools import replay
from benchmarks.audit.tools.replaying import DRAWS
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    DirichletMultinomial,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit

ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=3)}
DISCRETE = {"bounds": (0, 1), "classes": [0, 1]}
LINEAR = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}

MODELS = [
    BayesianNaiveBayes(**DISCRETE),
    BayesianNaiveBayes(mechanism="sampler", **DISCRETE),
    BayesianNaiveBayes(mechanism="map", **DISCRETE),
    BayesianNaiveBayes(mechanism="fourier", inference="noise_aware", n_bins=2, **DISCRETE),
    BayesianNaiveBayes(mechanism="gaussian", delta=1e-3, **DISCRETE),
    BayesianNetworkClassifier(parents={"x1": ["x0", "class"]}, n_bins=2, **DISCRETE),
    BayesianLinearRegression(**LINEAR),
    BayesianLinearRegression(mechanism="fourier", **LINEAR),
    BayesianLinearRegression(mechanism="sampler", **LINEAR),
    BayesianLinearRegression(mechanism="gaussian", delta=1e-3, **LINEAR),
]
ONE = [BetaBinomial(), DirichletMultinomial(categories=2), BetaBinomial(mechanism="laplace")]


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    X = rng.choice(
        [0.0, 0.3, 1.0, np.nan, 1e308, -np.inf], size=(n, 3), p=[0.3, 0.3, 0.3, *[1 / 30] * 3]
    )
    return X, rng.integers(0, 2, n), who


@pytest.mark.slow
@pytest.mark.parametrize("model", [*MODELS, *ONE], ids=str)
@pytest.mark.parametrize("freeze", ["choke point", "draws"])
@pytest.mark.parametrize("n", [40, 1200])
def test_a_record_more_or_less(model, freeze, n):
    X, y, _ = people(n, seed=n)
    data = (y, None) if model in ONE else (X, y)
    fewer = (y[1:], None) if model in ONE else (X[1:], y[1:])
    model = model.set_params(**ADDED)
    options = {} if freeze == "choke point" else {"freeze": DRAWS}
    for one, other in ((data, fewer), (fewer, data)):
        found = replay(model, *one, *other, **options)
        assert found.divergences == ()
        assert found.status == "fitted"


@pytest.mark.parametrize("model", MODELS[:8], ids=str)
@pytest.mark.parametrize("change", ["replace", "add_remove"])
def test_all_records_of_a_person(model, change):
    X, y, who = people(300, seed=1)
    person = np.flatnonzero(np.bincount(who) == 5)[0]  # two of the records do not count
    own = who == person
    X2, y2, who2 = X.copy(), y.copy(), who
    X2[own], y2[own] = 1.0, 1 - y[own]
    if change == "add_remove":
        X2, y2, who2 = X[~own], y[~own], who[~own]
    model = model.set_params(privacy_unit=PrivacyUnit("person", max_records=3, neighbours=change))
    found = replay(model, X, y, X2, y2, groups=who, groups2=who2, freeze=DRAWS)
    assert found.divergences == ()
    assert any(shift.moved for shift in found.shifts)
