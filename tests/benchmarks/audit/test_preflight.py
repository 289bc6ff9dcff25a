"""What public numbers decide is refused before the charge; a fit that is charged ends."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from benchmarks.audit.preflight import EDGES, KINDS, attempt, failures, random_plans, tried
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts import plans


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_that_is_charged_is_released(kind):
    assert [*failures(random_plans(kind, 12, 10, seed=2))] == []


@pytest.mark.parametrize("name", EDGES)
def test_plans_at_the_edges_are_released(name):
    assert attempt(EDGES[name]) == (True, None)


def test_plans_are_not_all_refused():
    for kind in KINDS:
        outcomes = [attempt(plan) for plan in random_plans(kind, 8, 6, seed=3)]
        assert sum(error is None for _, error in outcomes) >= 4


def test_a_failure_after_the_charge_is_found():
    plan = EDGES["shares that differ"]
    with mock.patch.object(plans.NoisyTables, "read", side_effect=ValueError("no")):
        (found,) = failures(iter([plan]))
    assert found.startswith("ValueError (no) after the charge: BayesianNaiveBayes")


def test_a_refusal_without_a_reason_is_found():
    plan = EDGES["shares that differ"]
    with mock.patch.object(plans, "NoisyTables", side_effect=ZeroDivisionError("1/0")):
        (found,) = failures(iter([plan]))
    assert "before the charge" in found
    with mock.patch.object(plans, "NoisyTables", side_effect=ValueError("too small")):
        assert [*failures(iter([plan]))] == []


def test_a_public_number_of_records_is_believed():
    plan = EDGES["shares that differ"]
    attempt(plan)
    assert plan.estimator.posterior_.untempered.released.n == 205
    X, y = np.zeros((8, 1)), np.zeros(8, int)
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1], random_state=0).fit(X, y)
    assert model.posterior_.untempered.released.n == 8


def test_the_layer_says_what_fails():
    assert tried("trees", 2, 5).passed
    with mock.patch("benchmarks.audit.preflight.attempt", return_value=(True, ValueError("no"))):
        row = tried("trees", 2, 5)
    assert not row.passed
    assert row.figure.startswith("ValueError (no) after the charge")
