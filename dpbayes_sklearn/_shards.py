"""Fitting in two steps: exact statistics of each shard, one release of all of them."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np

from dpbayes_sklearn._estimator import PrivateEstimator
from dpbayes_sklearn._sklearn_compat import _fit_context
from dpbayes_sklearn.data.reading import read_records
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.data.table import SealedTable, Table
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.statistics import ExactStatistics

__all__ = ["ShardedEstimator"]

KEPT_SECRET = (
    "nobody is in two of the shards that were merged, and their exact statistics stay secret"
)


class ShardedEstimator(PrivateEstimator):
    """An estimator whose statistics can be computed by shard, merged, and released once."""

    @abstractmethod
    def _public_schema(self, table: Table, target: Any) -> tuple[Schema, tuple[str, ...]]:
        """Return the domains of all columns and of the target, and what they had to leak."""

    @abstractmethod
    def _statistics(self, public: Schema, records: Records) -> Any:
        """Return the exact statistics of records, wherever they are."""

    @abstractmethod
    def _structure(self, public: Schema) -> Any:
        """Return what statistics must be of to belong to this model."""

    @abstractmethod
    def _conclude(self, public: Schema, statistics: Any, conditions: tuple[str, ...]) -> Self:
        """Charge -> release -> attach."""

    def _check_shards(self) -> None:
        """Refuse parameters by which shards of different sizes would be read differently."""

    @_fit_context(prefer_skip_nested_validation=True)
    def exact_statistics(self, X: Any, y: Any) -> ExactStatistics:
        """Return the statistics of one shard **without noise: as sensitive as the records**.

        Nothing is charged and nothing is kept. Merge the statistics of all shards with
        :func:`dpbayes_sklearn.statistics.merge`, then call :meth:`fit_statistics`.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            Records of people who are in no other shard.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        ExactStatistics
        """
        reader = copy(self)
        reader._check_shards()
        records = read_records(reader, X, y, reset=True, declared=True)
        public = reader._shared_schema(records.table.names, records.table.n_columns)
        return ExactStatistics(public, records.table.names, reader._statistics(public, records))

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
        fitted, names = copy(self), statistics._names
        fitted._check_shards()
        public = fitted._shared_schema(names, len(statistics.schema))
        mine = fitted._structure(public), [*public.columns.items()], public.target
        theirs = statistics.schema
        if mine != (statistics._structure(), [*theirs.columns.items()], theirs.target):
            raise ValueError(
                "These statistics are of another model: columns, domains, bins, classes and "
                f"structure must be those of this {type(self).__name__}."
            )
        fitted.__dict__.pop("feature_names_in_", None)
        if names is not None:
            fitted.feature_names_in_ = np.asarray(names, dtype=object)
        fitted.n_features_in_ = len(public)
        return self._become(fitted._conclude(public, statistics._sums, (KEPT_SECRET,)))

    def _shared_schema(self, names: Any, n_columns: int) -> Schema:
        """Return the public domains by what is declared alone."""
        return self._public_schema(SealedTable(n_columns, names), np.empty(0))[0]
