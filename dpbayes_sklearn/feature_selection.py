"""Columns chosen privately, by how strongly they depend on the target."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import Range, StrOptions
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import PrivateEstimator, Where
from dpbayes_sklearn.base.supervised import Declared, SupervisedEstimator
from dpbayes_sklearn.columns.plans import ChoicePlan
from dpbayes_sklearn.counts.dependence import ColumnChoice, ColumnScores
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.persons import PROTECTION
from dpbayes_sklearn.data.reading import (
    check_kinds,
    classes_from_data,
    domain_from_data,
    read_table,
)
from dpbayes_sklearn.data.records import Records, Table, is_frame
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.schema.declared import Bins, declared_classes, intervals_from_bounds
from dpbayes_sklearn.schema.values import as_cells, as_numbers
from dpbayes_sklearn.serialization.models import SELECTOR

__all__ = ["PrivateSelectKBest"]


_TARGET_BINS = 8  # The target of a regression is cut into this many bins.


@dataclass(eq=False, repr=False)
class PrivateSelectKBest(
    SelectorMixin,
    SupervisedEstimator[tuple[Schema, int], ColumnChoice, ColumnScores, tuple[Hashable, ...]],
):
    r"""Choose the k columns that depend most on the target, privately.

    The score of a column is the distance in total variation between the joint law of column and
    target and the product of their laws: 0 if they are independent. Columns are chosen one after
    the other by permute-and-flip, each with ``epsilon / k``. Scores are not published.

    Parameters
    ----------
    k : int or "auto", default="auto"
        Number of columns, below that of X. ``"auto"`` keeps as many as the number of records
        allows, by a public rule; all of them, if there are enough records.
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` chooses by exact scores.
    classes : array-like, optional
        The public list of classes, for classification.
    bounds : tuple (low, high), optional
        Public bounds of the columns, numbers or one entry per column.
    bounds_y : tuple (low, high), optional
        Public bounds of the target, for regression; it is cut into eight bins.
    n_bins : int or array-like of int, default=8
        Bins that intervals are cut into.
    schema : Schema, optional
        Public domains by column name, and of the target, instead of all bounds and classes.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; ``privacy_unit`` says who is
    protected. What is published is
    which columns were chosen. What is not declared is read from the data, with a
    :class:`PrivacyLeakWarning`. Columns of chosen names keep their values.

    Selection helps where few of many columns matter. Where many help a little it costs more than
    it gives.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn.feature_selection import PrivateSelectKBest
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.integers(0, 2, (3_000, 20)), rng.random(3_000) < 0.1
    >>> y = (X[:, 3] & X[:, 7]) ^ noise
    >>> select = PrivateSelectKBest(
    ...     2, epsilon=0.5, bounds=(0, 1), n_bins=2, classes=[0, 1], random_state=0
    ... )
    >>> select.fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    _exported = SELECTOR

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "k": [StrOptions({"auto"}), Range(Integral, 1, None, closed="left")],
        "classes": ["array-like", None],
        "bounds": ["array-like", None],
        "bounds_y": ["array-like", None],
        "n_bins": [Range(Integral, 2, 2**16, closed="both"), "array-like"],
        "schema": [Schema, None],
        **PROTECTION,
    }

    k: int | str = "auto"
    _: KW_ONLY
    epsilon: float = 1.0
    classes: npt.ArrayLike | None = None
    bounds: Any = None
    bounds_y: Any = None
    n_bins: int | npt.ArrayLike = 8
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @property
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the features")

    @property
    def _target(self) -> Declared:
        """Classes, or an interval that is cut into bins."""
        if self.classes is not None and self.bounds_y is not None:
            raise ValueError("Give either classes or bounds_y, not both: each declares the target.")
        domain: Domain | None = None if self.schema is None else self.schema.target
        if self.classes is not None:
            domain = declared_classes(self.classes)
        elif self.bounds_y is not None:
            (domain,) = intervals_from_bounds(self.bounds_y, 1, "bounds_y")
        return Declared(
            "classes or bounds_y", domain and domain.in_bins(_TARGET_BINS), "values of the target"
        )

    def _target_from_data(self, values: AnyArray) -> Domain:
        if values.dtype.kind not in "biuf" or not type_of_target(values).startswith("continuous"):
            return classes_from_data(values)
        numbers = as_numbers(values)
        assert_all_finite(numbers, input_name="y")
        return domain_from_data(Table(numbers[:, None]), 0).in_bins(_TARGET_BINS)

    def _settle(
        self, declared: Sequence[Domain | None], domains: list[Domain], table: Table, n: int
    ) -> tuple[list[Domain], tuple[str, ...]]:
        bins = Bins(self.n_bins, n, table.n_columns, 1.0)
        bins.check()
        return [bins.cut(domain, j, table.kind(j)) for j, domain in enumerate(domains)], ()

    def _public_schema(
        self, records: Records, n: int
    ) -> tuple[tuple[Schema, int], tuple[str, ...]]:
        schema, conditions = self._domains(records, n)
        return (schema, n), conditions

    @property
    def _uses_n(self) -> Where:  # type: ignore[override]
        return "in the schema" if isinstance(self.k, str) else "nowhere"

    def _check_types(self, public: tuple[Schema, int], records: Records) -> None:
        check_kinds(public[0], records)

    def _prior(self, public: tuple[Schema, int]) -> ColumnChoice:
        schema, n = public
        sizes = [domain.n_values for domain in schema.columns.values()]
        assert schema.target is not None
        network = Network.star(sizes, schema.target.n_values)
        if isinstance(self.k, str):
            epsilon = 3 * float(self._unit.equivalent(float(self.epsilon)))
            return ColumnChoice(network, columns_for(network, n, epsilon))
        if self.k >= len(schema) > 1:
            raise ValueError(
                f"k={self.k} of {len(schema)} columns leaves nothing to select: set k below their "
                "number, or leave this step out. Nothing was spent."
            )
        return ColumnChoice(network, int(self.k))

    def _statistics(
        self, public: tuple[Schema, int], prior: ColumnChoice, records: Records
    ) -> ColumnScores:
        schema, _ = public
        encoder, target = Encoder([*schema.columns.values()]), schema.target
        assert target is not None
        skips = self._skips_missing
        count = partial(CountTables.of_shard, prior.network, encoder, target, skips)
        return ColumnScores.of(records.total(count))

    def _plan(self, prior: ColumnChoice, facts: Facts, budget: Budget) -> ChoicePlan:
        return ChoicePlan.of(prior, budget)

    def _attach(self, public: tuple[Schema, int], release: Release[tuple[Hashable, ...]]) -> Self:
        schema, _ = public
        self.schema_ = schema
        chosen = [*cast("tuple[int, ...]", release.posterior)] or range(len(schema))
        self._support = np.isin(np.arange(len(schema)), chosen)
        self.guarantee_ = release.guarantee
        return self

    def _epsilon_wanted(self, n: int, n_features: int) -> float:
        """Return what tells scores apart that differ by 5 % of the records."""
        k = n_features if isinstance(self.k, str) else min(int(self.k), n_features)
        return 3 * self._unit.n_changed * k / (0.05 * n)

    def _restore(self, **released: Any) -> Self:
        schema, support, guarantee = released.values()
        kept = sum(support)
        wanted = max(kept, 1) if isinstance(self.k, str) else min(int(self.k), len(schema))
        if len(support) != len(schema) or kept != wanted:
            raise ValueError("the chosen columns are not as many as the parameters ask for")
        self.schema_, self._support, self.guarantee_ = schema, np.array(support), guarantee
        return self

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support

    def transform(self, X: Any) -> Any:
        """Return the chosen columns, of a data frame as a data frame.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)

        Returns
        -------
        X of the same kind, with the chosen columns
        """
        check_is_fitted(self)
        declared, secret = self._declares_columns, self._unit.size_is_secret
        d = self.n_features_in_
        read_table(self, X, reset=False, declared=declared, may_be_empty=secret, width=d)
        places = np.flatnonzero(self._support).tolist()
        if is_frame(X):
            return X.iloc[:, places] if hasattr(X, "iloc") else X[:, places]
        return X[:, places] if hasattr(X, "dtype") else self._chosen(as_cells(X, 2, d)[:, places])

    def _chosen(self, cells: Any) -> Any:
        """Return the cells of a list: numbers where all columns hold them, else as they are."""
        pairs = zip(self.schema_.columns.values(), self._support, strict=True)
        domains = [domain for domain, kept in pairs if kept]
        numbers = all(domain.is_numeric and domain.expects == "numbers" for domain in domains)
        return as_numbers(cells) if numbers else cells

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def columns_for(network: Network, n: int, epsilon: float) -> int:
    r"""Return how many columns a classifier with ``epsilon`` can learn well from n records.

    With k columns the noise of a count is about :math:`1.5 k/\varepsilon`; a fifth of an average
    count :math:`n/CV` may be noise, C and V being the numbers of classes and of a column's values.

    >>> columns_for(Network.star([8] * 60, 3), 2_200, 0.9)
    11
    """
    values = float(np.mean(network.sizes[:-1]))
    wanted = 0.2 * n * epsilon / (1.5 * values * network.sizes[-1])
    return int(min(max(wanted, 1.0), network.target))
