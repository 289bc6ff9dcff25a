"""Synthetic records from a released posterior."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest
from sklearn.exceptions import NotFittedError

from dpbayes_sklearn import (
    BayesianNetworkClassifier,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
)

SCHEMA = Schema(
    {"dose": Interval(0, 2, bins=3), "smoker": Categories(["no", "yes", "was"])},
    Categories(["ill", "well"]),
)
PARENTS = {"class": ["dose"], "smoker": ["dose", "class"]}
CELLS = [*product([0, 1, 2], ["no", "yes", "was"], ["ill", "well"])]


def simulate(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 3, n)
    smoker = rng.choice(["no", "yes", "was"], n, p=[0.5, 0.3, 0.2])
    y = np.where(rng.random(n) < 0.2 + 0.3 * dose, "ill", "well")
    return pd.DataFrame({"dose": dose, "smoker": smoker}), y


def fitted(**options: Any) -> BayesianNetworkClassifier:
    options = {"schema": SCHEMA, "parents": PARENTS, "inference": "plug_in"} | options
    return BayesianNetworkClassifier(random_state=0, **options).fit(*simulate(500))


def law_of(model: BayesianNetworkClassifier) -> np.ndarray:
    """Return the probability of every cell under the mean tables."""
    dose, smoker, label = model.posterior_.mean()
    order = model.posterior_.network.parents
    assert order == ((), (0, 2), (0,))
    return np.einsum("d,dcs,dc->dsc", dose, smoker, label).ravel()


def observed(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    X = X.to_numpy()
    counts = dict.fromkeys(CELLS, 0)
    for dose, smoker, label in zip(X[:, 0], X[:, 1], y, strict=True):
        counts[int(dose), smoker, label] += 1
    return np.array([*counts.values()])


@pytest.mark.parametrize("mechanism", ["sampler", "map"])
def test_joint_law_of_one_set_of_tables(mechanism: str) -> None:
    model = fitted(mechanism=mechanism)  # one draw: all records come from these tables
    counts = observed(*model.sample(40_000, random_state=1))
    assert chisquare(counts, 40_000 * law_of(model)).pvalue > 1e-4
    for tilt in (0.9, 1.1):
        wrong = law_of(model) * np.tile([tilt, 1.0], 9)
        assert chisquare(counts, 40_000 * wrong / wrong.sum()).pvalue < 1e-4


@pytest.mark.parametrize("mechanism", ["laplace", "fourier"])
def test_records_of_many_calls_have_the_predictive_law(mechanism: str) -> None:
    """Every call draws tables of its own; over all of them their mean is what counts."""
    model = fitted(mechanism=mechanism)
    counts = sum(observed(*model.sample(1, random_state=seed)) for seed in range(3000))
    law = law_of(model)
    assert chisquare(counts, 3000 * law).pvalue > 1e-4
    assert chisquare(counts, np.full(18, 3000 / 18)).pvalue < 1e-4


def test_one_call_draws_one_set_of_tables() -> None:
    """With hardly any data, calls differ by much more than their records' own chance."""
    wide = fitted(mechanism="laplace", epsilon=0.01, alpha=0.5)
    counts = observed(*wide.sample(5000, random_state=0))
    assert chisquare(counts, 5000 * law_of(wide)).pvalue < 1e-4


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler", "map"])
def test_categories_are_decoded_and_fit_again(mechanism: str) -> None:
    X, y = fitted(mechanism=mechanism).sample(500, random_state=0)
    assert X.shape == (500, 2)
    assert {*X.iloc[:, 0]} <= {0.0, 1.0, 2.0}
    assert {*X.iloc[:, 1]} == {"no", "yes", "was"}
    assert {*y} == {"ill", "well"}
    again = BayesianNetworkClassifier(float("inf"), schema=SCHEMA, parents=PARENTS).fit(X, y)
    assert again.score(X, y) > 0.4


def test_no_data_and_no_budget_are_needed() -> None:
    ledger = BudgetAccountant(1.0)
    model = fitted(accountant=ledger)
    alone = pickle.loads(pickle.dumps(model))
    X, y = alone.sample(50, random_state=3)
    np.testing.assert_array_equal(X, model.sample(50, random_state=3)[0])
    assert len(y) == 50
    assert len(ledger) == 1


def test_seeds() -> None:
    model = fitted()
    first, second = model.sample(100, random_state=1), model.sample(100, random_state=2)
    assert not np.array_equal(first[0], second[0])
    assert len(model.sample()[1]) == 1  # no seed is needed


def test_bins_are_filled_evenly() -> None:
    schema = Schema({"height": Interval(150.0, 210.0, bins=3)}, Categories([0, 1]))
    rng = np.random.default_rng(0)
    model = BayesianNetworkClassifier(
        float("inf"), parents={"height": ["class"]}, schema=schema, inference="plug_in"
    ).fit(rng.uniform(150, 210, (3000, 1)), rng.integers(0, 2, 3000))
    X, _ = model.sample(2000, random_state=0)
    within = (X[:, 0] - 150) % 20
    assert X.dtype == np.float64
    assert kstest(within, "uniform", (0, 20)).pvalue > 1e-3
    assert kstest(within, "uniform", (0, 22)).pvalue < 1e-3


@pytest.mark.parametrize(
    ("n_samples", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)]
)
def test_numbers_of_records_that_make_no_sense(n_samples: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="n_samples"):
        fitted().sample(n_samples)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        BayesianNetworkClassifier().sample(3)


def test_a_sample_of_named_columns_is_a_frame_with_dates():
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=600), "job": ["a", "b"] * 300})
    domains = {
        "day": Interval(np.datetime64("2020-01-01"), np.datetime64("2022-01-01"), bins=4),
        "job": Categories(["a", "b"]),
    }
    model = BayesianNetworkClassifier(schema=Schema(domains, Categories([0, 1])))
    X, y = model.fit(days, [0, 1] * 300).sample(50, random_state=0)
    assert [*X.columns] == ["day", "job"]
    assert X["day"].dtype.kind == "M"
    assert X["day"].between("2020-01-01", "2022-01-01").all()
    assert {*X["job"]} == {"a", "b"}
    assert len(model.predict(X)) == len(y) == 50
