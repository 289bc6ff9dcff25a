"""The domains of the columns of a data frame, learned in one fit with one charge."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpbayes_sklearn._estimator import DELTA, PrivateEstimator
from dpbayes_sklearn._protection import PROTECTION
from dpbayes_sklearn.data.reading import read_unlabelled
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.mechanisms import Domains, Mechanism, Release
from dpbayes_sklearn.preprocessing._columns import Columns, ColumnwiseTransformer
from dpbayes_sklearn.preprocessing.k_bins import PrivateKBinsDiscretizer
from dpbayes_sklearn.preprocessing.min_max import PrivateMinMaxScaler
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Categories, Domain, Interval
from dpbayes_sklearn.schema.kinds import Kind
from dpbayes_sklearn.statistics.contents import Contents, Questions
from dpbayes_sklearn.statistics.quantiles.columns import SortedColumns
from dpbayes_sklearn.statistics.quantiles.plans import Plans
from dpbayes_sklearn.statistics.texts import TextCounts

__all__ = ["NUMBERS", "OTHER", "TEXTS", "FrameDomains"]

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
    privacy_unit, max_records_per_person, neighbours
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
        privacy_unit: str = "record",
        max_records_per_person: int | None = None,
        neighbours: str = "replace",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bins = bins
        self.privacy_unit = privacy_unit
        self.max_records_per_person = max_records_per_person
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state

    def _resolve_mechanism(self) -> Mechanism:
        return Domains()

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        secret = self._unit.size_is_secret
        return read_unlabelled(self, X, reset=reset, may_be_empty=secret)

    _schema_looks_at_n = True

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
