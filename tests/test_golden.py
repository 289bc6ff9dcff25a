"""Seeded releases are what they were: digests of about 120 fits, kept in ``golden.json``.

A change of the code that should not change any result leaves the file as it is. After one that
should, ``python -m tests.test_golden`` writes it again, and the difference shows which releases
changed. The linear regression is left out.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.audit.tools.fuzzing import every_case
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    GammaExponential,
    NormalMean,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
    tree_augmented,
)
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Gaussian, Laplace, Mechanism, Sampler
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
    learn_schema,
)

FILE = Path(__file__).with_name("golden.json")
ADDED = PrivacyUnit(neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=2, by_construction=True)
UNITS: dict[str, Any] = {"record": "record", "add_remove": ADDED, "person": PERSON}
RNG = np.random.default_rng(0)
N = 3000
Y = RNG.integers(0, 2, N)
X = (RNG.random((N, 4)) < 0.3 + 0.3 * Y[:, None]) + RNG.integers(0, 2, (N, 4))
NUMBERS = X + RNG.normal(size=(N, 4)).round(2)
PEOPLE = np.arange(N) // 2
BAYES: dict[str, Any] = {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3}
GRAPH = {"class": [0], 1: ["class", 0], 2: [1]}


def fitted(model: Any, *data: Any, ledger: BudgetAccountant, **options: Any) -> Any:
    """Fit a copy."""
    return clone(model).set_params(accountant=ledger, random_state=1).fit(*data, **options)


def people(unit: str) -> dict[str, Any]:
    """Return whose records they are, where that is asked."""
    return {"groups": PEOPLE} if unit == "person" else {}


def every_release() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a name, and what releases and tells of it."""
    for case in every_case(n=60):
        if not isinstance(case.estimator, BayesianLinearRegression):
            data = (case.X,) if case.y is None else (case.X, case.y)
            yield case.name, partial(_release, fitted, case.estimator, *data)
    for unit in UNITS:
        for name, model, *data in models(unit):
            yield f"{name}, {unit}", partial(_release, fitted, model, *data, **people(unit))
        yield f"score, {unit}", partial(_release, scored, unit)
    yield "score, gaussian", partial(_release, scored, "record", delta=1e-5)
    yield "cross-validation", partial(_release, validated)
    yield "schema", partial(_release, learned)
    yield "tree", partial(_release, tree)


def models(unit: str) -> Iterator[tuple[Any, ...]]:
    """Yield estimators with their options, for 3,000 records."""
    given: dict[str, Any] = {"privacy_unit": UNITS[unit]}
    counts = {**BAYES, **given}
    mechanisms: tuple[str | Mechanism, ...]
    mechanisms = "laplace", "gaussian", "fourier", "map", Laplace(noise="joint"), Sampler(3)
    for mechanism in mechanisms:  # with so many records the temperature is learned
        name = f"naive Bayes, {mechanism}"
        delta = 1e-5 if mechanism == "gaussian" else 0.0
        yield name, BayesianNaiveBayes(mechanism=mechanism, delta=delta, **counts), X, Y
    for temperature in (1, 0.5):
        fixed = BayesianNaiveBayes(temperature=temperature, **counts)
        yield f"naive Bayes at {temperature}", fixed, X, Y
    network = BayesianNetworkClassifier(parents=GRAPH, **counts)
    yield "network", network, X, Y
    yield "categories", DirichletMultinomial(categories=Categories([0, 1, 2]), **given), X[:, 0]
    yield "coin", BetaBinomial(mechanism=Gaussian(), delta=1e-5, **given), Y.astype(bool)
    for intervals in (False, True):
        logistic = BayesianLogisticRegression(
            bounds=(-3, 5), classes=[0, 1], intervals=intervals, **given
        )
        yield f"logistic, intervals={intervals}", logistic, NUMBERS, Y
    for y in (X[:, 0], X[:, 0] + X[:, 1]):
        labels = [*range(int(y.max()) + 1)]
        logistic = BayesianLogisticRegression(bounds=(-3, 5), classes=labels, **given)
        yield f"logistic, {len(labels)} classes", logistic, NUMBERS, y
        ordered = clone(logistic).set_params(ordered=True)
        yield f"logistic, {len(labels)} ordered classes", ordered, NUMBERS, y
    for scaler in (
        PrivateKBinsDiscretizer(5),
        PrivateStandardScaler(bounds=(-3, 5)),
        PrivateMinMaxScaler(),
    ):
        name = type(scaler).__name__
        yield name, scaler.set_params(**given), NUMBERS
    yield "columns", PrivateSelectKBest(2, **counts), X, Y
    if unit != "add_remove":
        for mechanism in ("laplace", "sampler"):
            mean = NormalMean(bounds=(-3, 5), mechanism=mechanism, **given)
            yield f"mean, {mechanism}", mean, NUMBERS
        yield "rate", GammaExponential(bounds=(0, 5), **given), NUMBERS
    if unit == "record":
        yield "naive Bayes, exact", BayesianNaiveBayes(math.inf, **counts), X, Y
        yield "mean, exact", NormalMean(math.inf, bounds=(-3, 5)), NUMBERS
        weights = BayesianNaiveBayes(privacy_unit="feature", **BAYES)
        yield "naive Bayes, feature", weights, X, Y
        grid = {"alpha": [0.5, 2.0]}
        search = PrivateSearchCV(BayesianNaiveBayes(**BAYES), grid, runs_per_candidate=2)
        yield "search", search, X[:500], Y[:500]


def scored(unit: str, *, ledger: BudgetAccountant, delta: float = 0.0) -> Any:
    """Evaluate an exact classifier and one of numbers."""
    found = []
    model = BayesianNaiveBayes(math.inf, **BAYES).fit(X, Y)
    for scoring in (["accuracy", "log_loss", "roc_auc"], ["confusion_matrix", "calibration_curve"]):
        found.append(
            private_score(
                model,
                *(X, Y),
                scoring=scoring,
                epsilon=1.0,
                delta=delta,
                privacy_unit=UNITS[unit],
                accountant=ledger,
                random_state=2,
                **people(unit),
            )
        )
    return [dict(evaluation) for evaluation in found]


def validated(*, ledger: BudgetAccountant) -> Any:
    """Evaluate by cross-validation."""
    model = BayesianNaiveBayes(**BAYES, random_state=0)
    return private_cross_validate(
        model, X, Y, scoring="log_loss", epsilon=1.0, accountant=ledger, random_state=2
    )


def learned(*, ledger: BudgetAccountant) -> Any:
    """Learn domains of numbers and of texts."""
    frame = pd.DataFrame({"a": NUMBERS[:, 0], "b": np.array(["x", "y", "z", "w"])[X[:, 1]]})
    return learn_schema(
        frame, 1.0, bins=4, delta=1e-5, accountant=ledger, random_state=3, verbose=False
    )


def tree(*, ledger: BudgetAccountant) -> Any:
    """Choose a tree."""
    three, coin = Categories([0, 1, 2]), Categories([0, 1])
    schema = Schema({"a": three, "b": three, "c": three, "d": three}, coin)
    return tree_augmented(X, Y, schema, epsilon=1.0, accountant=ledger, random_state=4)


def _release(release: Callable[..., Any], *given: Any, **options: Any) -> str:
    """Return what was charged and released, in a line: costs, numbers, and a digest of all."""
    ledger = BudgetAccountant(delta=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = _text(release(*given, ledger=ledger, **options))
    costs = [entry.cost for entry in ledger]
    epsilon, delta = sum(cost.epsilon for cost in costs), sum(cost.delta for cost in costs)
    rho = ", ".join("-" if e.rho is None else f"{float(e.rho):.6g}" for e in ledger)
    digits = [f"{float(number):.8g}" for number in re.findall(r"-?\d+\.\d*(?:e[+-]?\d+)?", text)]
    between = re.split(r"-?\d+\.\d*(?:e[+-]?\d+)?", text)
    numbers = f"{len(digits)} numbers, sum {sum(map(float, digits)):.6g}"
    digest = sha256("".join([*between, *digits]).encode()).hexdigest()[:12]
    return f"epsilon {epsilon}, delta {float(delta):.3g}, rho {rho}: {numbers}, {digest}"


def _text(released: Any) -> str:
    """Return all that is public about a fitted model, or about what a function returned."""
    if hasattr(released, "best_estimator_"):
        return _text(released.best_estimator_)
    if hasattr(released, "to_json"):
        return str(released.to_json())
    if hasattr(released, "get_params"):
        own = {name: value for name, value in vars(released).items() if name.endswith("_")}
        return repr(own)
    return repr(released)


def found() -> dict[str, str]:
    """Return the lines of all releases, by name."""
    return {name: release() for name, release in every_release()}


def test_seeded_releases_are_what_they_were() -> None:
    assert found() == json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    FILE.write_text(json.dumps(found(), indent=1) + "\n", encoding="utf-8")
