"""A schema whose ranges and bins are learned privately from a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpbayes_sklearn.base.estimator import DELTA, PrivateEstimator
from dpbayes_sklearn.base.parameters import PROTECTION
from dpbayes_sklearn.columns.plans import Plans, SortedColumns
from dpbayes_sklearn.columns.texts import Contents, Questions, TextCounts
from dpbayes_sklearn.data.dask import PartitionedTable, is_partitioned
from dpbayes_sklearn.data.reading import read_unlabelled
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.data.table import Table, is_frame
from dpbayes_sklearn.mechanisms import Domains, Mechanism, Release
from dpbayes_sklearn.preprocessing.columns import Columns, ColumnwiseTransformer
from dpbayes_sklearn.preprocessing.scalers import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.schema import Categories, Domain, Interval, Schema
from dpbayes_sklearn.schema.values import Kind

__all__ = ["NUMBERS", "OTHER", "TEXTS", "FrameDomains", "learn_schema"]


NUMBERS: frozenset[Kind] = frozenset({"integers", "numbers", "dates", "booleans"})
TEXTS: frozenset[Kind] = frozenset({"text", "anything"})
OTHER = "other"
"""The category of all texts that were not found, and of whatever is no text."""


class _Public(NamedTuple):
    """Number of records, and the columns of each kind by name and position."""

    n: int
    names: tuple[str, ...]
    dates: tuple[bool, ...]
    numbers: tuple[int, ...]
    texts: tuple[int, ...]


class FrameDomains(PrivateEstimator):
    """The domains of the columns of a data frame.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, shared equally by the columns.
    delta : float in [0, 1), default=0.0
        For the categories of texts.
    bins : int or None, default=8
        Of columns of numbers; None learns ranges.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected, as for all estimators.
    accountant : BudgetAccountant, optional
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    domains_ : dict of str to Interval or Categories
    guarantee_ : PrivacyGuarantee
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        **PROTECTION,
        "bins": [*PrivateKBinsDiscretizer._parameter_constraints["n_bins"][:1], None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bins: int | None = 8,
        privacy_unit: PrivacyUnit | str = "record",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bins = bins
        self.privacy_unit = privacy_unit
        self.accountant = accountant
        self.random_state = random_state

    def _resolve_mechanism(self) -> Mechanism:
        return Domains()

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        secret = self._unit.size_is_secret
        return read_unlabelled(self, X, reset=reset, may_be_empty=secret, width=self._width(reset))

    _schema_looks_at_n = True

    @property
    def _declared_width(self) -> None:
        """Nothing is declared: that is what is learned."""

    @property
    def _looks_at_n(self) -> bool:  # type: ignore[override]
        return self.bins is None

    def _public_schema(self, records: Records) -> tuple[_Public, tuple[str, ...]]:
        table = records.table
        kinds = [table.kind(j) for j in range(table.n_columns)]
        numbers = tuple(j for j, kind in enumerate(kinds) if kind in NUMBERS)
        texts = tuple(j for j, kind in enumerate(kinds) if kind in TEXTS)
        names = tuple(table.names or map(str, range(table.n_columns)))
        dates = tuple(kind == "dates" for kind in kinds)
        return _Public(self._public_n(records.n), names, dates, numbers, texts), ()

    def _statistics(self, public: _Public, records: Records) -> Contents:
        texts = records.total(partial(TextCounts.of_shard, public.texts))
        return Contents(SortedColumns(records, public.numbers), texts)

    def _prior(self, public: _Public) -> Questions:
        _, rest = self._shares(self._budget())
        epsilon = float(rest.epsilon) / len(public.names)
        columns = Columns(public.n, (None,) * len(public.numbers), epsilon, rest.unit)
        plans = (self._cutter._plan(j, columns) for j in range(len(public.numbers)))
        return Questions(Plans(tuple(plans)))

    @property
    def _cutter(self) -> ColumnwiseTransformer:
        """What a column of numbers is asked, and what is made of the answers."""
        return PrivateMinMaxScaler() if self.bins is None else PrivateKBinsDiscretizer(self.bins)

    def _attach(self, public: _Public, release: Release[Any]) -> Self:
        answers, texts = release.posterior
        found: dict[int, Domain] = {
            j: interval(answer, self.bins is not None, public.dates[j])
            for j, answer in zip(public.numbers, answers, strict=True)
        }
        for j, common in zip(public.texts, texts, strict=True):
            found[j] = Categories(dict.fromkeys([*common, OTHER]), unseen=OTHER)
        self.domains_ = {name: found[j] for j, name in enumerate(public.names)}
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        raise ValueError("domains have the JSON form of a schema")


def interval(answers: tuple[float, ...], edges: bool, dates: bool) -> Interval:
    """Return an interval that is never empty, of a range or of edges between bins.

    Outer bins are as wide as their neighbours.
    """
    low, high = answers[0], answers[-1]
    if edges and len(answers) > 1:
        low, high = 2 * answers[0] - answers[1], 2 * answers[-1] - answers[-2]
    most = 2.0**1000
    low, high = max(low, -most), min(high, most)
    wide = max(1.0, abs(low)) * 2.0**-20
    if high - low < wide:  # all records may have one value
        low, high = low - wide, low + wide
    return Interval(low, high, dates=dates, edges=answers if edges else None)


def learn_schema(
    frame: Any,
    epsilon: float = 1.0,
    *,
    columns: Mapping[str, Domain] | None = None,
    target: Domain | None = None,
    bins: int | None = 8,
    delta: float = 0.0,
    privacy_unit: PrivacyUnit | str = "record",
    groups: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = True,
) -> Schema:
    """Return a schema of a data frame, with ranges and bins of its numbers learned privately.

    Parameters
    ----------
    frame : data frame or dask data frame
        Records, one per person unless a person is the privacy unit; only columns of the schema.
    epsilon : float, default=1.0
        Privacy budget, shared equally by the columns that are learned.
    columns : mapping of str to Interval or Categories, optional
        Columns that are declared. All others must be numbers, booleans or dates by their type, or,
        with a ``delta``, texts.
    target : Interval or Categories, optional
        Public domain of a target that is not a column of ``frame``.
    bins : int or None, default=8
        Number of bins with about as many records each, for classifiers; the range of such a column
        is as wide as its outer bins would be if they were as wide as their neighbours. None learns
        the range from the 1 % to the 99 % quantile, for a regression.
    delta : float in [0, 1), default=0.0
        Finds the categories of columns of text if it is above zero: texts that many records share.
        All others, and whatever is no text, count as "other". With k columns to learn, t of them
        texts, one is found if about ``2k/epsilon * log(t/delta)`` records share it (of a person's
        m records together: m times as many). Delta should be far below one over the number of
        records.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record. A :class:`PrivacyUnit` protects
        all records of a person, ``PrivacyUnit("person", max_records=4)``, who are told by
        ``fit(..., groups=...)``, or whether a record or person is there at all,
        ``neighbours="add_remove"``: the number of records is then secret, and the same noise
        protects with half the epsilon, of which a small part is spent on the number.
    groups : array-like of shape (n_samples,), optional
        If a person is the privacy unit: whose record it is.
    accountant : BudgetAccountant, optional
        The ledger that is charged; one that is open in a ``with`` block if left out.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.
    verbose : bool, default=True
        Print what was decided.

    Returns
    -------
    Schema
        With the ``guarantee`` of what was learned; :meth:`Schema.to_json` keeps the domains.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from dpbayes_sklearn import Categories, Schema
    >>> rng = np.random.default_rng(0)
    >>> wage, sex = rng.lognormal(7, 1, 5_000), rng.choice(["f", "m"], 5_000)
    >>> frame = pd.DataFrame({"wage": wage, "sex": sex})
    >>> schema = Schema.learn(
    ...     frame, 0.5, columns={"sex": Categories(["f", "m"])}, bins=4, random_state=0
    ... )
    wage: 4 bins between [...] (learned)
    sex: 2 categories (declared)
    Differentially private with epsilon = 0.5 under the domains mechanism, ...
    >>> schema.columns["wage"].n_values, schema.guarantee.epsilon
    (4, 0.5)
    """
    declared = {str(name): domain for name, domain in (columns or {}).items()}
    if not is_frame(frame):
        raise TypeError("Schema.learn takes a data frame, whose columns have names and types.")
    table = PartitionedTable(frame) if is_partitioned(frame) else Table(frame)
    names = table.names or []
    if unknown := [name for name in declared if name not in names]:
        raise ValueError(f"The frame lacks the columns {unknown} that are declared.")
    kinds = {name: table.kind(j) for j, name in enumerate(names) if name not in declared}
    texts = [name for name, kind in kinds.items() if kind not in NUMBERS]
    if refused := [name for name in texts if not delta or kinds[name] not in TEXTS]:
        raise ValueError(
            f"The columns {refused} hold no numbers or dates by their type: declare them, as in "
            f"columns={{{refused[0]!r}: Categories([...])}}, or leave them out. Categories of "
            "texts are found with a delta, as in delta=1e-6. Nothing was spent."
        )
    found: dict[str, Domain] = {}
    guarantee: PrivacyGuarantee | None = None
    if kinds:
        learner = FrameDomains(
            epsilon,
            delta=delta if texts else 0.0,
            bins=bins,
            privacy_unit=privacy_unit,
            accountant=accountant,
            random_state=random_state,
        ).fit(frame[[*kinds]], groups=groups)
        found, guarantee = learner.domains_, learner.guarantee_
    schema = Schema({name: declared.get(name) or found[name] for name in names}, target, guarantee)
    if verbose:
        for name, domain in schema.columns.items():
            cut = f"{domain.n_values} bins between " if getattr(domain, "edges", None) else ""
            source = "learned" if name in found else "declared"
            print(f"{name}: {cut}{domain.short} ({source})")
        print(guarantee or "Nothing was learned, and nothing was spent.")
    return schema


Schema.learn = staticmethod(learn_schema)
