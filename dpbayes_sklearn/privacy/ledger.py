"""The durable record of every charge, in one SQLite file that all holders share.

**What a parallel scope costs: its branches are joined, the releases of one branch add up.**

Guarantee
---------
*Precondition*: neighbours have all records of one unit more (``add_remove``), and the records of
one unit are all in the data of one branch. *Claim*: all releases of a scope together cost as much
as its most expensive branch. *Proof*: the added unit is in one branch. The data of every other
branch are the same for both neighbours, so what it releases has privacy loss 0, whatever results of
other branches its budget was chosen by. What is left is the sequence of releases of one branch.

A unit that is *replaced* may be in one branch before and in another one after, which changes the
number of records of both. Releases that protect replaced units publish that number, so no cost
covers them, and a scope takes none of them.

A charge is one ``BEGIN IMMEDIATE`` transaction: read the balance, compare it with the
ceiling, append an entry. Entries are never changed or removed, so there are no refunds;
each carries the sums after it, so a charge that they allow takes as long in a long ledger as in
a short one. Epsilons add up only if they protect the same unit, so all entries of a ledger do.
"""

from __future__ import annotations

import math
import sqlite3
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from dpbayes_sklearn.exceptions import NOTHING_SPENT, BudgetError, LedgerError
from dpbayes_sklearn.privacy.budget import Cost, Exact, is_secret_size, parsed, round_up, written
from dpbayes_sklearn.privacy.composition import Composition, Filter, Spend, in_parallel, tightest
from dpbayes_sklearn.privacy.ledger_file import create_file, refusal, transaction

# The columns of the table of entries, in order.
COLUMNS = (
    "number, time, label, release_id, scope, epsilon, delta, rho, "
    "spent_epsilon, spent_delta, spent_rho, unit, branch, allotment"
)
COSTS = "epsilon, delta, rho"  # Those that say what an entry costs.


class Branches:
    """The (epsilon, delta) of one parallel scope, added up for every branch."""

    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._alone = 0

    def add(self, branch: str | None, cost: Cost) -> Cost:
        """Add a release and return by how much the scope costs more; None is a branch of its own.

        >>> north, scope = "north", Branches()
        >>> [float(scope.add(north, Cost.of(e)).epsilon) for e in (0.5, 0.25)]
        [0.5, 0.25]
        >>> float(scope.add("south", Cost.of(1)).epsilon)
        0.25
        """
        before, name = self.cost, self._name(branch)
        self._costs[name] = self._costs.get(name, Cost()).plus(cost)
        return self.cost.beyond(before)

    @property
    def cost(self) -> Cost:
        """The largest epsilon and the largest delta of any branch."""
        joined = Cost()
        for cost in self._costs.values():
            joined = joined.joined(cost)
        return joined

    def _name(self, branch: str | None) -> str:
        self._alone += branch is None
        return f"alone {self._alone}" if branch is None else f"named {branch}"


def scope_spends(releases: Iterable[tuple[str | None, Spend]]) -> list[Spend]:
    """Return releases that together cost as much as (branch, release) of a scope, or more."""
    branches, alone = defaultdict[str, list[Spend]](list), list[Spend]()
    for branch, spend in releases:
        (alone if branch is None else branches[branch]).append(spend)
    return in_parallel([*alone, *(_in_sequence(spends) for spends in branches.values())])


def _in_sequence(spends: Sequence[Spend]) -> Spend:
    """Return one release that costs as much as several about the same people, or more.

    A pure release is epsilon²/2-zCDP, so zCDP adds up unless a release is known by (epsilon, delta)
    alone.
    """
    if len(spends) == 1:
        return spends[0]
    concentrated = any(spend.rho < math.inf for spend in spends)
    rho = sum((_rho(spend) for spend in spends), Fraction(0))
    if concentrated and rho < math.inf:
        return Spend(Cost(math.inf), rho)
    cost = Cost()
    for spend in spends:
        cost = cost.plus(spend.cost)
    return Spend(cost)


def _rho(spend: Spend) -> Fraction | float:
    """Return the zCDP of a release; infinite where only (epsilon, delta) is known."""
    if spend.rho < math.inf:
        return spend.rho
    return math.inf if spend.cost.delta else spend.cost.epsilon**2 / 2


@dataclass(frozen=True)
class Entry:
    """One charge, and the exact balance after it.

    Attributes
    ----------
    number : int
        1 for the first entry of the ledger.
    time : datetime
        When it was charged, in UTC.
    label : str
        What it was for.
    release_id : str
        Names the release that this entry pays for, and no other.
    scope : str or None
        The parallel scope it belongs to.
    spend : Spend
        What was charged, in exact fractions.
    spent : (epsilon, delta)
        The sums over the ledger with it; ``spent_rho`` those of the rho that are known.
    unit : str or None
        Whom it protects, which is the same for all entries of a ledger; None before any says it.
    branch : str or None
        The branch of the scope, whose entries add up; None stands for one of its own.
    allotment : str
        The part of the budget that it was charged to; empty if to none.
    """

    number: int
    time: datetime
    label: str
    release_id: str
    scope: str | None
    spend: Spend
    spent: Cost
    spent_rho: Exact
    unit: str | None = None
    branch: str | None = None
    allotment: str = ""

    @property
    def cost(self) -> Cost:
        """The exact (epsilon, delta) charged; infinite where only zCDP is known."""
        return self.spend.cost

    @property
    def rho(self) -> float | None:
        """The rho charged, rounded up where no float is exact; None where none is known."""
        return None if self.spend.rho == math.inf else round_up(self.spend.rho)

    @property
    def epsilon(self) -> float:
        """The epsilon charged, rounded up where no float is exact."""
        return round_up(self.cost.epsilon)

    @property
    def delta(self) -> float:
        """The delta charged, rounded up where no float is exact."""
        return round_up(self.cost.delta)


class Allotment(NamedTuple):
    """A named part of a budget: its own ceiling, and what was spent of it.

    Its releases are added up, epsilons and deltas, whatever the composition of the ledger; those of
    a parallel scope too.
    """

    name: str
    ceiling: Cost
    spent: Cost

    @property
    def left(self) -> Cost:
        """What can still be spent, if the ledger has room for it."""
        return self.ceiling.left_by(self.spent)


class Balance(NamedTuple):
    """How many entries there are, the sums of their costs, and whom all of them protect."""

    number: int = 0
    spent: Cost = Cost()
    rho: Exact = Fraction(0)
    unit: str | None = None

    @classmethod
    def after(cls, entry: Entry) -> Balance:
        """Return the balance that is written in an entry."""
        return cls(entry.number, entry.spent, entry.spent_rho, entry.unit)

    def plus(self, spend: Spend, more: Cost, unit: str | None) -> Balance:
        """Return the balance with one more entry, that makes the ledger cost so much ``more``.

        The first entry that has a unit decides the unit of the ledger.
        """
        rho = Fraction(0) if spend.rho == math.inf else spend.rho
        return Balance(self.number + 1, self.spent.plus(more), self.rho + rho, self.unit or unit)


def adds_up(entries: Iterable[Entry]) -> bool:
    """Replay the ledger: numbers without gaps, balances that follow from the costs, one unit."""
    balance, scopes = Balance(), defaultdict[str, Branches](Branches)
    for entry in entries:
        scope = Branches() if entry.scope is None else scopes[entry.scope]
        more = scope.add(entry.branch, entry.cost)
        balance = balance.plus(entry.spend, more, entry.unit)
        if Balance.after(entry) != balance:
            return False
    return True


def entry_row(entry: Entry) -> tuple[int | str | None, ...]:
    """Return an entry as it is written."""
    described = (entry.time.isoformat(), entry.label, entry.release_id, entry.scope)
    costs = (*entry.cost.written(), None if entry.rho is None else written(entry.spend.rho))
    balance = (*entry.spent.written(), written(entry.spent_rho), entry.unit, entry.branch)
    return (entry.number, *described, *costs, *balance, entry.allotment)


def read_entry(path: str, row: tuple[object, ...]) -> Entry:
    """Return the entry of a row; LedgerError where it cannot be read."""
    number, time, label, release_id, scope, *figures, spent_rho, unit, branch, allotment = row
    try:
        when = datetime.fromisoformat(str(time))
    except ValueError:
        raise refusal(path, "a time in it is unreadable") from None
    name, whom, part = (None if x is None else str(x) for x in (scope, unit, branch))
    spend, spent = read_spend(path, *figures[:3]), read_cost(path, *figures[3:])
    described = int(str(number)), when, str(label), str(release_id), name
    rho = _figure(path, spent_rho)
    return Entry(*described, spend, spent, rho, whom, part, str(allotment))


def read_spend(path: str, epsilon: object, delta: object, rho: object) -> Spend:
    """Return what a row charges."""
    return Spend(read_cost(path, epsilon, delta), math.inf if rho is None else _figure(path, rho))


def read_cost(path: str, epsilon: object, delta: object) -> Cost:
    """Return the exact pair that is written."""
    return Cost(_figure(path, epsilon), _figure(path, delta))


def _figure(path: str, text: object) -> Exact:
    try:
        return parsed(str(text))
    except (ValueError, ZeroDivisionError):
        raise refusal(path, "a figure in it is unreadable") from None


class Ledger:
    """A ledger file, known by its absolute path and the identity written inside it."""

    def __init__(self, path: str, identity: str, durable: bool = True, allotment: str = "") -> None:
        self.path = path
        self.allotment = allotment  # what is charged here is charged to it, too
        self.identity = identity
        self.durable = durable  # a ledger that goes with its process need not survive a power cut
        self._seen = 0  # entries known to be there: a ledger with fewer was put back

    @classmethod
    def create(
        cls, path: str, ceiling: Cost, durable: bool = True, composition: Composition = "sum"
    ) -> Ledger:
        """Make a new ledger; FileExistsError where something is there already."""
        identity, rule = uuid.uuid4().hex, Filter.of(ceiling, composition)
        row = (identity, *ceiling.written(), composition, written(rule.order))
        create_file(path, row, durable=durable)
        return cls(path, identity, durable)

    @classmethod
    def open(cls, path: str) -> Ledger:
        """Return the ledger at ``path`` after checking every page and every balance."""
        with transaction(path) as connection:
            ledger = cls(path, _identity(path, connection))
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise refusal(path, "its pages are damaged")
            if not adds_up(ledger._entries(connection)):
                raise refusal(path, "its entries do not add up")
        return ledger

    def rule(self) -> Filter:
        """Return the most that may ever be spent, and how it adds up."""
        with self._transaction() as connection:
            return self._rule(connection)

    def spent(self) -> Cost:
        """Return the exact sum of all entries."""
        with self._transaction() as connection:
            return self._balance(connection).spent

    def total(self) -> Cost:
        """Return the tightest (epsilon, delta) of all entries, for budgets fixed beforehand."""
        with self._transaction() as connection:
            spent = self._balance(connection).spent
            return tightest(self._rule(connection), spent, self._spends(connection))

    def remaining(self) -> Cost:
        """Return what could still be spent at once, of the allotment if there is one."""
        with self._transaction() as connection:
            left = self._remaining(connection)
            if not self.allotment:
                return left
            own = self._allotment(connection).left
            return Cost(min(left.epsilon, own.epsilon), min(left.delta, own.delta))

    def allot(self, name: str, ceiling: Cost) -> None:
        """Write down an allotment; LedgerError if it is there with another ceiling."""
        with self._transaction(write=True) as connection:
            self._recognise(connection)
            row = "SELECT epsilon, delta FROM allotment WHERE name = ?"
            for found in connection.execute(row, (name,)).fetchall():
                if read_cost(self.path, *found) != ceiling:
                    raise LedgerError(
                        f"The allotment {name!r} of the ledger has another ceiling, which cannot "
                        f"be changed: {read_cost(self.path, *found)}, not {ceiling}."
                    )
                return
            values = (name, *ceiling.written())
            connection.execute("INSERT INTO allotment VALUES (?, ?, ?)", values)

    def allotments(self) -> list[Allotment]:
        """Return all allotments by name, or the one that is charged here."""
        with self._transaction() as connection:
            self._recognise(connection)
            rows = connection.execute("SELECT name FROM allotment ORDER BY name").fetchall()
            names = [self.allotment] if self.allotment else [str(name) for (name,) in rows]
            return [self._allotment(connection, name) for name in names]

    def spends(self) -> Counter[Spend]:
        """Return what composes in sequence: entries, and parallel scopes as one."""
        with self._transaction() as connection:
            self._balance(connection)
            return self._spends(connection)

    def entries(self) -> list[Entry]:
        """Return all charges, oldest first."""
        with self._transaction() as connection:
            self._balance(connection)
            return self._entries(connection)

    def __len__(self) -> int:
        with self._transaction() as connection:
            return self._balance(connection).number

    def unit(self) -> str | None:
        """Return whom all entries protect; None if no entry says it yet."""
        with self._transaction() as connection:
            return self._balance(connection).unit

    def check(
        self,
        spend: Spend,
        scope: str | None = None,
        unit: str | None = None,
        branch: str | None = None,
    ) -> None:
        """Raise BudgetError where ``spend`` would cross the ceiling now."""
        with self._transaction() as connection:
            self._after(connection, spend, scope, unit, branch)

    def charge(
        self,
        spend: Spend,
        label: str,
        scope: str | None = None,
        unit: str | None = None,
        branch: str | None = None,
    ) -> Entry:
        """Append an entry durably, or raise and leave the ledger as it was."""
        with self._transaction(write=True) as connection:
            after = self._after(connection, spend, scope, unit, branch)
            time, release = datetime.now(UTC), uuid.uuid4().hex
            balance = (*after[1:], branch, self.allotment)
            entry = Entry(after.number, time, label, release, scope, spend, *balance)
            places = ", ".join("?" * len(COLUMNS.split(",")))
            connection.execute(f"INSERT INTO entry ({COLUMNS}) VALUES ({places})", entry_row(entry))
        self._seen = max(self._seen, entry.number)
        return entry

    def _after(
        self,
        connection: sqlite3.Connection,
        spend: Spend,
        scope: str | None,
        unit: str | None,
        branch: str | None,
    ) -> Balance:
        """Return the balance that an entry would leave; raise if it may not be written."""
        rule, before = self._rule(connection), self._balance(connection)
        if before.unit and unit and unit != before.unit:
            raise ValueError(
                f"This ledger adds up releases that protect another unit: {before.unit!r}, not "
                f"{unit!r}. Epsilons of different units have no sum. Nothing was spent or "
                f"released. Use a BudgetAccountant of its own for {unit!r}."
            )
        more = self._branches(connection, scope).add(branch, spend.cost)
        after = before.plus(spend, more, unit)
        if scope is not None and not is_secret_size(after.unit):
            raise ValueError(
                "Inside accountant.parallel() every release must protect records that are added or "
                f"removed, and the unit is {after.unit!r}: somebody who is replaced may be in one "
                f"group before and in another one after. {NOTHING_SPENT} Set "
                "neighbours='add_remove', or unit=PrivacyUnit(neighbours='add_remove') of a spend."
            )
        if not after.spent <= rule.for_sums:  # looking at all entries takes longer
            spends = self._spends(connection, scope, spend, branch)
            if not rule.accepts(after.spent, spends):
                left = self._remaining(connection).rounded_down()
                raise BudgetError(
                    f"Spending {spend} would cross the ceiling {rule}: {left} remains. "
                    f"{NOTHING_SPENT} {rule.advice}",
                    requested=spend.cost.rounded_up(),
                    remaining=left,
                )
        if self.allotment:
            self._refuse_beyond_allotment(connection, spend)
        return after

    def _refuse_beyond_allotment(self, connection: sqlite3.Connection, spend: Spend) -> None:
        own = self._allotment(connection)
        if not own.spent.plus(spend.cost) <= own.ceiling:
            left = own.left.rounded_down()
            raise BudgetError(
                f"Spending {spend} would cross the ceiling of the allotment {own.name!r}, "
                f"{own.ceiling}: {left} remains. {NOTHING_SPENT}",
                requested=spend.cost.rounded_up(),
                remaining=left,
            )

    def _allotment(self, connection: sqlite3.Connection, name: str | None = None) -> Allotment:
        """Return an allotment with the sum of its entries, by default the one charged here."""
        name, spent = self.allotment if name is None else name, Cost()
        ceilings = connection.execute(
            "SELECT epsilon, delta FROM allotment WHERE name = ?", (name,)
        ).fetchall()
        if not ceilings:
            raise refusal(self.path, f"it has no allotment {name!r}")
        rows = "SELECT epsilon, delta FROM entry WHERE allotment = ?"
        for row in connection.execute(rows, (name,)):
            spent = spent.plus(read_cost(self.path, *row))
        return Allotment(name, read_cost(self.path, *ceilings[0]), spent)

    def _remaining(self, connection: sqlite3.Connection) -> Cost:
        spent = self._balance(connection).spent
        return self._rule(connection).remaining(spent, self._spends(connection))

    def _transaction(self, write: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self.path, write=write, durable=self.durable)

    def _recognise(self, connection: sqlite3.Connection) -> None:
        if _identity(self.path, connection) != self.identity:
            raise refusal(self.path, "another ledger has been put in its place")

    def _rule(self, connection: sqlite3.Connection) -> Filter:
        self._recognise(connection)
        ((*ceiling, composition, order),) = connection.execute(
            "SELECT epsilon, delta, composition, renyi_order FROM ledger"
        )
        try:
            found = Fraction(_figure(self.path, order))
            return Filter.of(read_cost(self.path, *ceiling), str(composition), found)
        except ValueError:
            raise refusal(self.path, "it does not say how releases add up") from None

    def _balance(self, connection: sqlite3.Connection) -> Balance:
        """Return how many entries there are and what they add up to."""
        self._recognise(connection)
        entries = self._entries(connection, "ORDER BY number DESC LIMIT 1")
        balance = Balance.after(entries[0]) if entries else Balance()
        if balance.number < self._seen:
            raise refusal(self.path, "entries that were written are gone")
        self._seen = balance.number
        return balance

    def _branches(self, connection: sqlite3.Connection, scope: str | None) -> Branches:
        """Return what the branches of a parallel scope cost so far."""
        branches = Branches()
        rows = "SELECT branch, epsilon, delta FROM entry WHERE scope = ?"
        for branch, *row in connection.execute(rows, (scope,)):
            branches.add(branch, read_cost(self.path, *row))
        return branches

    def _spends(
        self,
        connection: sqlite3.Connection,
        scope: str | None = None,
        more: Spend | None = None,
        branch: str | None = None,
    ) -> Counter[Spend]:
        """Return the entries by what they cost, with one ``more`` in a branch of ``scope``."""
        spends = Counter[Spend]()
        scopes = defaultdict[str, list[tuple[str | None, Spend]]](list)
        single = f"SELECT COUNT(*), {COSTS} FROM entry WHERE scope IS NULL GROUP BY {COSTS}"
        for count, *row in connection.execute(single):
            spends[read_spend(self.path, *row)] += count
        scoped = f"SELECT scope, branch, {COSTS} FROM entry WHERE scope IS NOT NULL"
        for name, part, *row in connection.execute(scoped):
            scopes[name].append((part, read_spend(self.path, *row)))
        if more is not None and scope is not None:
            scopes[scope].append((branch, more))
        elif more is not None:
            spends[more] += 1
        for together in scopes.values():
            spends.update(scope_spends(together))
        return spends

    def _entries(
        self, connection: sqlite3.Connection, order: str = "ORDER BY number"
    ) -> list[Entry]:
        rows = connection.execute(f"SELECT {COLUMNS} FROM entry {order}")
        return [read_entry(self.path, row) for row in rows]


def _identity(path: str, connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT id FROM ledger").fetchall()
    if len(rows) != 1:
        raise refusal(path, "it does not say which ledger it is")
    return str(rows[0][0])
