"""Release a whole posterior of one variable: Beta-binomial and Dirichlet-multinomial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from dpbayes_sklearn._compat import Range, StrOptions
from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.remarks import warn_about_scores
from dpbayes_sklearn.base.spending import DELTA, once
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.plans import MECHANISMS, plan
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, SimplexPrior
from dpbayes_sklearn.data.encoder import known_codes
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.reading import categories_from_data, check_kind, read_column
from dpbayes_sklearn.data.records import column_kind
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.papers.certify import (
    Certificate,
    certify,
    configured,
    expected_distance,
    optimal_distance,
)
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Plan, Release
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.schema.values import Kind
from dpbayes_sklearn.serialization.models import CONJUGATE_MODEL

__all__ = [
    "BetaBinomial",
    "Certificate",
    "DirichletMultinomial",
    "certify",
    "expected_distance",
    "optimal_distance",
]


CategoryCodes = npt.NDArray[np.intp]

REFUSES = "no record has a value outside the declared ones, which would have been refused"


class DeclaredColumn(NamedTuple):
    """Values of one variable, and what the type of their column declares them to be."""

    values: AnyArray
    kind: Kind
    weights: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of records, or their total weight."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    def at(self, positions: CategoryCodes) -> DeclaredColumn:
        """Return the records at some positions."""
        return self._replace(values=self.values[positions])

    def weighted(self, weights: IntArray) -> DeclaredColumn:
        """Return the records, each as often as its weight says."""
        return self._replace(values=self.values[weights > 0], weights=weights[weights > 0])


class PosteriorRelease(
    PrivateEstimator[DeclaredColumn, Categories, SimplexPrior, SimplexCounts, Dirichlet]
):
    """The posterior of one variable, released from counts of its categories."""

    prior: Any
    calibrate: bool
    inference: str

    _exported = CONJUGATE_MODEL
    _uses_n = "nowhere"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        **PROTECTION,
        **WEIGHTS,
        "mechanism": [StrOptions({m.name() for m in MECHANISMS}), Mechanism],
        "calibrate": ["boolean"],
        "inference": [StrOptions({"plug_in", "median", "noise_aware"})],
    }

    @abstractmethod
    def _belief(self, categories: Categories) -> Dirichlet:
        """Return the prior belief about the probabilities of the categories, in their order."""

    @abstractmethod
    def _codes(self, categories: Categories, values: AnyArray) -> CategoryCodes:
        """Return the positions of records among the categories, or refuse them."""

    @once
    def _mechanism(self) -> Mechanism:
        mechanism = configured(self.mechanism, self.calibrate, float(self.delta))
        mechanism._validate_params()
        return mechanism

    def _records(self, X: Any, y: Any, *, reset: bool) -> DeclaredColumn:
        # a data frame has a name for the column
        validate_data(self, X, reset=reset, skip_check_array=True, ensure_2d=False)
        values = read_column(X, may_be_empty=self._declared_unit.size_is_secret)
        return DeclaredColumn(values, column_kind(X))

    def _nobody(self, n: int, n_features: int | None) -> DeclaredColumn:
        return DeclaredColumn(np.arange(2), "integers")

    def _check_types(self, public: Categories, records: DeclaredColumn) -> None:
        check_kind(public, records.kind, "X")

    def _statistics(
        self, public: Categories, prior: SimplexPrior, records: DeclaredColumn
    ) -> SimplexCounts:
        codes = self._codes(public, records.values)
        return SimplexCounts.count(codes, public.n_values, records.weights)

    def _prior(self, public: Categories) -> SimplexPrior:
        return SimplexPrior(self._belief(public), self.inference)

    def _plan(
        self, prior: SimplexPrior, facts: Facts, budget: Budget
    ) -> Plan[SimplexCounts, Dirichlet]:
        return plan(self._mechanism, prior, facts, budget)

    def _attach(self, public: Categories, release: Release[Dirichlet]) -> Self:
        self.n_features_in_ = 1
        self.categories_ = public
        self.posterior_ = release.posterior
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        categories, posterior, guarantee = released.values()
        belief = self._belief(categories)
        same_kind = isinstance(posterior, Dirichlet) and (
            isinstance(posterior, Beta) == isinstance(belief, Beta)
        )
        if not same_kind or len(posterior.concentration) != len(belief.concentration):
            raise ValueError("the posterior is not about these categories")
        return self._attach(categories, Release(posterior, guarantee))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log probability of records under the posterior predictive.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            New records.
        y : ignored

        Returns
        -------
        float
        """
        check_is_fitted(self)
        warn_about_scores(self._ledger())
        codes = self._codes(self.categories_, read_column(X))
        return float(self.posterior_.log_predictive(codes).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = True
        return tags


@dataclass(eq=False, repr=False)
class BetaBinomial(PosteriorRelease):
    r"""Private posterior of a proportion.

    With a prior Beta(a, b) and n records of which x are ones, the posterior is
    Beta(a + x, b + n - x). What is released is the Beta law that has the mean and the variance of
    the probability given the noisy count, so that its intervals hold.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the exact posterior.
    delta : float in [0, 1), default=0.0
        An additive slack in every probability. Spent by ``mechanism="gaussian"``, by "auto" if it
        chooses that, and by "hellinger" with ``calibrate=False``; all other mechanisms are purely
        private and spend none of it. It shapes a calibrated "hellinger".
    mechanism : str or Mechanism, default="geometric"
        "geometric", "laplace", "laplace_improved", "exponential", "hellinger", "local", "gaussian"
        (needs a delta) or "auto", or an instance from :mod:`dpbayes_sklearn.mechanisms`, which
        carries its own options.
    prior : tuple (a, b), default=(1.0, 1.0)
        Pseudo-counts of ones and of zeros.
    calibrate : bool, default=True
        For "exponential", "hellinger" and "local": scale the mechanism until its exact
        worst-case loss, over all neighbouring data sets, equals epsilon.
    inference : {"plug_in", "median", "noise_aware"}, default="noise_aware"
        "noise_aware" matches the mean and the variance of the probability given the release, the
        distribution of the noise and the prior. The others are closer to Beta(a + x, b + n - x) on
        average, but their intervals are too narrow, since they take one count as exact: "plug_in"
        the noisy count, clipped to [0, n], or the posterior that was chosen; "median" the posterior
        median of the exact count. These two agree for a flat prior and epsilon above log 2; for
        smaller epsilon "median" is closer. Intervals of "noise_aware" are measured for
        flat priors; with pseudo-counts below 1 and much noise, those for 95 % held the probability
        in 88 % to 92 % of releases.
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
    posterior_ : Beta
        The released posterior, with ``alpha``, ``beta``, ``mean()``, ``mode()``, ``variance()``,
        ``credible_interval()``, ``sample()``, ``pdf()`` and ``hellinger()``.
    guarantee_ : PrivacyGuarantee
    categories_ : Categories
        One and zero, in the order of ``alpha`` and ``beta``.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    **Privacy.** The unit is one record, neighbours have the same number of records and differ in
    one, unless ``privacy_unit`` says otherwise; every ``fit`` spends ``epsilon``.
    The number of records is public, except for ``neighbours="add_remove"``. A value that is
    neither 0 nor 1 is refused before anything is spent, so make sure by a public rule that there
    is none: whether a fit is refused is not private.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial
    >>> x = [1] * 300 + [0] * 700
    >>> model = BetaBinomial(epsilon=1.0, random_state=0).fit(x)
    >>> 0.25 < model.posterior_.mean() < 0.35
    True
    >>> 900 < model.posterior_.alpha + model.posterior_.beta < 1002
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PosteriorRelease._parameter_constraints,
        "prior": ["array-like"],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str | Mechanism = "geometric"
    prior: Sequence[float] = (1.0, 1.0)
    calibrate: bool = True
    inference: str = "noise_aware"
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _public_schema(self, records: DeclaredColumn, n: int) -> tuple[Categories, tuple[str, ...]]:
        # the first parameter of a Beta goes with the ones
        return Categories((1, 0)), () if records.values.dtype == bool else (REFUSES,)

    def _belief(self, categories: Categories) -> Dirichlet:
        return Beta(*_pseudo_counts(self.prior, 2))

    def _codes(self, categories: Categories, values: AnyArray) -> CategoryCodes:
        return known_codes(categories, values, "BetaBinomial takes records that are 0 or 1")


@dataclass(eq=False, repr=False)
class DirichletMultinomial(PosteriorRelease):
    r"""Private posterior of the probabilities of categories.

    With a prior Dirichlet(a) and counts x of the categories, the posterior is Dirichlet(a + x).
    What is released is a Dirichlet law with the mean and, on average over the categories, the
    variance of the probabilities given the noisy counts; and of every category the Beta law that
    has its own variance, so that its intervals hold.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives the exact posterior.
    delta : float in [0, 1), default=0.0
        Spent by some mechanisms, as in :class:`BetaBinomial`.
    mechanism : str or Mechanism, default="geometric"
        "geometric", "laplace", "laplace_improved", "gaussian" (needs a delta) and "auto" take any
        number of records and categories; "exponential", "hellinger" and "local" choose among all
        possible posteriors, up to 20,000 of them.
    prior : float or array-like of shape (n_categories,), default=1.0
        Pseudo-counts.
    categories : int, array-like or Categories, optional
        The public list of categories; a number k stands for the codes 0, ..., k - 1. A list makes
        ``fit`` refuse any other value. ``Categories(values, unseen=...)`` counts other values as
        ``unseen``, so that no value makes it fail. If it is left out, a ``prior`` of length k
        declares k codes; otherwise categories are read from the data, with a warning.
    calibrate : bool, default=True
        For "exponential", "hellinger" and "local": scale the mechanism until its exact
        worst-case loss, over all neighbouring data sets, equals epsilon.
    inference : {"plug_in", "median", "noise_aware"}, default="noise_aware"
        "noise_aware" matches the means and variances of the probabilities given the release, the
        distribution of the noise and the prior. The others are closer to Dirichlet(a + x) on
        average, but their intervals are too narrow, since they take counts as exact: "plug_in" the
        noisy ones, projected to the simplex, or the posterior that was chosen; "median" the
        posterior median of every exact count. Intervals of "noise_aware" are measured for
        flat priors; with pseudo-counts below 1 and much noise, those for 95 % held the probability
        in 88 % to 92 % of releases.
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
    posterior_ : Dirichlet
        The released posterior, with ``concentration``, ``mean()``, ``mode()``, ``variance()``,
        ``credible_interval()``, ``marginals()``, ``sample()``, ``pdf()`` and ``hellinger()``.
        With ``inference="noise_aware"`` it also has the ``precisions`` of every category's own
        Beta law, which variances and intervals are computed from.
    guarantee_ : PrivacyGuarantee
    categories_ : Categories
        The public categories in use, in the order of ``concentration``.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    **Privacy.** The unit is one record, neighbours have the same number of records and differ in
    one, unless ``privacy_unit`` says otherwise; every ``fit`` spends ``epsilon``.
    The number of records is public, except for ``neighbours="add_remove"``. Categories read from
    the data become a condition of the guarantee, with a :class:`PrivacyLeakWarning`. A value
    outside a declared list is refused before anything is spent; whether a fit is refused is
    not private, so prefer ``Categories`` with ``unseen`` for data that were not checked.

    Examples
    --------
    >>> from dpbayes_sklearn import DirichletMultinomial
    >>> x = ["a"] * 500 + ["b"] * 300 + ["c"] * 200
    >>> model = DirichletMultinomial(categories=["a", "b", "c"], random_state=0).fit(x)
    >>> model.posterior_.mean().round(1).tolist()
    [0.5, 0.3, 0.2]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PosteriorRelease._parameter_constraints,
        "prior": [Range(Real, 0, None, closed="neither"), "array-like"],
        "categories": [Range(Integral, 2, 2**15, closed="both"), Categories, "array-like", None],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str | Mechanism = "geometric"
    prior: float | npt.ArrayLike = 1.0
    categories: int | Sequence[Any] | Categories | None = None
    calibrate: bool = True
    inference: str = "noise_aware"
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _public_schema(self, records: DeclaredColumn, n: int) -> tuple[Categories, tuple[str, ...]]:
        declared = self._declared()
        if declared is None:
            return categories_from_data(records.values), (
                self._leak("categories were", "categories"),
            )
        return declared, () if isinstance(self.categories, Categories) else (REFUSES,)

    def _declared(self) -> Categories | None:
        """Return the categories that are public, or None."""
        if isinstance(self.categories, Categories):
            return self.categories
        if self.categories is None:
            length = np.size(self.prior)
            return Categories(range(length)) if np.ndim(self.prior) and length else None
        if isinstance(self.categories, Integral):
            return Categories(range(int(self.categories)))
        values: Any = self.categories
        return Categories(list(values))

    def _belief(self, categories: Categories) -> Dirichlet:
        if categories.n_values < 2:
            raise ValueError("DirichletMultinomial needs at least two categories. Got 1 instead.")
        return Dirichlet(_pseudo_counts(self.prior, categories.n_values))

    def _codes(self, categories: Categories, values: AnyArray) -> CategoryCodes:
        if isinstance(self.categories, Categories):  # it has a rule for every other value
            return categories.encode(values)
        return known_codes(categories, values, "DirichletMultinomial takes declared categories")


def _pseudo_counts(prior: Any, n_categories: int) -> FloatArray:
    """Return the prior as one positive number for each category."""
    try:
        numbers = np.asarray(prior, dtype=float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if (
        numbers.shape not in {(), (n_categories,)}
        or not ((numbers >= 1e-100) & (numbers <= 1e12)).all()
    ):
        raise ValueError(
            f"prior must hold {n_categories} positive numbers, one for each category, and none "
            "above 1e12. "
            f"Got {prior!r} instead."
        )
    return np.broadcast_to(numbers, (n_categories,)).copy()
