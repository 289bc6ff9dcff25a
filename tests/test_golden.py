"""Seeded fits whose released models must not change while the package is re-arranged.

Temporary. ``python tests/test_golden.py`` records the digests anew.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PosteriorQuerySession,
    PrivateSearchCV,
    Schema,
    preprocessing,
)
from dpbayes_sklearn.audit.catalogue import every_case
from dpbayes_sklearn.bayesian_network import tree_augmented
from dpbayes_sklearn.feature_selection import PrivateSelectKBest

RECORDED = Path(__file__).with_name("golden.json")
N = 300


def processor() -> str:
    """Name of the processor: floats may differ in their last bits between kinds."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def machine() -> list[str]:
    return [processor(), np.__version__, scipy.__version__]


def table() -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 12, N).round(1),
            "income": np.where(rng.random(N) < 0.1, np.nan, rng.lognormal(10, 0.6, N)),
            "job": rng.choice(["clerk", "nurse", "other"], N),
            "insured": rng.random(N) < 0.7,
        }
    )
    sick = rng.random(N) < 0.2 + 0.01 * (frame["age"] - 30).clip(0, 40)
    cost = 100 + 3 * frame["age"] + 20 * (frame["job"] == "nurse") + rng.normal(0, 15, N)
    return frame, np.where(sick, "yes", "no"), cost.to_numpy(), np.repeat(np.arange(N), 3)[:N]


COLUMNS = {
    "age": Interval(0, 100, bins=6),
    "income": Interval(0, 200_000, bins=5),
    "job": Categories(["clerk", "nurse", "other"]),
    "insured": Categories([False, True]),
}
CLASSES = Schema(COLUMNS, target=Categories(["no", "yes"]))
COSTS = Schema(COLUMNS, target=Interval(0, 600))
ADDED = {"neighbours": "add_remove"}
PERSON = {"privacy_unit": "person", "max_records_per_person": 2}


def of_a_person(estimator):
    """Return whether the estimator takes whose record each one is."""
    return estimator.privacy_unit == "person"


def fits() -> Iterator[tuple[str, str]]:
    """Yield the name and the JSON of every fit."""
    for case in every_case():
        model = clone(case.estimator).set_params(random_state=0)
        yield case.name, model.fit(case.X, case.y).to_json()
    frame, sick, cost, who = table()
    units = {"record": {}, "added": ADDED, "person": PERSON, "added person": {**ADDED, **PERSON}}
    for unit, whom in units.items():
        models = {
            "naive Bayes": (BayesianNaiveBayes(schema=CLASSES), frame, sick),
            "naive Bayes, gaussian": (
                BayesianNaiveBayes(schema=CLASSES, mechanism="gaussian", delta=1e-5),
                frame,
                sick,
            ),
            "regression": (BayesianLinearRegression(schema=COSTS), frame, cost),
            "regression, gaussian": (
                BayesianLinearRegression(schema=COSTS, mechanism="gaussian", delta=1e-5),
                frame,
                cost,
            ),
            "regression, map": (
                BayesianLinearRegression(schema=COSTS, mechanism="map"),
                frame,
                cost,
            ),
            "regression, sampler": (
                BayesianLinearRegression(schema=COSTS, mechanism="sampler"),
                frame,
                cost,
            ),
            "proportion": (BetaBinomial(), frame["insured"], None),
            "shares": (
                DirichletMultinomial(categories=COLUMNS["job"].values),
                frame["job"],
                None,
            ),
        }
        for name, (model, X, y) in models.items():
            model.set_params(random_state=3, epsilon=2.0, **whom)
            given = {"groups": who} if of_a_person(model) else {}
            yield f"{name}, {unit}", model.fit(X, y, **given).to_json()
    yield from prepared(frame, sick, cost)


def prepared(frame, sick, cost) -> Iterator[tuple[str, str]]:
    """Yield pipelines, searches, sessions, trees and learned schemas."""
    codes = frame[["age", "income"]].fillna(0).to_numpy()
    steps = {
        "scaled": preprocessing.PrivateMinMaxScaler(random_state=1),
        "standard": preprocessing.PrivateStandardScaler(random_state=1),
        "binned": preprocessing.PrivateKBinsDiscretizer(n_bins=4, random_state=1),
    }
    for name, step in steps.items():
        yield name, step.fit(codes).to_json()
    chosen = PrivateSelectKBest(
        k=1,
        schema=Schema({"a": Interval(0, 100, bins=4), "b": Interval(0, 200_000, bins=4)}),
        classes=["no", "yes"],
        random_state=1,
    )
    yield "selected", chosen.fit(pd.DataFrame(codes, columns=["a", "b"]), sick).to_json()
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=3, classes=["no", "yes"], random_state=2)
    line = make_pipeline(preprocessing.PrivateMinMaxScaler(random_state=1), model)
    yield "pipeline", line.fit(codes, sick)[-1].to_json()
    search = PrivateSearchCV(
        BayesianNaiveBayes(schema=CLASSES),
        {"alpha": [0.1, 1.0]},
        runs_per_candidate=2,
        random_state=4,
    )
    yield "search", search.fit(frame, sick).best_estimator_.to_json()
    tree = tree_augmented(frame, sick, CLASSES, epsilon=1.0, random_state=5)
    yield "tree", json.dumps(tree)
    network = BayesianNetworkClassifier(schema=CLASSES, parents=tree, random_state=5)
    yield "network", network.fit(frame, sick).to_json()
    session = PosteriorQuerySession(
        BayesianNaiveBayes(schema=CLASSES, mechanism="sampler", epsilon=0.1, random_state=6),
        frame,
        sick,
        accountant=BudgetAccountant(),
    )
    answers = [session.query(lambda tables: tables[0].tolist()) for _ in range(3)]
    yield "session", json.dumps(answers)
    learned = Schema.learn(frame, epsilon=5.0, delta=1e-3, random_state=7, verbose=False)
    yield "learned schema", learned.to_json()


def digests() -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in fits()}


@pytest.mark.filterwarnings("ignore")
def test_released_models_are_the_recorded_ones() -> None:
    recorded = json.loads(RECORDED.read_text())
    if recorded["machine"] != machine():
        pytest.skip("recorded on another kind of processor or with other versions of numpy, scipy")
    now = digests()
    assert now.keys() == recorded["digests"].keys()
    assert [name for name in now if now[name] != recorded["digests"][name]] == []


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({"machine": machine(), "digests": digests()}, indent=1) + "\n")
    sys.exit(0)
