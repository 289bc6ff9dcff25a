"""Fitting in two steps: exact statistics of each shard, one release of all of them."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np

from dpbayes_sklearn._estimator import FitInput
from dpbayes_sklearn._protection import COUNTED, PROMISED
from dpbayes_sklearn._sklearn_compat import _fit_context
from dpbayes_sklearn._supervised import SupervisedEstimator
from dpbayes_sklearn.data.records import LocalRecords, quiet_numpy
from dpbayes_sklearn.data.table import SealedTable, Table
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.statistics import ExactStatistics

__all__ = ["ShardedEstimator"]

KEPT_SECRET = (
    "nobody is in two of the shards that were merged, and their exact statistics stay secret"
)


class ShardedEstimator(SupervisedEstimator):
    """An estimator whose statistics can be computed by shard, merged, and released once."""

    @abstractmethod
    def _structure(self, public: Schema) -> Any:
        """Return the public structure that merged statistics must match."""

    def _check_shards(self) -> None:
        """Refuse parameters by which shards of different sizes would be read differently."""

    @_fit_context(prefer_skip_nested_validation=True)
    def exact_statistics(self, X: Any, y: Any, groups: Any = None) -> ExactStatistics:
        """Return the statistics of one shard **without noise: as sensitive as the records**.

        Nothing is charged and nothing is kept. Merge the statistics of all shards with
        :func:`dpbayes_sklearn.statistics.merge`, then call :meth:`fit_statistics`.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            Records of people who are in no other shard.
        y : array-like of shape (n_samples,)
            Their targets.
        groups : array-like of shape (n_samples,), optional
            For ``privacy_unit="person"``: whose record it is; a person is in one shard only.

        Returns
        -------
        ExactStatistics
        """
        reader = copy(self)
        reader._check_shards()
        with quiet_numpy():
            records, _ = reader._protected(reader._records(X, y, reset=True), groups)
            names, public = records.table.names, reader._shared_schema(records.table)
            reader._check_types(public, records)
            return ExactStatistics(public, names, reader._statistics(public, records))

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
        return self._fit(lambda fitted: fitted._accepted(statistics))

    def _accepted(self, statistics: ExactStatistics) -> FitInput:
        """Return merged statistics, refusing those of another model."""
        names, theirs = statistics._names, statistics.schema
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
        unit = self._unit
        texts = (PROMISED,) if unit.size_is_secret else (PROMISED, COUNTED)
        promised = [text.format(unit.max_records) for text in texts if unit.name == "person"]
        return FitInput(public, statistics._sums, (KEPT_SECRET, *promised))

    def _shared_schema(self, table: Table) -> Schema:
        """Return the public domains by what is declared alone."""
        sealed = SealedTable(table.n_columns, table.names)
        return self._public_schema(LocalRecords([(sealed, np.empty(0))]))[0]
