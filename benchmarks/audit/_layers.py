"""Every layer in short: what it finds wrong with the library as it stands, in a second or two.

The tests ask that nothing is found; the planted faults, that something is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import clone

import dpbayes_sklearn
from benchmarks.audit._accounting import accounting, composition
from benchmarks.audit._cases import Case, Subject, cases_of, circumstance
from benchmarks.audit._command_line import command_line
from benchmarks.audit._draws import attacks, concentration, laws, origins
from benchmarks.audit._models import UNITS
from benchmarks.audit._pairs import subjects
from benchmarks.audit._rehearsals import rehearsals
from benchmarks.audit._scopes import scopes
from benchmarks.audit._searches import searches
from benchmarks.audit._units import replays_of_preparation, replays_of_units, weighted_worlds
from benchmarks.audit._worlds import common_texts, enumeration, gaussian_noise, gaussian_units, sums
from benchmarks.audit.adversaries import adversaries
from benchmarks.audit.evaluations import evaluations
from benchmarks.audit.groups import groups_of_persons
from benchmarks.audit.intervals import intervals
from benchmarks.audit.leaks import leak_walk, leaks_of_units
from benchmarks.audit.order import listed_anew, places, sorted_tables
from benchmarks.audit.parts import parts
from benchmarks.audit.preflight import plans
from benchmarks.audit.values import declarations
from benchmarks.audit.values import short_values as values
from dpbayes_sklearn import BudgetAccountant
from dpbayes_sklearn.audit.fuzzing import CONTAINERS
from dpbayes_sklearn.audit.replaying import SEARCH, replay
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains


@lru_cache
def few_subjects() -> list[Subject]:
    """Return one subject of every estimator and mechanism, and more of one mechanism."""
    everything = [s for s in subjects() if "laplace" in s.name or "feature" not in s.name]
    first = {_what(s): s for s in reversed(everything)}
    return [s for s in everything if s in first.values() or "laplace" in s.name]


def _what(subject: Subject) -> tuple[Any, ...]:
    """Tell subjects apart by estimator and mechanism, or by container and role."""
    if _kind(subject) == "containers":
        return (subject.name,)
    return type(subject.estimator), getattr(subject.estimator, "mechanism", subject.name)


def _kind(subject: Subject) -> str:
    if subject.name.endswith(tuple(CONTAINERS)):
        return "containers"
    prepares = hasattr(subject.estimator, "transform") or isinstance(
        subject.estimator, FrameDomains
    )
    return "preparation" if prepares else "estimators"


def replays(kind: str) -> list[Case]:
    """Replay two pairs of neighbours for every estimator and mechanism of one kind."""
    few = [s for s in few_subjects() if _kind(s) == kind]
    return [Case(s.name, partial(_replays, number, s)) for number, s in enumerate(few)]


def _replays(number: int, subject: Subject) -> Iterator[str]:
    rng = np.random.default_rng(crc32(subject.name.encode()))
    ledger = BudgetAccountant(delta=1)
    estimator = clone(subject.estimator).set_params(accountant=ledger)
    for turn, freeze in enumerate(subject.freezes * subject.rounds):
        with circumstance(number + turn):
            found = replay(estimator, *subject.make(rng), freeze=freeze)
        yield from (f"{subject}: {what}" for what in found.divergences)
        if found.status != "fitted":
            yield f"{subject}: {found.status}"
        if found.epsilon != float(getattr(estimator, "epsilon", 1.0)):
            yield f"{subject}: epsilon {found.epsilon}"
        if not found.calls or not (found.shifts or freeze is SEARCH):
            yield f"{subject}: nothing was frozen"


def source_code() -> Iterator[str]:
    """Read the sources: no generator of numpy or Python where noise is made.

    A generator with a constant for a seed simulates a public law; that no release draws from one
    is seen by the layer of the source of bytes.
    """
    package = Path(dpbayes_sklearn.__file__).parent
    for file in (*(package / "noise").glob("*.py"), *(package / "mechanisms").glob("*.py")):
        if file.name == "integers.py":
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


LAYERS: dict[str, Callable[[], list[Case]]] = {
    "enumeration of counts": partial(enumeration, "counts"),
    "enumeration of moments": partial(enumeration, "moments"),
    "enumeration of preparation": partial(enumeration, "preparation"),
    "enumeration of Gaussian noise": gaussian_noise,
    "enumeration of texts": common_texts,
    "enumeration of sums": sums,
    "enumeration of units": lambda: [*enumeration("units"), *gaussian_units(), *weighted_worlds()],
    "enumeration of units of preparation": lambda: [
        *enumeration("units of preparation"),
        *common_texts(UNITS),
    ],
    "replay of units": replays_of_units,
    "replay of units of preparation": replays_of_preparation,
    "replay of estimators": partial(replays, "estimators"),
    "replay of preparation": partial(replays, "preparation"),
    "replay of containers": partial(replays, "containers"),
    "order of records": lambda: [*places(), *sorted_tables(), *listed_anew()],
    "containers of groups": groups_of_persons,
    "command line": command_line,
    "sampler laws": partial(cases_of, laws),
    "attacks": attacks,
    "source of bytes": partial(cases_of, origins),
    "leak walk": partial(cases_of, leak_walk),
    "leak walk of units": partial(cases_of, leaks_of_units),
    "accounting": partial(cases_of, accounting),
    "composition": composition,
    "scopes": scopes,
    "adaptive adversaries": adversaries,
    "draws added up": concentration,
    "parts": parts,
    "searches": searches,
    "rehearsals": rehearsals,
    "evaluations": evaluations,
    "declarations": partial(cases_of, declarations),
    "values": partial(cases_of, values),
    "intervals": intervals,
    "plans": plans,
}
"""By name. (`source_code` cannot see a fault that is planted at run time.)"""
