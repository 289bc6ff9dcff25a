"""Replay: whatever differs between two fits that released the same came from the data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial
from math import ceil
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Case, Row, Subject, circumstance
from benchmarks.audit._pairs import subjects
from benchmarks.audit.tools.fuzzing import CONTAINERS
from benchmarks.audit.tools.replaying import SEARCH, Replay, replay
from dpbayes_sklearn import BudgetAccountant
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains

PAIRS = 10_800
WANTED = 10_000


def replayed(subject: Subject, seed: int, turns: Any) -> Iterator[Replay]:
    """Replay a pair of neighbours for each turn: the number of a circumstance, what to freeze."""
    rng, ledger = np.random.default_rng(seed), BudgetAccountant(delta=1)
    estimator = clone(subject.estimator).set_params(accountant=ledger)
    for number, freeze in turns:
        with circumstance(number):
            yield replay(estimator, *subject.make(rng), freeze=freeze)


def findings(subject: Subject, found: Replay) -> list[str]:
    """Say what differs, and if nothing could differ because nothing was fitted."""
    failed = [found.status] * (found.status != "fitted")
    return [f"{subject}: {what}" for what in (*found.divergences, *failed)]


def run(scale: float) -> Iterator[Row]:
    """Replay neighbours for all estimators; one row for each class of them."""
    everything = list(subjects())
    each = ceil(scale * PAIRS / len(everything))
    pairs, moved = Counter[str](), Counter[str]()
    wrong: defaultdict[str, list[str]] = defaultdict(list)
    for number, subject in enumerate(progress(everything, "replay")):
        kind = type(subject.estimator).__name__
        turns = ((i // 2, subject.freezes[i % len(subject.freezes)]) for i in range(each))
        for found in replayed(subject, number, turns):
            pairs[kind] += 1
            moved[kind] += any(m.moved == m.sensitivity for m in found.shifts)
            wrong[kind] += findings(subject, found)
    for kind, count in pairs.items():
        for what in dict.fromkeys(wrong[kind]):
            yield Row(what[:58], "diverges", "", False)
        figure = f"{count:,} pairs, {len(wrong[kind])} divergences"
        yield Row(kind, figure, "0 divergences", not wrong[kind])
    total, wanted = pairs.total(), scale * WANTED
    yield Row("all estimators", f"{total:,} pairs", f">= {wanted:,.0f}", total >= wanted)
    most = f"{moved.total():,} pairs"
    yield Row("statistics moved by all of their sensitivity", most, "> 0", bool(moved))


@lru_cache
def few_subjects() -> list[Subject]:
    """Return one subject of every estimator and mechanism, and more of one mechanism.

    Those whose targets may be missing are among them.
    """
    everything = [s for s in subjects() if "laplace" in s.name or "feature" not in s.name]
    first = {_what(s): s for s in reversed(everything)}
    more = "laplace", "auto", "targets may be missing"
    return [s for s in everything if s in first.values() or any(w in s.name for w in more)]


def _what(subject: Subject) -> tuple[Any, ...]:
    """Tell subjects apart by estimator and mechanism, or by container and role."""
    if _kind(subject) == "containers":
        return (subject.name,)
    return type(subject.estimator), getattr(subject.estimator, "mechanism", subject.name)


def _kind(subject: Subject) -> str:
    if subject.name.endswith(tuple(CONTAINERS)):
        return "containers"
    model = subject.estimator
    prepares = hasattr(model, "transform") or isinstance(model, FrameDomains)
    return "preparation" if prepares else "estimators"


def replays(kind: str) -> list[Case]:
    """Replay two pairs of neighbours for every estimator and mechanism of one kind."""
    few = [s for s in few_subjects() if _kind(s) == kind]
    return [Case(s.name, partial(_few_replays, number, s)) for number, s in enumerate(few)]


def _few_replays(number: int, subject: Subject) -> Iterator[str]:
    turns = [*enumerate(subject.freezes * subject.rounds, number)]
    every = replayed(subject, crc32(subject.name.encode()), turns)
    for (_, freeze), found in zip(turns, every, strict=True):
        yield from findings(subject, found)
        if found.epsilon != float(getattr(subject.estimator, "epsilon", 1.0)):
            yield f"{subject}: epsilon {found.epsilon}"
        if not found.calls or not (found.shifts or freeze is SEARCH):
            yield f"{subject}: nothing was frozen"
