"""Parallel scopes, blocks and their workers, secret numbers of records, and names of ledger files.

What a ledger adds up is compared with what concerns one person: all releases outside of scopes,
and of every scope those of one branch.
"""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, cases_of, crossings, in_a_folder, run_at_once
from benchmarks.audit._models import ADDED, RECORD, X, Y, naive_bayes
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.privacy import active
from dpbayes_sklearn.privacy.composition import Spend, best_order
from dpbayes_sklearn.privacy.ledger import Ledger

FORK = multiprocessing.get_context("fork")
SPENDS = (Spend.of(0.5), Spend.of(2), Spend.of(0.1, 1e-7), Spend.of(rho=0.25))
PLACES = (None, ("a", None), ("a", "north"), ("a", "south"))


def _bayes(epsilon: float = 1.0, **options: Any) -> dp.BayesianNaiveBayes:
    return naive_bayes(epsilon, **{"privacy_unit": ADDED, **options})


def scopes() -> list[Case]:
    """Charge to scopes and inside blocks, in threads, in processes and under other names."""
    return [
        *cases_of(_branches, _fits, _replaced, _sessions, _streams, _no_room),
        *cases_of(_child_processes, _started_processes, _unknown_blocks),
        *cases_of(_late_processes, _late_threads),
        *cases_of(_two_names, _backup, _allotments),
    ]


def _branches() -> Iterator[str]:
    """Charge all pairs of releases to all pairs of places."""
    for spends in itertools.product(SPENDS, repeat=2):
        for places in itertools.product(PLACES, repeat=2):
            ledger = dp.BudgetAccountant(delta=1)._ledger
            for spend, place in zip(spends, places, strict=True):
                scope, branch = place or (None, None)
                ledger.charge(spend, "", scope, ADDED.label, branch)
            persons = [[spend] for spend in spends] if _apart(*places) else [[*spends]]
            yield from (f"{spends} in {places}: {why}" for why in _too_little(ledger, persons))


def _apart(one: Any, other: Any) -> bool:
    """Tell whether nobody is in the data of both: in other branches, or without a named one."""
    return None not in (one, other) and (one != other or one[1] is None)


def _too_little(ledger: Ledger, persons: list[list[Spend]]) -> Iterator[str]:
    spent = ledger.spent()
    rho = sum((times * _zcdp(spend) for spend, times in ledger.spends().items()), Fraction(0))
    for concerned in persons:
        if sum(spend.cost.epsilon for spend in concerned) > spent.epsilon:
            yield f"epsilon {spent.epsilon}"
        if sum(spend.cost.delta for spend in concerned) > spent.delta:
            yield f"delta {spent.delta}"
        if sum(map(_zcdp, concerned)) > rho:
            yield f"rho {rho}"


def _zcdp(spend: Spend) -> Any:
    if spend.rho < math.inf:
        return spend.rho
    return math.inf if spend.cost.delta else spend.cost.epsilon**2 / 2


def _fits() -> Iterator[str]:
    """Fit two groups, whose numbers of records are released too, with all that they may cost."""
    for epsilon, delta, mechanism in ((1, 0, "laplace"), (3, 1e-5, "gaussian")):
        ledger = dp.BudgetAccountant(epsilon, delta)
        params = {"mechanism": mechanism, "delta": delta / 10, "accountant": ledger}
        with ledger.parallel():
            for half in (slice(30), slice(30, None)):
                _bayes(1.0, **params).fit(X[half], Y[half])
        if ledger.total("sum").epsilon < 1:
            yield f"{mechanism}: {ledger.total('sum').epsilon} for fits of 1 in a scope"
        entries = [entry.spend for entry in ledger]
        yield from _too_little(ledger._ledger, [entries[:2], entries[2:]])


def _replaced() -> Iterator[str]:
    """Release groups of which somebody who is replaced can change from one to the other."""
    ledger = dp.BudgetAccountant()
    with ledger.parallel(), suppress(ValueError):
        _bayes(privacy_unit=RECORD, accountant=ledger).fit(X, Y)
    with ledger.parallel(), suppress(ValueError):
        ledger.spend(0.5)
    if len(ledger):
        yield "releases that protect replaced records are joined by the maximum"
    batches = _bayes(privacy_unit=RECORD).partial_fit(X, Y).partial_fit(X, Y)
    if not any("stays in the same batch" in one for one in batches.guarantee_.conditions):
        yield "a guarantee of batches does not say that nobody changes from one to another"
    for one in (batches, _bayes().partial_fit(X, Y).partial_fit(X, Y)):
        if "on other people's records" not in str(one.guarantee_):
            yield "a guarantee of batches allows that a position in a table decides the batch"


def _sessions() -> Iterator[str]:
    """Compare what a session says with what it was charged, before and after queries."""
    ledger = dp.BudgetAccountant()
    model = _bayes(0.5, mechanism="sampler")
    with dp.PosteriorQuerySession(model, X, Y, accountant=ledger) as session:
        for _ in range(3):
            charged = ledger._ledger.spent().epsilon
            if not session.spent == session.guarantee().epsilon == float(charged):
                yield f"a session promises {session.guarantee().epsilon}, charged {float(charged)}"
            rho = sum(min(e.spend.rho, e.cost.epsilon**2 / 2) for e in ledger)
            said = session.guarantee(1e-6).rho
            if said is not None and said < float(rho) * (1 - 1e-9):
                yield f"a session promises rho {said}, released {float(rho)}"
            session.query(lambda tables: None)


def _streams() -> Iterator[str]:
    """Look at the first bytes of every release of a fit with a seed."""
    with crossings(lambda plan, statistics, noise: noise.coins(4).tobytes()) as seen:
        _bayes(random_state=0).partial_fit(X, Y).partial_fit(X, Y)
    if len({*seen}) != 4:
        yield f"{len(seen)} releases of a seed have {len({*seen})} streams of noise"


def _no_room() -> Iterator[str]:
    """Fit where there is room for the number of records and not for the model."""
    ledger = dp.BudgetAccountant(1, 1e-6)
    ledger.spend(0.7, unit=ADDED)
    model = _bayes(0.9, delta=1e-6, mechanism="gaussian", accountant=ledger)
    for _ in range(2):
        with suppress(dp.BudgetError):
            model.fit(X, Y)
    if len(ledger) != 1:
        yield "a fit that there is no room for spends the share of the number of records"
    yield from _some_room()
    yield from _honest_refusal()


def _some_room() -> Iterator[str]:
    """Fit where there may be room for the zCDP of a model of some numbers of records only."""
    for room in range(14, 28, 2):
        ledger = dp.BudgetAccountant(3, 1e-6, composition="zcdp")
        rule = ledger._ledger.rule()
        most = Fraction(rule.slack({})) / best_order(*rule.ceiling)
        ledger.spend(rho=most - Fraction(room, 1_000))
        with suppress(dp.BudgetError):
            model = _bayes(1.0, delta=1e-9, mechanism="gaussian", accountant=ledger)
            model.fit(np.tile(X, (20, 1)), np.tile(Y, 20))
        if len(ledger) == 2:
            yield "a number of records is paid for, with which there is no room for the model"


def _honest_refusal() -> Iterator[str]:
    """Let somebody else spend the rest after the number of records was released."""
    ledger, real = dp.BudgetAccountant(1), dp.BudgetAccountant.spend

    def interrupted(self: Any, *args: Any, **options: Any) -> Any:
        entry = real(self, *args, **options)
        if len(self) == 1:
            real(self, 0.9)
        return entry

    with planted((dp.BudgetAccountant, "spend", interrupted)):
        try:
            _bayes(accountant=ledger).fit(X, Y)
        except dp.BudgetError as refused:
            if "Nothing was spent" in str(refused):
                yield "a refusal says that nothing was spent after the number was paid for"


def _attempt() -> str:
    try:
        _bayes().fit(X, Y)
    except dp.LedgerError:
        return "refused"
    return "fitted"


def _worker(connection: Any) -> None:
    """Fit each time when told to."""
    while connection.recv():
        connection.send(_attempt())


def _forget_earlier_blocks() -> None:
    """Let new processes be free of the blocks of other layers."""
    os.environ.pop(active._VARIABLE, None)


class _Child:
    """A process that was started before any block and is given work through a pipe."""

    def __enter__(self) -> Callable[[], str]:
        _forget_earlier_blocks()
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=_worker, args=(theirs,))
        self.process.start()
        return self.work

    def work(self) -> str:
        self.pipe.send(True)
        return str(self.pipe.recv())

    def __exit__(self, *exception: object) -> None:
        self.pipe.send(False)
        self.process.join()


def _child_processes() -> Iterator[str]:
    with _Child() as fit:
        with dp.BudgetAccountant() as accountant:
            outcome = fit()
        if (outcome, len(accountant)) not in {("fitted", 2), ("refused", 0)}:
            yield f"a process of a block has {outcome}, with {len(accountant)} charges"


_LATE = """
import sys
from benchmarks.audit._scopes import _attempt
sys.stdin.readline()
print(_attempt())
"""


def _started_processes() -> Iterator[str]:
    """Start a process in a block, by no means of Python's, and let it fit when it was left."""
    _forget_earlier_blocks()
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with dp.BudgetAccountant():
        child = subprocess.Popen([sys.executable, "-c", _LATE], **pipes)
    if child.communicate("now\n")[0].strip() != "refused":
        yield "a process that was started in a block fits without a charge after it"


def _unknown_blocks() -> Iterator[str]:
    """Fit in a process that was started in a block of which nothing else can be known."""
    said = json.dumps(["/no/such/file", [["ledger", "", "1/1", "0/1", True]]])
    with planted((active, "_INHERITED", said), (os, "environ", {**os.environ})):
        if _attempt() == "fitted":
            yield "a process fits without a charge if it cannot know whether its block is open"


def _late_processes() -> Iterator[str]:
    with _Child() as fit:
        with dp.BudgetAccountant():
            pass
        if fit() == "fitted":
            yield "a process fits without a charge when it has outlived the block of its work"


def _late_threads() -> Iterator[str]:
    left = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with dp.BudgetAccountant():
            future = pool.submit(lambda: left.wait() and _attempt())
        left.set()
        if future.result() == "fitted":
            yield "work of a block that begins when it was left is not charged"
    left.clear()
    with ThreadPoolExecutor(1) as pool, dp.BudgetAccountant() as outer:
        with dp.BudgetAccountant():
            future = pool.submit(lambda: left.wait() and _attempt())
        left.set()
        if future.result() == "fitted" or len(outer):
            yield "work of an inner block is charged to the outer one"


@in_a_folder
def _two_names(folder: Path) -> Iterator[str]:
    path, other = folder / "ledger", folder / "other"
    accountant = dp.BudgetAccountant(1, path=path)
    os.link(path, other)
    for name in (path, other):
        with suppress(dp.LedgerError):
            dp.BudgetAccountant(path=name).spend(0.1)
    other.unlink()
    if len(accountant):
        yield "a ledger is charged under two names, with a journal for each"
    other.symlink_to(path)
    if dp.BudgetAccountant(path=other) != accountant:
        yield "a symbolic link makes two ledgers of one"


def _allotments() -> Iterator[str]:
    """Spend from allotments as long as they allow it, also by a pickled accountant."""
    whole = dp.BudgetAccountant(epsilon=1)
    parts = [whole.allotment(name, epsilon) for name, epsilon in (("a", 0.5), ("b", 0.7))]
    for part in (parts[0], pickle.loads(pickle.dumps(parts[0])), parts[1]):
        with suppress(dp.BudgetError):
            for _ in range(20):
                part.spend(0.1)
    spent = [part.total().epsilon for part in (*parts, whole)]
    if spent != [0.5, 0.5, 1.0]:
        yield f"allotments of 0.5 and 0.7 of a budget of 1 spend {spent}"


@in_a_folder
def _backup(folder: Path) -> Iterator[str]:
    """Charge in three processes that all read the file at the same time."""
    ledger = Ledger.create(str(folder / "ledger"), Spend.of(1000).cost)
    processes = [FORK.Process(target=_beside_a_backup, args=(ledger,)) for _ in range(3)]
    run_at_once(processes)
    failed = sum(process.exitcode != 0 for process in processes)
    try:
        entries = len(Ledger.open(ledger.path))
    except dp.LedgerError:
        entries = 0
    if failed or entries != 150:
        yield f"backups beside charges: {failed} of 3 processes fail, {entries} of 150 charges"


def _beside_a_backup(ledger: Ledger) -> None:
    stop = threading.Event()

    def backup() -> None:
        while not stop.is_set():
            Path(ledger.path).read_bytes()

    thread = threading.Thread(target=backup, daemon=True)
    thread.start()
    try:
        for _ in range(50):
            ledger.charge(Spend.of(0.1), "")
    except dp.LedgerError:
        os._exit(1)
    stop.set()
    thread.join()
