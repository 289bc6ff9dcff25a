"""No fitted object holds or shows an exact statistic; hidden ones are found wherever they are."""

from __future__ import annotations

import functools
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from benchmarks.audit.tools.fuzzing import every_case
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.audit.leaks import fitted_numbers, leaks, walk
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.regression.moments import gram
from dpbayes_sklearn.release import boundary

CASES = {case.name: case for case in every_case(n=60, epsilon=0.02)}
PUBLIC = re.compile(r"design|blocks|_lookup|encoder|records\.classes")  # parts that may stay
CANARY, NUMBER = "HIV+7391", 73917391.25


def exact_statistics(fit):
    """Return all arrays of numbers that the statistics of a fit held, by their place."""
    seen = []

    def watched(release, plan, statistics, noise):
        seen.append(statistics)
        if isinstance(statistics, LinearRecords):
            seen.append(gram(statistics, 2**10))
        return release(plan, statistics, noise)

    with boundary(watched):
        fitted = fit()
    arrays = {
        f"statistics{path}": value
        for path, value in walk(seen)
        if isinstance(value, np.ndarray)
        and value.dtype.kind in "biuf"
        and value.size > 1
        and not PUBLIC.search(path)
    }
    return fitted, arrays


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_exact_statistic_survives_a_fit(name):
    case = CASES[name]
    model = deepcopy(case.estimator).set_params(
        random_state=1, accountant=BudgetAccountant(delta=1)
    )
    fitted, secrets = exact_statistics(lambda: model.fit(case.X, case.y))
    assert len(secrets) > 0
    records = {"X": case.X.T.ravel(), "y": case.X if case.y is None else case.y}
    assert leaks(fitted, {**secrets, **records}) == []


@pytest.mark.parametrize("name", [name for name in CASES if "Network" in name or "Naive" in name])
def test_no_exact_statistic_survives_batches(name):
    case = CASES[name]
    model = deepcopy(case.estimator).set_params(random_state=1)
    model.partial_fit(case.X, case.y).predict(case.X)
    fitted, secrets = exact_statistics(lambda: model.partial_fit(case.X, case.y))
    assert leaks(fitted, secrets) == []


def test_a_search_keeps_nothing_either():
    case = CASES["BayesianNaiveBayes, laplace, plug_in"]
    search = PrivateSearchCV(case.estimator, {"alpha": [1.0]}, runs_per_candidate=1, random_state=0)
    fitted, secrets = exact_statistics(lambda: search.fit(case.X, case.y))
    assert leaks(fitted, {**secrets, "X": case.X, "y": case.y}) == []


def test_values_that_nobody_declared_are_nowhere():
    frame = pd.DataFrame({"job": ["a", CANARY, "b"] * 20, "pay": [1.0, NUMBER, -NUMBER] * 20})
    schema = Schema(
        {"job": Categories(["a", "b"]), "pay": Interval(0, 9, bins=3)}, Categories(["u", "v"])
    )
    secrets = {"text": CANARY, "number": NUMBER, "other": -NUMBER}
    labels = np.array(["u", CANARY, "v"] * 20)
    assert leaks(BayesianNaiveBayes(schema=schema).fit(frame, labels), secrets) == []
    regression = BayesianLinearRegression(schema=schema, bounds_y=(0, 1))
    regression.set_params(schema=Schema(schema.columns))
    assert leaks(regression.fit(frame, frame["pay"]), secrets) == []
    counts = DirichletMultinomial(categories=Categories(["a", "b"]))
    assert leaks(counts.fit(frame["job"]), secrets) == []


SECRET = np.array([[12, 88], [31, 69]])


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside):
        self.inside = inside


def keep_in_attribute(model):
    model._cache = SECRET.copy()


def keep_in_closure(model):
    counts = SECRET.copy()
    model.callback_ = lambda: counts


def keep_in_default(model):
    model.callback_ = functools.partial(print, SECRET.astype(float))


def keep_in_method(model):
    class Holder:
        def __init__(self):
            self.counts = SECRET.tolist()

        def ask(self):
            return None

    model.callback_ = Holder().ask


def keep_in_slot(model):
    model.slotted_ = [{"deep": Slotted(SECRET)}]


def keep_in_view(model):
    model.view_ = np.concatenate([SECRET.ravel(), [5, 6]])[4:]


def keep_as_part(model):
    model.all_ = np.concatenate([[1], SECRET.ravel(), [2]])


def keep_in_cached_property(model):
    model.posterior_.__dict__["_mean"] = SECRET


def keep_in_dictionary_key(model):
    model.table_ = {tuple(SECRET.ravel().tolist()): 1}


PLANTED = [value for name, value in globals().items() if name.startswith("keep_")]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_arrays_are_found(plant):
    case = CASES["BayesianNaiveBayes, laplace, noise_aware"]
    model = deepcopy(case.estimator).fit(case.X, case.y)
    assert leaks(model, {"counts": SECRET}) == []
    plant(model)
    assert any(found.startswith("counts: object") for found in leaks(model, {"counts": SECRET}))


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("__repr__", "repr"),
        ("_repr_html_", "_repr_html_"),
        ("to_json", "to_json"),
        ("__str__", "str"),
    ],
)
def test_planted_texts_are_found(method, where):
    case = CASES["BayesianNaiveBayes, laplace, plug_in"]
    model = deepcopy(case.estimator).fit(case.X, case.y)
    careless = type("Careless", (type(model),), {method: lambda self: f"most are {CANARY}"})
    model.__class__ = careless
    assert f"text: {where}" in leaks(model, {"text": CANARY})


def test_a_planted_pickle_is_found():
    class Careless:
        def __reduce__(self):
            return str, (f"{CANARY} {NUMBER}",)

    found = leaks(Careless(), {"text": CANARY, "number": NUMBER})
    assert found == ["text: pickle", "number: pickle"]


def test_arrays_written_as_text_are_found():
    class Careless:
        def __repr__(self):
            return "Careless"

        def to_json(self):
            return '{"data": [12, 88, 31, 69]}'

    assert leaks(Careless(), {"counts": SECRET}) == ["counts: to_json"]


def test_a_planted_number_is_found():
    model = deepcopy(CASES["BetaBinomial, geometric, plug_in"].estimator).fit([0, 1, 1])
    assert leaks(model, {"number": NUMBER}) == []
    model.sum_ = np.float64(NUMBER)
    assert "number: object.sum_" in leaks(model, {"number": NUMBER})


def test_loops_end():
    loop: list[object] = [SECRET]
    loop.append(loop)
    assert leaks(loop, {"counts": SECRET})[0] == "counts: object[0]"


def test_numbers_of_a_fitted_object_are_those_an_adversary_reads():
    model = deepcopy(CASES["BetaBinomial, laplace, plug_in"].estimator).fit([0, 1, 1])
    assert set(model.posterior_.concentration) <= set(fitted_numbers(model))
    model._hidden = NUMBER
    assert NUMBER not in fitted_numbers(model)
