"""Bugs of parallel scopes, of blocks and their workers, of secret numbers, and of ledger files."""

from __future__ import annotations

import math
from contextlib import nullcontext

from benchmarks.audit._planted._fault import Faults, at, returns
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.privacy.ledger import _rho
from dpbayes_sklearn.release import GUESS

FAULTS = Faults("scopes")
ACTIVE, LEDGER = "privacy.active", "privacy.ledger"

FAULTS.rows("scopes", {
    "Releases of one fit in a scope are joined by the maximum":
        at(f"{ACTIVE}.active_branch", returns(None), "fits"),
    "Branches of a scope are joined within themselves, too":
        at(f"{LEDGER}.Branches._name", lambda real, self, branch: real(self, None), "branches"),
    "A scope takes releases that protect replaced records":
        at(f"{LEDGER}.is_secret_size", returns(True), "replaced"),
    "Batches do not say that nobody may change batch":
        at("privacy.guarantee.STAYS", "", "replaced"),
    "Batches do not say that a position decides no batch":
        at("privacy.guarantee.APART", "", "replaced"),
    "A scope of zCDP and pure releases drops the larger of both":
        at(f"{LEDGER}.in_parallel",
           lambda real, spends: (t := real(spends))[: 1 if t[0].rho < math.inf else None],
           "branches"),
    "The zCDP of a branch is that of its largest release":
        at(f"{LEDGER}._in_sequence", lambda _, spends: max(spends, key=_rho), "fits"),
    "Number of records and model share a stream of a seed":
        at("base.estimator._SIZE_STREAM", 0, "streams"),
    "The number of records is paid for where there is no room":
        at("base.estimator.PrivateEstimator._check_together", returns(None), "no room"),
    "There is room for the model of a guessed number only":
        at("base.classifier.DiscreteClassifier._sizes", returns((GUESS,)), "no room"),
    "A refusal denies what the number of records has cost":
        at("base.estimator.told_what_was_spent", lambda *_: nullcontext(), "no room"),
    "Processes are not told of the block that they work for":
        at(f"{ACTIVE}.publish", returns(None), "child"),
    "Nobody asks whether the process that has started it has a block":
        at("privacy.accountant._of_ancestors", returns(None), "chil"),
    "A process that has outlived a block fits without a charge":
        at(f"{ACTIVE}.publish", lambda real, blocks, left=None: real(blocks), "late proc"),
    "New processes do not inherit the block that they are for":
        at(f"{ACTIVE}.tell_new_processes", returns(None), "started"),
    "A block that cannot be confirmed is taken for none":
        at(f"{ACTIVE}._inherited", lambda _: (None, []), "unknown bl"),
    "A thread that has outlived a block fits without a charge":
        at(f"{ACTIVE}.other_threads", lambda _: [], "late thr"),
    "Work of an inner block may be charged to the outer one":
        at(f"{ACTIVE}.only_block",
           lambda real, candidates, left: real(candidates, set() if candidates else left),
           "late thr"),
    "A ledger file may have hard links":
        at("privacy.ledger_file._refuse_other_names", returns(None), "two names"),
    "The only locks of a ledger are those that SQLite loses":
        at("privacy.ledger_file._Locked.__enter__", returns(None), "backup"),
    "The ceiling of an allotment is not enforced":
        at(f"{LEDGER}.Ledger._refuse_beyond_allotment", returns(None), "allotments"),
    "What an allotment spends is not charged to the whole":
        at(f"{LEDGER}.Balance.plus", lambda real, self, spend, more, unit: real(
               self, spend, more._replace(epsilon=more.epsilon / 2), unit
           ), "allotments"),
    "A pickled accountant forgets its allotment":
        at("privacy.accountant.BudgetAccountant.__reduce__",
           lambda real, self: (real(self)[0], real(self)[1][:5]), "allotments"),
})  # fmt: skip


@FAULTS.row("scopes", "papers.query.PosteriorQuerySession.guarantee", "sessions")
def _(real, self, delta=0.0):
    """A session's guarantee leaves out the number of records."""
    with planted((self, "_opening", self._opening * 0)):
        return real(self, delta)
