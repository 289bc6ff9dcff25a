"""Bugs around the runs of a search: its rehearsal, its silence, its split and its stopping."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn._messages import Withheld
from dpbayes_sklearn._sklearn_compat import _safe_indexing
from dpbayes_sklearn.model_selection import rehearsal, runs
from dpbayes_sklearn.noise import Noise, random_stopping
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.integers import rounds, uniform_below
from dpbayes_sklearn.noise.random_stopping import _geometric

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "rehearsing",
    "rehearsals",
    "A search is rehearsed on the records themselves",
    "a selection",
)
def rehearsed_on_records() -> Replacements:
    yield rehearsal, "stand_ins", lambda X, y, groups, *_: rehearsal.StandIns(X, y, groups)


@fault("rehearsing", "rehearsals", "Stand-ins are copies of the first record", "a selection")
def copies_of_a_record() -> Replacements:
    yield rehearsal, "_one_row", lambda X: _safe_indexing(X, [0])


@fault("rehearsing", "rehearsals", "Stand-ins have the targets of the records", "a classifier")
def targets_of_records() -> Replacements:
    real = rehearsal.stand_ins

    def with_targets(X: Any, y: Any, *facts: Any) -> Any:
        made = real(X, y, *facts)
        return made._replace(y=y) if len(made.y) == len(y) else made

    yield rehearsal, "stand_ins", with_targets


@fault(
    "rehearsing",
    "rehearsals",
    "There are as many stand-ins as records, though their number is secret",
    "a secret number",
)
def as_many_stand_ins() -> Replacements:
    real = rehearsal.stand_ins

    def counted(X: Any, y: Any, *facts: Any) -> Any:
        return real(X, y, *facts)._replace(X=_safe_indexing(rehearsal._one_row(X), [0] * len(y)))

    def cut(X: Any, y: Any, *facts: Any) -> Any:
        made = counted(X, y, *facts)
        return made._replace(y=made.y[: len(y)], groups=made.groups and made.groups[: len(y)])

    yield rehearsal, "stand_ins", cut


@fault(
    "rehearsing",
    "rehearsals",
    "Later steps of a pipeline are tried with one selection of columns only",
    "errors of later steps",
)
def one_selection() -> Replacements:
    yield rehearsal, "_forms", lambda step, X: iter([step])


@fault("rehearsing", "rehearsals", "The error of a run is shown as it is", "errors of runs")
def errors_as_they_are() -> Replacements:
    real = runs.run

    def tried(candidate: int, ready: Any, seed: Any, test: Any, rho: Any = None) -> Any:
        runs._scored(copy(ready.model), ready, test, rho)
        return real(candidate, ready, seed, test, rho)

    yield runs, "run", tried


@contextmanager
def _log_switched_off() -> Iterator[Withheld]:
    logger = logging.getLogger("dpbayes_sklearn")
    before, logger.disabled = logger.disabled, True
    try:
        yield []
    finally:
        logger.disabled = before


@contextmanager
def _warnings_switched_off() -> Iterator[Withheld]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield []


@contextmanager
def _both_switched_off() -> Iterator[Withheld]:
    with _log_switched_off() as kept, _warnings_switched_off():
        yield kept


@fault(
    "rehearsing",
    "searches",
    "Runs are silenced by switches of the process, which another search turns back",
    "two searches",
)
def switches_of_the_process() -> Replacements:
    for module in (runs, runs):
        yield module, "silence", _both_switched_off


@fault(
    "rehearsing",
    "searches",
    "A search keeps the models of all runs until the last",
    "models that are kept",
)
def all_models_kept() -> Replacements:
    yield runs, "_AT_ONCE", 10**6


@fault(
    "rehearsing",
    "searches",
    "In a search of persons a fixed seed decides who is held out",
    "sides of persons",
)
def sides_by_a_fixed_key() -> Replacements:
    real = runs.coins_of
    yield (
        runs,
        "coins_of",
        lambda labels, _: real(labels, Noise(np.random.default_rng(0).bytes)),
    )


@fault(
    "rehearsing",
    "searches",
    "Every record has a side of its own, also those of one person",
    "sides of persons",
)
def sides_of_records() -> Replacements:
    real = runs.coins_of
    yield runs, "coins_of", lambda labels, source: real(np.arange(len(labels)), source)


@fault(
    "rehearsing",
    "searches",
    "Logarithmic stopping gives up after 255 proposals, once the search is charged",
    "many runs",
)
def gives_up() -> Replacements:
    def by_rejection(stopping: Any, source: Any) -> int:
        number, attempt = _geometric(stopping.inverse, source), rounds()
        while uniform_below(number, 1, source)[0]:
            next(attempt)
            number = _geometric(stopping.inverse, source)
        return number

    yield drawing, "number_of_runs", by_rejection


@fault(
    "rehearsing",
    "searches",
    "Logarithmic stopping cuts off its few large numbers of runs",
    "many runs",
)
def no_tail() -> Replacements:
    real = drawing.number_of_runs

    def cut(stopping: Any, source: Any) -> int:
        return min(real(stopping, source), stopping.inverse)

    yield drawing, "number_of_runs", cut


@fault(
    "rehearsing",
    "searches",
    "Logarithmic stopping takes every number of a power of two alike",
    "many runs",
)
def flat_octaves() -> Replacements:
    real = random_stopping._one_below

    def kind_to_large_ones(bound: int, source: Any) -> int:
        return real(1 << (bound.bit_length() - 1), source)

    yield random_stopping, "_one_below", kind_to_large_ones
