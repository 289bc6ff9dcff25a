"""Bugs of what releases cost together, and of the file that remembers it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn import shards
from dpbayes_sklearn.base import classifier, estimator, remarks
from dpbayes_sklearn.noise import discrete_gaussian
from dpbayes_sklearn.privacy import (
    PrivacyGuarantee,
    accountant,
    active,
    budget,
    composition,
    ledger,
    ledger_file,
)
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.ledger import Balance, Ledger
from dpbayes_sklearn.query import PosteriorQuerySession

Replacements = Iterator[tuple[Any, str, Any]]


@fault("composition", "composition", "The rho of releases is written down and never added up")
def rho_not_charged() -> Replacements:
    real = composition._parts

    def without(spends: Any) -> Any:
        parts = real(spends)
        return parts._replace(rho=parts.rho / 100)

    yield composition, "_parts", without


@fault("composition", "composition", "The conversion from zCDP has the wrong sign in a logarithm")
def conversion_inverted() -> Replacements:
    real = composition._gap

    def inverted(order: Fraction, delta: Any) -> Fraction:
        return real(order, delta) - 2 * composition._log(1 / Fraction(delta)) / (order - 1) / 3

    yield composition, "_gap", inverted


@fault("composition", "composition", "A pure release is thought to concentrate four times as much")
def pure_counts_less() -> Replacements:
    real = composition._parts

    def cheap(spends: Any) -> Any:
        parts = real(spends)
        counts = {epsilon: -(-count // 16) for epsilon, count in parts.pure.items()}
        return parts._replace(pure=type(parts.pure)(counts))

    yield composition, "_parts", cheap


@fault(
    "composition",
    "composition",
    "Delta is spent by releases and again by their conversion",
    "delta",
)
def delta_spent_twice() -> Replacements:
    real = composition._parts
    yield composition, "_parts", lambda spends: real(spends)._replace(failure=Fraction(0))


@fault("composition", "composition", "Noise that cannot be drawn is charged", "smallest deltas")
def any_variance() -> Replacements:
    yield discrete_gaussian, "MAX_VARIANCE", math.inf


@fault("composition", "composition", "A ledger of another format is read as one of this", "files")
def any_format() -> Replacements:
    yield ledger_file, "_format", lambda connection: ledger_file._FORMAT


@fault("composition", "accounting", "All charges are taken for one parallel block")
def all_in_parallel() -> Replacements:
    yield active, "active_scope", lambda ledger: "all"
    yield active, "active_branch", lambda: None
    yield ledger, "is_secret_size", lambda label: True


@fault("composition", "composition", "What remains is rounded up", "figures")
def remaining_rounded_up() -> Replacements:
    def up(self: Cost) -> Cost:
        return Cost(*(math.nextafter(float(x), math.inf) for x in self))

    yield Cost, "rounded_down", up


@fault("composition", "composition", "What was spent is rounded down", "figures")
def spent_rounded_down() -> Replacements:
    def down(self: Cost) -> Cost:
        return Cost(*(math.nextafter(float(x), 0) for x in self))

    yield Cost, "rounded_up", down


@fault(
    "composition",
    "composition",
    "A ledger that was put back to an earlier state is believed",
    "files",
)
def put_back() -> Replacements:
    def trusting(self: Any, connection: Any) -> Balance:
        self._recognise(connection)
        entries = self._entries(connection, "ORDER BY number DESC LIMIT 1")
        return Balance.after(entries[0]) if entries else Balance()

    yield Ledger, "_balance", trusting


@fault("composition", "composition", "Any ledger at the path is taken for the one it was", "files")
def not_recognised() -> Replacements:
    yield Ledger, "_recognise", lambda self, connection: None


@fault(
    "composition", "composition", "A ledger that is gone is made anew when it is charged", "files"
)
def made_anew() -> Replacements:
    real = Ledger._transaction

    def making(self: Any, write: bool = False) -> Any:
        if not ledger_file.os.path.lexists(self.path):
            ledger_file.create_file(self.path, (self.identity, "9/1", "0/1", "sum", "2/1"))
        return real(self, write)

    yield Ledger, "_transaction", making


@fault(
    "composition",
    "composition",
    "A mistyped path makes a new ledger although it must exist",
    "files",
)
def a_typo_is_taken() -> Replacements:
    real = accountant.BudgetAccountant.__init__

    def careless(self: Any, *args: Any, existing: bool = False, **options: Any) -> None:
        real(self, *args, **options)

    yield accountant.BudgetAccountant, "__init__", careless


@fault("composition", "accounting", "An epsilon of 0.1 is read as the binary float that it is not")
def binary_epsilons() -> Replacements:
    def binary(value: Any, name: str = "epsilon") -> Any:
        return math.inf if value == math.inf else Fraction(value)

    for module in (budget, composition, estimator):
        yield module, "exact", binary


@fault("composition", "composition", "The delta of a release is promised and not charged", "delta")
def delta_not_charged() -> Replacements:
    real = accountant.BudgetAccountant.spend

    def pure(self: Any, epsilon: Any = None, delta: Any = 0, label: str = "", **rest: Any) -> Any:
        return real(self, epsilon, 0, label, **rest)

    yield accountant.BudgetAccountant, "spend", pure


@fault("composition", "composition", "Batches promise the smallest of their epsilons", "batches")
def the_smallest_batch() -> Replacements:
    real = PrivacyGuarantee.parallel

    def smallest(batches: Any) -> Any:
        return replace(real(batches), epsilon=min(batch.epsilon for batch in batches))

    yield PrivacyGuarantee, "parallel", staticmethod(smallest)


@fault("composition", "composition", "A batch without noise may join private ones", "batches")
def any_batch_joins() -> Replacements:
    owner = classifier.DiscreteClassifier
    yield owner, "_check_same_model", lambda self, classes: None


@fault(
    "composition", "composition", "A shard that is inside another one is counted twice", "batches"
)
def shards_twice() -> Replacements:
    real = shards.ExactStatistics.__init__

    def anonymous(self: Any, schema: Any, names: Any, sums: Any, shards: Any = ()) -> None:
        real(self, schema, names, sums)

    yield shards.ExactStatistics, "__init__", anonymous


@fault(
    "composition",
    "composition",
    "Nobody is warned of a seed beside a ledger or in an ensemble",
    "seeds",
)
def silent_seeds() -> Replacements:
    yield estimator, "warn_of_seeds", lambda ledger: None


@fault(
    "composition",
    "composition",
    "Seeds that an ensemble hands out are taken for the user's own",
    "seeds",
)
def seeds_of_ensembles() -> Replacements:
    yield remarks, "SEED_GIVERS", set()


@fault(
    "composition", "composition", "A guarantee does not say that it rests on a secret seed", "seeds"
)
def seeds_without_a_condition() -> Replacements:
    real = PrivacyGuarantee.under

    def under(self: Any, *conditions: str) -> Any:
        return real(self, *(c for c in conditions if c != estimator.SEEDED))

    yield PrivacyGuarantee, "under", under


@fault("composition", "composition", "Only the first query of a session is charged", "queries")
def queries_are_free() -> Replacements:
    real = PosteriorQuerySession.query

    def first_only(self: Any, question: Any) -> Any:
        if not hasattr(self, "_drawn"):
            self._drawn = real(self, lambda tables: tables)
        return question(self._drawn)

    yield PosteriorQuerySession, "query", first_only


@fault("composition", "composition", "A session with its exact counts can be pickled", "queries")
def sessions_travel() -> Replacements:
    def taken_apart(self: Any) -> Any:
        return dict, ([("counts", self._exact.statistics.tables)],)

    yield PosteriorQuerySession, "__reduce__", taken_apart


@fault("composition", "composition", "A session that was closed keeps its exact counts", "queries")
def sessions_stay_open() -> Replacements:
    yield PosteriorQuerySession, "close", lambda self: None
