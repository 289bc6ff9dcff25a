"""The classifier to begin with: public facts choose which model it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.published import Contributions, Effect
from dpbayes_sklearn.base.remarks import ScoreMixin
from dpbayes_sklearn.base.spending import once
from dpbayes_sklearn.base.supervised import Declared, SupervisedEstimator, classes_declared
from dpbayes_sklearn.counts.posterior import NetworkPosterior
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.reading import check_kinds, classes_from_data
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.logistic_regression import BayesianLogisticRegression
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, FitPlan, Plan, Release, SizePlan
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.serialization.models import LINEAR_MODEL

__all__ = ["BayesianClassifier"]

Model = BayesianNaiveBayes | BayesianLogisticRegression


class Choice(NamedTuple):
    """A model, not fitted, and its domains or its prior."""

    model: Model
    of: Any


@dataclass(eq=False, repr=False)
class BayesianClassifier(
    ScoreMixin, ClassifierMixin, SupervisedEstimator[Choice, Choice, Any, Any]
):
    r"""The classifier to begin with: naive Bayes or logistic regression, by public facts.

    It is logistic regression if :math:`n\varepsilon/p` is large enough for its p parameters, else
    naive Bayes. n is the number of records, or what was released of it where it is secret. Nothing
    is asked of the records for the choice, so it has no privacy cost.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the model without privacy.
    classes : array-like, optional
        The public list of classes.
    bounds : tuple (low, high), optional
        Public bounds of the features, numbers or one entry per feature. Values are clipped.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; also for text columns. Its target
        stands for ``classes``.
    privacy_unit : "record", "feature" or PrivacyUnit, default="record"
        Who is protected. See :class:`PrivacyUnit`. For "feature" the model is naive Bayes.
    max_weight : int, optional
        Public bound of ``sample_weight``. Without it ``fit`` refuses weights.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    chosen_ : BayesianNaiveBayes or BayesianLogisticRegression
        The fitted model, with all that it can do: the same as if it had been fitted itself.
    classes_ : ndarray of shape (n_classes,)
    posterior_ : NetworkPosterior or LogisticPosterior
        What was released, the only thing derived from the data that is kept.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.
    feature_importances_ : ndarray of shape (n_features,)
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** As for the model that is chosen: neighbours have the same number of records and
    differ in one, unless ``privacy_unit`` says otherwise; every ``fit`` spends ``epsilon``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = (X.sum(axis=1) + rng.normal(size=5000) > 0).astype(int)
    >>> model = BayesianClassifier(classes=[0, 1], bounds=(-4, 4), random_state=0)
    >>> type(model.model_for(100, n_features=3)).__name__
    'BayesianNaiveBayes'
    >>> type(model.fit(X, y).chosen_).__name__
    'BayesianLogisticRegression'
    >>> model.score(X, y) > 0.8
    True
    """

    _exported = LINEAR_MODEL
    _metric = staticmethod(accuracy_score)
    _unit_names = ("record", "feature")
    _uses_n = "in the schema"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "classes": ["array-like", None],
        "bounds": ["array-like", None],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    epsilon: float = 1.0
    _: KW_ONLY
    classes: npt.ArrayLike | None = None
    bounds: Any = None
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def model_for(self, n: int, n_features: int | None = None) -> Model:
        """Return the model, not fitted, that n records would be given to.

        Parameters
        ----------
        n : int
        n_features : int, optional
            Needed if two numbers are the bounds of any number of features.
        """
        return self._choice(self._declared_schema(n, n_features), n)

    def _choice(self, public: Schema, n: int) -> Model:
        """Return the model for n records of these domains."""
        logistic: BayesianLogisticRegression = self._with_parameters(BayesianLogisticRegression)
        naive: BayesianNaiveBayes = self._with_parameters(BayesianNaiveBayes)
        many = logistic.__sklearn_tags__().classifier_tags.multi_class
        if self._unit.whole_records and (many or public.classes.n_values == 2):
            share, budget = self._shares(self._budget())
            facts = Facts(n, (SizePlan.of(share).law,) if share.epsilon else ())
            with suppress(ValueError):  # more columns, levels or records than it is for
                prior = logistic._prior(public)
                if logistic._plan(prior, facts, budget).rho >= prior.few_records:
                    return logistic
        return naive

    def _with_parameters(self, model: type[Any]) -> Any:
        return model(**self.get_params(deep=False))

    def plan(self, n: int, n_features: int | None = None) -> FitPlan:
        """Return what a fit to n records would release and spend, without data.

        Parameters
        ----------
        n : int
            Number of records.
        n_features : int, optional
            Needed if two numbers are the bounds of any number of features.

        Returns
        -------
        FitPlan
            It names the model that is chosen.
        """
        plan = super().plan(n, n_features)
        chosen = self.model_for(n, n_features or getattr(self, "n_features_in_", None))
        return replace(plan, estimator=f"{plan.estimator}, here {type(chosen).__name__}")

    @once
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the features")

    @once
    def _target(self) -> Declared:
        return classes_declared(self.classes, self.schema)

    def _target_from_data(self, values: AnyArray) -> Domain:
        return classes_from_data(values)

    def _public_schema(self, records: Records, n: int) -> tuple[Choice, tuple[str, ...]]:
        public, conditions = self._domains(records, n)
        domains = [*public.columns.values()]

        def settled(model: Model) -> tuple[Schema, tuple[str, ...]]:
            cut, looked = model._settle(domains, domains, records.table, n)
            return Schema(dict(zip(public.columns, cut, strict=True)), public.target), looked

        if self._unit.size_is_secret:  # it may call for naive Bayes, which refuses before a charge
            naive = self._with_parameters(BayesianNaiveBayes)
            naive._prior(settled(naive)[0])
        model = self._choice(public, n)
        own, looked = settled(model)
        return Choice(model, own), (*conditions, *looked)

    def _check_types(self, public: Choice, records: Records) -> None:
        check_kinds(public.of, records)

    def _prior(self, public: Choice) -> Choice:
        return Choice(public.model, public.model._prior(public.of))

    def _statistics(self, public: Choice, prior: Choice, records: Records) -> Any:
        return public.model._statistics(public.of, prior.of, records)

    def _plan(self, prior: Choice, facts: Facts, budget: Budget) -> Plan[Any, Any]:
        return prior.model._plan(prior.of, facts, budget)

    def _advise(self, plan: Any, public: Choice, facts: Facts) -> None:
        public.model._advise(plan, public.of, facts)

    def _hint(self) -> None:
        self.chosen_._hint()

    def _attach(self, public: Choice, release: Release[Any]) -> Self:
        self.schema_ = public.of
        self.classes_ = public.of.classes.labels
        self.posterior_ = release.posterior
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        public, posterior, guarantee = released.values()
        kind = _kind(posterior)
        batches = (guarantee,) if kind is BayesianNaiveBayes else guarantee
        model = self._with_parameters(kind)
        model._restore(schema_=public, posterior_=posterior, guarantee=batches)
        return self._attach(Choice(model, public), Release(posterior, guarantee))

    @property
    def chosen_(self) -> Model:
        """The model that was chosen, fitted."""
        check_is_fitted(self)
        model: Model = self._with_parameters(_kind(self.posterior_))
        model._attach(self.schema_, Release(self.posterior_, self.guarantee_))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def card(
        self,
        form: str = "markdown",
        *,
        evaluation: Any = None,
        title: str | None = None,
        description: str | None = None,
    ) -> str:
        """Return the card of the model that was chosen: see its ``card``."""
        told = title or f"{type(self).__name__}: {type(self.chosen_).__name__}"
        return self.chosen_.card(form, evaluation=evaluation, title=told, description=description)

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of every row."""
        return self.chosen_.predict(X)

    def _predict_by_row(self, X: Any) -> AnyArray:
        return self.chosen_._predict_by_row(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row."""
        return self.chosen_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log probability of every class for every row."""
        return self.chosen_.predict_log_proba(X)

    def contributions(self, X: Any) -> Contributions:
        """Return what every feature of every record adds to its log odds."""
        return self.chosen_.contributions(X)

    def effect(self, feature: int | str, level: float = 0.95) -> Effect:
        """Return what one feature adds to the log odds, by its value, with a band."""
        return self.chosen_.effect(feature, level)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of every feature in what the model knows: see the model that was chosen."""
        return self.chosen_.feature_importances_


def _kind(posterior: Any) -> type[Any]:
    """Return the model that a posterior is of."""
    network = isinstance(posterior, NetworkPosterior)
    return BayesianNaiveBayes if network else BayesianLogisticRegression
