"""Regression of counts and rates under differential privacy, with rate ratios."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import Range, StrOptions
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.published import Contributions, Effect, EffectImportances, column_number
from dpbayes_sklearn.base.remarks import warn_about_scores
from dpbayes_sklearn.base.spending import once
from dpbayes_sklearn.base.supervised import Declared, ShardedEstimator
from dpbayes_sklearn.data.dask import gathered
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.logistic.posterior import answer_by_row, reach_by_code, values_by_code
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.rates.posterior import RatePosterior, RateTable, rate_table
from dpbayes_sklearn.rates.records import Cap, Exposure, RateBlocks
from dpbayes_sklearn.rates.release import ExactPlan, RatePlan, RatePrior
from dpbayes_sklearn.rates.release import plan as plan_rates
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Domain, Interval, Schema
from dpbayes_sklearn.schema.domains import MOST_BINS
from dpbayes_sklearn.schema.values import as_numbers
from dpbayes_sklearn.serialization.models import LINEAR_MODEL

__all__ = ["BayesianCountRegression"]

_MOST_CAP = 2**20


@dataclass(eq=False, repr=False)
class BayesianCountRegression(
    EffectImportances, RegressorMixin, ShardedEstimator[RatePrior, LabelledRecords, RatePosterior]
):
    r"""Private regression of counts that are clipped at a public cap, with rate ratios.

    The mean of a count is a rate times an exposure,

    .. math:: E\min(y, Y) = E_i\, e^{\alpha + \sum_j \beta_j^\top x_{ij}},

    estimated by the loss of a negative binomial law with dispersion 1/Y, which is consistent for
    the mean whatever the distribution of the counts. Its slope and curvature are bounded without
    any bound on the rates. **All that it tells is about counts clipped at the cap**: choose one
    that few records exceed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the exact mode.
    cap : int, optional
        The public Y. A larger cap means more noise, a smaller one cuts off more: about the 95th to
        99th percentile that such counts usually have is a good choice. Left out, the largest count
        is read from the data, with a warning.
    exposure : str or int, optional
        Name or number of the column that counts are proportional to, such as years. It is declared
        by an :class:`Interval` with a positive low end.
    prior_precision : float or "auto", default="auto"
        Ridge of the contrasts of every column; "auto" follows a public rule.
    bounds : tuple (low, high), optional
        Public bounds of the features, numbers or one entry per feature. Values are clipped.
    n_bins : int, optional
        Cut every number into bins, instead of a smooth or linear effect.
    effects : {"linear", "smooth"}, default="linear"
        Numbers have a slope on the logarithm of the rate, or a curve through four knots.
    intervals : bool or "auto", default="auto"
        Whether a part of epsilon is spent on intervals; "auto" does from 500 records times epsilon
        for each parameter on. Where they say nothing, effects are called not identified.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; also for text columns. Its target,
        ``Interval(0, Y)``, stands for ``cap``.
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
    posterior_ : RatePosterior
        The released mode, the distribution of its noise, and the curvature if it was released.
    cap_ : float
        Counts are clipped to it.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every column in the ranges of all effects.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; neighbours differ in one record unless
    ``privacy_unit`` says otherwise. Counts are rounded to whole numbers from 0 to the cap; a record
    without one adds nothing. The guarantee is pure and needs no bound on rates or exposures.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianCountRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (20_000, 2))
    >>> visits = rng.poisson(np.exp(X[:, 0]))
    >>> model = BayesianCountRegression(1.0, cap=8, bounds=(0, 1), random_state=0).fit(X, visits)
    >>> row = model.coefficients()["x0"]
    >>> bool(row.low < 1 < row.high)
    True
    """

    _exported = LINEAR_MODEL

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "cap": [Range(Integral, 1, _MOST_CAP, closed="both"), None],
        "exposure": [str, Range(Integral, 0, None, closed="left"), None],
        "prior_precision": [StrOptions({"auto"}), Range(Real, 1e-6, 1e12, closed="both")],
        "bounds": ["array-like", None],
        "n_bins": [Range(Integral, 2, MOST_BINS, closed="both"), None],
        "effects": [StrOptions({"smooth", "linear"})],
        "intervals": [StrOptions({"auto"}), "boolean"],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    epsilon: float = 1.0
    _: KW_ONLY
    cap: int | None = None
    exposure: str | int | None = None
    prior_precision: float | str = "auto"
    bounds: Any = None
    n_bins: int | None = None
    effects: str = "linear"
    intervals: bool | str = "auto"
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @once
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the features")

    @once
    def _target(self) -> Declared:
        target = None if self.schema is None else self.schema.target
        if self.cap is not None:
            target = Interval(0, int(self.cap))
        bounds: Any = target
        if bounds is not None and not (
            bounds.is_numeric
            and bounds.low == 0
            and bounds.high.is_integer()
            and bounds.high <= _MOST_CAP
        ):
            raise ValueError(
                "The target of BayesianCountRegression must be Interval(0, cap) with a whole cap "
                f"of at most {_MOST_CAP:,}. Nothing was spent."
            )
        return Declared("cap", target, "the largest count was")

    def _target_from_data(self, values: AnyArray) -> Domain:
        numbers = as_numbers(values)
        assert_all_finite(numbers, input_name="y")
        return Interval(0, int(np.clip(np.ceil(numbers.max()), 1, _MOST_CAP)))

    def _public_schema(self, records: Records, n: int) -> tuple[Schema, tuple[str, ...]]:
        public, conditions = super()._public_schema(records, n)
        self._blocks(public)
        return public, conditions

    def _blocks(self, public: Schema) -> RateBlocks:
        """Return the weights that the columns become, the exposure apart."""
        domains, names = [*public.columns.values()], [*public.columns]
        if self.exposure is not None:
            place = column_number(names, self.exposure)
            domain: Any = domains[place]
            if not domain.is_numeric or domain.low <= 0 or domain.marks_missing:
                raise ValueError(
                    "The exposure must be declared as an Interval with a positive low end, without "
                    "an indicator of missing values. Nothing was spent."
                )
            domains[place] = Exposure(domain)  # type: ignore[call-overload]
        n_bins = None if self.n_bins is None else int(self.n_bins)
        return RateBlocks(tuple(domains), self.effects, n_bins)

    def _statistics(self, public: Schema, prior: RatePrior, records: Records) -> LabelledRecords:
        cap: Any = Cap(public.target_bounds)
        return LabelledRecords(prior.blocks, cap, records, self._skips_missing, counted=True)

    def _structure(self, public: Schema) -> tuple[RateBlocks, Cap]:
        return self._blocks(public), Cap(public.target_bounds)

    def _prior(self, public: Schema) -> RatePrior:
        return RatePrior(
            self._blocks(public),
            public.target_bounds.high,
            None if isinstance(self.prior_precision, str) else float(self.prior_precision),
            None if isinstance(self.intervals, str) else bool(self.intervals),
        )

    def _plan(self, prior: RatePrior, facts: Facts, budget: Budget) -> RatePlan | ExactPlan:
        return plan_rates(prior, facts, budget)

    def _sizes(self, budget: Budget) -> tuple[int, ...]:
        return super()._sizes(budget)[:-1]  # so many records are refused

    def _attach(self, public: Schema, release: Release[RatePosterior]) -> Self:
        self.schema_, self.cap_ = public, public.target_bounds.high
        self.posterior_, self.guarantee_ = release.posterior, release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        public, posterior, guarantee = released.values()
        self.n_features_in_ = len(public)
        if not isinstance(posterior, RatePosterior) or not posterior.fits(self._blocks(public)):
            raise ValueError("the posterior is not that of these columns")
        if posterior.cap != public.target_bounds.high:
            raise ValueError("the posterior is of another cap")
        return self._attach(public, Release(posterior, guarantee))

    def predict(self, X: Any) -> FloatArray:
        """Return the mean count of every row, of counts clipped at the cap, and at most the cap."""
        check_is_fitted(self)
        blocks, posterior = self._blocks(self.schema_), self.posterior_
        ask = partial(answer_by_row, blocks, posterior, posterior.rates)
        return self._by_row(X, ask, np.empty(0))

    _predict_by_row = predict  # no row changes another, not even by rounding

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the Poisson deviance that is explained, of counts clipped at the cap.

        It is computed without noise and not covered by ``guarantee_``.
        """
        warn_about_scores(self._ledger())
        predicted = np.maximum(gathered(self.predict(X)), np.finfo(float).tiny)
        counts = self.schema_.target_bounds.clip(gathered(y))
        return float(d2_tweedie_score(counts, predicted, sample_weight=sample_weight, power=1))

    def coefficients(self, level: float = 0.95) -> RateTable:
        """Return effects on the logarithm of the rate, their intervals and rate ratios.

        They are of the mean of counts **clipped at the cap**, and computed from the same release as
        predictions. With intervals, estimates are corrected for the ridge; intervals include the
        privacy noise. Numbers have a ratio per unit, or are compared at their knots with the second
        one; categories are compared with the first.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of the intervals.

        Returns
        -------
        RateTable
            Text, HTML, and ``to_frame()`` for a data frame.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level!r} instead.")
        return rate_table(self.schema_, self._blocks(self.schema_), self.posterior_, level)

    def contributions(self, X: Any) -> Contributions:
        """Return what every column of every record adds to the logarithm of its mean count."""
        check_is_fitted(self)
        blocks, posterior = self._blocks(self.schema_), self.posterior_
        codes = blocks.encode(self._rows_in_memory(X))
        constant, by_code = values_by_code(blocks, posterior)
        values = np.stack([value[codes[:, j]] for j, value in enumerate(by_code)], axis=1)
        baseline = constant + posterior.level + float(np.log(posterior.cap))
        return Contributions(values, baseline, tuple(self.schema_.columns), "log rate")

    def effect(self, feature: int | str, level: float = 0.95) -> Effect:
        """Return what one column adds to the logarithm of the rate, by its value, with a band."""
        check_is_fitted(self)
        names, blocks = [*self.schema_.columns], self._blocks(self.schema_)
        j = column_number(names, feature)
        places, labels, codes = blocks.shown_codes(j)
        value = values_by_code(blocks, self.posterior_)[1][j][codes]
        reach = reach_by_code(blocks, self.posterior_, j, codes, level)
        return Effect(
            names[j], places, labels, value, value - reach, value + reach, False, "log rate"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        # 200 records with 10 columns, as in scikit-learn's check, are too few for epsilon 1
        tags.regressor_tags.poor_score = True
        return tags
