"""A tree over the features, chosen privately, as one fit with one charge."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._estimator import PrivateEstimator
from dpbayes_sklearn._protection import PROTECTION
from dpbayes_sklearn._supervised import Declared, SupervisedEstimator
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.undeclared import classes_from_data
from dpbayes_sklearn.mechanisms import Mechanism, PermuteAndFlip, Release
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.statistics.choices import TreeChoice
from dpbayes_sklearn.statistics.conditional_dependence import EdgeScores, PairTables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["PrivateTree"]


class PrivateTree(SupervisedEstimator):
    """The edges of a tree over the features, one after the other by their scores.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the tree, shared equally by its edges.
    schema : Schema
        With bins for every interval and the classes as target.
    privacy_unit, max_records_per_person, neighbours
        Who is protected, as for all estimators.
    accountant : BudgetAccountant, optional
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    edges_ : tuple of (child, parent)
        Positions of features.
    guarantee_ : PrivacyGuarantee
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "schema": [Schema],
        **PROTECTION,
    }

    _looks_at_n: ClassVar[bool] = False

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        schema: Schema | None = None,
        privacy_unit: str = "record",
        max_records_per_person: int | None = None,
        neighbours: str = "replace",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.privacy_unit = privacy_unit
        self.max_records_per_person = max_records_per_person
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state

    @property
    def _bounds(self) -> Declared:
        return Declared("schema", None, "bounds of the features")

    @property
    def _target(self) -> Declared:
        assert self.schema is not None
        return Declared("schema", self.schema.classes, "classes")

    def _target_from_data(self, values: npt.NDArray[Any]) -> Domain:
        return classes_from_data(values)  # never: the schema has the classes

    def _resolve_mechanism(self) -> Mechanism:
        return PermuteAndFlip()

    def _prior(self, public: Schema) -> TreeChoice:
        sizes = [domain.n_values for domain in public.columns.values()]
        return TreeChoice(Network.star(sizes, public.classes.n_values))

    def _statistics(self, public: Schema, records: Any) -> EdgeScores:
        encoder = Encoder([*public.columns.values()])
        return EdgeScores.of(PairTables.of_records(records, encoder, public.classes))

    def _attach(self, public: Schema, release: Release[Any]) -> Self:
        self.edges_ = release.posterior
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        raise ValueError("a tree has no JSON form")
