"""Bayesian logistic regression, of any number of classes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import Range, StrOptions
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.published import (
    Contributions,
    Effect,
    EffectImportances,
    column_number,
    draws_generator,
)
from dpbayes_sklearn.base.remarks import ScoreMixin, advise_naive_bayes
from dpbayes_sklearn.base.spending import DELTA, once
from dpbayes_sklearn.base.supervised import Declared, ShardedEstimator, classes_declared
from dpbayes_sklearn.convex.coefficients import RegressionSummary
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.reading import classes_from_data
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.logistic.blocks import Blocks, WeightCodes
from dpbayes_sklearn.logistic.mode import n_parameters
from dpbayes_sklearn.logistic.ordered import OrderedPosterior, of_sorted
from dpbayes_sklearn.logistic.posterior import (
    LogisticPosterior,
    OddsTable,
    answer_by_row,
    class_odds_table,
    linear_form,
    log_probabilities,
    logistic_summary,
    more_probable,
    names_of_coef,
    odds_table,
    probabilities,
    reach_by_code,
    values_by_code,
)
from dpbayes_sklearn.logistic.record_sums import LabelledRecords, check_classes
from dpbayes_sklearn.logistic.release import ExactPlan, LogisticPlan, LogisticPrior, check_mechanism
from dpbayes_sklearn.logistic.release import plan as plan_logistic
from dpbayes_sklearn.logistic.softmax import MOST_CLASSES
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Categories, Domain, Schema
from dpbayes_sklearn.schema.domains import MOST_BINS
from dpbayes_sklearn.serialization.models import LINEAR_MODEL


@dataclass(eq=False, repr=False)
class BayesianLogisticRegression(
    EffectImportances,
    ScoreMixin,
    ClassifierMixin,
    ShardedEstimator[LogisticPrior, LabelledRecords, LogisticPosterior],
):
    r"""Logistic regression, released under differential privacy.

    The log odds of the second class are a constant plus one effect for each column,

    .. math:: \log\frac{P(y = 1)}{P(y = 0)} = \alpha + \sum_j \beta_j^\top x_j(v_j).

    Categories have one coefficient for each level. The effect of a number is piecewise linear in a
    rough rank, which is learned first, or linear. Coefficients of a column add to zero. Three
    classes and more have coefficients each, all in one release (softmax); they add to zero over
    the classes, and their noise is at most twice that of two classes. Ordered classes share one
    set of effects, on the log odds of a higher class (cumulative logits, proportional odds),

    .. math:: P(y \le k) = \sigma\Big(\theta_k - \sum_j \beta_j^\top x_j(v_j)\Big).

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the exact mode, that of scikit-learn's
        ``LogisticRegression(C=1/prior_precision)`` on the same weights.
    delta : float in [0, 1), default=0.0
        Additive slack, far below one over the number of records. Spent where Gaussian noise of the
        mode is then smaller (from about 50 linear effects or two-valued columns on, or 15 columns
        of ten levels), and by "sampler" where it makes several draws cheaper.
    mechanism : {"map", "sampler", "auto"} or Mechanism, default="map"
        "map" releases the mode of the posterior, found with noise in the gradient; so does
        "auto". "sampler" releases draws near such a mode of two classes, which has half of the
        budget; they predict worse. "laplace", "fourier" and "gaussian" are refused, with the
        reason.
    prior_precision : "auto" or float, default="auto"
        Precision of the Gaussian prior of all contrasts. "auto" is a public rule: a multiple of the
        noise that falls with ``n * epsilon / p`` for p parameters; 1 without privacy. A number
        below what the proof needs is raised to it.
    classes : array-like of labels, optional
        All classes.
    bounds : tuple (low, high), optional
        Public bounds of the features, numbers or one entry per feature. Values are clipped.
    n_bins : int, optional
        Cuts every number into equal-width bins, each with a coefficient of its own. By default
        numbers are not cut.
    effects : {"smooth", "linear"}, default="smooth"
        What the effect of a number is: piecewise linear with four knots, in ranks, or linear in a
        range that a private histogram suggests. Linear effects have odds ratios per unit.
    intervals : "auto" or bool, default="auto"
        Whether ``coefficients()`` has intervals: .15 to .3 of epsilon then pay for the curvature of
        the likelihood. "auto" pays if ``n * epsilon / p`` is at least 4000, where it costs hardly
        any accuracy. Only of two classes.
    fit_intercept : bool, default=True
        Whether the model has a constant.
    ordered : bool, default=False
        Whether the classes have an order: that in which ``classes`` or the schema declares them,
        else they are sorted. All effects are then one odds ratio of being in a higher class. With
        two classes it changes nothing.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; also for text columns. Its target
        stands for ``classes``. ``Interval(missing="indicator")`` gives missing values a
        coefficient.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    max_weight : int, optional
        Public bound of ``sample_weight``. Without it ``fit`` refuses weights.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_coefficients), or (n_classes, n_coefficients)
        One row for two classes or ordered ones. What predictions are made with: the slope per unit
        of a number with a linear effect, and one coefficient for each category, knot, bin and level
        of missing values of other columns.
    coef_names_ : tuple of str
        What every column of ``coef_`` belongs to.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every column in the ranges of all effects.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Of ordered classes (n_classes - 1,): the log odds of a class above each but the last.
    theta_ : ndarray of shape (n_classes - 1,)
        Of three ordered classes and more, their cut points, ``-intercept_``. The name is that of
        mord, the sign also that of the thresholds of statsmodels.
    classes_ : ndarray of shape (n_classes,)
        Sorted, as are the columns of probabilities, whatever the order of the classes.
    posterior_ : LogisticPosterior
        What was released, the only thing derived from the data that is kept.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    BayesianNaiveBayes : More accurate if ``n * epsilon / p`` is below about 20; of C classes, if
        ``n * epsilon / (C * p)`` is below about 40.

    Notes
    -----
    **Privacy.** The unit is one record, neighbours have the same number of records and differ in
    one; every ``fit`` spends ``epsilon``: a tenth on histograms of the numbers if there are any,
    .15 to .3 on the curvature if there are intervals, the rest on the mode, or on mode and draws.
    Draws are made in floats, which is a condition of their guarantee. What is not declared
    (``bounds`` or ``schema``, ``classes``) is read from the data with a
    :class:`PrivacyLeakWarning` and becomes a condition of the guarantee. With declared domains no
    value makes ``fit`` fail.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (20_000, 2))
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(X[:, 0]))
    >>> model = BayesianLogisticRegression(
    ...     effects="linear", bounds=(-3, 3), classes=[False, True], random_state=0
    ... ).fit(X, y)
    >>> slope = model.coefficients()["x0"]
    >>> slope.low < -1 < slope.high
    True
    >>> model.guarantee_.epsilon
    1.0
    """

    _exported = LINEAR_MODEL
    _metric = staticmethod(accuracy_score)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        "mechanism": [StrOptions({"map", "sampler", "auto"}), Mechanism],
        "prior_precision": [StrOptions({"auto"}), Range(Real, 1e-6, 1e12, closed="both")],
        "classes": ["array-like", None],
        "bounds": ["array-like", None],
        "n_bins": [Range(Integral, 2, MOST_BINS, closed="both"), None],
        "effects": [StrOptions({"smooth", "linear"})],
        "intervals": [StrOptions({"auto"}), "boolean"],
        "fit_intercept": ["boolean"],
        "ordered": ["boolean"],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str | Mechanism = "map"
    prior_precision: float | str = "auto"
    classes: Any = None
    bounds: Any = None
    n_bins: int | None = None
    effects: str = "smooth"
    intervals: bool | str = "auto"
    fit_intercept: bool = True
    ordered: bool = False
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _validate_params(self) -> None:
        if isinstance(self.mechanism, str):
            check_mechanism(self.mechanism)
        super()._validate_params()

    @once
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the features")

    @once
    def _target(self) -> Declared:
        return classes_declared(self.classes, self.schema, bool(self.ordered))

    def _target_from_data(self, values: AnyArray) -> Domain:
        return classes_from_data(values)

    def _blocks(self, public: Schema) -> Blocks:
        """Return the weights that the columns become; one class is refused, and very many."""
        check_classes(public.classes, MOST_CLASSES)
        n_bins = None if self.n_bins is None else int(self.n_bins)
        return Blocks(
            tuple(public.columns.values()), self.effects, n_bins, bool(self.fit_intercept)
        )

    def _statistics(
        self, public: Schema, prior: LogisticPrior, records: Records
    ) -> LabelledRecords:
        return LabelledRecords(prior.blocks, public.classes, records, self._skips_missing)

    def _structure(self, public: Schema) -> tuple[Blocks, Categories]:
        return self._blocks(public), public.classes

    def _prior(self, public: Schema) -> LogisticPrior:
        """Return the model before any data."""
        return LogisticPrior(
            self._blocks(public),
            None if isinstance(self.prior_precision, str) else float(self.prior_precision),
            None if isinstance(self.intervals, str) else bool(self.intervals),
            public.classes.n_values,
            bool(self.ordered),
        )

    def _plan(self, prior: LogisticPrior, facts: Facts, budget: Budget) -> LogisticPlan | ExactPlan:
        return plan_logistic(self._mechanism, prior, facts, budget)

    def _sizes(self, budget: Budget) -> tuple[int, ...]:
        return super()._sizes(budget)[:-1]  # so many records are refused

    def _advise(self, plan: LogisticPlan | ExactPlan, public: Schema, facts: Facts) -> None:
        few = plan.prior.few_records
        if plan.rho < few:
            advise_naive_bayes(plan.rho, n_parameters(*plan.prior.of_mode), few)

    def _attach(self, public: Schema, release: Release[LogisticPosterior]) -> Self:
        """Set the fitted attributes."""
        self.schema_ = public
        self.classes_ = np.unique(public.classes.labels)
        self.posterior_ = release.posterior
        self.guarantee_ = release.guarantee
        self.coef_, self.intercept_ = linear_form(self._blocks(public), self.posterior_)
        self.__dict__.pop("theta_", None)  # of an earlier fit
        if isinstance(self.posterior_, OrderedPosterior):
            self.intercept_ = self.intercept_ + self.posterior_.cuts
            self.theta_ = -self.intercept_
        return self

    def _restore(self, **released: Any) -> Self:
        public, posterior, guarantee = released.values()
        if not isinstance(posterior, LogisticPosterior):
            raise ValueError("a logistic regression has a released mode as posterior")
        fits = posterior.fits(self._blocks(public), public.classes.n_values)
        if not fits or isinstance(posterior, OrderedPosterior) != self._prior(public).has_cuts:
            raise ValueError("the posterior has not one parameter for each contrast")
        return self._attach(public, Release(posterior, guarantee))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log odds of the second class for every row.

        Of three classes and more, the log probability of every class, up to a constant, ordered
        or not.
        """
        check_is_fitted(self)
        many = len(self.classes_) > 2
        return self._of_log_odds(X, np.asarray, self._no_rows if many else np.empty(0))

    @property
    def _several(self) -> bool:
        """Whether every class has coefficients."""
        return self.posterior_.parameters.ndim > 1

    @property
    def _no_rows(self) -> FloatArray:
        check_is_fitted(self)
        return np.empty((0, len(self.classes_)))

    def predict(self, X: Any) -> AnyArray:
        """Return the more probable class of every row."""
        check_is_fitted(self)
        return self._of_log_odds(X, partial(more_probable, self.classes_), self.classes_[:0])

    _predict_by_row = predict  # no row changes another, not even by rounding

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log probability of every class for every row."""
        return self._of_log_odds(X, log_probabilities, self._no_rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row."""
        return self._of_log_odds(X, probabilities, self._no_rows)

    def _of_log_odds(self, X: Any, of: Any, like: AnyArray) -> AnyArray:
        """Return ``of`` the log odds of all rows; of a dask collection, a lazy dask array."""
        check_is_fitted(self)
        blocks = self._blocks(self.schema_)
        if isinstance(self.posterior_, OrderedPosterior):
            of = partial(of_sorted, of, np.argsort(self.schema_.classes.labels))
        return self._by_row(X, partial(answer_by_row, blocks, self.posterior_, of), like)

    def sample_targets(
        self, X: Any, n_draws: int = 100, random_state: int | np.random.RandomState | None = None
    ) -> AnyArray:
        """Return classes of the rows of X, drawn from the posterior predictive distribution.

        For every draw, parameters are drawn from the released posterior, and then a class for every
        row. If neither a curvature nor draws were released, nothing tells how parameters vary, and
        all draws have those of predictions. Post-processing, at no further privacy cost.
        They are an array of shape (n_draws, n_samples).
        """
        check_is_fitted(self)
        rng, codes = draws_generator(n_draws, random_state), self._codes(X)
        blocks, posterior = self._blocks(self.schema_), self.posterior_
        drawn = np.stack([posterior.mean()] * n_draws)
        if posterior.has_intervals or len(posterior.draws):
            drawn = posterior.sample(rng, n_draws)
        found = np.empty((n_draws, len(codes)), np.intp)
        for i, parameters in enumerate(drawn):
            own = replace(posterior, parameters=parameters, scale=1.0)
            by_class = [values_by_code(blocks, each) for each in own.by_class()]
            z = np.array(
                [c + sum(v[codes[:, j]] for j, v in enumerate(values)) for c, values in by_class]
            )
            answers = own.answers(z.T)
            if answers.ndim > 1:
                found[i] = np.argmax(answers + rng.gumbel(size=answers.shape), axis=1)
            else:
                found[i] = rng.random(len(codes)) < expit(answers)
        return np.asarray(self.schema_.classes.labels[found])

    def _codes(self, X: Any) -> WeightCodes:
        """Return the codes of all rows of X, which are in memory."""
        return self._blocks(self.schema_).encode(self._rows_in_memory(X))

    @property
    def coef_names_(self) -> tuple[str, ...]:
        """What every column of ``coef_`` belongs to: a slope, a level, a knot, missing values."""
        check_is_fitted(self)
        return names_of_coef(self.schema_, self._blocks(self.schema_), self.posterior_.nodes)

    def coefficients(self, level: float = 0.95, reference: Any = None) -> OddsTable:
        """Return effects on the log odds of the second class, their intervals and odds ratios.

        Of ordered classes, on the log odds of a higher class, and what these are above each class.
        They are computed from the same release as ``coef_``, at no further privacy cost. With
        intervals, estimates are corrected for the ridge, so they differ from ``coef_``, which is
        made for predictions; intervals include the privacy noise. A number with a linear effect has
        a slope per unit. With a smooth effect it is compared at its four knots with the second one;
        categories are compared with the first.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of the intervals.
        reference : label, optional
            Of three classes and more, the one that the odds of others are against, by default the
            first. They have estimates without intervals, as have ordered classes, without a
            reference.

        Returns
        -------
        OddsTable
            Text, HTML, and ``to_frame()`` for a data frame.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level!r} instead.")
        given = self.schema_, self._blocks(self.schema_), self.posterior_, level
        labels = self.schema_.classes.labels.tolist()
        if reference is not None and reference not in labels:
            raise ValueError(f"reference must be one of the classes {labels}. Got {reference!r}.")
        if isinstance(self.posterior_, OrderedPosterior):
            return self.posterior_.table(*given[:2], level, labels)
        if self._several:
            place = 0 if reference is None else labels.index(reference)
            return class_odds_table(*given, labels, place)
        return odds_table(*given)

    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the odds ratios with tests against 0, and the covariance of the log odds.

        All of it is computed from the release, at no further privacy cost.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of the intervals.

        Returns
        -------
        RegressionSummary
            Text, HTML, and ``to_frame()`` for a data frame.
        """
        table, blocks = self.coefficients(level), self._blocks(self.schema_)
        return logistic_summary(self.schema_, blocks, self.posterior_, table, str(self.guarantee_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # On the data of scikit-learn's accuracy check all of 200 seeds are above the required 0.83;
        # of one draw with "sampler" 0.57 (30 seeds). Its classes have no order: 0.84 without noise.
        name = self.mechanism.name() if isinstance(self.mechanism, Mechanism) else self.mechanism
        draws = isinstance(name, str) and name == "sampler"
        tags.classifier_tags.poor_score = draws or bool(self.ordered)
        tags.classifier_tags.multi_class = not draws
        return tags

    def contributions(self, X: Any) -> Contributions:
        r"""Return what every column of every record adds to its log odds.

        .. math:: \log\frac{P(y = 1)}{P(y = 0)} = \alpha + \sum_j \beta_j^\top x_j

        The baseline is :math:`\alpha`; coefficients of a column add to zero. Of three classes and
        more they are log probabilities of every class less the mean over the classes, up to a
        constant. Post-processing, at no further privacy cost.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        Contributions
            In log odds of the second class, or in log probabilities.
        """
        check_is_fitted(self)
        codes, blocks = self._codes(X), self._blocks(self.schema_)
        by_class = [values_by_code(blocks, each) for each in self.posterior_.by_class()]
        each = [
            np.stack([value[codes[:, j]] for j, value in enumerate(values)], axis=1)
            for _, values in by_class
        ]
        baseline = np.array([constant for constant, _ in by_class])
        return Contributions(
            np.stack(each, axis=2) if self._several else each[0],
            baseline if self._several else float(baseline[0]),
            tuple(self.schema_.columns),
            self._adds_to,
        )

    @property
    def _adds_to(self) -> str:
        return "log probability, less the mean over classes" if self._several else "log odds"

    def effect(self, feature: int | str, level: float = 0.95) -> Effect:
        """Return what one column adds to the log odds, by its value, with a band.

        Parameters
        ----------
        feature : int or str
            Its number, or its name.
        level : float, default=0.95
            Of the pointwise intervals, which include the privacy noise; NaN if none were released.

        Returns
        -------
        Effect
            What :class:`ContributionDisplay` draws.
        """
        check_is_fitted(self)
        names, blocks = [*self.schema_.columns], self._blocks(self.schema_)
        j = column_number(names, feature)
        places, labels, codes = blocks.shown_codes(j)
        by_class = [values_by_code(blocks, each)[1] for each in self.posterior_.by_class()]
        value = np.stack([by_code[j][codes] for by_code in by_class])
        value = value if self._several else value[0]
        reach = reach_by_code(blocks, self.posterior_, j, codes, level)
        return Effect(
            names[j], places, labels, value, value - reach, value + reach, False, self._adds_to
        )
