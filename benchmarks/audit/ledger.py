"""Kill processes that share a ledger, at random instants, and see whether a charge is ever lost.

Rounds of eight forked processes charge one ledger until its ceiling refuses them. Each charges
first and then "releases" by writing the label of its charge to a log. All the while processes are
killed with SIGKILL and replaced. After each round the ledger must be whole and at or below its
ceiling, and must hold a charge for every release.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path

from benchmarks.audit._table import Row
from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.privacy import BudgetAccountant, exact
from dpbayes_sklearn.privacy.ledger import Ledger

COSTS = (0.1, 0.2, 0.3, Fraction(1, 3))
CEILING = 50.05
FORK = multiprocessing.get_context("fork")

Step = Callable[[BudgetAccountant, object, str, int], None]


@dataclass
class Tally:
    """What was done and what went wrong; the last four must be 0."""

    kills: int = 0
    charges: int = 0
    releases: int = 0
    charged_then_killed: int = 0
    uncharged_releases: int = 0
    overspent_rounds: int = 0
    underspent_rounds: int = 0
    worker_failures: int = 0

    @property
    def sound(self) -> bool:
        faults = (self.uncharged_releases, self.overspent_rounds, self.underspent_rounds)
        return not any((*faults, self.worker_failures))

    def __str__(self) -> str:
        return "\n".join(f"{f.name:20} {getattr(self, f.name):>7,}" for f in fields(self))


def charge_then_release(accountant: BudgetAccountant, cost: object, label: str, log: int) -> None:
    accountant.spend(cost, label=label)  # type: ignore[arg-type]
    time.sleep(0.005)  # the computation that a kill may end before anything is released
    os.write(log, f"{label}\n".encode())


def audit(
    kills: int,
    charges: int,
    *,
    processes: int = 8,
    seed: int = 0,
    step: Step = charge_then_release,
    ceiling: float = CEILING,
) -> Tally:
    """Run rounds until there were enough kills and charges."""
    tally, chance = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        while tally.kills < kills or tally.charges < charges:
            path = Path(folder) / uuid.uuid4().hex
            accountant = BudgetAccountant(ceiling, path=path)
            _round(tally, chance, accountant, Path(f"{path}.log"), processes, step)
            _inspect(tally, accountant, Path(f"{path}.log"))
    return tally


def _round(
    tally: Tally,
    chance: random.Random,
    accountant: BudgetAccountant,
    log: Path,
    processes: int,
    step: Step,
) -> None:
    def start() -> multiprocessing.process.BaseProcess:
        worker = FORK.Process(target=_work, args=(accountant, log, chance.random(), step))
        worker.start()
        return worker

    workers = [start() for _ in range(processes)]
    while any(worker.is_alive() for worker in workers):
        time.sleep(chance.uniform(0, 0.03))
        slot = chance.randrange(processes)
        if workers[slot].exitcode is None:
            workers[slot].kill()
            workers[slot].join()
            if workers[slot].exitcode != 0:  # it may just have finished by itself
                tally.kills += 1
                workers[slot] = start()
    tally.worker_failures += sum(worker.exitcode != 0 for worker in workers)


def _work(accountant: BudgetAccountant, log: Path, seed: float, step: Step) -> None:
    chance = random.Random(seed)
    with log.open("ab", buffering=0) as file:
        for cost in iter(lambda: chance.choice(COSTS), None):
            try:
                step(accountant, cost, uuid.uuid4().hex, file.fileno())
            except BudgetError:
                if cost == min(COSTS):
                    return


def _inspect(tally: Tally, accountant: BudgetAccountant, log: Path) -> None:
    entries = Ledger.open(accountant.path).entries()  # raises if anything in it is damaged
    released = set(log.read_text().split())
    spent = sum(entry.cost.epsilon for entry in entries)
    tally.charges += len(entries)
    tally.releases += len(released)
    tally.uncharged_releases += len(released - {entry.label for entry in entries})
    tally.charged_then_killed += len(entries) - len(released)
    tally.overspent_rounds += spent > exact(CEILING)
    tally.underspent_rounds += spent + exact(min(COSTS)) <= exact(CEILING)


def run(scale: float) -> Iterator[Row]:
    """Kill at least a thousand processes."""
    tally = audit(math.ceil(1_000 * scale), math.ceil(10_000 * scale))
    found = f"{tally.kills:,} kills, {tally.charges:,} charges"
    yield Row("ledger", "8 processes, SIGKILL at random instants", found, "", tally.sound)
    for what in ("uncharged_releases", "overspent_rounds", "underspent_rounds", "worker_failures"):
        count = getattr(tally, what)
        yield Row("ledger", what.replace("_", " "), f"{count}", "0", count == 0)
