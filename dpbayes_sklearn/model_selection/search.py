"""A grid search whose whole cost is known in advance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._estimator import SEEDED, PrivateEstimator
from dpbayes_sklearn._sklearn_compat import Interval, InvalidParameterError, _fit_context
from dpbayes_sklearn.data.reading import read_target
from dpbayes_sklearn.exceptions import PrivacyLeakWarning
from dpbayes_sklearn.model_selection.runs import (
    Prepaid,
    Run,
    candidates_of,
    rehearsed,
    run,
    seed_from,
    sensitivity,
)
from dpbayes_sklearn.noise.bernoulli import uniform_below
from dpbayes_sklearn.noise.random_stopping import PRICE, number_of_runs
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import Exact
from dpbayes_sklearn.privacy.guarantee import round_up

__all__ = ["PrivateSearchCV", "SearchCost"]

Method = TypeVar("Method", bound=Callable[..., Any])


class SearchCost(NamedTuple):
    """What a search will cost, known before any data are touched.

    Attributes
    ----------
    epsilon : float
        Of the whole search.
    epsilon_per_run : float
        Of each of its fits, the winner included.
    n_runs : int
        How many fits to expect; the actual number is random, and secret.
    n_train, n_test : int
        People that the candidates are fitted to, and people that they are scored on.
    """

    epsilon: float
    epsilon_per_run: float
    n_runs: int
    n_train: int
    n_test: int


def _estimator_has(name: str) -> Callable[[Method], Method]:
    decorator = available_if(lambda search: hasattr(search.estimator, name))
    return cast("Callable[[Method], Method]", decorator)


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):
    r"""Search for the best parameters of a private estimator, at a total cost of ``epsilon``.

    Candidates drawn at random from the grid are fitted with a third of the budget and scored with
    noise on people held out, again and again; the best model of all runs is kept. The number of
    runs is geometric and stays secret, which is why the price is three runs and not all of them.

    Parameters
    ----------
    estimator : BayesianNaiveBayes, BayesianNetworkClassifier or BayesianLinearRegression
        Cloned for every run. Its ``epsilon`` and ``random_state`` are those of the search.
    param_grid : dict or list of dict
        Candidates, as in :class:`sklearn.model_selection.GridSearchCV`.
    epsilon : float, default=1.0
        Privacy budget of the whole search. :meth:`cost` tells what a model of a given epsilon
        needs.
    runs_per_candidate : int, default=10
        How often each candidate is tried on average. It costs time but no privacy. A candidate
        is never tried with a probability of about ``1 / (1 + runs_per_candidate)``.
    test_size : float, default=0.2
        Share of the people who are held out.
    accountant : BudgetAccountant, optional
        The ledger that the search is charged to, once; by default the estimator's, or that of an
        open ``with`` block. The fits inside are not charged again.
    n_jobs : int, optional
        Runs at the same time, as in joblib.
    random_state : int, RandomState or None, default=None
        None draws everything from the operating system's secure source. A seed is for tests and
        papers only.

    Attributes
    ----------
    best_estimator_ : estimator
        The winning model itself. It is not fitted again, which would have to be paid for.
    best_params_ : dict
        Its candidate.
    best_index_ : int
        The place of that candidate in ``cv_results_["params"]``.
    best_score_ : float
        Its noisy score on the people held out: the share classified correctly, or one minus the
        mean squared error in units of a quarter of the target's range, no error counting for more.
        As the largest of many it is too high by a little.
    cv_results_ : dict
        ``params``, the candidates. How the others did is not published.
    guarantee_ : PrivacyGuarantee
        What is promised about all of these together.
    classes_, n_features_in_, feature_names_in_
        Those of the winner, where it has them.

    Notes
    -----
    **Privacy.** A search spends ``epsilon``, for the unit of its estimator, in one entry of the
    ledger, before the first run. Statements and proofs are in
    :mod:`dpbayes_sklearn.model_selection.runs` and :mod:`dpbayes_sklearn.noise.random_stopping`.
    How long a search takes tells something about the number of its runs, so do not publish that.
    What a candidate reads from the data because it is not declared is warned of and becomes a
    condition of the guarantee.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "estimator": [PrivateEstimator],
        "param_grid": [Mapping, Sequence],
        "runs_per_candidate": [Interval(Integral, 1, None, closed="left")],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: PrivateEstimator,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        epsilon: float = 1.0,
        runs_per_candidate: int = 10,
        test_size: float = 0.2,
        accountant: BudgetAccountant | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.runs_per_candidate = runs_per_candidate
        self.test_size = test_size
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state

    @staticmethod
    def cost(
        estimator: PrivateEstimator,
        param_grid: Any,
        n: int,
        *,
        runs_per_candidate: int = 10,
        test_size: float = 0.2,
    ) -> SearchCost:
        """Tell what a search costs whose winner is a fit with the ``epsilon`` of ``estimator``.

        Neither n nor the size of the grid changes the epsilon, only the time.

        Parameters
        ----------
        estimator : estimator
        param_grid : dict or list of dict
        n : int
            Number of records.
        runs_per_candidate, test_size
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
        per_run = exact(estimator.epsilon)
        parts = train_test_split(range(n), test_size=test_size)
        n_runs = runs_per_candidate * len(candidates_of(param_grid))
        return SearchCost(round_up(PRICE * per_run), round_up(per_run), n_runs, *map(len, parts))

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Charge the accountant, run the search and keep the winner.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Records, one per person.
        y : array-like of shape (n_samples,)
            Their classes or targets.

        Returns
        -------
        self
        """
        candidates = candidates_of(self.param_grid)
        budget = self._budget(getattr(self.estimator, "privacy_unit", "record"))
        self._check_budget(budget)
        models = [self._model(params, budget.epsilon / PRICE) for params in candidates]
        source = random_source(self.random_state)
        target = read_target(self.estimator, y, np.asarray(y).size)
        train_X, test_X, train_y, test_y = train_test_split(
            X, target, test_size=self.test_size, random_state=seed_from(source)
        )
        conditions = rehearsed(models, train_X, train_y)  # refuses before anything is charged
        if self.random_state is not None:
            conditions = (*conditions, SEEDED)
        ledger = self._ledger()
        if ledger is not None:
            label = f"{type(self).__name__} of {type(self.estimator).__name__}, {budget.unit}"
            ledger.spend(budget.epsilon, label=label)
        n_runs = number_of_runs(self.runs_per_candidate * len(models), source)
        picked = uniform_below(len(models), n_runs, source).tolist()
        seeds = [None if self.random_state is None else seed_from(source) for _ in picked]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # the rehearsal has told
            runs = Parallel(n_jobs=self.n_jobs)(
                delayed(run)(j, models[j], seed, (train_X, train_y), (test_X, test_y))
                for j, seed in zip(picked, seeds, strict=True)
            )
        best = max(runs, key=lambda one: one.score)
        fitted = copy(self)._attach(best, candidates, budget, conditions, len(test_y))
        return self._become(fitted)

    def _ledger(self) -> BudgetAccountant | None:
        return self.accountant or self.estimator.accountant or super()._ledger()

    def _model(self, params: dict[str, Any], epsilon: Exact) -> PrivateEstimator:
        """Return the candidate to be fitted, with its share of the budget."""
        predicts = is_classifier(self.estimator) or is_regressor(self.estimator)
        if not predicts or isinstance(self.estimator, PrivateSearchCV):
            raise InvalidParameterError(
                "The 'estimator' parameter of PrivateSearchCV must be a classifier or a "
                f"regression of this library. Got {type(self.estimator).__name__} instead."
            )
        own = {"epsilon": epsilon, "accountant": Prepaid(), "random_state": None}
        model: PrivateEstimator = clone(self.estimator).set_params(**clone(params, safe=False))
        model.set_params(**own)._validate_params()
        return model

    def _attach(
        self,
        best: Run,
        candidates: list[dict[str, Any]],
        budget: Budget,
        conditions: tuple[str, ...],
        n_test: int,
    ) -> Self:
        """Set the fitted attributes; the winner carries the price of the search, not of a run."""
        mechanism = best.model._resolve_mechanism().name()
        guarantee = PrivacyGuarantee.of(budget, mechanism, conditions)
        best.model.set_params(
            accountant=self._ledger(), random_state=None
        )  # to charge what follows
        best.model.guarantee_ = guarantee
        if hasattr(best.model, "_batches"):
            best.model._batches = (guarantee,)
        self.cv_results_ = {"params": candidates}
        self.best_index_ = best.candidate
        self.best_params_ = candidates[best.candidate]
        self.best_score_ = best.score / (sensitivity(best.model) * n_test)
        self.best_estimator_ = best.model
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

        Other than ``best_score_`` it is not private, whatever data it is of.
        """
        check_is_fitted(self)
        self._tell_about_scores()
        return float(self.best_estimator_.score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(self.estimator.__sklearn_tags__())
        for of_kind in (tags.classifier_tags, tags.regressor_tags):
            if of_kind is not None:
                of_kind.poor_score = True  # 200 records and a third of the budget
        return tags
