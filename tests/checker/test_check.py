"""The second checker: every release of the catalogue has a verdict, and lies are seen."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchmarks.audit.tools.fuzzing import every_case
from checker.check import FALSE, HOLDS, ORDERS, UNKNOWN, check, kind_of
from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianCountRegression,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    NormalMean,
    PrivateMoments,
    PrivateSearchCV,
    Schema,
    from_json,
)
from dpbayes_sklearn.base.published import published_models
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit

UNITS: dict[str, Any] = {
    "record": "record",
    "feature": "feature",
    "add_remove": PrivacyUnit(neighbours="add_remove"),
    "person": PrivacyUnit("person", max_records=2, by_construction=True),
    "person, add_remove": PrivacyUnit(
        "person", max_records=3, neighbours="add_remove", by_construction=True
    ),
}
RNG = np.random.default_rng(0)
N = 3000
CODES, LABELS = RNG.integers(0, 3, (N, 3)), RNG.integers(0, 2, N)
NUMBERS = RNG.uniform(-1, 3, (N, 3))
TARGET = np.clip(NUMBERS.sum(axis=1) / 4 + RNG.normal(size=N) / 2, 0, 5)
FRAME = pd.DataFrame({"a": NUMBERS[:, 0], "b": CODES[:, 0], "c": LABELS})
MIXED = Schema(
    {"a": Interval(-1, 3), "b": Categories([0, 1, 2]), "c": Categories([0, 1])},
    target=Interval(0, 5),
)
BAYES: dict[str, Any] = {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3, "delta": 1e-6}
GRAPH = {"class": [0], 1: ["class", 0], 2: [1]}


def models(unit: str) -> Iterator[tuple[Any, ...]]:
    """Yield estimators with their data, for a unit of privacy."""
    own: dict[str, Any] = {"privacy_unit": UNITS[unit]}
    for mechanism in (
        *(Laplace(noise="independent"), Laplace(noise="joint"), Laplace(budget_split=0.5)),
        *(Fourier(), Fourier(noise="independent"), "gaussian", "auto", MAP(), Sampler(3)),
    ):
        for epsilon in (0.2, 5.0):
            model = BayesianNaiveBayes(epsilon, mechanism=mechanism, **BAYES, **own)
            yield model, CODES, LABELS
    for mechanism in ("laplace", "gaussian", "fourier", "sampler"):
        model = BayesianNetworkClassifier(parents=GRAPH, mechanism=mechanism, **BAYES, **own)
        yield model, CODES, LABELS
    if unit == "feature":
        return
    for mechanism in ("auto", "laplace", "gaussian", "fourier", "map", "sampler"):
        given = {"mechanism": mechanism, "delta": 1e-6, **own}
        bounded = BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5), **given)
        yield bounded, NUMBERS, TARGET
        yield clone(bounded).set_params(epsilon=8.0), NUMBERS, TARGET
        for intercept in (True, False):
            levels = BayesianLinearRegression(schema=MIXED, fit_intercept=intercept, **given)
            yield levels, FRAME, TARGET
    inside = {"mechanism": "map", "coef_bound": 1.0, **own}
    yield BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5), **inside), NUMBERS, TARGET
    given = {"bounds": (-1, 3), "classes": [0, 1], **own}
    origin = BayesianLogisticRegression(fit_intercept=False, intervals=True, **given)
    yield origin, NUMBERS, LABELS
    yield PrivateMoments(bounds=(-1, 3), **own), NUMBERS
    yield BayesianCountRegression(bounds=(-1, 3), cap=4, **own), NUMBERS, CODES[:, 0]
    yield BayesianClassifier(**given), NUMBERS, LABELS
    for mechanism in ("map", "sampler"):
        logistic = BayesianLogisticRegression(
            bounds=(-1, 3), classes=[0, 1], mechanism=mechanism, delta=1e-6, **own
        )
        yield logistic, NUMBERS, LABELS
        yield logistic.set_params(epsilon=8.0), NUMBERS, LABELS
        if mechanism == "map":
            for k in (3, 5):
                several = clone(logistic).set_params(classes=range(k))
                yield several, NUMBERS, RNG.integers(0, k, N)
                yield clone(several).set_params(ordered=True), NUMBERS, RNG.integers(0, k, N)
    for mechanism in ("laplace", "gaussian", "geometric", "laplace_improved"):
        counts = DirichletMultinomial(
            categories=Categories([0, 1, 2]), mechanism=mechanism, delta=1e-6, **own
        )
        yield counts, CODES[:, 0]
    for scaler in (
        *(PrivateKBinsDiscretizer(8), PrivateKBinsDiscretizer(8, bounds=(-1, 3))),
        *(PrivateMinMaxScaler(), PrivateMinMaxScaler(bounds=(-1, 3)), PrivateStandardScaler()),
    ):
        yield scaler.set_params(**own), NUMBERS
    for mechanism in ("laplace", "sampler"):
        if "add_remove" not in unit:
            mean = NormalMean(bounds=(-1, 3), mechanism=mechanism, **own)
            yield mean, NUMBERS


@cache
def document(model: Callable[[], Any]) -> str:
    """Return what a fitted model publishes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(model().to_json())


def verdict(model: Any, *data: Any, **options: Any) -> str:
    """Return the answer about a fitted copy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(clone(model).fit(*data, **options).to_json()).answer


CASES = {case.name: case for case in every_case(n=60)}


@pytest.mark.parametrize("name", CASES)
def test_the_guarantee_of_every_case_holds(name: str) -> None:
    _, model, X, y = CASES[name]
    answer = verdict(model, *((X,) if y is None else (X, y)))
    assert answer == HOLDS or (type(model).__name__ not in ORDERS and answer == UNKNOWN)


@pytest.mark.parametrize("unit", UNITS)
def test_the_guarantee_holds_for_every_unit(unit: str) -> None:
    found = {(str(model), verdict(model, *data)) for model, *data in models(unit)}
    assert [model for model, answer in found if answer != HOLDS] == []


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "feature"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "fourier", "sampler"])
def test_weights_are_copies(unit: str, mechanism: str) -> None:
    model = BayesianNaiveBayes(mechanism=mechanism, max_weight=3, privacy_unit=UNITS[unit], **BAYES)
    assert verdict(model, CODES, LABELS, sample_weight=LABELS + 1) == HOLDS


def test_the_whole_recipe_of_a_linear_regression_holds() -> None:
    X = RNG.uniform(-1, 3, (20_000, 2))
    model = BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5))
    text = model.fit(X, np.clip(X.sum(axis=1), 0, 5)).to_json()
    (fit,) = json.loads(text)["plan"]["fits"]
    assert len(fit["steps"]) == 8
    assert check(text).answer == HOLDS


def test_gaussian_noise_of_a_gradient_holds() -> None:
    wide = {f"c{i}": Categories([0, 1]) for i in range(60)}
    X = pd.DataFrame(RNG.integers(0, 2, (N, 60)), columns=[*wide])
    for unit in ("record", "person", "add_remove"):
        given = {"delta": 1e-5, "privacy_unit": UNITS[unit]}
        logistic = BayesianLogisticRegression(schema=Schema(wide, Categories([0, 1])), **given)
        linear = BayesianLinearRegression(
            schema=Schema(wide, target=Interval(0, 5)), mechanism="map", **given
        )
        for model, y in ((logistic, LABELS), (linear, TARGET)):
            text = clone(model).fit(X, y).to_json()
            assert mode_of(json.loads(text))["body"]["law"]["type"] == "DiscreteGaussian"
            assert check(text).answer == HOLDS


def test_batches_and_searches_hold() -> None:
    batches = BayesianNaiveBayes(**BAYES)
    for part in range(3):
        batches.partial_fit(CODES[part::3], LABELS[part::3])
    assert check(batches.to_json()).answer == HOLDS
    options: dict[str, Any] = {"runs_per_candidate": 2, "random_state": 0}
    plain = {name: value for name, value in BAYES.items() if name != "delta"}
    for stopping in ("geometric", "logarithmic"):
        grid = {"alpha": [0.5, 2.0]}
        search = PrivateSearchCV(BayesianNaiveBayes(**plain), grid, stopping=stopping, **options)
        text = search.fit(CODES[:500], LABELS[:500]).best_estimator_.to_json()
        assert check(text).answer == HOLDS


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (BayesianNaiveBayes(float("inf"), **BAYES), "no privacy is promised"),
        (BayesianNaiveBayes(mechanism=MAP(score="posterior"), **BAYES), "posterior mass"),
        (PrivateSelectKBest(1, bounds=(0, 2), n_bins=3, classes=[0, 1]), "not in the document"),
    ],
    ids=str,
)
def test_what_cannot_be_told_has_a_reason(model: Any, reason: str) -> None:
    found = check(clone(model).fit(CODES, LABELS).to_json())
    assert found.answer == UNKNOWN
    assert reason in str(found)


def test_every_estimator_that_publishes_is_known() -> None:
    assert {*ORDERS} == {*published_models()}


def test_documents_of_older_releases_are_read_and_cannot_be_told() -> None:
    older = json.loads(BetaBinomial().fit([0, 1, 1]).to_json())
    del older["plan"]
    assert from_json(json.dumps(older)).to_json() == json.dumps(older)
    assert check(json.dumps(older)).answer == UNKNOWN


def test_a_plan_survives_reading() -> None:
    text = BetaBinomial().fit([0, 1, 1]).to_json()
    assert from_json(text).to_json() == text


def bayes(**options: Any) -> Any:
    return BayesianNaiveBayes(**{**BAYES, "random_state": 0, **options}).fit(CODES, LABELS)


def linear() -> Any:
    model = BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5), random_state=0)
    return model.fit(NUMBERS, TARGET)


def gram() -> Any:
    given = {"mechanism": "gaussian", "delta": 1e-6, "random_state": 0}
    return BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5), **given).fit(NUMBERS, TARGET)


def classes() -> Any:
    model = BayesianLogisticRegression(bounds=(-1, 3), classes=[0, 1, 2], random_state=0)
    return model.fit(NUMBERS, np.arange(len(LABELS)) % 3)


def ordered() -> Any:
    model = BayesianLogisticRegression(bounds=(-1, 3), classes=[0, 1, 2], random_state=0)
    return model.set_params(ordered=True).fit(NUMBERS, np.arange(len(LABELS)) % 3)


def logistic() -> Any:
    model = BayesianLogisticRegression(bounds=(-1, 3), classes=[0, 1], random_state=0)
    return model.set_params(intervals=True).fit(NUMBERS, LABELS)


def drawn() -> Any:
    return bayes(mechanism=Sampler(2))


def laplace() -> Any:
    return bayes(mechanism="laplace")


def gaussian() -> Any:
    return bayes(mechanism="gaussian")


def added() -> Any:
    return bayes(mechanism="laplace", privacy_unit=UNITS["add_remove"])


def person() -> Any:
    return bayes(mechanism="laplace", privacy_unit=UNITS["person"])


def weighted() -> Any:
    model = BayesianNaiveBayes(**BAYES, mechanism="laplace", max_weight=3, random_state=0)
    return model.fit(CODES, LABELS, sample_weight=LABELS + 1)


def searched() -> Any:
    plain = {name: value for name, value in BAYES.items() if name != "delta"}
    search = PrivateSearchCV(
        BayesianNaiveBayes(**plain), {"alpha": [0.5, 2.0]}, runs_per_candidate=2, random_state=0
    )
    return search.fit(CODES[:500], LABELS[:500]).best_estimator_


def coin() -> Any:
    return BetaBinomial(mechanism="exponential", random_state=0).fit(LABELS[:60].astype(bool))


def mean() -> Any:
    return NormalMean(bounds=(-1, 3), random_state=0, mechanism="sampler").fit(NUMBERS)


def bins() -> Any:
    return PrivateKBinsDiscretizer(8, random_state=0).fit(NUMBERS)


def rates() -> Any:
    model = BayesianCountRegression(bounds=(-1, 3), cap=4, intervals=True, random_state=0)
    return model.fit(NUMBERS, CODES[:, 0])


def moments() -> Any:
    return PrivateMoments(bounds=(-1, 3), random_state=0).fit(NUMBERS)


def shares() -> Any:
    given = {"categories": Categories([0, 1, 2]), "mechanism": "laplace", "random_state": 0}
    return DirichletMultinomial(**given).fit(CODES[:, 0])


def sums() -> Any:
    return NormalMean(bounds=(-1, 3), random_state=0).fit(NUMBERS)


def ball() -> Any:
    given = {"mechanism": "sampler", "random_state": 0}
    return BayesianLinearRegression(bounds_X=(-1, 3), bounds_y=(0, 5), **given).fit(NUMBERS, TARGET)


def halved(text: str, by: int = 2) -> str:
    """Return a part of a fraction."""
    numerator, denominator = text.split("/")
    return f"{numerator}/{int(denominator) * by}"


def steps_of(json: Any, place: int = 0) -> Any:
    return json["plan"]["fits"][0]["steps"][place]


def all_steps(json: Any) -> Any:
    return json["plan"]["fits"][0]["steps"]


def mode_of(json: Any) -> Any:
    """Return the law of a perturbed mode."""
    return next(step["law"] for step in all_steps(json) if step["what"] == "perturbed mode")


def released(json: Any) -> Any:
    return json["fitted"]["posterior_"]["posterior"]["released"]


def printed(json: Any, **values: Any) -> None:
    """Print another guarantee, wherever it stands."""
    own = json["fitted"].get("_batches") or [json["fitted"]["guarantee_"]]
    for each in (json["guarantee"], *own):
        each.update(values)


def both_laws(json: Any, change: Callable[[Any], None]) -> None:
    """Change the noise in the plan and in the released values alike."""
    change(steps_of(json)["law"])
    change(released(json)["laws"][0])


def scaled(name: str, by: int = 2) -> Callable[[Any], None]:
    def change(law: Any) -> None:
        value = law[name]
        law[name] = [halved(v, by) for v in value] if isinstance(value, list) else halved(value, by)

    return change


def asked(json: Any, kind: str) -> Any:
    """Return what a step of this kind asks."""
    return next(step["structure"] for step in all_steps(json) if kind_of(step) == kind)


def all_neighbours(json: Any) -> None:
    """Promise more, in the plan and in the guarantee."""
    json["plan"]["fits"][0]["unit"]["neighbours"] = "add_remove"
    printed(json, neighbours=UNITS["add_remove"].definition)


def one_record(json: Any) -> None:
    """Promise less than was asked for, in the plan and in the guarantee."""
    json["plan"]["fits"][0]["unit"].update(name="record", max_records=1)
    printed(json, unit="record", max_records=1, neighbours=PrivacyUnit().definition)


def first_step_gone(json: Any) -> None:
    left = steps_of(json)
    del json["plan"]["fits"][0]["steps"][0]
    numerator, denominator = map(int, left["epsilon"].split("/"))
    printed(json, epsilon=json["guarantee"]["epsilon"] - numerator / denominator)


def smaller_network(json: Any) -> None:
    asked, law = steps_of(json)["structure"], steps_of(json)["law"]
    asked["sizes"] = asked["sizes"][1:]
    law["values"] = law["values"][1:]


def other_unit(json: Any) -> None:
    json["plan"]["fits"][0]["unit"].update(name="record", max_records=1)


FORGED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "half the noise in the plan": (laplace, lambda d: scaled("scale")(steps_of(d)["law"])),
    "half the noise everywhere": (laplace, lambda d: both_laws(d, scaled("scale"))),
    "half the Gaussian variance": (gaussian, lambda d: both_laws(d, scaled("parameters"))),
    "a tenth of a percent less variance": (
        gaussian,
        lambda d: both_laws(d, lambda law: law.update(
            parameters=[f"{999 * int(v.split('/')[0])}/{1000 * int(v.split('/')[1])}"
                        for v in law["parameters"]])),
    ),
    "another noise than was released": (
        laplace, lambda d: released(d)["laws"][0].update(scale="1/2"),
    ),
    "a smaller epsilon is printed": (laplace, lambda d: printed(d, epsilon=0.5)),
    "a smaller epsilon stands in front": (laplace, lambda d: d["guarantee"].update(epsilon=0.5)),
    "the delta is dropped": (gaussian, lambda d: printed(d, delta=0.0)),
    "a smaller delta is printed": (gaussian, lambda d: printed(d, delta=1e-9)),
    "a smaller rho is printed": (gaussian, lambda d: printed(d, rho=0.001)),
    "the share of the temperature is dropped": (laplace, lambda d: all_steps(d).pop()),
    "the share of a step is halved": (laplace, lambda d: steps_of(d).update(epsilon="1/4")),
    "a choice knows a smaller spread of losses": (
        laplace, lambda d: steps_of(d, 1)["law"].update(spread=100),
    ),
    "a table is left out": (laplace, smaller_network),
    "fewer numbers get noise": (gaussian, lambda d: steps_of(d)["law"]["numbers"].pop()),
    "the number of records is released for nothing": (added, lambda d: all_steps(d).pop(0)),
    "the number of records is public": (
        added, lambda d: d["plan"]["fits"][0]["unit"].update(neighbours="replace"),
    ),
    "persons are records": (person, other_unit),
    "a person has fewer records": (
        person, lambda d: d["plan"]["fits"][0]["unit"].update(max_records=1),
    ),
    "neighbours of another unit are printed": (
        added, lambda d: printed(d, neighbours=PrivacyUnit().definition),
    ),
    "weights count once": (weighted, lambda d: d["plan"]["fits"][0].update(copies=1)),
    "weights are no copies": (weighted, lambda d: d["plan"]["fits"][0].update(copies=None)),
    "a search is one run": (searched, lambda d: d["plan"]["fits"][0].pop("runs")),
    "a search stops by another law": (
        searched, lambda d: d["plan"]["fits"][0]["runs"].update(name="logarithmic"),
    ),
    "a batch has no plan": (laplace, lambda d: d["plan"].update(fits=[])),
    "the look is gone": (linear, first_step_gone),
    "less noise of the gradient": (
        linear, lambda d: scaled("scale")(mode_of(d)["body"]["law"]),
    ),
    "a smaller ridge": (
        linear, lambda d: mode_of(d).update(ridge=[r / 9 for r in mode_of(d)["ridge"]]),
    ),
    "no jitter": (linear, lambda d: scaled("scale", 100)(mode_of(d)["jitter"])),
    "a search that ends early": (linear, lambda d: mode_of(d).update(error=1.0)),
    "a finer lattice of the gradient": (
        linear, lambda d: mode_of(d)["body"].update(steps=2**40),
    ),
    "a histogram of fewer columns": (
        linear, lambda d: scaled("scales", 4)(steps_of(d)["law"]),
    ),
    "less noise of products": (gram, lambda d: scaled("parameters")(steps_of(d, 1)["law"])),
    "a coarser grid of products": (gram, lambda d: steps_of(d, 1)["structure"].update(grid=2**20)),
    "less noise of the curvature": (logistic, lambda d: scaled("scale")(steps_of(d, -1)["law"])),
    "less noise of three classes": (
        classes, lambda d: scaled("scale")(steps_of(d, -1)["law"]["body"]["law"]),
    ),
    "the determinant of three classes is that of two": (
        classes, lambda d: steps_of(d, -1)["law"]["shape"].update(rank=1),
    ),
    "three classes are two": (classes, lambda d: steps_of(d, -1)["structure"].pop("classes")),
    "less noise of ordered classes": (
        ordered, lambda d: scaled("scale")(steps_of(d, -1)["law"]["body"]["law"]),
    ),
    "the determinant of ordered classes is that of two": (
        ordered, lambda d: steps_of(d, -1)["law"]["shape"].update(rank=1),
    ),
    "ordered classes are none": (ordered, lambda d: steps_of(d, -1)["structure"].pop("ordered")),
    "three classes are ordered": (
        classes, lambda d: steps_of(d, -1)["structure"].update(ordered=True),
    ),
    "records of the curvature are longer": (
        logistic, lambda d: steps_of(d, -1)["structure"].update(limit=1e3),
    ),
    "sharper draws of tables": (drawn, lambda d: steps_of(d)["law"].update(tau=1.0)),
    "more draws of tables": (drawn, lambda d: steps_of(d)["structure"].update(draws=4)),
    "draws of tables from fewer records": (
        drawn, lambda d: steps_of(d)["structure"].update(turns=10),
    ),
    "sharper draws of means": (
        mean, lambda d: steps_of(d)["structure"].update(tempers=[1.0] * 3),
    ),
    "a steeper choice": (coin, lambda d: steps_of(d)["law"].update(exponent=5.0)),
    "steeper ranks": (
        bins, lambda d: steps_of(d)["structure"]["columns"][0][0].update(rate=1.0),
    ),
    "a question of ranks counts less": (
        bins, lambda d: steps_of(d)["structure"]["columns"][0][-1].update(replaced="1/1", rate=0.1),
    ),
    "a kind of step that nobody knows": (
        laplace, lambda d: steps_of(d).update(structure={"kind": "anything"}),
    ),
    "a noise that nobody knows": (
        laplace, lambda d: both_laws(d, lambda law: law.update(type="None")),
    ),
    "a negative loss": (linear, lambda d: mode_of(d)["body"].update(steps=-(2**40))),
    "an error that is no number": (linear, lambda d: mode_of(d).update(error=float("nan"))),
    "a histogram of fewer columns in the plan": (
        moments, lambda d: asked(d, "Histograms").update(columns=2),
    ),
    "histograms of fewer cells": (linear, lambda d: asked(d, "Histograms")["sizes"].pop()),
    "fewer sums of counts": (rates, lambda d: asked(d, "bounded").update(columns=1)),
    "coarser sums of counts, maybe": (rates, lambda d: asked(d, "bounded").update(grid=2**19)),
    "coarser sums of numbers, maybe": (sums, lambda d: asked(d, "sums").update(grid=2**19)),
    "coarser products, maybe": (gram, lambda d: asked(d, "products").update(grid=2**14)),
    "a coarser curvature, maybe": (rates, lambda d: asked(d, "curvature").update(grid=2**14)),
    "fewer steps of a gradient, maybe": (
        logistic, lambda d: mode_of(d)["body"].update(steps=2**39),
    ),
    "fewer steps of a gradient in a ball, maybe": (
        linear, lambda d: mode_of(d)["body"].update(steps=2**19),
    ),
    "fewer steps of a vector": (linear, lambda d: asked(d, "VectorSum").update(steps=2**14)),
    "smaller second derivatives": (
        logistic, lambda d: mode_of(d)["shape"].update(
            squares=[s / 2 for s in mode_of(d)["shape"]["squares"]]),
    ),
    "smaller second derivatives of counts": (
        rates, lambda d: mode_of(d)["shape"].update(
            squares=[s / 2 for s in mode_of(d)["shape"]["squares"]]),
    ),
    "shorter records": (
        linear, lambda d: mode_of(d)["shape"].update(
            squares=[s / 2 for s in mode_of(d)["shape"]["squares"]]),
    ),
    "the largest second derivative, not their sum": (
        logistic, lambda d: mode_of(d)["shape"].update(together=True),
    ),
    "gradients of one sign": (logistic, lambda d: asked(d, "gradients").update(signed=False)),
    "a category less": (shares, lambda d: asked(d, "categories").update(categories=2)),
    "fewer draws of tables": (drawn, lambda d: asked(d, "splits").update(draws=1)),
    "losses of fewer classes": (laplace, lambda d: asked(d, "losses").update(classes=1)),
    "another prior of a choice": (coin, lambda d: asked(d, "candidates").update(prior=[2.0, 1.0])),
    "narrower bounds of means": (
        mean, lambda d: asked(d, "tempered").update(bounds=[[-1.0, 2.0]] * 3),
    ),
    "a kind of column that there is not": (
        gram, lambda d: asked(d, "products")["kinds"].__setitem__(1, "nothing"),
    ),
    "neighbours that there are not": (
        laplace, lambda d: d["plan"]["fits"][0]["unit"].update(neighbours="others"),
    ),
    "records that come or go, of shares": (shares, all_neighbours),
    "records that come or go, of bins": (bins, all_neighbours),
    "records that come or go, of moments": (moments, all_neighbours),
    "a person of two records is one everywhere": (person, one_record),
    "draws in a larger ball": (ball, lambda d: steps_of(d, -1)["law"].update(radius=1e6)),
    "more draws in a ball": (ball, lambda d: steps_of(d, -1)["law"].update(draws=50)),
    "a plan of another version, dropped": (laplace, lambda d: d["plan"].update(version=2)),
    "no noise": (gaussian, lambda d: both_laws(d, lambda law: law.update(parameters=["0/1"] * 4))),
}  # fmt: skip
"""Lies in a document: what is wrong, the model that publishes it, and the forgery."""


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_document_is_seen(name: str) -> None:
    model, forge = FORGED[name]
    text = document(model)
    assert check(text).answer == HOLDS
    forged = json.loads(text)
    forge(forged)
    found = check(json.dumps(forged))
    maybe = (
        "dropped",
        "nobody knows",
        "a search",
        "no number",
        "maybe",
    )  # steps, or a part of epsilon, are missing, or a lattice is coarser than it usually is
    assert found.answer == FALSE or (found.answer == UNKNOWN and any(w in name for w in maybe))


MODELS = (
    *(linear, gram, classes, logistic, drawn, laplace, gaussian, added, person, weighted, searched),
    *(coin, mean, bins, rates, moments, shares, sums, ball),
)


@pytest.mark.parametrize("model", MODELS)
def test_steps_are_all_there_once_and_in_order(model: Callable[[], Any]) -> None:
    text = document(model)
    steps = all_steps(json.loads(text))
    assert check(text).answer == HOLDS
    for i, step in enumerate(steps):
        one_less, twice, swapped = (json.loads(text) for _ in range(3))
        del all_steps(one_less)[i]
        own = Fraction(step["epsilon"]) * (3 if model is searched else 1)
        printed(one_less, epsilon=float(Fraction(str(one_less["guarantee"]["epsilon"])) - own))
        all_steps(twice).insert(i, step)
        assert check(json.dumps(one_less)).answer != HOLDS
        assert check(json.dumps(twice)).answer != HOLDS
        if i and kind_of(steps[i - 1]) != kind_of(step):
            before = all_steps(swapped)
            before[i - 1], before[i] = before[i], before[i - 1]
            assert check(json.dumps(swapped)).answer != HOLDS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"guarantee": 1}', '{"guarantee": {}}'])
def test_other_texts_cannot_be_told(text: str) -> None:
    assert check(text).answer == UNKNOWN


def test_it_imports_nothing_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(document(laplace), encoding="utf-8")
    root = Path(__file__).parents[2]
    names = "('dpbayes_sklearn', 'sklearn', 'scipy')"
    seen = f"import sys, checker.check; print([m for m in sys.modules if m.startswith({names})])"
    found = subprocess.run(
        [sys.executable, "-c", seen], cwd=root, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
    told = subprocess.run(
        [sys.executable, "-m", "checker", str(file)], cwd=root, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "The guarantee holds." in told.stdout
