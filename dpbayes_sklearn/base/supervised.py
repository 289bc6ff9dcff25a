"""Estimators that learn a target from columns: reading X and y, their domains, and shards."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._compat import _fit_context
from dpbayes_sklearn._presenting import remark
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import (
    FitInput,
    PosteriorT,
    PriorT,
    PrivateEstimator,
    PublicT,
    StatisticsT,
)
from dpbayes_sklearn.base.remarks import warn_about_scores
from dpbayes_sklearn.data.frames import framed
from dpbayes_sklearn.data.persons import COUNTED, OWN_WEIGHTS, PROMISED
from dpbayes_sklearn.data.reading import (
    check_kinds,
    domain_from_data,
    features_read,
    read_records,
    read_table,
)
from dpbayes_sklearn.data.records import (
    ElsewhereTable,
    LocalRecords,
    Records,
    SealedTable,
    Table,
    answer_in_threads,
    is_frame,
    known_targets,
    quiet_numpy,
)
from dpbayes_sklearn.exceptions import called_by
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.guarantee import total_in_words
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Domain, Schema
from dpbayes_sklearn.schema.declared import (
    declared_classes,
    declared_domains,
    declared_width,
    width_of_rows,
)
from dpbayes_sklearn.schema.values import Kind
from dpbayes_sklearn.shards import ExactStatistics, Mergeable

KEPT_SECRET = (
    "nobody is in two of the shards that were merged, and their exact statistics stay secret"
)


class Declared(NamedTuple):
    """A parameter that declares a public domain: name, value or None, and what warnings call it."""

    parameter: str
    value: Any
    what: str


def classes_declared(classes: Any, schema: Schema | None, ordered: bool = False) -> Declared:
    """Return the classes of the parameter, or of the schema: sorted unless they are ordered."""
    unseen = None
    if classes is None and schema is not None and schema.target is not None:
        listed = schema.classes
        classes, unseen = listed.labels, listed.unseen if listed.names_unseen else None
    domain = None if classes is None else declared_classes(classes, unseen, ordered)
    return Declared("classes", domain, "classes")


def _as_passed(target: Domain, kind: Kind) -> Domain:
    """Return the domain that targets are read by: of codes, if the column can only hold those."""
    return Categories(range(target.n_values)) if target.could_be_codes(kind) else target


class SupervisedEstimator(PrivateEstimator[Records, PublicT, PriorT, StatisticsT, PosteriorT]):
    """An estimator of a target; a model says how columns and target are declared."""

    schema: Schema | None
    schema_: Schema

    @property
    @abstractmethod
    def _bounds(self) -> Declared:
        """The parameter that declares the bounds of the features."""

    @property
    @abstractmethod
    def _target(self) -> Declared:
        """The parameter that declares the domain of the target; its value is a domain."""

    @abstractmethod
    def _target_from_data(self, values: AnyArray) -> Domain:
        """Read the domain of the target from the data: a leak, which was announced."""

    def _settle(
        self, declared: Sequence[Domain | None], domains: list[Domain], table: Table, n: int
    ) -> tuple[list[Domain], tuple[str, ...]]:
        """Return the domains as the model uses them with n records, and the conditions of that."""
        return domains, ()

    @property
    def _declares_columns(self) -> bool:
        return self.schema is not None or self._bounds.value is not None

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        own: Any = {"declared": self._declares_columns, "width": self._width(reset)}
        own["may_be_empty"] = self._declared_unit.size_is_secret
        return read_records(self, self._declared_part(X, reset), y, reset=reset, **own)

    def _protected(
        self, records: Records, groups: Any, sample_weight: Any = None
    ) -> tuple[Records, tuple[str, ...]]:
        """Return the records that count; those without a target do not, where n may be secret.

        Where the number of records is public, one that has no target is among them, because a
        record may be replaced by it. It adds nothing to what is released: see `_skips_missing`.
        """
        counted, promises = super()._protected(records, groups, sample_weight)
        if self._leaves_out:
            target = _as_passed(self._target.value, records.target_kind)
            counted = counted.having(partial(known_targets, target))
        return counted, promises

    @property
    def _leaves_out(self) -> bool:
        """True if leaving out records without a target reveals nothing.

        Either their number is secret, or neighbours have the same targets.
        """
        hidden = self._unit.size_is_secret or not self._unit.whole_records
        return hidden and self._skips_missing

    @property
    def _skips_missing(self) -> bool:
        """Whether records without a target have no part in the model: no class is for them."""
        target = self._target.value
        listed = None if self.schema is None else self.schema.target  # classes are in another order
        return target is not None and not (listed or target).names_unseen

    def _has_target(self, y: AnyArray) -> npt.NDArray[np.bool_]:
        """Tell which records have a target; all, if a class is for those without."""
        target = self.schema_.target
        if target is None or not self._skips_missing:
            return np.ones(len(y), np.bool_)
        return target.is_known(y)

    @property
    def _declared_width(self) -> int | None:
        return width_of_rows(self.schema, self._bounds.value)

    def _read_rows(self, X: Any) -> Table:
        """Return the features of rows to predict."""
        if called_by({"sklearn.metrics._scorer"}):
            warn_about_scores(self._ledger())
        declared = self.schema_.columns
        rows = framed(X, declared, declared if self._uses_codes else ())
        part = self._declared_part(rows, reset=False)
        return read_table(self, part, reset=False, declared=self._declares_columns)

    def _by_row(self, X: Any, answer: Callable[[Table], AnyArray], like: AnyArray) -> AnyArray:
        """Return the answer for every row; of a dask collection, a lazy dask array."""
        table = self._read_rows(X)
        if isinstance(table, ElsewhereTable):
            elsewhere: AnyArray = table.by_row(answer, like)
            return elsewhere
        return answer_in_threads(answer, table)

    def _rows_in_memory(self, X: Any) -> Table:
        table = self._read_rows(X)
        return table.here() if isinstance(table, ElsewhereTable) else table

    def _declared_part(self, X: Any, reset: bool) -> Any:
        """Return the columns of a frame that the schema declares, or that the model was fitted to.

        Others are ignored, and at prediction the order does not matter. X may lack declared
        columns. If there are others as well, a name may be misspelt: that is refused later on.
        """
        if self.schema is None or not is_frame(X):
            return X
        names = [str(name) for name in X.columns]
        wanted = [*self.schema.columns] if reset else [*getattr(self, "feature_names_in_", names)]
        ignored = [name for name in names if name not in wanted]
        lacking = [name for name in wanted if name not in names]
        if reset and lacking and not ignored:
            remark(
                "Columns that the schema declares and X lacks are left out: %s.",
                ", ".join(map(repr, lacking)),
            )
        if lacking or len({*names}) < len(names):
            return X
        if reset and ignored:
            remark(
                "Columns that the schema does not declare are ignored: %s.",
                ", ".join(map(repr, ignored)),
            )
        kept = [name for name in X.columns if str(name) in wanted] if reset else wanted
        return X if kept == [*X.columns] else X[kept]

    def _learned(self) -> tuple[tuple[str, object], ...]:
        """Return what was learned privately before, and its guarantee or None."""
        return (("domains", None if self.schema is None else self.schema.guarantee),)

    def _paid_before(self) -> tuple[str, ...]:
        """Return the condition that names the price of what was learned before, and the total."""
        paid = [(what, str(given)) for what, given in self._learned() if given is not None]
        if not paid:
            return ()
        pattern = r"epsilon = ([0-9.e+-]+)(?:, delta = ([0-9.e+-]+))?"
        costs = [re.search(pattern, text) for _, text in paid]
        parts = [
            f"the learned {what}, {cost[0] if cost else text}{self._weaker(text)}"
            for (what, text), cost in zip(paid, costs, strict=True)
        ]
        budget = self._promised(self._budget())
        if any(cost is None or self._weaker(t) for (_, t), cost in zip(paid, costs, strict=True)):
            return (f"earlier costs are added: {', '.join(parts)}",)
        epsilon = budget.epsilon + sum(Fraction(cost[1]) for cost in costs if cost)
        delta = budget.delta + sum(Fraction(cost[2] or 0) for cost in costs if cost)
        total = Budget(epsilon, delta, budget.unit)
        return (f"earlier costs are added: {', '.join(parts)}; in total {total_in_words(total)}",)

    def _weaker(self, guarantee: object) -> str:
        """Say so if an earlier guarantee, maybe only known as text, is of another unit.

        One for records holds for their feature values as well.
        """
        unit = self._declared_unit
        if unit.name == "feature" or unit.definition in str(guarantee):
            return ""
        return f" (another unit than that of this model: it does not protect {unit.full})"

    def _columns(
        self, records: Records, n: int
    ) -> tuple[dict[str, Domain], list[str], tuple[str, ...]]:
        """Return the domains of all columns, what they had to leak, and other conditions."""
        table, bounds = records.table, self._bounds
        declared = declared_domains(
            table.names, table.n_columns, self.schema, bounds.value, bounds.parameter
        )
        leaks = []
        if None in declared:
            either = f"schema or {bounds.parameter}"
            parameter = either if self.schema is None else "schema for every column"
            table.must_be_readable(parameter)
            leaks.append(self._leak(features_read(table.names, declared), parameter))
        domains = [domain or domain_from_data(table, j) for j, domain in enumerate(declared)]
        domains, conditions = self._settle(declared, domains, table, n)
        unnamed = [f"x{j}" for j in range(table.n_columns)]
        listed = unnamed if self.schema is None else [*self.schema.columns]
        names = table.names or (listed if len(listed) == table.n_columns else unnamed)
        return dict(zip(names, domains, strict=True)), leaks, conditions

    def _domains(self, records: Records, n: int) -> tuple[Schema, tuple[str, ...]]:
        """Return the domains of all columns and of the target, and what they had to leak."""
        columns, leaks, conditions = self._columns(records, n)
        parameter, target, what = self._target
        if target is None:
            records.table.must_be_readable(parameter)
            leaks.append(self._leak(f"{what} were", parameter))
            target = self._target_from_data(cast(LocalRecords, records).target)
        elif target.could_be_codes(records.target_kind):
            target = _as_passed(target, records.target_kind)
            remark(
                "y holds integers: taken as codes 0, 1, ... of the declared classes in order, as "
                "ensembles of scikit-learn pass them. Predictions are codes, too."
            )
        return Schema(columns, target), (*leaks, *conditions, *self._paid_before())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # with declared domains every value has its place: missing, text or out of bounds
        tags.input_tags.allow_nan = tags.input_tags.string = self._declares_columns
        domains = () if self.schema is None else self.schema.columns.values()
        tags.input_tags.categorical = not all(domain.is_numeric for domain in domains)
        return tags

    def _declared_schema(self, n: int, n_features: int | None = None) -> Schema:
        """Return the public domains of a fit to n records without any, if all are declared."""
        return self._domains(self._nobody(n, n_features), n)[0]

    def _nobody(self, n: int, n_features: int | None) -> Records:
        bounds, target = self._bounds, self._target
        if not self._declares_columns or target.value is None:
            raise ValueError(
                "Planning needs declared domains: set "
                f"{bounds.parameter} or schema, and {target.parameter}."
            )
        columns = declared_width(self.schema, bounds.value, n_features)
        return LocalRecords([(Table(np.broadcast_to(0.0, (n, columns))), np.empty(0))])


AnySupervised: TypeAlias = SupervisedEstimator[Any, Any, Any, Any]
"""An estimator of a target, whatever it reads and releases."""


class TableEstimator(SupervisedEstimator[Schema, PriorT, StatisticsT, PosteriorT]):
    """An estimator of a target; the schema is all that is public about the records."""

    def _public_schema(self, records: Records, n: int) -> tuple[Schema, tuple[str, ...]]:
        return self._domains(records, n)

    def _check_types(self, public: Schema, records: Records) -> None:
        check_kinds(public, records)


class ShardedEstimator(TableEstimator[PriorT, StatisticsT, PosteriorT]):
    """An estimator whose statistics can be computed by shard, merged, and released once."""

    @abstractmethod
    def _structure(self, public: Schema) -> object:
        """Return the public structure that merged statistics must match."""

    @property
    def _most_copies(self) -> int | None:
        """How often a record may count, None without weights."""
        return None if self._copies is None else self._copies.most

    def _check_shards(self) -> None:
        """Refuse parameters by which shards of different sizes would be read differently."""

    @_fit_context(prefer_skip_nested_validation=True)
    def exact_statistics(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None
    ) -> ExactStatistics:
        """Return the statistics of one shard **without noise: as sensitive as the records**.

        Nothing is charged and nothing is kept. Merge the statistics of all shards with
        :func:`dpbayes_sklearn.shards.merge`, then call :meth:`fit_statistics`.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            Records of people who are in no other shard.
        y : array-like of shape (n_samples,)
            Their targets.
        groups : array-like of shape (n_samples,), optional
            If a person is the privacy unit: whose record it is; a person is in one shard only.
        sample_weight : array-like of shape (n_samples,), optional
            How often every record counts, as for ``fit``.

        Returns
        -------
        ExactStatistics
        """
        reader = copy(self)
        reader._check_shards()
        with quiet_numpy():
            everything = reader._records(X, y, reset=True)
            records, _ = reader._protected(everything, groups, sample_weight)
            names, public = records.table.names, reader._shared_schema(records.table)
            reader._check_types(public, records)
            sums = cast(Mergeable, reader._statistics(public, reader._prior(public), records))
            return ExactStatistics(public, names, sums, max_weight=reader._most_copies)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_statistics(self, statistics: ExactStatistics) -> Self:
        """Release a posterior from the statistics of all shards, charging the accountant once.

        The same as ``fit`` to all the records in the order of their shards.

        Parameters
        ----------
        statistics : ExactStatistics
            Computed by estimators with the same parameters, and merged.

        Returns
        -------
        self
        """
        if not isinstance(statistics, ExactStatistics):
            raise TypeError(
                "fit_statistics takes what exact_statistics or merge returns. "
                f"Got {type(statistics).__name__} instead."
            )
        return self._fit(lambda fitted, facts: fitted._accepted(statistics, facts))

    def _accepted(
        self, statistics: ExactStatistics, facts: Facts | None
    ) -> FitInput[Schema, PriorT, StatisticsT]:
        """Return merged statistics, refusing those of another model."""
        names, theirs = statistics._names, statistics.schema
        if statistics.max_weight != self._most_copies:
            raise ValueError(
                f"These statistics were computed with max_weight={statistics.max_weight}, not with "
                f"the {self._most_copies} of this {type(self).__name__}, by which noise would be "
                "calibrated. Nothing was spent."
            )
        self._check_shards()
        public = self._shared_schema(SealedTable(len(theirs), None if names is None else [*names]))
        mine = self._structure(public), [*public.columns.items()], public.target
        if mine != (statistics._structure(), [*theirs.columns.items()], theirs.target):
            raise ValueError(
                "These statistics are of another model: columns, domains, bins, classes and "
                f"structure must be those of this {type(self).__name__}."
            )
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = len(public)
        unit = self._declared_unit
        texts = (PROMISED,) if unit.size_is_secret else (PROMISED, COUNTED)
        promised = [text.format(unit.max_records) for text in texts if unit.name == "person"]
        promised += [] if self.max_weight is None else [OWN_WEIGHTS]
        sums = cast(StatisticsT, statistics._sums)
        return FitInput(
            public, self._prior(public), sums, (KEPT_SECRET, *promised), facts or Facts(sums.n)
        )

    def _shared_schema(self, table: Table) -> Schema:
        """Return the public domains by what is declared alone."""
        sealed = SealedTable(table.n_columns, table.names)
        # no n has a part in it: see _check_shards
        return self._public_schema(LocalRecords([(sealed, np.empty(0))]), sealed.n_rows)[0]
