"""Every layer in short: what it finds wrong with the library as it stands, in a second or two.

The tests ask that nothing is found; the planted faults, that something is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
from sklearn.base import clone

import dpbayes_sklearn
from benchmarks.audit._accounting import accounting
from benchmarks.audit._composition import composition
from benchmarks.audit._declarations import declarations
from benchmarks.audit._draws import attacks, laws, origins
from benchmarks.audit._pairs import subjects
from benchmarks.audit._searches import searches
from benchmarks.audit._subject import Subject, circumstance
from benchmarks.audit._values import values
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    DirichletMultinomial,
)
from dpbayes_sklearn.audit import enumerate_delta, enumerate_loss
from dpbayes_sklearn.audit.containers import CONTAINERS
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.audit.replaying import replay
from dpbayes_sklearn.mechanisms import (
    MAP,
    Fourier,
    Laplace,
    Mechanism,
    Sampler,
    exponential,
    resolve_mechanism,
)
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.statistics.choices import ColumnChoice
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.quantiles.plans import (
    BinEdges,
    CentreAndSpread,
    OuterQuantiles,
    Plans,
)

__all__ = ["LAYERS"]

STAR, PAIR, THREE = Network.star([2], 2), Network.star([2, 2], 2), Network.star([3], 2)
TREE = Network((2, 2, 2), ((2,), (0,), ()))  # class -> x0 -> x1
ODD = 0.12345678901234567  # its fraction is longer than what samplers take
LOCATED = 1500.0  # so large that the number of one record is located too
MATRIX = Design((Categories("abc"),) * 4)  # has matrix noise
WORLDS: tuple[tuple[Any, Any, int, dict[str, Any]], ...] = (
    ("laplace", PAIR, 2, {}),
    ("laplace", PAIR, 2, {"unit": "feature"}),
    (Laplace(budget_split=0.5), STAR, 2, {}),
    ("laplace", TREE, 2, {"unit": "feature"}),
    ("laplace", STAR, 2, {"epsilon": ODD}),
    ("laplace", STAR, 2, {"epsilon": 40.0}),
    (Laplace(noise="joint"), PAIR, 2, {}),
    (Laplace(noise="joint"), THREE, 2, {"unit": "feature"}),
    ("fourier", PAIR, 2, {}),
    ("fourier", THREE, 2, {"unit": "feature"}),
    (Fourier(noise="joint"), PAIR, 2, {}),
    (Fourier(noise="joint"), THREE, 2, {"unit": "feature"}),
    (Sampler(n_points=33), STAR, 3, {}),
    (Sampler(n_points=33), STAR, 3, {"unit": "feature"}),
    (Sampler(2, n_points=9), STAR, 3, {"unit": "feature"}),
    (MAP(n_points=33), STAR, 3, {"unit": "feature", "epsilon": 8.0}),
    (MAP(score="posterior"), STAR, 3, {}),
    *((name, 3, 4, {}) for name in ("geometric", "laplace", "laplace_improved")),
    *(
        (name, 2, 100, {"prior": (0.01, 5.0), "epsilon": 0.5})
        for name in ("exponential", "hellinger", "local")
    ),
    *(
        (name, Design((Interval(0, 1),)), 1, {"epsilon": epsilon})
        for epsilon in (1.0, LOCATED)
        for name in ("laplace", "fourier", "sampler", "map")
    ),
    ("laplace", MATRIX, 1, {}),
    ("sampler", Design((Interval(0, 1),)), 1, {"prior": 100.0}),  # draws of norm 1 at most
    ("laplace", Design((Categories("abc"),)), 1, {}),
    ("quantiles", Plans((BinEdges(4),)), 3, {"epsilon": 6.0}),
    ("quantiles", Plans((OuterQuantiles(Fraction(1, 4), Fraction(3, 4), 3, 6.0),)), 3, {}),
    ("quantiles", Plans((CentreAndSpread(3, 6.0, (0.0, 4.0)),)), 3, {"epsilon": 6.0}),
    ("quantiles", Plans((BinEdges(2), BinEdges(2))), 2, {"epsilon": 12.0}),
    ("permute_and_flip", ColumnChoice(PAIR, 1), 4, {"epsilon": 8.0}),
    ("permute_and_flip", ColumnChoice(Network.star([3, 3], 3), 1), 2, {"epsilon": 0.5}),
    ("permute_and_flip", ColumnChoice(Network.star([2, 2, 2], 2), 2), 2, {"epsilon": 8.0}),
)


def enumeration() -> Iterator[str]:
    """Enumerate small worlds of every mechanism."""
    exponential._cached_law.cache_clear()  # laws of another state of the code
    for mechanism, structure, n, options in WORLDS:
        found = enumerate_loss(mechanism, structure, n, **options, transcripts=1)
        if not found.within:
            yield f"{mechanism}: loss {found.loss:g} of {found.claim:g}"
        if _is_tight(mechanism, structure) and found.ratio < 0.99:
            yield f"{mechanism}: loss {found.loss:g}, where {found.claim:g} can be reached"
    yield from _gaussian_noise()


def _gaussian_noise() -> Iterator[str]:
    """Enumerate the delta of small worlds, which a release must keep to and nearly use up."""
    worlds = ((PAIR, 2, "record"), (TREE, 1, "record"), (THREE, 2, "feature"), (3, 4, "record"))
    for (structure, n, unit), (epsilon, delta) in product(worlds, ((1.0, 1e-6), (0.3, 1e-3))):
        found = enumerate_delta("gaussian", structure, n, epsilon=epsilon, delta=delta, unit=unit)
        if not found.within or found.delta < 0.9 * delta:
            yield f"gaussian, {unit}: delta {found.delta:g} of {delta:g}"


def _is_tight(mechanism: Any, structure: Any) -> bool:
    """Tell whether theory has neighbours that use up the claim; a law must not say less."""
    added = ("laplace", "fourier", "geometric", "laplace_improved")
    return not isinstance(structure, Design) and resolve_mechanism(mechanism).name() in added


@lru_cache
def _few() -> list[Subject]:
    """Return one subject of every kind and mechanism, and more of one mechanism."""
    everything = [s for s in subjects() if "laplace" in s.name or "feature" not in s.name]
    first = {_kind(s): s for s in reversed(everything)}
    return [s for s in everything if s in first.values() or "laplace" in s.name]


def _kind(subject: Subject) -> tuple[Any, ...]:
    """Tell subjects apart by estimator and mechanism, or by container and role."""
    if subject.name.endswith(tuple(CONTAINERS)):
        return (subject.name,)
    return type(subject.estimator), getattr(subject.estimator, "mechanism", subject.name)


def replays() -> Iterator[str]:
    """Replay two pairs of neighbours for every estimator and mechanism."""
    ledger = BudgetAccountant(delta=1)
    for number, subject in enumerate(_few()):
        rng = np.random.default_rng(crc32(subject.name.encode()))
        estimator = clone(subject.estimator).set_params(accountant=ledger)
        for turn, freeze in enumerate(subject.freezes * subject.rounds):
            with circumstance(number + turn):
                found = replay(estimator, *subject.make(rng), freeze=freeze)
            yield from (f"{subject}: {what}" for what in found.divergences)
            if found.status != "fitted":
                yield f"{subject}: {found.status}"


def leak_walk() -> Iterator[str]:
    """Walk fitted objects in search of exact statistics."""
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 2)), rng.integers(0, 2, 400)
    secrets = {"a column": X[:, 0], "the labels": y, "class counts": np.bincount(y)}
    seen: list[Any] = []
    real = Mechanism.release

    def watched(self: Any, statistics: Any, *rest: Any) -> Any:
        seen.append(statistics)
        return real(self, statistics, *rest)

    with mock.patch.object(Mechanism, "release", watched):
        for mechanism in ("laplace", "fourier", "sampler", "map", "gaussian"):
            common = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2, "mechanism": mechanism}
            for inference in ("plug_in", "noise_aware"):
                model = BayesianNaiveBayes(0.1, delta=1e-3, inference=inference, **common).fit(X, y)
                tables = {f"table {j}": t for j, t in enumerate(seen[-1].tables)}
                yield from leaks(model, {**secrets, **tables})
        for mechanism in ("laplace", "fourier", "sampler", "map"):
            line = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), mechanism=mechanism)
            line.fit(X, y)
            sums = {"sums of columns and target": seen[-1].location_sums(1)[1]}
            yield from leaks(line, {"a column": X[:, 0], "the labels": y, **sums})
        for mechanism in ("geometric", "exponential", "laplace_improved"):
            codes = rng.integers(0, 3, 60)
            multi = DirichletMultinomial(0.1, mechanism=mechanism, categories=3).fit(codes)
            yield from leaks(multi, {"counts": seen[-1].counts, "records": codes})
        for transformer in (PrivateMinMaxScaler(0.1), PrivateKBinsDiscretizer(4, epsilon=0.1)):
            transformer.fit(X)
            ordered = {"a sorted column": seen[-1].column(1), "a column": X[:, 0]}
            yield from leaks(transformer, ordered)


def source_code() -> Iterator[str]:
    """Read the sources: no generator of numpy or Python where noise is made.

    A generator with a constant for a seed simulates a public law; that no release draws from one
    is seen by the layer of the source of bytes.
    """
    package = Path(dpbayes_sklearn.__file__).parent
    for file in (*(package / "noise").glob("*.py"), *(package / "mechanisms").glob("*.py")):
        if file.name == "source.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] in {"random", "secrets"} for name in names):
                yield f"{file.name} imports {names}"
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("np.random."):
                constant = [isinstance(a, ast.Constant) for a in node.args] == [True]
                if not (constant and ast.unparse(node.func) == "np.random.default_rng"):
                    yield f"{file.name}, line {node.lineno}: {ast.unparse(node)}"


LAYERS: dict[str, Callable[[], Iterator[str]]] = {
    "enumeration": enumeration,
    "replay": replays,
    "sampler laws": laws,
    "attacks": attacks,
    "source of bytes": origins,
    "leak walk": leak_walk,
    "accounting": accounting,
    "composition": composition,
    "searches": searches,
    "declarations": declarations,
    "values": values,
}
"""By name. (`source_code` cannot see a fault that is planted at run time.)"""
