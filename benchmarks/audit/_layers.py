"""Every layer in short: what it finds wrong with the library as it stands, in a second or two.

The tests ask that nothing is found; the planted faults, that something is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import dpbayes_sklearn
from benchmarks.audit._accounting import accounting, composition
from benchmarks.audit._cases import Case, cases_of
from benchmarks.audit._command_line import command_line
from benchmarks.audit._draws import attacks, concentration, laws, origins
from benchmarks.audit._models import UNITS
from benchmarks.audit._rehearsals import rehearsals
from benchmarks.audit._scopes import scopes
from benchmarks.audit._searches import searches
from benchmarks.audit._units import replays_of_preparation, replays_of_units, weighted_worlds
from benchmarks.audit._worlds import common_texts, enumeration, gaussian_noise, gaussian_units, sums
from benchmarks.audit.adversaries import adversaries
from benchmarks.audit.charged import charged
from benchmarks.audit.charges import charges
from benchmarks.audit.evaluations import evaluations
from benchmarks.audit.groups import groups_of_persons
from benchmarks.audit.intervals import intervals
from benchmarks.audit.leaks import leak_walk, leaks_of_units
from benchmarks.audit.order import listed_anew, places, sorted_tables
from benchmarks.audit.parts import parts
from benchmarks.audit.preflight import plans
from benchmarks.audit.replay import replays
from benchmarks.audit.values import declarations
from benchmarks.audit.values import short_values as values


def noise_files(package: Path) -> list[Path]:
    """Return the files that draw noise or hand it on: they say `Noise` or `random_source`."""
    drawn = re.compile(r"\b(Noise|random_source)\b")
    files = (file for file in package.rglob("*.py") if "audit" not in file.parts)
    return [file for file in files if drawn.search(file.read_text(encoding="utf-8"))]


def source_code(package: Path = Path(dpbayes_sklearn.__file__).parent) -> Iterator[str]:
    """Read the sources: no generator of numpy or Python where noise is made, but the source's own.

    A generator with a constant for a seed simulates a public law; that no release draws from one
    is seen by the layer of the source of bytes.
    """
    for file in noise_files(package):
        if file == package / "noise" / "integers.py":  # the source
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(re.match(r"(random|secrets|numpy\.random)\b", name) for name in names):
                yield f"{file.name} imports {names}"
            called = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if re.match(r"np\.random\.|check_random_state\(", called) and not re.match(
                r"np\.random\.default_rng\((\d+|_[A-Z]+)\)", called
            ):
                yield f"{file.name}, line {node.lineno}: {called}"


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
    "charges": charges,
    "searches": searches,
    "rehearsals": rehearsals,
    "evaluations": evaluations,
    "declarations": partial(cases_of, declarations),
    "values": partial(cases_of, values),
    "intervals": intervals,
    "plans": plans,
    "after the charge": charged,
}
"""By name. (`source_code` cannot see a fault that is planted at run time.)"""
