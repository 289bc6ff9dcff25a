"""A plan, made without data: it costs what a fit charges, and is made once in a fit."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks.audit._step_lists import unlisted, watched
from benchmarks.audit.tools.fuzzing import every_case
from benchmarks.audit.tools.recording import Recording
from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianNaiveBayes,
    BudgetAccountant,
    DirichletMultinomial,
    PrivateSearchCV,
)
from dpbayes_sklearn.base import spending
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.counts import dirichlet
from dpbayes_sklearn.counts.fourier import CharacterSums
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.noise import made_by
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateStandardScaler
from dpbayes_sklearn.privacy import gaussian
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.regression import plans as regression
from dpbayes_sklearn.release import StepPlan

CASES = {case.name: case for case in every_case(n=60)}
ADDED = PrivacyUnit(neighbours="add_remove")
RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 3, (600, 3)), RNG.integers(0, 2, 600)
BAYES: dict[str, Any] = {"bounds": (0, 2), "classes": [0, 1], "n_bins": 3}
PREPARING = [
    PrivateKBinsDiscretizer(3),
    PrivateStandardScaler(bounds=(0, 2)),
    PrivateSelectKBest(2, bounds=(0, 2), n_bins=3, classes=[0, 1]),
]


def charged(model: Any, *data: Any) -> tuple[Fraction, Fraction, Any]:
    ledger = BudgetAccountant(delta=1)
    clone(model).set_params(accountant=ledger).fit(*data)
    costs = [entry.cost for entry in ledger]
    rho = [*ledger][-1].rho if len(costs) == 1 else None
    return sum(c.epsilon for c in costs), sum(c.delta for c in costs), rho


@pytest.mark.parametrize("name", CASES)
def test_a_plan_costs_what_a_fit_charges(name: str) -> None:
    case = CASES[name]
    plan = case.estimator.plan(60, n_features=np.shape(case.X)[-1])
    epsilon, delta, rho = charged(case.estimator, case.X, case.y)
    assert (plan.cost.epsilon, plan.cost.delta) == (epsilon, delta)
    assert plan.guarantee.rho == rho
    assert plan.mechanism in str(plan)
    assert sum(step.cost.epsilon for step in plan.steps) == epsilon


# Without privacy a regression is no list of steps, and so are those that a classifier may be.
NOT_STEPS = "BayesianLinear", "BayesianLogistic", "BayesianCount", "BayesianClassifier"
LISTED = [name for name in CASES if not name.startswith(NOT_STEPS)]
PREPARED = {str(model): model for model in PREPARING}


@pytest.mark.parametrize("name", [*LISTED, *PREPARED])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_the_steps_of_a_plan_are_what_is_drawn(name: str, epsilon: float) -> None:
    model, *data = (PREPARED[name], X, Y) if name in PREPARED else CASES[name][1:]
    model = clone(model).set_params(epsilon=epsilon)
    planned = model.plan(len(data[0]), n_features=np.shape(data[0])[-1])
    log = Recording()
    with made_by(log.noise), watched(log) as found:
        model.fit(*data)
    assert [*unlisted(found, log)] == []
    steps = [step for taken in found for step, *_ in taken.steps]
    assert [type(taken.plan) for taken in found] == [type(plan) for plan in planned.parts]
    assert all(isinstance(taken.plan, StepPlan) for taken in found)
    assert [(s.what, s.cost) for s in steps] == [(s.what, s.cost) for s in planned.steps]
    assert repr([step.law for step in steps]) == repr([step.law for step in planned.steps])
    assert bool(log.steps) == (epsilon < math.inf)
    assert str(pickle.loads(pickle.dumps(planned))) == str(planned)


@pytest.mark.parametrize("model", PREPARING, ids=str)
@pytest.mark.parametrize("unit", ["record", ADDED], ids=str)
def test_preparation_has_plans(model: Any, unit: Any) -> None:
    model = clone(model).set_params(privacy_unit=unit)
    plan = model.plan(600, n_features=3)
    assert (plan.cost.epsilon, plan.cost.delta) == charged(model, X, Y)[:2]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "sampler", "fourier", "map"])
def test_a_secret_number_of_records_is_a_step(mechanism: str) -> None:
    model = BayesianNaiveBayes(mechanism=mechanism, delta=1e-6, privacy_unit=ADDED, **BAYES)
    plan = model.plan(600, n_features=3)
    assert [step.what.split()[-1] for step in plan.steps[:2]] == ["records", "tables"]
    assert plan.steps[0].cost.epsilon == Fraction(1, 25)
    assert (plan.cost.epsilon, plan.cost.delta) == charged(model, X, Y)[:2]


def test_a_search_has_a_plan() -> None:
    search = PrivateSearchCV(BayesianNaiveBayes(**BAYES), {"alpha": [1, 2]}, epsilon=0.9)
    plan = search.plan(600)
    assert plan.cost.epsilon == charged(search, X, Y)[0]
    assert "best of about 20 runs of 2 candidates" in str(plan)


def test_a_plan_is_shown() -> None:
    plan = BayesianNaiveBayes(**BAYES).plan(2000, n_features=3)
    tables, temperature = plan.steps
    assert plan.law is not None
    assert tables.error == pytest.approx(float(plan.law.variances.mean()) ** 0.5)
    assert temperature.spends == "epsilon = 0.15"
    lines = str(plan).splitlines()
    assert lines[0].startswith("BayesianNaiveBayes, 2,000 records. Differentially private with")
    assert len(lines) == 3
    assert all(step.what in plan._repr_html_() for step in plan.steps)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BayesianNaiveBayes(bounds=(0, 1)), "set bounds or schema, and classes"),
        (BayesianNaiveBayes(classes=[0, 1]), "set bounds or schema, and classes"),
        (BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1]), "give n_features"),
        (DirichletMultinomial(), "Planning needs declared domains: set categories"),
        (PrivateKBinsDiscretizer(3), "give n_features"),
    ],
    ids=str,
)
def test_what_is_not_declared_is_asked_for(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.plan(100)
    with pytest.raises(ValueError, match="n == 0, must be >= 1"):
        model.plan(0)


DERIVED: list[tuple[Any, str]] = [
    (CountTables, "law"),
    (CharacterSums, "law"),
    (SimplexCounts, "law"),
    (gaussian, "gaussian_variance"),
    (dirichlet, "sampler_law"),
    (dirichlet, "mode_law"),
    (regression, "composed_rho"),
    (regression, "moment_increment"),
    (spending, "resolve_mechanism"),
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_law_is_derived_once_in_a_fit(
    name: str, delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    model = clone(CASES[name].estimator)
    if delta is not None and "delta" in model.get_params():
        model.set_params(delta=delta)

    def counting(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            calls[f"{owner.__name__}.{name}"] += 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    for owner, what in (*DERIVED, (type(model), "_plan")):
        counting(owner, what)
    model.fit(CASES[name].X, CASES[name].y)
    assert calls[f"{type(model).__name__}._plan"] == 1
    if isinstance(model, BayesianClassifier):  # each of the models it compares resolves its own
        del calls["dpbayes_sklearn.base.spending.resolve_mechanism"]
    assert {what: count for what, count in calls.items() if count > 1} == {}
