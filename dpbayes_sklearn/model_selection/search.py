"""A grid search whose total privacy cost is known in advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import Range, StrOptions, _safe_indexing
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.base.estimator import AnyEstimator, PrivateEstimator
from dpbayes_sklearn.base.remarks import warn_about_scores
from dpbayes_sklearn.base.spending import DELTA, once
from dpbayes_sklearn.base.supervised import AnySupervised
from dpbayes_sklearn.data.persons import read_groups
from dpbayes_sklearn.data.reading import in_memory, read_target
from dpbayes_sklearn.data.records import column_kind
from dpbayes_sklearn.model_selection.pipelines import (
    Prepaid,
    PrivatePipeline,
    as_one,
    named,
    refuse_others,
    shared_ledger,
    with_params,
)
from dpbayes_sklearn.model_selection.rehearsal import SearchCost, rehearsed, run_rho, search_cost
from dpbayes_sklearn.model_selection.runs import (
    HeldOutSplit,
    SearchPlan,
    Selection,
    Winner,
    candidates_of,
    held_out,
    prepared,
)
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import PRICE
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_epsilon
from dpbayes_sklearn.privacy.plain import plain
from dpbayes_sklearn.release import Facts, FitPlan, Release

Method = TypeVar("Method", bound=Callable[..., Any])


def _estimator_has(name: str) -> Callable[[Method], Method]:
    decorator = available_if(lambda search: hasattr(search.estimator, name))
    return cast("Callable[[Method], Method]", decorator)


@dataclass(eq=False, repr=False)
class PrivateSearchCV(
    MetaEstimatorMixin,
    PrivateEstimator[HeldOutSplit, list[dict[str, Any]], list[AnySupervised], HeldOutSplit, Winner],
):
    r"""Search for the best parameters of a private estimator by one split into train and test.

    There is no cross-validation: the same people are held out of all fits. In every run a candidate
    drawn at random from the grid is fitted with a third of ``epsilon`` and scored, with noise, on
    the people held out. The best model of all runs is kept. Because the number of runs is random
    and secret, the whole search costs as much as three runs, not as much as all of them.

    Parameters
    ----------
    estimator : classifier or regression of this library, or Pipeline
        Cloned for every run. Its ``epsilon`` and ``random_state`` are those of the search. A
        pipeline consists of estimators and transformers of this library only; its steps share
        the epsilon of a run in proportion to their own, which must be finite. Its ``memory`` and
        ``verbose`` are not used.
    param_grid : dict or list of dict
        Candidates, as in :class:`sklearn.model_selection.GridSearchCV`.
    epsilon : float, default=1.0
        Privacy budget of the whole search. :meth:`cost` gives the total for a selected model of a
        given epsilon.
    delta : float in [0, 1), default=0.0
        With a delta, candidates may add Gaussian noise, and the search is accounted for in zCDP;
        the ``delta`` of the estimator is that of the search. Without one, all candidates must be
        purely private.
    runs_per_candidate : int, default=10
        Average number of runs for each candidate. More runs cost time but no privacy. The
        probability that a candidate is not tried at all is about ``1 / (1 + runs_per_candidate)``
        with geometric stopping; with logarithmic stopping it is from 0.15 (2 candidates) to 0.5
        (100 candidates) by default, and falls slowly with more runs.
    stopping : {"geometric", "logarithmic"}, default="geometric"
        Distribution of the number of runs. A search costs three runs, or two with "logarithmic",
        which more often has few runs: with a mean of 60, half of all searches have at most ten.
    test_size : float, default=0.2
        Share of the people who are held out.
    accountant : BudgetAccountant, optional
        The ledger that the search is charged to, once; by default the estimator's, which all steps
        of a pipeline must share, or that of an open ``with`` block. The fits inside are not
        charged again.
    n_jobs : int, optional
        Runs at the same time, as in joblib.
    verbose : int or bool, default=0
        Whether to show a progress bar over the candidates while their statistics are computed, if
        tqdm is installed and standard error is a terminal. The runs themselves have none: their
        number is secret.
    random_state : int, RandomState or None, default=None
        None draws everything from the operating system's secure source. A seed is for tests and
        papers only.

    Attributes
    ----------
    best_estimator_ : estimator
        The selected model itself. It is not fitted again, which would be a further release.
    best_params_ : dict
        Its candidate.
    best_index_ : int
        The place of that candidate in ``cv_results_["params"]``.
    best_score_ : float
        Its noisy score on the people held out: the share classified correctly; of a regression, a
        mean of scores from 0, a quarter of the target's range off or more, to 1, predicted exactly.
        As the largest of many noisy scores it is slightly too high.
    cv_results_ : dict
        ``params``, the candidates. The scores of the others are not published.
    guarantee_ : PrivacyGuarantee
        The guarantee of all of these together.
    classes_, n_features_in_, feature_names_in_
        Those of the winner, where it has them.

    Notes
    -----
    **Privacy.** A search spends ``epsilon``, for the unit of its estimator, in one entry of the
    ledger, before the first run; if that is a person, ``fit`` needs ``groups``, and either all
    records of a person are held out or none. Statements and proofs are in
    :mod:`dpbayes_sklearn.model_selection.runs` and :mod:`dpbayes_sklearn.noise.finite`.
    Before the charge every candidate is fitted to stand-ins of the same shape and types, made of
    public facts alone, so that what cannot be fitted is refused unpaid and tells nothing about the
    records. Only domains that are not declared allow an error that depends on the records: of the
    first step, which reads them, before the charge; of a later step after it, without its text.
    The running time of a search depends on the secret number of its runs, so do not publish it.
    Domains that a candidate reads from the data cause a warning and become a condition of the
    guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = (rng.random((1000, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1))
    >>> accountant = BudgetAccountant(epsilon=1.0)
    >>> search = PrivateSearchCV(
    ...     model, {"mechanism": ["laplace", "map"]}, epsilon=0.9, accountant=accountant
    ... )
    >>> search.fit(X, y).predict(X[:3]).shape
    (3,)
    >>> search.guarantee_.epsilon, accountant.total().epsilon, len(accountant)
    (0.9, 0.9, 1)
    """

    _uses_n = "nowhere"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        "estimator": [PrivateEstimator, Pipeline],
        "param_grid": [Mapping, Sequence],
        "runs_per_candidate": [Range(Integral, 1, None, closed="left")],
        "stopping": [StrOptions({"geometric", "logarithmic"})],
        "test_size": [Range(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    estimator: AnyEstimator
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 0.0
    runs_per_candidate: int = 10
    stopping: str = "geometric"
    test_size: float = 0.2
    accountant: BudgetAccountant | None = None
    n_jobs: int | None = None
    verbose: int | bool = 0
    random_state: int | np.random.RandomState | None = None

    @staticmethod
    def cost(
        estimator: AnyEstimator,
        param_grid: Any,
        n: int,
        *,
        runs_per_candidate: int = 10,
        stopping: str = "geometric",
        test_size: float = 0.2,
    ) -> SearchCost:
        """Return the privacy cost of a search whose selected model has the estimator's epsilon.

        Of purely private candidates: Gaussian noise is refused. A pipeline has the sum of the
        epsilons of its steps. Neither n nor the size of the grid changes the epsilon, only the
        time.

        Parameters
        ----------
        estimator : estimator
        param_grid : dict or list of dict
        n : int
            Number of records.
        runs_per_candidate, stopping, test_size
            As in the search.

        Returns
        -------
        SearchCost

        Examples
        --------
        >>> from dpbayes_sklearn import BayesianNaiveBayes
        >>> PrivateSearchCV.cost(BayesianNaiveBayes(0.1), {"alpha": [0.1, 1, 10]}, n=1000)
        SearchCost(epsilon=0.3, epsilon_per_run=0.1, n_runs=30, n_train=800, n_test=200)
        """
        return search_cost(estimator, param_grid, n, runs_per_candidate, stopping, test_size)

    def _validate_params(self) -> None:
        super()._validate_params()
        refuse_others(self.estimator)

    @property
    def _declared_unit(self) -> PrivacyUnit:
        of: Any = self.estimator
        last: AnySupervised = of.steps[-1][1] if isinstance(of, Pipeline) else of
        return last._unit

    def _ledger(self) -> BudgetAccountant | None:
        own: BudgetAccountant | None = self.accountant
        if own is not None:
            return own
        candidates = with_params(self.estimator, candidates_of(self.param_grid))
        return shared_ledger([self.estimator, *candidates]) or super()._ledger()

    def _description(self, mechanism: str) -> str:
        of = self.estimator
        what = named(of.steps) if isinstance(of, Pipeline) else type(of).__name__
        return f"{type(self).__name__} of {what}"

    @once
    def _mechanism(self) -> Selection:
        seeded = self.random_state is not None
        return Selection(self.runs_per_candidate, self.stopping, seeded, self.n_jobs)

    def plan(self, n: int, n_features: int | None = None) -> FitPlan:
        """Return what a search costs, without data; see also :meth:`cost`."""
        self._validate_params()
        models = self._models(candidates_of(self.param_grid))
        made = self._plan(models, Facts(n), self._budget())
        return FitPlan(type(self).__name__, n, (made,))

    def _plan(self, prior: list[AnySupervised], facts: Facts, budget: Budget) -> SearchPlan:
        return SearchPlan.of(self._mechanism, prior, budget)

    def _records(self, X: Any, y: Any, *, reset: bool) -> HeldOutSplit:
        """Return all records, to be split without looking at them."""
        self._models(candidates_of(self.param_grid))  # refused before any data are touched
        table = in_memory(X, self._declared_width, type(self).__name__)
        target = read_target(self.estimator, y)
        return HeldOutSplit((table, target, None), (None, target[:0]), column_kind(y))

    @property
    def _declared_width(self) -> int | None:
        """How many columns a candidate declares; one that declares others is refused by itself."""
        models = self._models(candidates_of(self.param_grid))
        widths = [model._declared_width for model in models]
        return next((width for width in widths if width is not None), None)

    def _protected(
        self, records: HeldOutSplit, groups: Any, sample_weight: Any = None
    ) -> tuple[HeldOutSplit, tuple[str, ...]]:
        """Split the records that count: at random, all records of a person on the same side."""
        X, target = indexable(*records.train[:2])
        unit, noise = self._unit, Noise.of(self.random_state, stream=1)
        if unit.name == "person" and groups is None:
            raise ValueError("A search holds out persons: give groups, whose record each is.")
        labels = None if groups is None else read_groups(groups, len(target))
        train, test = held_out(len(target), labels, unit, self.test_size, noise)
        parts = [(_safe_indexing(X, rows), target[rows]) for rows in (train, test)]
        whose = None if labels is None else labels[train]
        n_test = self._n_test if unit.size_is_secret and not self._budget().infinite else None
        return records._replace(train=(*parts[0], whose), test=parts[1], n_test=n_test), ()

    def _n_test(self, model: Any) -> float:
        """Return how many records are held out, by the released number of the others."""
        return float(model._n_released * self.test_size / (1 - self.test_size))

    def _public_schema(
        self, records: HeldOutSplit, n: int
    ) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Return the candidates, and the conditions that their rehearsal on stand-ins has found."""
        candidates = candidates_of(self.param_grid)
        return candidates, rehearsed(self._models(candidates), *records.train, records.kind)

    def _statistics(
        self, public: Any, prior: list[AnySupervised], records: HeldOutSplit
    ) -> HeldOutSplit:
        """Return the people, and the statistics of every candidate, read once for all runs."""
        rho = self._rho(len(prior))
        steps = progress(prior, "candidates", verbose=bool(self.verbose))
        ready = tuple(prepared(model, *records.train, rho, records.test) for model in steps)
        return records._replace(prepared=ready, rho=rho)

    def _prior(self, public: list[dict[str, Any]]) -> list[AnySupervised]:
        return self._models(public)

    def _rho(self, n_candidates: int) -> Fraction | None:
        """Return the zCDP of one run, if the search has a delta."""
        budget = self._budget()
        if not budget.delta:
            return None
        law = self._mechanism.law_of_runs(n_candidates)
        return run_rho(budget.epsilon, budget.delta, law.eta, law.inverse, law.mean)

    def _models(self, candidates: list[dict[str, Any]]) -> list[AnySupervised]:
        """Return the candidates to be fitted, each with its share of the budget.

        With a delta that is an upper bound, until their statistics are known.
        """
        budget, rho = self._budget(), self._rho(len(candidates))
        epsilon = budget.epsilon / PRICE[self.stopping]
        if rho is not None:
            epsilon = zcdp_epsilon(rho, budget.delta)
        own = {"epsilon": epsilon, "accountant": Prepaid(), "random_state": None}
        if rho is not None and isinstance(self.estimator, Pipeline):
            raise ValueError("A search over a pipeline has no delta: leave delta=0.")
        models = [
            as_one(model).set_params(**own) for model in with_params(self.estimator, candidates)
        ]
        for model in models:
            if "delta" in model.get_params():
                model.set_params(delta=budget.delta)
            model._validate_params()
            model._refuse_weights("PrivateSearchCV")
            if model._unit != self._unit:
                raise ValueError("All candidates of a search must protect the same privacy_unit.")
            if rho is None and model._mechanism.needs_delta:
                raise ValueError("Gaussian noise needs a delta: set delta of the search.")
        return models

    def _attach(self, public: list[dict[str, Any]], release: Release[Winner]) -> Self:
        winner, guarantee = release.posterior, release.guarantee
        model: Any = winner.model.set_params(accountant=self._ledger(), random_state=None)
        # the privacy cost of the search, not of a run
        model._attach(model.schema_, Release(model.posterior_, guarantee))
        if isinstance(model, PrivatePipeline):
            model = model.winner(self._ledger())
        elif hasattr(model, "_proof"):
            law = self._mechanism.law_of_runs(len(public))
            model._proof = [{**fit, "runs": plain(law)} for fit in model._proof]
        self.cv_results_ = {"params": public}
        self.best_index_ = winner.candidate
        self.best_params_ = public[winner.candidate]
        self.best_score_ = winner.score
        self.best_estimator_ = model
        self.guarantee_ = guarantee
        return self

    @property
    def classes_(self) -> Any:
        """Classes of the winner."""
        return self._winner("classes_")

    @property
    def n_features_in_(self) -> Any:
        """Number of features that the winner has seen."""
        return self._winner("n_features_in_")

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if they have any."""
        return self._winner("feature_names_in_")

    def _winner(self, name: str) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"This PrivateSearchCV has no {name} before fit.")
        return getattr(self.best_estimator_, name)

    def predict(self, X: Any, **options: Any) -> Any:
        """Return the prediction of the winner for every row."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, **options)

    @_estimator_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class for every row."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @_estimator_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the log probability of every class for every row."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy or the coefficient of determination of the winner.

        Unlike ``best_score_`` it is computed without noise and not covered by ``guarantee_``.
        """
        check_is_fitted(self)
        warn_about_scores(self._ledger())
        return float(self.best_estimator_.score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(self.estimator.__sklearn_tags__())
        for of_kind in (tags.classifier_tags, tags.regressor_tags):
            if of_kind is not None:
                of_kind.poor_score = True  # 200 records and a third of the budget
        return tags
