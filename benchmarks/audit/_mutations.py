"""Mutations: small random changes of the library's source, which its tests have to notice.

``python -m benchmarks.audit._mutations [--each 8] [--seed 0] [--only noise] [--again]``

Operators change constants, comparisons, arithmetic, ``min`` and ``max``, ``and`` and ``or``,
conditions; drop a bound, a negation, an argument or a statement, or return nothing. Of every module
so many changes are drawn at random, and `BY_HAND` are added. All tests are collected once. For
every change this process forks, and the copy gives the functions of the module their changed code,
or a constant its changed value wherever it was imported, and runs the tests of that module until
one fails. Results go to ``benchmarks/results/mutations.csv``. With ``--again`` what survived meets
the tests of its room, and tests that see it from outside.

Messages of errors, annotations, texts, defaults of parameters and bodies of classes are left alone.
Tests that start a new interpreter do not see a change. Not on Windows, which cannot fork.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import gc
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/mutations.csv"
FIELDS = ("module", "line", "change", "noticed by")
MOST_SECONDS = 100  # of a processor, for one change: a search that never ends is noticed, too

_NOISE = "ball class_rows discrete_gaussian discrete_laplace finite gradient integers joint law"
_PRIVACY = "accountant active budget composition gaussian guarantee ledger ledger_file"
MODULES = [
    *(f"noise.{name}" for name in f"{_NOISE} matrix noise".split()),
    *(f"privacy.{name}" for name in _PRIVACY.split()),
    *("release", "counts.tables", "counts.fourier", "counts.splits", "counts.plans"),
    *("categories.counts", "categories.plans", "categories.life_tables"),
    *("columns.ranks", "columns.plans", "sums.release"),
    *("regression.gram", "regression.moments", "regression.plans"),
    *("convex.linear", "convex.record_sums", "convex.perturbed", "convex.moments"),
    *("logistic.release", "rates.records", "rates.release"),
]
"""The modules that make releases. Their tests have their names."""

BEYOND = {
    "noise": ["tests/mechanisms/test_enumeration.py", "tests/checker"],
    "release": ["tests/test_plan.py", "tests/test_weights.py", "tests/test_means.py"],
    "counts": ["tests/mechanisms"],
    "categories": ["tests/test_conjugate.py", "tests/test_survival.py"],
    "columns": ["tests/preprocessing"],
    "sums": ["tests/test_means.py"],
    "regression": ["tests/mechanisms/test_gaussian_regression.py"],
    "convex": ["tests/test_linear_model.py", "tests/test_moments.py"],
    "logistic": ["tests/checker"],
    "rates": ["tests/test_count_regression.py"],
}
"""Tests that see a room from outside, for what its own do not notice."""

BY_HAND = [
    ("noise.ball", "(self.dimension + 1) / 2", "self.dimension / 2"),
    ("noise.ball", "np.linalg.norm(np.asarray(shift", "np.max(np.asarray(shift"),
    ("privacy.gaussian", "/ (2 * Fraction(variance))", "/ (4 * Fraction(variance))"),
    ("privacy.gaussian", "likely * below + rare * above", "likely * above + rare * below"),
    ("privacy.gaussian", "float(Fraction(epsilon) - 2 * eta)", "float(Fraction(epsilon))"),
    ("privacy.gaussian", "max(map(_least, patterns))", "min(map(_least, patterns))"),
    ("privacy.composition", "failure > delta * _DELTA_SHARE", "failure > delta"),
    ("privacy.composition", "delta * (1 - 2 * _DELTA_SHARE)", "delta"),
    ("privacy.composition", "rho = max(rho, Fraction(spend.rho))", "rho = Fraction(spend.rho)"),
    ("privacy.composition", "pure[spend.cost.epsilon] += count", "pure[spend.cost.epsilon] = 1"),
    ("privacy.guarantee", "max(batch.epsilon for batch", "min(batch.epsilon for batch"),
    ("convex.perturbed", "over.max() if self.together else over.sum()", "over.max()"),
    ("convex.perturbed", "Fraction(unit.n_changed * lattice)", "Fraction(lattice)"),
]
"""Changes that were thought of while reading: a module, what stands there, and what instead."""

_COMPARED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is},
}
_COMPUTED = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
_OTHER = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"},
    **{"minimum": "maximum", "maximum": "minimum", "round_up": "float"},
}
_DROPPED = {"clip", "abs", "sorted", "round", "rint", "exp", "log", "log1p", "expm1", "sqrt"}
_TYPES = {"Mapping", "Callable", "Sequence", "cast", "Counter", "list", "dict", "tuple"}
_PRINTING = {"__repr__", "__str__", "_repr_html_", "card"}


class Change(NamedTuple):
    """One change of a module."""

    module: str
    line: int
    what: str
    tree: ast.Module


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[ast.AST], ast.AST | None]]]:
    """Yield nodes that may be changed, what the change is called, and what takes their place."""
    for node in visited(tree):
        for name, change in changes(node):
            yield node, name, change


def visited(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of which a change can matter to a release: within functions and constants."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in _TYPES:
        return
    fields: list[Any] = [*ast.iter_child_nodes(node)]
    if isinstance(node, (ast.Module, ast.ClassDef)):
        kept = (ast.FunctionDef, ast.ClassDef)
        constants = (ast.Assign, ast.AnnAssign) if isinstance(node, ast.Module) else ()
        fields = [each for each in node.body if isinstance(each, kept + constants)]
    elif isinstance(node, ast.FunctionDef):
        fields = [] if node.name in _PRINTING else [*node.body]
    elif isinstance(node, ast.AnnAssign):
        fields = [node.value] if node.value is not None else []
    else:
        yield node
    for field in fields:
        yield from visited(field)


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], ast.AST | None]]]:
    """Yield what may be done to a node."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "constant + 1", lambda n: ast.Constant(n.value + 1)
        yield "constant - 1", lambda n: ast.Constant(n.value - 1)
        if isinstance(node.value, float):
            yield "constant doubled", lambda n: ast.Constant(n.value * 2)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant negated", lambda n: ast.Constant(not n.value)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "comparison", compared
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _COMPUTED:
        yield "operator", computed
    elif isinstance(node, ast.BoolOp):
        yield (
            "and, or",
            lambda n: ast.BoolOp(ast.And() if isinstance(n.op, ast.Or) else ast.Or(), n.values),
        )
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "sign", lambda n: n.operand
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in _OTHER:
            yield f"{name} is {_OTHER[name]}", renamed
        if name in _DROPPED and node.args:
            yield f"no {name}", lambda n: n.args[0]
        if node.keywords:
            yield "no last argument", lambda n: ast.Call(n.func, n.args, n.keywords[:-1])
    elif isinstance(node, (ast.If, ast.IfExp)):
        for value in (True, False):
            yield f"condition is {value}", lambda n, v=value: conditioned(n, v)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "returns None", lambda n: ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "no statement", lambda n: ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield "no statement", lambda n: ast.Pass()


def compared(node: ast.Compare) -> ast.AST:
    first, *others = node.ops
    return ast.Compare(node.left, [_COMPARED[type(first)](), *others], node.comparators)


def computed(node: Any) -> ast.AST:
    other = copy.copy(node)
    other.op = _COMPUTED[type(node.op)]()
    return other


def renamed(node: ast.Call) -> ast.AST:
    function: Any = copy.copy(node.func)
    field = "id" if isinstance(function, ast.Name) else "attr"
    setattr(function, field, _OTHER[getattr(function, field)])
    return ast.Call(function, node.args, node.keywords)


def conditioned(node: Any, value: bool) -> ast.AST:
    other = copy.copy(node)
    other.test = ast.Constant(value)
    return other


class Replaced(ast.NodeTransformer):
    """Puts another node into the place of one."""

    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        if node is self.old:
            return None if self.new is None else ast.copy_location(self.new, node)
        return self.generic_visit(node)


def drawn(module: str, each: int, rng: random.Random) -> list[Change]:
    """Return changes of a module that are drawn at random: at most one of each node."""
    path = ROOT.joinpath("dpbayes_sklearn", *module.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    number, found, places = len([*sites(ast.parse(source))]), [], set()
    for index in rng.sample(range(number), number):
        tree = ast.parse(source)
        node, name, change = [*sites(tree)][index]
        place = (node.lineno, node.col_offset, type(node))
        before = ast.unparse(node).splitlines()[0]
        new = change(node)
        after = "" if new is None else ast.unparse(new).splitlines()[0]
        if place in places or (before == after and not isinstance(node, ast.If)):
            continue
        places.add(place)
        other = ast.fix_missing_locations(Replaced(node, new).visit(tree))
        what = f"{name}: {before[:70]} → {after[:70]}"
        found.append(Change(f"dpbayes_sklearn.{module}", node.lineno, what, other))
        if len(found) == each:
            break
    return found


def written(module: str) -> list[Change]:
    """Return the changes of a module that were written by hand."""
    path = ROOT.joinpath("dpbayes_sklearn", *module.split(".")).with_suffix(".py")
    source, found = path.read_text(encoding="utf-8"), []
    for own, old, new in BY_HAND:
        if own == module:
            before, after = source.split(old)  # it stands there once
            line, tree = before.count("\n") + 1, ast.parse(before + new + after)
            found.append(Change(f"dpbayes_sklearn.{module}", line, f"by hand: {old} → {new}", tree))
    return found


def plant(change: Change) -> None:
    """Give the functions of a module their changed code, and its constants their values."""
    module = sys.modules[change.module]
    changed = compile(change.tree, module.__file__ or "", "exec", dont_inherit=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in nested(changed)}
    gc.unfreeze()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__module__ == change.module:
            own = function.__code__
            if own.co_filename == module.__file__:
                new = codes.get((own.co_qualname, own.co_firstlineno), own)
                if new != own:
                    function.__code__ = new
    for statement in change.tree.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        if statement.lineno <= change.line <= (statement.end_lineno or 0):
            before = dict(vars(module))
            after = dict(before)
            exec(compile(ast.Module([statement], []), "constant", "exec"), after)
            for name, value in before.items():
                if name in after and after[name] is not value:
                    for other in [*sys.modules.values()]:
                        if getattr(other, "__dict__", {}).get(name) is value:
                            setattr(other, name, after[name])


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions within some code."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from nested(each)


class Tried:
    """Tries changes with the tests that were collected."""

    def __init__(self, work: Callable[[Tried], None]) -> None:
        self.work, self.first = work, ""
        self.items: list[Any] = []

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = session.items
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid

    def of(self, tests: list[str]) -> list[Any]:
        """Return the collected tests of these files and folders, in this order."""
        return [item for test in tests for item in self.items if item.nodeid.startswith(test)]

    def fails(self, change: Change | None, tests: list[str]) -> str:
        """Return the first test that fails with a change, "" if all pass; in a new process."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 5))
            try:
                if change is not None:
                    plant(change)
                own = self.of(tests)
                for item, after in zip(own, [*own[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    if self.first:
                        break
            except BaseException as error:
                self.first = f"{type(error).__name__}: {error}"
            os.write(write, (self.first or "all pass").encode()[:4000])
            os._exit(0)
        os.close(write)
        end, done = time.monotonic() + 8 * MOST_SECONDS, 0
        while not done and time.monotonic() < end:
            done, _ = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        told = os.read(read, 2**12)
        os.close(read)
        text = told.decode() or "no end"
        return "" if text == "all pass" else text


def tests_of(module: str, again: bool) -> list[str]:
    """Return the doctests and tests of a module, or those of its room and from outside."""
    room, _, name = module.rpartition(".")
    if again:
        beyond = BEYOND.get(room or name, [])
        return [*([f"tests/{room}"] if room else []), *(t for t in beyond if Path(t).exists())]
    own = sorted(str(path) for path in Path("tests", room).glob(f"test_{name}*.py"))
    return [f"dpbayes_sklearn/{module.replace('.', '/')}.py", *own]


def kept() -> list[dict[str, str]]:
    """Return the results so far."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    return [*csv.DictReader(text.splitlines())]


def keep(*values: str) -> None:
    """Add a result, in the place of an earlier one of the same change."""
    new = dict(zip(FIELDS, values, strict=True))
    rows = [new, *(r for r in kept() if any(r[name] != new[name] for name in ("module", "change")))]
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda r: (r["module"], int(r["line"]), r["change"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=6, help="changes of every module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="beginnings of names of modules")
    parser.add_argument("--again", action="store_true", help="only those that survived")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    modules = [m for m in MODULES if m.startswith(tuple(options.only.split(",")))]
    left = {(row["module"], row["change"]) for row in kept() if not row["noticed by"]}

    def work(tried: Tried) -> None:
        for module in modules:
            rng = random.Random(f"{module} {options.seed}")
            for change in [*written(module), *drawn(module, options.each, rng)]:
                if options.again and (module, change.what) not in left:
                    continue
                start, test = time.monotonic(), tried.fails(change, tests_of(module, options.again))
                keep(module, str(change.line), change.what, test)
                told, taken = test[-80:] or "SURVIVED", time.monotonic() - start
                say = f"{module}:{change.line} {change.what} | {told} | {taken:.0f} s"
                print(say, file=sys.__stderr__, flush=True)

    own = [test for module in modules for test in tests_of(module, options.again)]
    files = [*dict.fromkeys(own)]
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", *files], plugins=[Tried(work)])
    left = [row for row in kept() if not row["noticed by"]]
    print(f"{len(kept()) - len(left)} of {len(kept())} changes were noticed")


if __name__ == "__main__":
    main()
