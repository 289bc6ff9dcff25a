"""Worlds whose parts are added up: every kind of estimator, for every unit and with a delta."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.audit._parts import World
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
)
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.unit import FEATURE, RECORD, PrivacyUnit

__all__ = [
    "ADDED",
    "BINARY",
    "BITS",
    "CORNERS",
    "NAN",
    "SCHEMA",
    "THERE",
    "UNITS",
    "frame",
    "numbers",
    "worlds",
]

ADDED, PERSON = PrivacyUnit("record", neighbours="add_remove"), PrivacyUnit("person", max_records=2)
THERE = PrivacyUnit("person", max_records=2, neighbours="add_remove")
UNITS = (RECORD, ADDED, PERSON, THERE)
NAN = float("nan")


def worlds() -> list[World]:
    """Return all worlds in which nothing is forced."""
    regressions = [*_regressions(), *_signs(), *_logistic()]
    return [*_counts(), *_deep(), *regressions, *_categories(), *_preparation()]


def frame(rows: Any, names: str = "abcdefgh") -> pd.DataFrame:
    """Return rows of (columns, target) as a table."""
    columns = [*zip(*rows, strict=True)]
    return pd.DataFrame(dict(zip([*names[: len(columns) - 1], "y"], columns, strict=True)))


BITS = ((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 0), (0, 0, 1, 0), (0, 0, 0, 1))


def _counts() -> Iterator[World]:
    """Yield naive Bayes, of even records and of those that agree, and a network."""
    alike = frame([(0, 0, 0, 0)] * 1500)
    even = frame(np.random.default_rng(0).integers(0, 2, (1500, 4)).tolist())
    bayes: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    bayes["inference"] = "plug_in"
    for (mechanism, delta, others, least), unit in product(
        (
            ("laplace", 0.0, even, 0.99),
            ("fourier", 0.0, even, 0.99),
            ("map", 0.0, alike, 0.25),
            (Sampler(3), 0.0, alike, 0.3),
            (Sampler(30), 1e-6, alike, 0.5),
            ("gaussian", 1e-6, even, 0.99),
        ),
        (*UNITS, FEATURE),
    ):
        model = BayesianNaiveBayes(delta=delta, mechanism=mechanism, **bayes)
        yield World(f"counts, {mechanism}, {unit.label}", model, others, BITS, unit, least)
    sure = BayesianNaiveBayes(mechanism=Laplace(), **bayes)  # losses from 0 to their bound
    yield World("counts, Laplace(), record", sure, alike, BITS, RECORD, 0.99)
    for unit in UNITS:
        network = BayesianNetworkClassifier(parents={"b": ["a"]}, **bayes)
        yield World(f"network, {unit.label}", network, even, BITS, unit, 0.9)


SCHEMA = Schema(
    {
        "x": Interval(-1, 1),
        "m": Interval(-1, 1, missing="indicator"),
        "s": Categories([*"ab"]),
        "l": Categories([*"pqr"]),
        "k": Categories([*"uvw"]),
    },
    Interval(-1, 1),
)
CORNERS = (
    (1.0, 1.0, "a", "p", "u", 1.0),
    (-1.0, -1.0, "b", "q", "v", 1.0),
    (1.0, 1.0, "a", "p", "u", -1.0),
    (-1.0, -1.0, "b", "q", "v", -1.0),
    (1.0, NAN, "a", "r", "w", 1.0),
    (-1.0, NAN, "b", "p", "u", -1.0),
    (0.0, 0.0, "a", "q", "w", 0.0),
    (0.0, NAN, "b", "r", "u", 0.0),
)


def numbers(n: int) -> pd.DataFrame:
    """Return records for columns of all kinds."""
    rng = np.random.default_rng(1)
    x, m = rng.uniform(-0.5, 0.5, n), rng.uniform(-0.3, 0.5, n)
    m[rng.random(n) < 0.3] = NAN
    words = (rng.choice([*letters], n) for letters in ("ab", "pqr", "uvw"))
    y = np.clip(0.6 * x + rng.normal(0, 0.15, n), -1, 1)
    return pd.DataFrame(dict(zip("xmslky", (x, m, *words, y), strict=True)))


def _regressions() -> Iterator[World]:
    """Yield regressions over columns of all kinds, and over columns of levels alone."""
    others = numbers(2000)
    for (mechanism, delta, options), unit in product(
        (
            ("laplace", 0.0, {}),
            ("fourier", 0.0, {}),
            ("gaussian", 1e-6, {}),
            (Sampler(3), 0.0, {}),
            (Sampler(30), 1e-6, {}),
            ("sampler", 0.0, {"coef_bound": 3.0}),
            ("sampler", 0.0, {"coef_bound": 0.1}),
            ("map", 0.0, {}),
            ("map", 0.0, {"coef_bound": 3.0}),
        ),
        UNITS,
    ):
        if unit.name == "person" and (options or mechanism == "fourier"):
            continue  # persons are told by the others
        model = BayesianLinearRegression(delta=delta, mechanism=mechanism, schema=SCHEMA, **options)
        name = f"regression, {mechanism}{options or ''}, {unit.label}"
        yield World(name, model, others, CORNERS, unit, 0.75)
    pair = Schema({name: SCHEMA.columns[name] for name in "xl"}, SCHEMA.target)
    model = BayesianLinearRegression(mechanism="laplace", schema=pair)
    rows = tuple((row[0], row[3], row[5]) for row in CORNERS)
    for unit in (RECORD, PERSON):
        many = numbers(3200 * unit.max_records)[[*"xly"]]
        yield World(f"two stages, laplace, {unit.label}", model, many, rows, unit, 0.75)
    few = Schema({name: SCHEMA.columns[name] for name in "lk"}, SCHEMA.target)
    columns, ends = [*"lky"], tuple(row[3:] for row in CORNERS)
    for (mechanism, delta), constant in product(
        (("laplace", 0.0), ("fourier", 0.0), ("gaussian", 1e-6), ("map", 0.0)), (True, False)
    ):
        model = BayesianLinearRegression(
            delta=delta, mechanism=mechanism, schema=few, fit_intercept=constant
        )
        name = f"levels, {mechanism}, {'with' if constant else 'without'} a constant"
        yield World(name, model, others[columns].head(100), ends, RECORD, 0.7)


def _signs() -> Iterator[World]:
    """Yield regressions over signs, which are centred first; some pairs are orthogonal."""
    rng, d = np.random.default_rng(4), 6
    schema = Schema({name: Categories([*"ab"]) for name in "abcdef"}, Interval(-1, 1))
    own = [("a",) * d + (1.0,), *(("b",) * k + ("a",) * (d - k) + (-1.0,) for k in range(d + 1))]
    rows = [(*rng.choice([*"ab"], d).tolist(), float(rng.uniform(-1, 1))) for _ in range(1000)]
    for mechanism, delta in (("laplace", 0.0), ("gaussian", 1e-6)):
        model = BayesianLinearRegression(
            delta=delta, mechanism=mechanism, schema=schema, noise_variance=0.1
        )
        yield World(f"signs, {mechanism}", model, frame(rows), tuple(own), RECORD, 0.97)


def _logistic() -> Iterator[World]:
    """Yield logistic regressions over columns of all kinds; records at opposite ends."""
    others = numbers(200)
    others["y"] = (others["y"] > 0).astype(int)
    own = tuple((*CORNERS[i][:-1], label) for i, label in ((0, 1), (1, 0), (0, 0), (4, 1)))
    for effects, unit in product(("smooth", "linear"), UNITS):
        model = BayesianLogisticRegression(
            effects=effects, intervals=True, schema=Schema(SCHEMA.columns, Categories([0, 1]))
        )
        yield World(f"logistic, {effects}, {unit.label}", model, others, own, unit, 0.6)


def _categories() -> Iterator[World]:
    """Yield posteriors of one variable."""
    codes, own = frame([(i % 3, 0) for i in range(30)]), ((0, 0), (1, 0), (2, 0))
    for mechanism, unit in product(("geometric", "laplace", "laplace_improved"), UNITS):
        model = DirichletMultinomial(categories=3, mechanism=mechanism)
        yield World(f"categories, {mechanism}, {unit.label}", model, codes, own, unit, 0.99)
    for mechanism, unit in product(("exponential", "hellinger"), (RECORD, PERSON)):
        model = DirichletMultinomial(categories=3, mechanism=mechanism)
        yield World(f"categories, {mechanism}, {unit.label}", model, codes, own, unit, 0.3)
    for unit in UNITS:
        coin, bits = BetaBinomial(), frame([(i % 2, 0) for i in range(30)])
        yield World(f"coin, {unit.label}", coin, bits, ((0, 0), (1, 0)), unit, 0.99)
    for unit in (RECORD, PERSON):
        model = DirichletMultinomial(categories=3, mechanism="gaussian", delta=1e-6)
        yield World(f"categories, gaussian, {unit.label}", model, codes, own, unit, 0.99)


BINARY = Schema({name: Interval(0, 1, bins=2) for name in "abc"}, Categories([0, 1]))


def _preparation() -> Iterator[World]:
    """Yield transformers, and the choice of columns."""
    table = frame([(float(i % 7), float(i % 2), 0) for i in range(300)])
    ends = ((-1e6, -1e6, 0), (1e6, 1e6, 0), (3.0, 0.5, 0), (NAN, NAN, 0))
    bits = frame([(i % 2, i % 2, 0, i % 2) for i in range(120)])
    for unit in UNITS:
        for model in (
            PrivateMinMaxScaler(5.0),
            PrivateStandardScaler(5.0),
            PrivateKBinsDiscretizer(8),
            PrivateKBinsDiscretizer(4, strategy="uniform"),
        ):
            name = f"{type(model).__name__}, {model.get_params().get('strategy')}, {unit.label}"
            yield World(name, model, table, ends, unit, 0.9)
        within = PrivateMinMaxScaler(5.0, bounds=(-10, 10))
        yield World(f"PrivateMinMaxScaler, bounded, {unit.label}", within, table, ends, unit, 0.9)
        select = PrivateSelectKBest(2, schema=BINARY)
        yield World(f"columns, {unit.label}", select, bits, BITS, unit, 0.99)


def _deep() -> Iterator[World]:
    """Yield draws of features with several splits."""
    columns = {name: Interval(0, 7, bins=8) for name in "ab"}
    schema = Schema(columns, Categories([0, 1]))
    own = tuple((a, b, c) for a, b, c in product((0, 1, 7), (0, 7), (0, 1)))
    for unit, mechanism in product((RECORD, FEATURE), ("sampler", "map")):
        model = BayesianNaiveBayes(mechanism=mechanism, schema=schema, inference="plug_in")
        others = frame([(0, 0, 0)] * 200)
        yield World(f"deep, {unit.label}, {mechanism}", model, others, own, unit, 0.3)
