"""A tree over the features, chosen privately, as one fit with one charge."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._estimator import PrivateEstimator
from dpbayes_sklearn._protection import PROTECTION
from dpbayes_sklearn._sklearn_compat import Range
from dpbayes_sklearn._supervised import Declared, SupervisedEstimator
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.undeclared import classes_from_data
from dpbayes_sklearn.mechanisms import Mechanism, PermuteAndFlip, Release
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.statistics.choices import TreeChoice
from dpbayes_sklearn.statistics.conditional_dependence import EdgeScores, PairTables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.tree_prices import TreePrices

__all__ = ["PrivateTree"]

MODEL_PER_TREE = 9
"""How many times the budget of a tree a model is thought to have: a tenth is for the tree."""


class PrivateTree(SupervisedEstimator):
    """A tree over the features if it is worth its noise, edge after edge by their scores.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the tree: a quarter for the question whether there is one, the rest
        shared equally by its edges.
    schema : Schema
        With bins for every interval and the classes as target.
    model_epsilon : float, optional
        Budget of the model that the tree is for; by default nine times ``epsilon``.
    privacy_unit, max_records_per_person, neighbours
        Who is protected, as for all estimators.
    accountant : BudgetAccountant, optional
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    edges_ : tuple of (child, parent)
        Positions of features; none if naive Bayes is thought to be better.
    guarantee_ : PrivacyGuarantee
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "schema": [Schema],
        "model_epsilon": [Fraction, Range(Real, 0, math.inf, closed="right"), None],
        **PROTECTION,
    }

    _looks_at_n: ClassVar[bool] = False

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        schema: Schema | None = None,
        model_epsilon: float | None = None,
        privacy_unit: str = "record",
        max_records_per_person: int | None = None,
        neighbours: str = "replace",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.model_epsilon = model_epsilon
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

    def _star(self, public: Schema) -> Network:
        sizes = [domain.n_values for domain in public.columns.values()]
        return Network.star(sizes, public.classes.n_values)

    def _prior(self, public: Schema) -> TreeChoice:
        return TreeChoice(self._star(public))

    def _statistics(self, public: Schema, records: Any) -> EdgeScores:
        encoder = Encoder([*public.columns.values()])
        given = self.model_epsilon
        meant = MODEL_PER_TREE * float(self.epsilon) if given is None else float(given)
        prices = TreePrices.of(self._star(public), self._unit, meant)
        return EdgeScores.of(PairTables.of_records(records, encoder, public.classes), prices)

    def _attach(self, public: Schema, release: Release[Any]) -> Self:
        self.edges_ = release.posterior[1:]  # after the choice of a tree or none
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        raise ValueError("a tree has no JSON form")
