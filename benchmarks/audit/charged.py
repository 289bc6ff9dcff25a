"""Nothing raises after the charge: every way to spend, on odd records in every container.

A call may be refused, but then nothing was charged, and as many plain records, in columns of the
same types, are refused in the same words. Settings (container, chunks, number of records, missing
targets, unit, weights, bounds, epsilon, delta, mechanism, what warnings do, how many rows are read
at a time) are drawn until all pairs of their values have met, for ways to spend that share their
reading with others until many have. Then there are as many records as are read in several parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import combinations, count, islice, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array

import dpbayes_sklearn as library
from benchmarks.audit._cases import Case, Row, cases_of, silent
from benchmarks.audit._models import ADDED, FEATURE, PERSON, RECORD, THERE
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import BudgetAccountant, Categories, Interval, Schema
from dpbayes_sklearn.data import arrow, records
from dpbayes_sklearn.data.frames import named_columns
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.metrics.statistics import Classification, Regression
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def _retyped(table: pa.Table, dtype: str) -> Any:
    texts = [field.name for field in table.schema if field.type == pa.string()]
    return table.to_pandas().astype(dict.fromkeys(texts, dtype))


_NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype(),
}


def _dictionaries(table: pa.Table) -> pa.Table:
    texts = [f.name for f in table.schema if f.type == pa.string()]
    for name in texts:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].dictionary_encode())
    return table


def _polars(table: pa.Table) -> Any:
    return import_module("polars").from_arrow(table, rechunk=False)


def _dask(table: pa.Table) -> Any:
    parts = table.column(0).num_chunks
    return import_module("dask.dataframe").from_pandas(_retyped(table, "object"), npartitions=parts)


FRAMES: Mapping[str, Callable[[pa.Table], Any]] = {
    "pandas objects": partial(_retyped, dtype="object"),
    "pandas categories": partial(_retyped, dtype="category"),
    "pandas nullable": lambda table: table.to_pandas(types_mapper=_NULLABLE.get),
    "pandas arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": _polars,
    "LazyFrame": lambda table: _polars(table).lazy(),
    "pyarrow": lambda table: table,
    "dictionaries": _dictionaries,
    "reader": lambda table: table.to_reader(),
    "DuckDB": lambda table: import_module("duckdb").from_arrow(table),
    "dask frame": _dask,
}
ARRAYS: Mapping[str, Callable[[Any, int], Any]] = {
    "array": lambda X, chunks: X,
    "array of objects": lambda X, chunks: X.astype(object),
    "list": lambda X, chunks: X.tolist(),
    "sparse": lambda X, chunks: csr_array(X),
    "dask array": lambda X, chunks: import_module("dask.array").from_array(
        X, chunks=(max(1, len(X) // chunks), -1)
    ),
}
ODD_NUMBERS = (None, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0)
ODD: Mapping[str, tuple[Any, ...]] = {
    "x": ODD_NUMBERS,
    "t": (None, "", "zzz"),
    "k": (None, -(2**60), 2**62),
    "years": ODD_NUMBERS,
}
WEIGHTS: Mapping[str, tuple[Any, ...]] = {
    "none": (1.0,),
    "whole": (1.0, 2.0, 3.0),
    "odd": (0.4, 1.0, 2.6, *ODD_NUMBERS),
    "zeros": (0.0,),
}
MISSING = {"none": 0.0, "one": 0.0, "many": 0.4, "all": 1.0}
TARGETS = ("yes", "number", "kind")
TYPES = {name: pa.string() for name in ("t", "yes", "kind")} | dict.fromkeys(
    ("k", "b", "person"), pa.int64()
)


@dataclass(frozen=True)
class Setting:
    """In what way something is tried; ``seed`` makes the records."""

    seed: int
    container: str
    chunks: int
    n: int
    missing: str
    unit: PrivacyUnit
    weights: str
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    mechanism: str
    strict: bool
    few_at_once: bool


AXES: Mapping[str, tuple[Any, ...]] = {
    "container": (*FRAMES, *ARRAYS),
    "chunks": (1, 3, 17),
    "n": (1, 2, 9, 60, 400),
    "missing": tuple(MISSING),
    "unit": (RECORD, ADDED, PERSON, THERE),
    "weights": tuple(WEIGHTS),
    "bounds": ((0, 10), (0, 1e-170), (-1e160, 1e160), (-8e307, 8e307), (1e15, 1e15 + 2)),
    "epsilon": (1.0, 0.01, 1e-9, 1e4, 1e300, float("inf")),
    "delta": (0.0, 1e-6, 1e-300, 0.5),
    "mechanism": ("",),
    "strict": (False, True),
    "few_at_once": (False, True),
}


class Given(NamedTuple):
    """The arguments of a call: X, the roles of other columns, domains, and parameters."""

    X: Any
    roles: dict[str, Any]
    schema: Schema
    options: dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A way to spend: the call, the columns and the target it reads, what it takes of the axes."""

    call: Callable[[Setting, Given], Any]
    columns: tuple[str, ...] = ("t", "x", "k")
    target: str | None = None
    weighs: bool = False
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    most: int | None = 30  # settings that are tried; None: until all pairs have met


def cells(setting: Setting, odd: bool) -> dict[str, list[Any]]:
    """Return columns by name; without anything odd no cell is missing or beyond its domain."""
    rng, n, (low, high) = np.random.default_rng(setting.seed), setting.n, setting.bounds
    found: dict[str, list[Any]] = {
        "t": rng.choice(["a", "b", "c"], n).tolist(),
        "x": (low + (high - low) * rng.random(n)).tolist(),
        "k": rng.integers(0, 9, n).tolist(),
        "b": rng.integers(0, 2, n).tolist(),
        "yes": rng.choice(["no", "yes"], n).tolist(),
        "number": (low + (high - low) * rng.random(n)).tolist(),
        "kind": np.resize(["u", "v", "w"], n).tolist(),
        "years": (high - high / 4 * (np.arange(n) % 3)).tolist(),
        "person": (np.arange(n) // 2).tolist(),
        "weight": [1.0] * n,
    }
    found["marked"] = found["x"]
    if odd:
        choices = WEIGHTS[setting.weights]
        found["weight"] = [choices[j] for j in rng.integers(0, len(choices), n)]
        gone = rng.random(n) < MISSING[setting.missing]
        gone[: setting.missing == "one"] = True
        for name, place in product(TARGETS, np.flatnonzero(gone)):
            found[name][place] = None
        for name, values in ODD.items():
            for place in rng.integers(0, n, 1 + n // 10):
                found[name][place] = values[rng.integers(len(values))]
    return found


def given(setting: Setting, way: Way, ledger: BudgetAccountant | None, odd: bool) -> Given:
    """Return what a call is given: names of columns with a frame, columns with an array."""
    found, named = cells(setting, odd), setting.container in FRAMES
    interval = Interval(*setting.bounds, bins=4)
    domains: dict[str | None, Any] = {
        "t": Categories(["a", "b", "c"] if named else [0, 1, 2]),
        "k": Interval(0, 9, bins=3),
        "yes": Categories(["no", "yes"]),
        "kind": Categories(["u", "v", "w"]),
        "marked": Interval(*setting.bounds, bins=4, missing="indicator"),
        "years": Interval(setting.bounds[1] / 4, setting.bounds[1]),
        None: None,
    }
    columns = {name: domains.get(name, interval) for name in way.columns}
    schema = Schema(columns, domains.get(way.target, interval))
    wanted = {
        "target": way.target,
        "groups": "person" if setting.unit.name == "person" else None,
        "sample_weight": "weight" if way.weighs and setting.weights != "none" else None,
    }
    roles: dict[str, Any] = {role: name for role, name in wanted.items() if name is not None}
    options = {"epsilon": setting.epsilon, "privacy_unit": setting.unit, "accountant": ledger}
    if named:
        used = [*way.columns, *roles.values()]
        table = pa.table(
            {c: pa.array(found[c], TYPES.get(c, pa.float64()), from_pandas=False) for c in used}
        )
        ends = np.linspace(0, setting.n, setting.chunks + 1).astype(int)
        parts = [table.slice(a, b - a) for a, b in pairwise(ends) if b > a]
        return Given(FRAMES[setting.container](pa.concat_tables(parts)), roles, schema, options)
    codes = {"a": 0, "b": 1, "c": 2}
    found["t"] = [codes.get(cell, np.nan) for cell in found["t"]]
    X = np.array([found[name] for name in way.columns], float).T
    kinds = {"yes": object, "kind": object, "person": np.int64}
    roles = {role: np.array(found[c], kinds.get(c, float)) for role, c in roles.items()}
    if "target" in roles:
        roles["y"] = roles.pop("target")
    if setting.container == "dask array" and "y" in roles:
        size = max(1, len(X) // setting.chunks)
        roles["y"] = import_module("dask.array").from_array(roles["y"], chunks=size)
    return Given(ARRAYS[setting.container](X, setting.chunks), roles, schema, options)


def fit(
    estimator: type[Any],
    columns: tuple[str, ...] = ("t", "x", "k"),
    target: str | None = None,
    bounds: tuple[str, ...] = (),
    axes: Mapping[str, tuple[Any, ...]] | None = None,
    most: int | None = 30,
    **more: Any,
) -> Way:
    """Return the fit of an estimator, by its schema, or by the parameters that take bounds."""
    known = estimator._get_param_names()
    named = estimator._parameter_constraints.get("mechanism")

    def call(setting: Setting, given: Given) -> Any:
        options = {**given.options, **dict.fromkeys(bounds, setting.bounds), **more}
        options |= {"schema": given.schema} if "schema" in known else {}
        options |= {"delta": setting.delta} if "delta" in known else {}
        options |= {"mechanism": setting.mechanism} if named else {}
        options |= {"max_weight": 3} if "sample_weight" in given.roles else {}
        return estimator(**options).fit(given.X, **given.roles)

    own = {"mechanism": tuple(sorted(named[0].options))} if named else {}
    own |= {"unit": (*AXES["unit"], FEATURE)} if "feature" in estimator._unit_names else {}
    return Way(call, columns, target, "max_weight" in known, {**own, **(axes or {})}, most)


METRICS = {"yes": Classification.metrics, "number": Regression.metrics}
MODELS = {"yes": library.BayesianNaiveBayes, "number": library.BayesianLinearRegression}


def score(target: str) -> Way:
    """Return the evaluation of a public model."""

    def call(setting: Setting, given_: Given) -> Any:
        public = given(replace(setting, n=60, unit=RECORD), way, None, False)
        model = MODELS[target](float("inf"), schema=public.schema).fit(public.X, **public.roles)
        options = {"delta": setting.delta, "scoring": METRICS[target], **given_.options}
        return private_score(model, given_.X, **given_.roles, **options)

    way = Way(call, target=target)
    return way


def cross_validation(target: str) -> Way:
    """Return a cross-validation."""

    def call(setting: Setting, given: Given) -> Any:
        options, unit = dict(given.options), given.options["privacy_unit"]
        del options["privacy_unit"]
        model = MODELS[target](setting.epsilon, schema=given.schema, privacy_unit=unit)
        asked = {"delta": setting.delta, "scoring": METRICS[target][:3], "cv": 3}
        return private_cross_validate(model, given.X, **given.roles, **options, **asked)

    return Way(call, target=target)


def search(setting: Setting, given: Given) -> Any:
    """Search for one of two models."""
    options = {**given.options, "delta": setting.delta, "runs_per_candidate": 1}
    model = library.BayesianNaiveBayes(
        schema=given.schema, privacy_unit=options.pop("privacy_unit")
    )
    return library.PrivateSearchCV(model, {"alpha": [0.5, 2]}, **options).fit(
        given.X, **given.roles
    )


def learn(setting: Setting, given: Given) -> Any:
    """Learn domains."""
    return Schema.learn(given.X, delta=setting.delta, verbose=False, **given.roles, **given.options)


def _apart(given: Given) -> dict[str, Any]:
    """Return y and groups, for calls that take no name of a column."""
    X, y, (groups,) = named_columns(given.X, given.roles.get("y"), *map(given.roles.get, ROLES))
    return {"X": X, "y": y, "groups": groups}


ROLES = ("target", "groups")


def tree(setting: Setting, given: Given) -> Any:
    """Choose a network."""
    return library.tree_augmented(schema=given.schema, **_apart(given), **given.options)


def session(setting: Setting, given: Given) -> Any:
    """Ask for two draws."""
    more = {"mechanism": "sampler", "temperature": 1, "delta": setting.delta}
    model = library.BayesianNaiveBayes(schema=given.schema, **more, **given.options)
    with library.PosteriorQuerySession(model, **_apart(given)) as asked:
        return [asked.query(lambda draw: 0.0) for _ in range(2)]


OF_MEANS = {
    "unit": (RECORD, PERSON),
    "bounds": ((0, 10), (-1e70, 1e70), (1e-70, 2e-70), (1e15, 1e15 + 2)),
}
WAYS: Mapping[str, Way] = {
    "BayesianClassifier": fit(library.BayesianClassifier, target="yes"),
    "BayesianNaiveBayes": fit(library.BayesianNaiveBayes, target="yes", most=None),
    "BayesianNetworkClassifier": fit(
        library.BayesianNetworkClassifier,
        target="yes",
        parents={"x": ["class"], "k": ["x", "class"]},
    ),
    "BayesianLogisticRegression": fit(library.BayesianLogisticRegression, target="yes", most=None),
    "BayesianLinearRegression": fit(library.BayesianLinearRegression, target="number", most=None),
    "PrivateMoments": fit(library.PrivateMoments, ("t", "x", "k")),
    "BetaBinomial": fit(library.BetaBinomial, ("b",)),
    "DirichletMultinomial": fit(
        library.DirichletMultinomial, ("k",), categories=Categories(range(9), unseen=0)
    ),
    "logistic regression of three classes": fit(
        library.BayesianLogisticRegression,
        ("t", "marked"),
        target="kind",
        axes={"mechanism": ("map",)},
    ),
    "logistic regression of ordered classes": fit(
        library.BayesianLogisticRegression,
        ("t", "marked"),
        target="kind",
        axes={"mechanism": ("map",)},
        ordered=True,
    ),
    "classifier of three classes": fit(library.BayesianClassifier, ("t", "marked"), target="kind"),
    "linear regression without a constant": fit(
        library.BayesianLinearRegression, ("x", "marked"), target="number", fit_intercept=False
    ),
    "BayesianCountRegression": fit(
        library.BayesianCountRegression, ("t", "x"), target="number", cap=4
    ),
    "counts with an exposure": fit(
        library.BayesianCountRegression, ("marked", "years"), target="number", cap=4, exposure=1
    ),
    "LifeTable": fit(library.LifeTable, ("t", "x"), target="yes"),
    "life table of one group": fit(library.LifeTable, ("x",), target="yes"),
    "NormalMean": fit(library.NormalMean, ("x",), bounds=("bounds",), axes=OF_MEANS),
    "GammaExponential": fit(library.GammaExponential, ("x",), bounds=("bounds",), axes=OF_MEANS),
    "PrivateMinMaxScaler": fit(PrivateMinMaxScaler, ("x", "k"), bounds=("bounds",)),
    "PrivateStandardScaler": fit(PrivateStandardScaler, ("x", "k"), bounds=("bounds",)),
    "PrivateKBinsDiscretizer": fit(PrivateKBinsDiscretizer, ("x", "k"), bounds=("bounds",)),
    "PrivateSelectKBest": fit(PrivateSelectKBest, target="yes", k=2),
    "PrivateSearchCV": Way(search, target="yes"),
    "Schema.learn": Way(learn, ("x", "k")),
    "tree_augmented": Way(tree, target="yes"),
    "PosteriorQuerySession": Way(session, target="yes"),
    "private_score of classes": score("yes"),
    "private_score of numbers": score("number"),
    "private_cross_validate of classes": cross_validation("yes"),
    "private_cross_validate of numbers": cross_validation("number"),
}


def settings(axes: Mapping[str, tuple[Any, ...]]) -> Iterator[Setting]:
    """Yield settings, drawn with a fixed seed, until every pair of values was in one."""
    rng, sizes = np.random.default_rng(0), [len(values) for values in axes.values()]
    left = {
        (a, i, b, j)
        for (a, m), (b, n) in combinations(enumerate(sizes), 2)
        for i, j in product(range(m), range(n))
    }

    def pairs(row: Any) -> set[Any]:
        return {(a, i, b, j) for (a, i), (b, j) in combinations(enumerate(row), 2)} & left

    for seed in count():
        if not left:
            return
        listed = sorted(left)
        a, i, b, j = listed[rng.integers(len(listed))]
        rows = rng.integers(0, sizes, (12, len(sizes)))
        rows[:, a], rows[:, b] = i, j
        best = max(map(tuple, rows.tolist()), key=lambda row: len(pairs(row)))
        left -= pairs(best)
        values = (values[i] for values, i in zip(axes.values(), best, strict=True))
        yield Setting(seed, **dict(zip(axes, values, strict=True)))


def tried(setting: Setting, way: Way, odd: bool = True) -> tuple[str | None, int]:
    """Return what a call raised, and how many entries the ledger has then."""
    ledger = BudgetAccountant(delta=1)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error" if setting.strict else "ignore")
        stack.enter_context(np.errstate(all="raise" if setting.strict else "ignore"))
        if setting.few_at_once:
            stack.enter_context(planted(*SMALL_PARTS))
        arguments = given(setting, way, ledger, odd)
        try:
            way.call(setting, arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}", len(ledger)
    return None, len(ledger)


SMALL_PARTS = (
    (records, "_MOST_ROWS", 8),
    (records, "_CELLS_A_THREAD", 16),
    (arrow, "_ROWS_A_BATCH", 8),
)
"""Numbers of rows from which on records are read in parts, and by several threads."""


def in_settings(name: str, scale: float = 0.0) -> Iterator[str]:
    """Try one way to spend in its settings; a third of them must not be refused."""
    way, spent = WAYS[name], []
    for setting in islice(settings({**AXES, **way.axes}), None if scale >= 1 else way.most):
        error, entries = tried(setting, way)
        spent.append(error is None)
        if error is not None and entries:
            yield f"{setting}: after the charge, {error}"
        elif error is not None and tried(setting, way, odd=False)[0] != error:
            yield f"{setting}: because of a value, {error}"
    if 3 * sum(spent) < len(spent):
        yield f"{name} is refused in {len(spent) - sum(spent)} of {len(spent)} settings"


def many_records() -> Iterator[str]:
    """Try as many records as are read in several parts, one of them without a target."""
    usual = {name: values[0] for name, values in AXES.items()}
    usual |= {"n": MANY, "chunks": 3, "missing": "one", "strict": True}
    for model, mechanism in (("Logistic", "map"), ("Linear", "laplace")):
        name = f"Bayesian{model}Regression"
        for container in ("polars", "LazyFrame", "pyarrow", "DuckDB", "dask frame", "array"):
            of = {"container": container, "mechanism": mechanism}
            setting = Setting(0, **{**usual, **of})
            error, _ = tried(setting, WAYS[name])
            if error is not None:
                yield f"{name}, {setting}: {error}"


MANY = 132_000
"""More records than a batch of a stream, a chunk of rows, and the first part of a search have."""


def nothing_left_out() -> Iterator[str]:
    """Look for public ways to fit that are not tried."""
    for room in (library, library.preprocessing, library.feature_selection):
        names = [name for name in room.__all__ if hasattr(getattr(room, name), "fit")]
        yield from (f"{name} is not tried" for name in names if name not in WAYS)


def run(scale: float) -> Iterator[Row]:
    """Try every way to spend until all pairs have met."""
    for name in WAYS:
        yield silent(f"{name}, odd records in every container", in_settings(name, scale))
    yield silent("many records; ways that are not tried", (*many_records(), *nothing_left_out()))


def charged() -> list[Case]:
    """Return one case for every way to spend, and for many records."""
    cases = [Case(name, partial(in_settings, name)) for name in WAYS]
    return [*cases_of(nothing_left_out), *cases, *cases_of(many_records)]
