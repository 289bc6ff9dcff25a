"""Life tables under differential privacy: survival with intervals, and the log-rank test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn import _presenting
from dpbayes_sklearn._compat import Range
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.spending import once
from dpbayes_sklearn.base.supervised import Declared, TableEstimator
from dpbayes_sklearn.categories import life_tables
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.life_tables import Cells, LifeTables, LogRank, Survival
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.records import Records, Table
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Plan, Release
from dpbayes_sklearn.schema import Categories, Domain, Interval, Schema
from dpbayes_sklearn.schema.domains import MOST_BINS
from dpbayes_sklearn.schema.values import as_numbers, cells_of
from dpbayes_sklearn.serialization.models import SURVIVAL_MODEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LifeTable"]

_COLUMNS = (
    "LifeTable takes one column of times, an Interval, and at most one of groups, Categories: "
    "declare these two columns, with schema=Schema({'months': Interval(0, 60, bins=12), 'arm': "
    "Categories([...])}). Nothing was spent."
)


@dataclass(frozen=True, repr=False)
class SurvivalTable:
    """Survival of a group, or how two groups differ, by the ends of the intervals.

    Attributes
    ----------
    name : str
        The group or groups.
    ends : array of shape (n_ends,)
        Ends of the intervals, as far as enough are at risk.
    at_risk, events : array of shape (n_ends,)
        Released numbers at risk when the interval begins, and of events in it.
    estimate, low, high : array of shape (n_ends,)
        Survival to just before the end, or the difference, and pointwise intervals that include the
        privacy noise.
    level : float
        Nominal coverage of the intervals.
    what : str
        What is estimated: survival, or a difference.
    """

    name: str
    ends: FloatArray
    at_risk: FloatArray
    events: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    what: str = "survival"

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        return ("end", "at risk", "events", self.what, f"{100 * self.level:g} % from", "to")

    @property
    def _columns(self) -> tuple[FloatArray, ...]:
        return (self.ends, self.at_risk, self.events, self.estimate, self.low, self.high)

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each end."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.heads, self._columns, strict=True))).set_index("end")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Rows as text, for printing."""
        shown = (*[".6g"] * 3, *[".3f"] * 3)
        return [
            tuple(format(float(value), form) for value, form in zip(row, shown, strict=True))
            for row in zip(*self._columns, strict=True)
        ]

    def __repr__(self) -> str:
        return "\n".join([self.name, *_presenting.aligned([self.heads, *self.cells], left=0)])

    def _repr_html_(self) -> str:
        return _presenting.card(self.name, _presenting.table(self.heads, self.cells))


@dataclass(eq=False, repr=False)
class LifeTable(TableEstimator[Cells, SimplexCounts, LifeTables]):
    r"""Private life table: survival by group with intervals, and the log-rank test.

    Time is cut into public intervals. How many records leave in each, by the event or unobserved
    (censored), is released once, for all groups; survival, its intervals and the comparison of
    groups are computed from that, as often as you like. For the estimate, who leaves unobserved
    counts as exposed for half of the interval, as in the actuarial life table.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the exact table.
    bounds : tuple (low, high), optional
        Where time begins, and where the table ends, if X is one column of times. Who is there at
        the end counts as a survivor, whatever came later. Left out, both are read from the data,
        with a warning.
    n_bins : int, default=12
        Number of intervals of equal length.
    schema : Schema, optional
        Instead of ``bounds``: one :class:`Interval` for the times, with ``bins``, or with ``edges``
        between intervals of unequal length, and up to one column of groups, :class:`Categories`.
        Its target are two categories, of which the second is the event; by default 0 and 1.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    max_weight : int, optional
        Public bound of ``sample_weight``. Without it ``fit`` refuses weights.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    posterior_ : LifeTables
        The released counts of every group, with the distribution of their noise.
    groups_ : tuple of str
        Names of the groups; one, "all", without a column of them.
    ends_ : ndarray of shape (n_intervals,)
        Ends of the intervals.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; neighbours differ in one record unless
    ``privacy_unit`` says otherwise, and with ``neighbours="replace"`` the number of records is
    public. A record whose event is missing or none of the two categories is unobserved, one
    without a time counts as in the middle of the interval, or as ``Interval(missing=...)`` says.

    An interval begins with its low end and ends just before its high end: an event after exactly
    12 months is in the interval from 12 on. Intervals of survival are pointwise. They and the
    log-rank test hold whenever within an interval people leave, so they widen with how many do: cut
    time finely where many leave. A table ends where fewer than 10 are at risk and do not leave
    unobserved in the interval, or fewer than four standard deviations of the noise in their number.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import LifeTable
    >>> rng = np.random.default_rng(0)
    >>> event, left = rng.exponential(30, 2_000), rng.uniform(6, 60, 2_000)
    >>> months = np.minimum(event, left)[:, None]
    >>> model = LifeTable(1.0, bounds=(0, 48), n_bins=4, random_state=0)
    >>> model.fit(months, event <= left).survival()
    all
    end  at risk  events  survival  95 % from     to
     12     2000     627     0.673      0.635  0.707
     24     1203     332     0.464      0.401  0.520
     36      611     159     0.320      0.237  0.393
     48      255      68     0.213      0.119  0.298
    """

    _exported = SURVIVAL_MODEL
    _uses_n = "nowhere"
    inference: ClassVar[str] = "noise_aware"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "bounds": ["array-like", None],
        "n_bins": [Range(Integral, 2, MOST_BINS, closed="both")],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    epsilon: float = 1.0
    _: KW_ONLY
    bounds: Any = None
    n_bins: int = 12
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @once
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the times")

    @once
    def _target(self) -> Declared:
        target = None if self.schema is None else self.schema.target
        event = Categories([0, 1]) if target is None else target
        if event.is_numeric or event.n_values != 2:
            raise ValueError(
                "The target of a LifeTable must be two Categories, the event second. Nothing was "
                "spent."
            )
        return Declared("schema", event, "events")

    def _target_from_data(self, values: AnyArray) -> Domain:
        raise AssertionError  # the target is always declared

    @property
    def _skips_missing(self) -> bool:
        """Records without a target are unobserved exits, which count."""
        return False

    def _settle(
        self, declared: Sequence[Domain | None], domains: list[Domain], table: Table, n: int
    ) -> tuple[list[Domain], tuple[str, ...]]:
        """Cut times at the ends of all intervals: the last code is beyond."""
        place, times = _times(domains)
        domains[place] = _with_ends(times, self.n_bins)
        return domains, ()

    def _prior(self, public: Schema) -> Cells:
        cells = Cells(len(_groups(public)), len(_ends(public)))
        cells.check()
        return cells

    def _statistics(self, public: Schema, prior: Cells, records: Records) -> SimplexCounts:
        return life_tables.count_cells((*public.columns.values(),), public.classes, records)

    def _plan(self, prior: Cells, facts: Facts, budget: Budget) -> Plan[SimplexCounts, LifeTables]:
        return life_tables.plan(prior, facts, budget)

    def _attach(self, public: Schema, release: Release[LifeTables]) -> Self:
        self.schema_, self.groups_, self.ends_ = public, _groups(public), _ends(public)
        self.posterior_, self.guarantee_ = release.posterior, release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        public, posterior, guarantee = released.values()
        self.n_features_in_ = len(public)
        _, times = _times([*public.columns.values()])
        if times.edges is None or posterior.cells != self._prior(public):
            raise ValueError("the counts are not of these groups and intervals")
        return self._attach(public, Release(posterior, guarantee))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def survival(self, group: int | str = 0, level: float = 0.95) -> SurvivalTable:
        """Return the survival of one group.

        Parameters
        ----------
        group : int or str, default=0
            Its number, or its name.
        level : float, default=0.95
            Of the pointwise intervals, which include the privacy noise.

        Returns
        -------
        SurvivalTable
        """
        number = self._group(group)
        found = self.posterior_.survival(number, _checked(level))
        return self._table(self.groups_[number], found, level)

    def cumulative_hazard(self, times: Any, group: int | str = 0) -> FloatArray:
        """Return the released cumulative hazard of one group at some times.

        It is the negative logarithm of survival, made monotone, linear within intervals, and beyond
        the table that at its end. Post-processing, at no further privacy cost.

        Parameters
        ----------
        times : array-like of shape (n_times,)
        group : int or str, default=0
            Its number, or its name.

        Returns
        -------
        ndarray of shape (n_times,)
        """
        table = self.survival(group)
        _, own = _times([*self.schema_.columns.values()])
        hazards = -np.log(np.minimum.accumulate(np.append(1.0, table.estimate)))
        return np.interp(as_numbers(cells_of(times)), np.append(own.low, table.ends), hazards)

    def difference(
        self, first: int | str = 0, second: int | str = 1, level: float = 0.95
    ) -> SurvivalTable:
        """Return by how much more of one group than of another survive, with intervals."""
        one, other = self._group(first), self._group(second)
        found = self.posterior_.difference(one, other, _checked(level))
        name = f"{self.groups_[one]} − {self.groups_[other]}"
        return replace(self._table(name, found, level), what="difference")

    def logrank(self) -> LogRank:
        """Test whether all groups have the same survival.

        Returns
        -------
        LogRank
            With ``statistic``, ``p``, ``df`` and the number of ``intervals`` that were compared.
        """
        check_is_fitted(self)
        if len(self.groups_) < 2:
            raise ValueError("The log-rank test compares groups: declare a column of them.")
        return self.posterior_.logrank()

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the survival of all groups with pointwise intervals; return the axes."""
        check_is_fitted(self)
        _presenting.check_matplotlib("LifeTable.plot")
        ax = _presenting.new_axes((6.4, 4.0)) if ax is None else ax
        place, times = _times([*self.schema_.columns.values()])
        colours = _presenting.COLOURS
        for number, name in enumerate(self.groups_):
            table, colour = self.survival(number, level), colours[number % len(colours)]
            ends = np.append(times.low, table.ends)
            value, low, high = (np.append(1.0, x) for x in (table.estimate, table.low, table.high))
            ax.plot(ends, value, "o-", ms=3.5, color=colour, label=name)
            ax.fill_between(ends, low, high, color=colour, alpha=0.2, lw=0)
        ax.set(ylim=(0, 1.02), ylabel="survival", xlabel=[*self.schema_.columns][place])
        if len(self.groups_) > 1:
            ax.legend(frameon=False)
        return ax

    def _group(self, group: int | str) -> int:
        check_is_fitted(self)
        numbers: dict[int | str, int] = {name: g for g, name in enumerate(self.groups_)}
        numbers.update((g, g) for g in range(len(self.groups_)))
        if group not in numbers:
            raise ValueError(
                f"group must be one of {', '.join(map(repr, self.groups_))}, or its number. "
                f"Got {group!r} instead."
            )
        return numbers[group]

    def _table(self, name: str, found: Survival, level: float) -> SurvivalTable:
        return SurvivalTable(name, self.ends_[: len(found.estimate)], *found, level)


def _times(domains: Sequence[Domain]) -> tuple[int, Interval]:
    """Return index and domain of the column of times; refuse columns of other kinds."""
    found = [(j, cast(Interval, d)) for j, d in enumerate(domains) if d.is_numeric]
    if len(found) != 1 or len(domains) > 2 or found[0][1].marks_missing:
        raise ValueError(_COLUMNS)
    return found[0]


def _with_ends(times: Interval, n_bins: int) -> Interval:
    """Return times cut at the ends of all intervals, the last included.

    >>> [_with_ends(each, 3).edges for each in (Interval(0, 60), Interval(0, 9, edges=[2]))]
    [(20.0, 40.0, 60.0), (2.0, 9.0)]
    """
    edges = times.edges
    if edges is None:
        edges = tuple(np.linspace(times.low, times.high, (times.bins or n_bins) + 1)[1:].tolist())
    elif edges[-1] < times.high:
        edges = (*edges, times.high)
    return replace(times, bins=None, edges=edges)


def _ends(public: Schema) -> FloatArray:
    return np.array(_times([*public.columns.values()])[1].edges)


def _groups(public: Schema) -> tuple[str, ...]:
    """Return the names of the groups."""
    named = [d.names_of_codes() for d in public.columns.values() if not d.is_numeric]
    return tuple(named[0]) if named else ("all",)


def _checked(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be a float in the range (0, 1). Got {level!r} instead.")
    return level
