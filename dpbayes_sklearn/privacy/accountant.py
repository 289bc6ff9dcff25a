"""A privacy budget shared by clones, folds, threads and processes, and enforced for all."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from dpbayes_sklearn._presenting import QUIET, Html, card, meter, table, tag, tiles
from dpbayes_sklearn.exceptions import LedgerError
from dpbayes_sklearn.privacy import active
from dpbayes_sklearn.privacy.budget import Cost, PrivacyUnit, at_least, at_most, round_down
from dpbayes_sklearn.privacy.composition import Composition, Filter, Spend, privacy_loss_total
from dpbayes_sklearn.privacy.ledger import Allotment, Entry, Ledger
from dpbayes_sklearn.privacy.ledger_file import is_temporary, temporary_path

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 20  # The card shows this many entries, the latest ones.
_LONGEST_NAME = 200  # The name of an allotment has at most this many characters.
# The columns of the table of allotments.
_ALLOTMENT_COLUMNS = ("allotment", "spent", "left", "ceiling")
# The columns of the table of entries.
_ENTRY_COLUMNS = ("", "time (UTC)", "label", "epsilon", "delta", "rho")


_FIXED = (
    "What was spent is composed by zCDP, for releases whose budgets were fixed beforehand. The "
    "ceiling holds also if results decided what was spent next."
)


def ledger_card(
    entries: Sequence[Entry],
    spent: Cost,
    left: Cost,
    rule: Filter,
    allotments: Sequence[Allotment] = (),
) -> Html:
    """Return the state of a budget, its allotments and its latest releases."""
    ceiling = rule.ceiling
    figures = [
        ("spent", _figures(spent, at_least)),
        ("left", _figures(left, at_most)),
        ("ceiling", _figures(ceiling, at_least)),
        ("releases", len(entries)),
    ]
    parts = [tiles(figures)]
    if rule.composition == "zcdp":
        parts.append(tag("p", _FIXED, class_=QUIET))
    if 0 < ceiling.epsilon < math.inf:
        parts.append(meter(float(spent.epsilon) / float(ceiling.epsilon)))
    if allotments:
        parts.append(table(_ALLOTMENT_COLUMNS, map(_part, allotments), text=[0]))
    if entries:
        parts.append(table(_ENTRY_COLUMNS, map(_row, entries[-_SHOWN:]), text=[2]))
    earlier = len(entries) - _SHOWN
    if earlier > 0:
        parts.append(tag("p", f"These are the latest; {earlier} came before.", class_=QUIET))
    return card("Privacy budget", *parts, accent="good" if any(left) else "bad")


def _part(part: Allotment) -> tuple[str, ...]:
    costs = _figures(part.spent, at_least), _figures(part.left, at_most)
    return (part.name, *costs, _figures(part.ceiling, at_least))


def _row(entry: Entry) -> tuple[object, ...]:
    cost = (at_least(entry.epsilon), at_least(entry.delta))
    if entry.rho is not None and math.isinf(entry.epsilon):
        cost = ("", "")  # only zCDP is known
    rho = "" if entry.rho is None else at_least(entry.rho)
    return (entry.number, f"{entry.time:%Y-%m-%d %H:%M:%S}", entry.label, *cost, rho)


def _figures(cost: Cost, rounded: Callable[[object], str]) -> str:
    """Return epsilon, and delta if there is any."""
    epsilon = "∞" if cost.epsilon == math.inf else rounded(cost.epsilon)
    return f"ε = {epsilon}, δ = {rounded(cost.delta)}" if cost.delta else f"ε = {epsilon}"


Number = float | Fraction | Decimal


class BudgetAccountant:
    """A ceiling for the total privacy budget, and a ledger of what was spent.

    Pass the same accountant to all estimators that are fitted to the same people. Each ``fit`` is
    charged before noise is drawn, and a fit that would exceed the ceiling is refused with
    :class:`BudgetError`. Clones, copies and pickles refer to the same ledger, so
    cross-validation, ensembles, threads and joblib processes are all charged to it.

    Parameters
    ----------
    epsilon, delta : real number, default=inf and 0.0
        The ceiling. A float is interpreted as the shortest decimal that represents it.
    path : str or path-like, default=None
        The SQLite file of the ledger; created if it does not exist. The ceiling is written only
        once: an existing ledger keeps its ceiling and composition, and if you pass them, they
        must be the same.
        The file must be on a local disk and have one name: hard links are refused. ``None`` uses a
        private temporary file that is deleted when the process that created it ends.
    existing : bool, default=False
        Whether the ledger at ``path`` must exist already. A mistyped path then raises
        :class:`LedgerError`; otherwise it would create a new ledger with nothing spent.
    composition : {"sum", "zcdp"}, default="sum"
        How releases add up. ``"sum"``: their epsilons and their deltas. ``"zcdp"``: their Rényi
        divergences, which allows many more small releases if the ceiling has a delta, but not one
        that alone spends all of that delta. It cannot be changed later.

    Attributes
    ----------
    epsilon, delta : float
        The ceiling of the ledger.
    path : str
        The absolute path of the ledger, without symbolic links.
    composition : {"sum", "zcdp"}
        How the releases of the ledger add up.
    unit : str or None
        The unit that all releases of the ledger protect, such as ``"record"``.

    Notes
    -----
    **Privacy.** All accepted releases together are (epsilon, delta)-DP for the ceiling's epsilon
    and delta, also if earlier results decided what was released next and at what cost: either
    rule is a privacy filter, and costs are added exactly, as fractions. Epsilons of different
    units of privacy have no sum, so a ledger is about one unit, which the first release decides;
    a release that protects another unit is refused with ValueError. There are no refunds. If the
    ledger is missing, damaged, read-only or on a full disk, :class:`LedgerError` is raised and
    nothing is released.

    Examples
    --------
    >>> from dpbayes_sklearn.privacy import BudgetAccountant
    >>> accountant = BudgetAccountant(epsilon=0.3)
    >>> entry = accountant.spend(0.1, label="first release")
    >>> accountant.spend(0.2).epsilon
    0.2
    >>> accountant.total().epsilon, accountant.remaining().epsilon, len(accountant)
    (0.3, 0.0, 2)
    """

    def __init__(
        self,
        epsilon: Number = math.inf,
        delta: Number = 0.0,
        *,
        path: str | os.PathLike[str] | None = None,
        existing: bool = False,
        composition: Composition = "sum",
    ) -> None:
        rule = Filter.of(Cost.of(epsilon, delta), composition)
        if existing and (path is None or not os.path.lexists(path)):
            raise LedgerError(
                f"There is no ledger at {None if path is None else os.fsdecode(path)!r}. To "
                "create one, leave out existing=True."
            )
        if path is None:
            ceiling = rule.ceiling
            self._ledger = Ledger.create(temporary_path(), ceiling, False, rule.composition)
        else:
            self._ledger = _shared_ledger(os.path.abspath(os.fsdecode(path)), rule)
            ceiling = self._ledger.rule().ceiling
        self._ceiling = ceiling

    def allotment(
        self, name: str, epsilon: Number | None = None, delta: Number = 0.0
    ) -> BudgetAccountant:
        """Return an accountant for a named part of this budget, with a ceiling of its own.

        For a project, a data release or an analyst. What is charged to it is charged to the whole
        ledger as well, and either ceiling may refuse; allotments may add up to more than the
        ledger has. Within an allotment epsilons and deltas are added up, also those of parallel
        groups. Pass it to estimators like any accountant.

        Parameters
        ----------
        name : str
        epsilon, delta : real number, optional
            Its ceiling, written once. Left out, the allotment must exist.

        Examples
        --------
        >>> accountant = BudgetAccountant(epsilon=1.0)
        >>> anna = accountant.allotment("anna", epsilon=0.5)
        >>> entry = anna.spend(0.2)
        >>> anna.remaining().epsilon, accountant.remaining().epsilon
        (0.3, 0.8)
        """
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise ValueError(
                f"The name of an allotment must be a str of 1 to {_LONGEST_NAME} characters. "
                f"Got {type(name).__name__} instead."
            )
        ledger = self._ledger
        if ledger.allotment:
            raise ValueError("An allotment cannot be divided: ask the accountant of the ledger.")
        if epsilon is not None:
            ledger.allot(name, Cost.of(epsilon, delta))
        own = BudgetAccountant.__new__(BudgetAccountant)
        own._ledger = Ledger(ledger.path, ledger.identity, ledger.durable, name)
        (found,) = own._ledger.allotments()
        own._ceiling = found.ceiling
        return own

    def allotments(self) -> list[Allotment]:
        """Return the allotments of the ledger: name, ceiling, and what was spent and is left."""
        return self._ledger.allotments()

    @property
    def epsilon(self) -> float:
        """The ceiling on epsilon."""
        return round_down(self._ceiling.epsilon)

    @property
    def delta(self) -> float:
        """The ceiling on delta."""
        return round_down(self._ceiling.delta)

    @property
    def path(self) -> str:
        """The absolute path of the ledger."""
        return self._ledger.path

    @property
    def composition(self) -> Composition:
        """How releases add up: ``"sum"`` or ``"zcdp"``."""
        return self._ledger.rule().composition

    @property
    def unit(self) -> str | None:
        """The unit that all releases protect; None before the first release that has one."""
        return self._ledger.unit()

    @property
    def temporary(self) -> bool:
        """Whether the ledger goes when its process ends: no path was given."""
        return is_temporary(self.path)

    def check(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        *,
        rho: Number | None = None,
        unit: PrivacyUnit | str | None = None,
    ) -> bool:
        """Return True if this much could be spent now; raise BudgetError if not.

        ValueError if the ledger is about another unit. Nothing is reserved for a later ``spend``.
        """
        spend, branch = Spend.of(epsilon, delta, rho), active.active_branch()
        self._ledger.check(spend, self._scope, _label(unit), branch)
        return True

    def spend(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        label: str = "",
        *,
        rho: Number | None = None,
        unit: PrivacyUnit | str | None = None,
    ) -> Entry:
        """Charge the ledger durably. Call it before the release.

        Parameters
        ----------
        epsilon, delta : real number
            The release is (epsilon, delta)-DP. Epsilon may be left out if ``rho`` is given.
        label : str, default=""
            Description of the release.
        rho : real number, default=None
            The release is rho-zCDP as well, which composes better than (epsilon, delta) does.
        unit : PrivacyUnit or {"record", "feature"}, default=None
            Whom the release protects; None stands for the unit of the ledger.

        Returns
        -------
        Entry
            The entry written, with its ``release_id``.

        Raises
        ------
        BudgetError
            If it would cross the ceiling; ``requested`` and ``remaining`` say by how much.
        ValueError
            If the ledger is about another unit.
        LedgerError
            If the ledger cannot be read or written.
        """
        spend, branch = Spend.of(epsilon, delta, rho), active.active_branch()
        return self._ledger.charge(spend, str(label), self._scope, _label(unit), branch)

    def total(self, method: Literal["tight", "sum", "pld"] = "tight") -> Cost:
        """Return (epsilon, delta) spent so far, rounded up to floats.

        ``"tight"`` and ``"pld"`` choose the best bound for the releases that were made. They hold
        for releases whose budgets were fixed beforehand, not if results decided what was spent
        next: then only the ceiling holds (and ``"sum"``, if its figures were a limit set
        beforehand).

        Parameters
        ----------
        method : {"tight", "sum", "pld"}, default="tight"
            ``"tight"`` is the sum, or a smaller epsilon that holds at the ceiling's delta by zCDP.
            ``"sum"`` only adds. ``"pld"`` composes privacy loss distributions (needs
            dp-accounting) and is never worse than ``"tight"``.
        """
        if self._ledger.allotment:  # whose releases are always added up
            return self._ledger.allotments()[0].spent.rounded_up()
        if method == "sum":
            return self._ledger.spent().rounded_up()
        if method not in ("tight", "pld"):
            raise ValueError(
                "The 'method' parameter of total must be 'tight', 'sum' or 'pld'. "
                f"Got {method!r} instead."
            )
        tight = self._ledger.total().rounded_up()
        if method == "tight":
            return tight
        composed = Cost(privacy_loss_total(self._ledger.spends(), self.delta), self.delta)
        return composed if composed.epsilon < tight.epsilon else tight

    def remaining(self) -> Cost:
        """Return (epsilon, delta) that can still be spent at once, rounded down to floats.

        It is what the ledger's ``composition`` would accept now. Delta is 0 if all of it is used
        to convert zCDP into epsilon.
        """
        return self._ledger.remaining().rounded_down()

    def __len__(self) -> int:
        return sum(1 for _ in self) if self._ledger.allotment else len(self._ledger)

    def __bool__(self) -> bool:
        return True  # an unused accountant must not look like no accountant

    def __iter__(self) -> Iterator[Entry]:
        own = self._ledger.allotment
        return iter(e for e in self._ledger.entries() if own in ("", e.allotment))

    def __enter__(self) -> BudgetAccountant:
        active.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        active.leave(self)

    @staticmethod
    def current() -> BudgetAccountant | None:
        """Return the accountant of the innermost ``with accountant:`` block, or None.

        Estimators whose ``accountant`` is None charge this one. It is also the one of a block that
        is open in another thread, or in the process that has started this one. LedgerError if it
        cannot be known: several such blocks are open, one was left while this thread or process
        went on, or the process was started in one and cannot learn whether it is open.
        """
        return active.active_accountant() or _of_ancestors()

    def parallel(self) -> AbstractContextManager[Callable[[], AbstractContextManager[None]]]:
        """Open a block in which the cost of several releases is their maximum, not their sum.

        Each fit and each ``spend`` is about a group of people of its own: the caller must ensure
        that nobody is in two of these groups, and that nobody's group depends on other people's
        records: it may be decided by a label of the person's own, such as the hospital, but not by
        a position in a table, where one record more moves others from group to group. Several
        releases about the same group, such as the steps of a pipeline, belong in ``with
        branch():``, with the value of this block; their costs add up. All releases must protect
        added or removed records (``neighbours="add_remove"``): somebody who is replaced could
        change from one group to another. Others are refused with ValueError. Nested blocks of one
        accountant are one block. Charges of other processes are not part of it, and add up;
        those of other threads neither, unless they run in a copy of this context
        (``asyncio.to_thread``).

        Examples
        --------
        >>> from dpbayes_sklearn.privacy import PrivacyUnit
        >>> added = PrivacyUnit("record", neighbours="add_remove")
        >>> accountant = BudgetAccountant(epsilon=1.0)
        >>> with accountant.parallel() as branch:
        ...     entry = accountant.spend(0.5, label="north", unit=added)
        ...     with branch():
        ...         entry = accountant.spend(0.5, label="south", unit=added)
        ...         entry = accountant.spend(0.1, label="south", unit=added)
        >>> accountant.total().epsilon
        0.6
        """
        return active.parallel_scope(self._ledger.identity)

    def to_frame(self) -> pd.DataFrame:
        """Return the entries as a pandas DataFrame, one row per release."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas. Iterate over the accountant.") from None
        costs, place = ["epsilon", "delta", "rho"], ["scope", "unit", "branch", "allotment"]
        columns = ["time", "label", *costs, "release_id", *place]
        rows = [[getattr(entry, column) for column in columns] for entry in self]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        if name := self._ledger.allotment:
            return f"BudgetAccountant(path={self.path!r}).allotment({name!r})"
        return f"BudgetAccountant(epsilon={self.epsilon}, delta={self.delta}, path={self.path!r})"

    def __str__(self) -> str:
        """Show what was spent and is left of the whole, and of every allotment."""
        try:
            lines = [("all releases", self.total("sum"), self.remaining(), self._ceiling)]
            lines += [
                (part.name, part.spent.rounded_up(), part.left.rounded_down(), part.ceiling)
                for part in self.allotments()
            ]
            count = len(self)
            about = f"{count} release{'s' * (count != 1)}, unit: {self.unit or 'none yet'}"
        except LedgerError as error:
            return f"{self!r}: {error}"
        width = max(len(name) for name, *_ in lines)
        shown = [
            f"{name:<{width}}  spent {spent}; left {left}; ceiling {most.rounded_down()}"
            for name, spent, left, most in lines
        ]
        return "\n".join([*shown, about])

    def _repr_html_(self) -> str:
        try:
            entries, left, rule = list(self), self.remaining(), self._ledger.rule()
            spent = self.total("sum" if rule.composition == "sum" else "tight")
        except LedgerError as error:
            return card("Privacy budget", tag("p", str(error)), accent="bad")
        rule = rule._replace(ceiling=self._ceiling) if self._ledger.allotment else rule
        return ledger_card(entries, spent, left, rule, self.allotments())

    @property
    def _scope(self) -> str | None:
        return active.active_scope(self._ledger.identity)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BudgetAccountant)
            and self._ledger.identity == other._ledger.identity
            and self._ledger.allotment == other._ledger.allotment
            and self.path == other.path
        )

    def __hash__(self) -> int:
        return hash(self._ledger.identity)

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __sklearn_clone__(self) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Any, tuple[str, str, str, str, bool, str]]:
        ledger, ceiling = self._ledger, self._ceiling.written()
        return _restored, (ledger.path, ledger.identity, *ceiling, ledger.durable, ledger.allotment)

    @property
    def _written(self) -> active.Written:
        """What another process needs to charge the same ledger."""
        return active.Written(*self.__reduce__()[1])


def _label(unit: PrivacyUnit | str | None) -> str | None:
    """Return how a ledger writes a unit."""
    return None if unit is None else PrivacyUnit.of(unit).label


def _of_ancestors() -> BudgetAccountant | None:
    """Return the accountant of a block that is open in a process that has started this one."""
    written = active.block_of_ancestors()
    return None if written is None else _restored(*written)


def _restored(
    path: str, identity: str, epsilon: str, delta: str, durable: bool = True, allotment: str = ""
) -> BudgetAccountant:
    """Return an accountant of a ledger that is looked at only when used.

    A fitted model can so be loaded, to predict, where its ledger is out of reach.
    """
    accountant = BudgetAccountant.__new__(BudgetAccountant)
    accountant._ledger = Ledger(path, identity, durable, allotment)
    accountant._ceiling = Cost.parsed(epsilon, delta)
    return accountant


def _shared_ledger(given: str, rule: Filter) -> Ledger:
    """Open or make a ledger; its path has no symbolic links, so one ledger has one path."""
    path = os.path.realpath(given)
    if not os.path.lexists(given):
        with suppress(FileExistsError):
            return Ledger.create(path, rule.ceiling, composition=rule.composition)
    ledger = Ledger.open(path)
    if rule[:2] not in (ledger.rule()[:2], Filter(Cost.of(math.inf))[:2]):
        raise LedgerError(
            f"The ledger {path!r} has the ceiling {ledger.rule()}, not {rule}. Give the "
            "same figures and composition, or only path=, which keeps them."
        )
    return ledger
