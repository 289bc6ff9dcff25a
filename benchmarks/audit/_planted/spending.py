"""Bugs in spending: too late, too little, to the wrong ledger, or not at all."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from fractions import Fraction

from benchmarks.audit._planted._fault import Faults, at, returns, uncached, with_cost
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.base import estimator
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import BudgetAccountant, composition, ledger_file
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.ledger import Balance
from dpbayes_sklearn.release import carry_out

FAULTS = Faults("spending")
COMPOSED, ACCOUNTED, REPLAY = "composition", "accounting", "replay of estimators"
CARRIED = "base.estimator.PrivateEstimator._carried_out"
CHARGE, PARTS = "privacy.ledger.Ledger.charge", "privacy.composition._parts"
SPEND, SESSION = "privacy.accountant.BudgetAccountant.spend", "papers.query.PosteriorQuerySession"

FAULTS.rows(COMPOSED, {
    "The rho of releases is written down and never added up":
        at(PARTS, lambda real, spends: (p := real(spends))._replace(rho=p.rho / 100)),
    "The conversion from zCDP has the wrong sign in a logarithm":
        at("privacy.composition._gap", lambda real, order, delta: (
               real(order, delta) - 2 * composition._log(1 / Fraction(delta)) / (order - 1) / 3
           )),
    "A pure release is thought to concentrate four times as much":
        at(PARTS, lambda real, spends: (p := real(spends))._replace(
               pure=type(p.pure)({epsilon: -(-n // 16) for epsilon, n in p.pure.items()})
           )),
    "Delta is spent by releases and again by their conversion":
        at(PARTS, lambda real, spends: real(spends)._replace(failure=Fraction(0)), "delta"),
    "A ledger of another format is read as one of this":
        at("privacy.ledger_file._format", returns(ledger_file._TABLES_VERSION), "files"),
    "What remains is rounded up":
        at("privacy.budget.Cost.rounded_down",
           lambda _, cost: Cost(*(math.nextafter(float(x), math.inf) for x in cost)), "figures"),
    "What was spent is rounded down":
        at("privacy.budget.Cost.rounded_up",
           lambda _, cost: Cost(*(math.nextafter(float(x), 0) for x in cost)), "figures"),
    "Printed epsilons and deltas are rounded to nearest":
        at(("privacy.guarantee.at_least", "privacy.accountant.at_least"),
           lambda _, number, digits=6: f"{float(number):.{digits}g}", "figures"),
    "The bound of a tiny delta underflows to 0":
        at("privacy.gaussian.LEAST_DELTA", Fraction(0), "smallest deltas")
        .also("privacy.gaussian._least_variance", uncached),
    "Any ledger at the path is taken for the one it was":
        at("privacy.ledger.Ledger._recognise", returns(None), "files"),
    "A mistyped path makes a new ledger although it must exist":
        at("privacy.accountant.BudgetAccountant.__init__",
           lambda real, *args, existing=False, **options: real(*args, **options), "files"),
    "The delta of a release is promised and not charged":
        at(SPEND, lambda real, self, epsilon=None, delta=0, *rest, **options: real(
               self, epsilon, 0, *rest, **options
           ), "delta"),
    "Batches promise the smallest of their epsilons":
        at("privacy.PrivacyGuarantee.parallel",
           lambda real, batches: replace(real(batches), epsilon=min(b.epsilon for b in batches)),
           "batches"),
    "A batch without noise may join private ones":
        at("base.classifier.DiscreteClassifier._check_same_model", returns(None), "batches"),
    "A shard that is inside another one is counted twice":
        at("shards.ExactStatistics.__init__",
           lambda real, self, schema, names, sums, shards=(), max_weight=None: real(
               self, schema, names, sums, max_weight=max_weight
           ), "batches"),
    "Bytes with negative counts are taken":
        at("shards._are_counts", lambda _, tables, n: {int(t.sum()) for t in tables} == {n},
           "batches"),
    "Nobody is warned of a seed beside a ledger or in an ensemble":
        at("base.estimator.warn_of_seeds", returns(None), "seeds"),
    "Seeds that an ensemble hands out are taken for the user's own":
        at("base.remarks.SEED_GIVERS", set(), "seeds"),
    "A guarantee does not say that it rests on a secret seed":
        at("privacy.PrivacyGuarantee.under", lambda real, self, *conditions: real(
               self, *(c for c in conditions if c != estimator.SEEDED)
           ), "seeds"),
    "A session with its exact counts can be pickled":
        at(f"{SESSION}.__reduce__",
           lambda _, self: (dict, ([("counts", self._exact.statistics.tables)],)), "queries"),
    "A session that was closed keeps its exact counts":
        at(f"{SESSION}.close", returns(None), "queries"),
})  # fmt: skip
FAULTS.rows(ACCOUNTED, {
    "All charges are taken for one parallel block":
        at("privacy.active.active_scope", returns("all"))
        .also("privacy.active.active_branch", returns(None))
        .also("privacy.ledger.is_secret_size", returns(True)),
    "An epsilon of 0.1 is read as the binary float that it is not":
        at(("privacy.budget.exact", "privacy.composition.exact", "base.spending.exact"),
           lambda _, value, name="epsilon": math.inf if value == math.inf else Fraction(value)),
    "Epsilons of different units are added up":
        at(CHARGE,
           lambda real, self, spend, label, scope, unit, branch: real(self, spend, label, scope))
        .also("privacy.ledger.Ledger.check",
              lambda real, self, spend, scope, unit, branch: real(self, spend, scope)),
    "Half of what is released is charged":
        at(CHARGE, lambda real, self, spend, *rest: real(
               self, Spend(Cost(spend.cost.epsilon / 2, spend.cost.delta), spend.rho), *rest
           )),
    "Balances are added up as floats":
        at("privacy.budget.Cost.plus", lambda _, cost, other: Cost(
               Fraction(float(cost.epsilon) + float(other.epsilon)), cost.delta + other.delta
           )),
    "The ceiling is looked at before a fit but not when the ledger is charged":
        at("privacy.budget.Cost.__le__", returns(True)),
    "A clone has a ledger of its own":
        at(tuple(f"privacy.BudgetAccountant.{m}" for m in ("__sklearn_clone__", "__deepcopy__")),
           lambda _, self, memo=None: BudgetAccountant(self.epsilon, self.delta)),
    "A fit inside an accountant's block charges nobody":
        at("base.estimator.PrivateEstimator._ledger", lambda _, self: self.accountant),
})  # fmt: skip
FAULTS.rows(REPLAY, {
    "The mechanism is handed twice the delta that was charged":
        at("base.spending.carry_out",
           lambda real, plan, *rest: real(with_cost(plan, delta=2 * plan.cost.delta), *rest)),
    "The mechanism is handed twice the epsilon that was charged":
        at("base.spending.carry_out",
           lambda real, plan, *rest: real(with_cost(plan, epsilon=2 * plan.cost.epsilon), *rest)),
    "The delta of Gaussian noise is not charged":
        at(CHARGE, lambda real, self, spend, *rest: real(
               self, Spend(Cost(spend.cost.epsilon), spend.rho), *rest
           )),
    "The guarantee states half of the epsilon that was spent":
        at("privacy.PrivacyGuarantee.of", lambda real, cls, budget, *rest: real(
               cls, budget._replace(epsilon=budget.epsilon / 2), *rest
           )),
})  # fmt: skip
FAULTS.rows("adaptive adversaries", {
    "A ledger accepts what either of two filters accepts, each with all of delta":
        at("privacy.composition.Filter.for_sums", lambda _, rule: rule.ceiling, "zcdp 1 1e-06"),
})  # fmt: skip
FAULTS.rows("parts", {
    "Half of the rho of a release is charged":
        at(SPEND, lambda real, *args, rho=None, **options: real(
               *args, rho=None if rho is None else rho / 2, **options
           ), "regression, gaussian, record"),
})  # fmt: skip


def _owing(real, *args, **options):
    """Release, and return what would have been charged."""
    owed = []
    later = (BudgetAccountant, "spend", lambda *args, **options: owed.append((args, options)))
    with planted(later):
        try:
            return real(*args, **options), owed
        except Exception as error:
            return error, owed


def _paid(owed):
    for costs, label in owed:
        BudgetAccountant.spend(*costs, **label)


@FAULTS.row(ACCOUNTED, CARRIED)
def _(real, *args, **options):
    """The ledger is charged after the release."""
    released, owed = _owing(real, *args, **options)
    _paid(owed)
    if isinstance(released, Exception):
        raise released
    return released


@FAULTS.row(ACCOUNTED, CARRIED)
def _(real, *args, **options):
    """A release that fails after its noise was drawn is not paid for."""
    released, owed = _owing(real, *args, **options)
    if isinstance(released, Exception):
        raise released
    _paid(owed)
    return released


@FAULTS.row(REPLAY, CARRIED)
def _(real, self, plan, given, *rest):
    """Two releases are averaged and one is paid for."""
    carry_out(plan, given.statistics, Noise(lambda size: b"\0" * size))
    return real(self, plan, given, *rest)


@FAULTS.row(ACCOUNTED, CARRIED)
def _(real, self, *args, **options):
    """Only the first batch is charged."""
    stream = args[2] if len(args) > 2 else options.get("stream", 0)
    if stream:
        self = copy.copy(self)
        self.accountant = None
    return real(self, *args, **options)


@FAULTS.row("plans", "base.estimator.PrivateEstimator._charged", "nothing can change")
def _(_, self, plan, statistics, stream):
    """A ledger is asked to charge a rho of 0, which it refuses."""
    cost = plan.cost
    self._ledger().spend(cost.epsilon, cost.delta, rho=cost.rho, unit=cost.unit)
    return carry_out(plan, statistics, Noise.of(self.random_state, stream))


@FAULTS.row(COMPOSED, "privacy.ledger.Ledger._balance", "files")
def _(_, self, connection):
    """A ledger that was put back to an earlier state is believed."""
    self._recognise(connection)
    entries = self._entries(connection, "ORDER BY number DESC LIMIT 1")
    return Balance.after(entries[0]) if entries else Balance()


@FAULTS.row(COMPOSED, "privacy.ledger.Ledger._transaction", "files")
def _(real, self, write=False):
    """A ledger that is gone is made anew when it is charged."""
    if not ledger_file.os.path.lexists(self.path):
        ledger_file.create_file(self.path, (self.identity, "9/1", "0/1", "sum", "2/1"))
    return real(self, write)


@FAULTS.row(COMPOSED, f"{SESSION}.query", "queries")
def _(real, self, question):
    """Only the first query of a session is charged."""
    if not hasattr(self, "_drawn"):
        self._drawn = real(self, lambda tables: tables)
    return question(self._drawn)


@FAULTS.row("parts", f"{SESSION}.guarantee", "session, record")
def _(real, self, delta=0.0):
    """A session promises one query less than it has answered."""
    with planted((self, "_queries", self._queries - 1)):
        return real(self, delta)
