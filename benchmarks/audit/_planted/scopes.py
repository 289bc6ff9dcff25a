"""Bugs of parallel scopes, of blocks and their workers, of secret numbers, and of ledger files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.base import estimator
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.privacy import accountant, active, guarantee, ledger, ledger_file
from dpbayes_sklearn.query import PosteriorQuerySession
from dpbayes_sklearn.release import GUESS

Replacements = Iterator[tuple[Any, str, Any]]


@fault("scopes", "scopes", "Releases of one fit in a scope are joined by the maximum", "fits")
def every_release_is_a_branch() -> Replacements:
    yield active, "active_branch", lambda: None


@fault("scopes", "scopes", "Branches of a scope are joined within themselves, too", "branches")
def branches_do_not_add_up() -> Replacements:
    real = ledger.Branches._name
    yield ledger.Branches, "_name", lambda self, branch: real(self, None)


@fault("scopes", "scopes", "A scope takes releases that protect replaced records", "replaced")
def replaced_in_scopes() -> Replacements:
    yield ledger, "is_secret_size", lambda label: True


@fault("scopes", "scopes", "Batches do not say that nobody may change batch", "replaced")
def batches_change() -> Replacements:
    yield guarantee, "STAYS", ""


@fault("scopes", "scopes", "Batches do not say that a position decides no batch", "replaced")
def batches_by_position() -> Replacements:
    yield guarantee, "APART", ""


@fault("scopes", "scopes", "A scope of zCDP and pure releases drops the larger of both", "branches")
def drops_the_larger() -> Replacements:
    real = ledger.in_parallel

    def smaller(spends: Any) -> Any:
        together = real(spends)
        return together[:1] if together[0].rho < math.inf else together

    yield ledger, "in_parallel", smaller


@fault("scopes", "scopes", "The zCDP of a branch is that of its largest release", "fits")
def largest_of_a_branch() -> Replacements:
    yield ledger, "_in_sequence", lambda spends: max(spends, key=ledger._rho)


@fault("scopes", "scopes", "A session's guarantee leaves out the number of records", "sessions")
def opening_is_free() -> Replacements:
    real = PosteriorQuerySession.guarantee

    def without(self: Any, delta: float = 0.0) -> Any:
        self._opening, opening = self._opening * 0, self._opening
        try:
            return real(self, delta)
        finally:
            self._opening = opening

    yield PosteriorQuerySession, "guarantee", without


@fault("scopes", "scopes", "Number of records and model share a stream of a seed", "streams")
def one_stream() -> Replacements:
    yield estimator, "_SIZE_STREAM", 0


@fault("scopes", "scopes", "The number of records is paid for where there is no room", "no room")
def number_first() -> Replacements:
    yield PrivateEstimator, "_check_together", lambda self, share, costs: None


@fault("scopes", "scopes", "There is room for the model of a guessed number only", "no room")
def room_for_the_guess() -> Replacements:
    yield DiscreteClassifier, "_sizes", lambda self, budget: (GUESS,)


@fault("scopes", "scopes", "A refusal denies what the number of records has cost", "no room")
def denied() -> Replacements:
    yield estimator, "_told_what_was_spent", lambda first: nullcontext()


@fault("scopes", "scopes", "Processes are not told of the block that they work for", "child")
def nobody_is_told() -> Replacements:
    yield active, "publish", lambda blocks, left=None: None


@fault(
    "scopes", "scopes", "Nobody asks whether the process that has started it has a block", "chil"
)
def nobody_asks() -> Replacements:
    yield accountant, "_of_ancestors", lambda: None


@fault("scopes", "scopes", "A process that has outlived a block fits without a charge", "late proc")
def processes_forget() -> Replacements:
    real = active.publish
    yield active, "publish", lambda blocks, left=None: real(blocks)


@fault("scopes", "scopes", "New processes do not inherit the block that they are for", "started")
def nothing_is_inherited() -> Replacements:
    yield active, "tell_new_processes", lambda blocks: None


@fault("scopes", "scopes", "A block that cannot be confirmed is taken for none", "unknown bl")
def unknown_is_none() -> Replacements:
    yield active, "_inherited", lambda: (None, [])


@fault("scopes", "scopes", "A thread that has outlived a block fits without a charge", "late thr")
def threads_forget() -> Replacements:
    yield active, "other_threads", lambda: []


@fault("scopes", "scopes", "Work of an inner block may be charged to the outer one", "late thr")
def charged_to_the_outer() -> Replacements:
    real = active.only_block

    def careless(candidates: Any, outlived: Any) -> Any:
        return real(candidates, set() if candidates else outlived)

    yield active, "only_block", careless


@fault("scopes", "scopes", "A ledger file may have hard links", "two names")
def many_names() -> Replacements:
    yield ledger_file, "_refuse_other_names", lambda path: None


@fault("scopes", "scopes", "The only locks of a ledger are those that SQLite loses", "backup")
def lost_locks() -> Replacements:
    yield ledger_file._Locked, "__enter__", lambda self: None


@fault("scopes", "scopes", "The ceiling of an allotment is not enforced", "allotments")
def allotments_without_a_ceiling() -> Replacements:
    yield ledger.Ledger, "_refuse_beyond_allotment", lambda self, connection, spend: None


@fault("scopes", "scopes", "What an allotment spends is not charged to the whole", "allotments")
def allotments_for_free() -> Replacements:
    real = ledger.Balance.plus

    def plus(self: Any, spend: Any, more: Any, unit: Any) -> Any:
        return real(self, spend, more._replace(epsilon=more.epsilon / 2), unit)

    yield ledger.Balance, "plus", plus


@fault("scopes", "scopes", "A pickled accountant forgets its allotment", "allotments")
def allotment_lost_in_a_pickle() -> Replacements:
    real = accountant.BudgetAccountant.__reduce__

    def reduce(self: Any) -> Any:
        restored, written = real(self)
        return restored, written[:5]

    yield accountant.BudgetAccountant, "__reduce__", reduce
