"""Discrete Bayesian networks of any shape, used as classifiers, and a tree chosen privately."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from dpbayes_sklearn._compat import HasMethods, Range
from dpbayes_sklearn._typing import AnyArray, IntArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.supervised import Declared, TableEstimator
from dpbayes_sklearn.columns.plans import ChoicePlan
from dpbayes_sklearn.counts.dependence import EdgeScores, PairTables, TreeChoice, TreePrices
from dpbayes_sklearn.counts.network import CLASS, LearnedParents, Network, network_from_parents
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.persons import PROTECTION
from dpbayes_sklearn.data.reading import classes_from_data
from dpbayes_sklearn.data.records import Records, Table, is_frame
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Domain, Schema

__all__ = ["BayesianNetworkClassifier", "tree_augmented"]


MODEL_PER_TREE = 9
"""How many times the budget of a tree a model is thought to have: a tenth is for the tree."""


@dataclass(eq=False, repr=False)
class PrivateTree(TableEstimator[TreeChoice, EdgeScores, tuple[Hashable, ...]]):
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
    privacy_unit : "record" or PrivacyUnit, default="record"
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

    _uses_n = "nowhere"

    epsilon: float = 1.0
    _: KW_ONLY
    schema: Schema | None = None
    model_epsilon: float | None = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @property
    def _bounds(self) -> Declared:
        return Declared("schema", None, "bounds of the features")

    @property
    def _target(self) -> Declared:
        assert self.schema is not None
        return Declared("schema", self.schema.classes, "classes")

    def _target_from_data(self, values: AnyArray) -> Domain:
        return classes_from_data(values)  # never: the schema has the classes

    def _prior(self, public: Schema) -> TreeChoice:
        sizes = [domain.n_values for domain in public.columns.values()]
        return TreeChoice(Network.star(sizes, public.classes.n_values))

    def _statistics(self, public: Schema, prior: TreeChoice, records: Records) -> EdgeScores:
        encoder = Encoder([*public.columns.values()])
        given = self.model_epsilon
        meant = MODEL_PER_TREE * float(self.epsilon) if given is None else float(given)
        prices = TreePrices.of(prior.network, self._unit, meant)
        return EdgeScores.of(
            PairTables.of_records(records, encoder, public.classes, self._skips_missing), prices
        )

    def _plan(self, prior: TreeChoice, facts: Facts, budget: Budget) -> ChoicePlan:
        return ChoicePlan.of(prior, budget)

    def _attach(self, public: Schema, release: Release[tuple[Hashable, ...]]) -> Self:
        # after the choice of a tree or none
        self.edges_ = cast("tuple[tuple[int, int], ...]", release.posterior[1:])
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        raise ValueError("a tree has no JSON form")


@dataclass(eq=False, repr=False)
class BayesianNetworkClassifier(DiscreteClassifier):
    r"""Discrete Bayesian network released under differential privacy, as a classifier.

    The sensitivity depends on the graph: replacing a record changes one pair of cells in the table
    of every node, so the noise grows with the number of nodes, not with the number of values.

    .. math:: p(c, x) = \prod_i \theta_{i, \mathrm{parents}(i), x_i}

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives exact, non-private Bayes.
    delta : float in [0, 1), default=0.0
        Spent by "gaussian" and, where draws are then cheaper, by "sampler".
    parents : dict, list of edges or networkx.DiGraph, optional
        The public graph: ``{child: [parents]}`` or ``(parent, child)`` pairs of feature names or
        positions and ``"class"``, which may be anywhere in the graph. Nodes that are not mentioned
        have no parents. By default it is the graph of naive Bayes. In the tables of ``posterior_``
        parents are in the order of the columns, with the class last.
    mechanism : str or Mechanism, default="laplace"
        How the posterior is released: "laplace", "fourier", "sampler", "map", "gaussian" or "auto".
    inference : {"adaptive", "noise_aware", "plug_in"}, default="adaptive"
        How probabilities are computed from released counts, see :class:`BayesianNaiveBayes`.
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of the Dirichlet priors. If given per feature, that of the class is 1.
    temperature : "auto" or float in (0, 1], default="auto"
        Power of the features' probabilities in predictions, because the evidence of dependent
        features may be counted several times. ``"auto"`` learns it with 4 to 15 % of the budget,
        or takes 0.65 if the number of records times epsilon is below 500 (for naive Bayes, see
        there). 1 is the plain model.
    classes : array-like, optional
        The public list of classes.
    bounds : tuple (low, high), optional
        Public bounds of the features, numbers or one entry per feature.
    n_bins : "auto", int or array-like of int, default="auto"
        Number of equal-width bins per feature.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``.
    privacy_unit : "record", "feature" or PrivacyUnit, default="record"
        Who is protected: one record, one feature value of it (not its label), all records of a
        person, or whether they are there at all. See :class:`PrivacyUnit`.
    max_weight : int, optional
        Public bound of ``sample_weight``. Without it ``fit`` refuses weights.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    posterior_ : NetworkPosterior
        The released posterior, the only thing derived from the data that is kept.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.

    Notes
    -----
    **Privacy.** As for :class:`BayesianNaiveBayes`. The graph must be public, or have been found
    with a budget of its own: see ``epsilon`` of :func:`tree_augmented`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNetworkClassifier
    >>> rng = np.random.default_rng(0)
    >>> smoking = rng.integers(0, 2, 2000)
    >>> cancer = (rng.random(2000) < 0.1 + 0.5 * smoking).astype(int)
    >>> cough = (rng.random(2000) < 0.2 + 0.6 * cancer).astype(int)
    >>> model = BayesianNetworkClassifier(
    ...     parents={"class": [0], 1: ["class"]}, classes=[0, 1], bounds=(0, 1), n_bins=2,
    ...     random_state=0,
    ... ).fit(np.stack([smoking, cough], axis=1), cancer)
    >>> model.predict([[0, 0], [1, 1]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DiscreteClassifier._parameter_constraints,
        "parents": [dict, "array-like", HasMethods("predecessors"), None],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    parents: Any = None
    mechanism: str | Mechanism = "laplace"
    inference: str = "adaptive"
    alpha: float | npt.ArrayLike = 1.0
    temperature: float | str = "auto"
    classes: npt.ArrayLike | None = None
    bounds: Any = None
    n_bins: Any = "auto"
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _learned(self) -> tuple[tuple[str, Any], ...]:
        return (*super()._learned(), ("parents", getattr(self.parents, "guarantee", None)))

    def _network(self, public: Schema) -> Network:
        sizes = [domain.n_values for domain in public.columns.values()]
        n_classes = public.classes.n_values
        if self.parents is None:
            return Network.star(sizes, n_classes)
        return network_from_parents(self.parents, [*public.columns], sizes, n_classes)


def tree_augmented(
    X: Any,
    y: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    model_epsilon: float | None = None,
    privacy_unit: PrivacyUnit | str = "record",
    groups: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> dict[str, list[str]]:
    """Return the parents of a tree-augmented naive Bayes network.

    A maximum spanning tree over the features, with the class as a parent of every feature (Chow and
    Liu, as used by Friedman, Geiger and Goldszmidt). With ``epsilon`` the edges are selected
    privately; the score of an edge is n times the total variation distance between the joint
    distribution of two features given the class and the product of their distributions. Larger
    tables mean more noise in the model, so a score is reduced by a public price, and first of all
    it is asked, privately, whether any tree is worth its noise: if not, the features get no
    further parents, and the model is naive Bayes. Without ``epsilon`` edges are weighted by their
    exact mutual information given the class, so **the data must be public**: older published
    records, or synthetic records sampled from a model that was released before (not naive Bayes,
    whose features are independent given the class).

    Parameters
    ----------
    X : array, data frame or (with ``epsilon``) dask collection of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    schema : Schema
        With bins for every interval and the classes as target.
    epsilon : float, optional
        Privacy budget of the tree.
    model_epsilon : float, optional
        Budget of the model that the tree is for, by which the price of noise is known. By default
        nine times ``epsilon``.
    privacy_unit, groups
        Who is protected, as for all estimators and their ``fit``.
    accountant : BudgetAccountant, optional
        The ledger that a private tree is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Returns
    -------
    dict of str to list of str
        What :class:`BayesianNetworkClassifier` takes as ``parents``. A private one has a
        ``guarantee``, which models that are fitted with it name among their conditions.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import Categories, Schema, tree_augmented
    >>> public = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> coin = Categories([0, 1])
    >>> tree_augmented(public[:, :2], public[:, 2], Schema({"a": coin, "b": coin}, coin))
    {'a': ['class'], 'b': ['class', 'a']}
    >>> private = np.repeat(public, 500, axis=0)
    >>> schema = Schema({"a": coin, "b": coin}, coin)
    >>> tree_augmented(private[:, :2], private[:, 2], schema, epsilon=1.0)
    {'a': ['class'], 'b': ['class', 'a']}
    """
    if epsilon is not None:
        learner = PrivateTree(
            epsilon,
            schema=schema,
            model_epsilon=model_epsilon,
            privacy_unit=privacy_unit,
            accountant=accountant,
            random_state=random_state,
        ).fit(X, y, groups=groups)
        return LearnedParents(_below_the_class(schema, learner.edges_), learner.guarantee_)
    if groups is not None or PrivacyUnit.of(privacy_unit) != RECORD:
        raise ValueError(
            "groups and privacy_unit say whom a private tree protects: give epsilon. Without it "
            "the data must be public."
        )
    return _below_the_class(schema, _exact_tree(X, y, schema).items())


def _below_the_class(schema: Schema, edges: Iterable[tuple[int, int]]) -> dict[str, list[str]]:
    """Return the parents of every feature: the class, and what (child, parent) pairs add."""
    names = [*schema.columns]
    parents = {name: [CLASS] for name in names}
    for child, parent in edges:
        parents[names[child]].append(names[parent])
    return parents


def _exact_tree(X: Any, y: Any, schema: Schema) -> dict[int, int]:
    """Return the parent of every feature but the first, by mutual information."""
    names, d = [*schema.columns], len(schema)
    encoder = Encoder([*schema.columns.values()])
    table = Table(X[names] if is_frame(X) else np.asarray(X))
    if table.n_columns != d:
        raise ValueError(f"The schema declares {d} columns, but X has {table.n_columns} features.")
    codes = encoder.encode(table)
    labels = schema.classes.encode(np.asarray(y))
    sizes = (*encoder.sizes, schema.classes.n_values)
    information = np.zeros((d, d))
    for (j, k), counts in PairTables.of(codes, labels, sizes):
        information[j, k] = _mutual_information(counts)
    # the solver takes zeros for missing edges, so every edge gets a negative weight
    tree = minimum_spanning_tree(-1.0 - information) if d > 1 else np.zeros((1, 1))
    _, above = breadth_first_order(tree, 0, directed=False)
    return {j: int(above[j]) for j in range(1, d)}


def _mutual_information(counts: IntArray) -> float:
    """I(j; k | c) = sum p(j, k, c) ln(p(j, k, c) p(c) / (p(j, c) p(k, c)))."""
    joint = counts / counts.sum()
    by_class = joint.sum(axis=(0, 1))
    expected = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None] / np.maximum(by_class, 1e-300)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / expected[seen])).sum())
