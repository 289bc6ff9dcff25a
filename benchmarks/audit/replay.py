"""Replay: whatever differs between two fits that released the same came from the data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import ceil

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Row, circumstance
from benchmarks.audit._pairs import subjects
from dpbayes_sklearn import BudgetAccountant
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.audit.replaying import replay

PAIRS = 10_800
WANTED = 10_000


def run(scale: float) -> Iterator[Row]:
    """Replay neighbours for all estimators; one row for each class of them."""
    everything = list(subjects())
    each = ceil(scale * PAIRS / len(everything))
    pairs: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    found: defaultdict[str, list[str]] = defaultdict(list)
    for number, subject in enumerate(progress(everything, "replay")):
        rng, ledger = np.random.default_rng(number), BudgetAccountant(delta=1)
        estimator = clone(subject.estimator).set_params(accountant=ledger)
        kind = type(estimator).__name__
        for i in range(each):
            freeze = subject.freezes[i % len(subject.freezes)]
            with circumstance(i // 2):
                result = replay(estimator, *subject.make(rng), freeze=freeze)
            pairs[kind] += 1
            moved[kind] += any(m.moved == m.sensitivity for m in result.shifts)
            found[kind] += [f"{subject}: {what}" for what in result.divergences]
            found[kind] += [f"{subject}: {result.status}"] * (result.status != "fitted")
    for kind, count in pairs.items():
        for what in dict.fromkeys(found[kind]):
            yield Row(what[:58], "diverges", "", False)
        figure = f"{count:,} pairs, {len(found[kind])} divergences"
        yield Row(kind, figure, "0 divergences", not found[kind])
    total = f"{pairs.total():,} pairs"
    yield Row("all estimators", total, f">= {scale * WANTED:,.0f}", pairs.total() >= scale * WANTED)
    most = f"{moved.total():,} pairs"
    yield Row("statistics moved by all of their sensitivity", most, "> 0", bool(moved))
