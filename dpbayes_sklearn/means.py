"""Release posteriors of means, rates and precisions of bounded columns of numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import InvalidParameterError, StrOptions
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.data.persons import PROTECTION
from dpbayes_sklearn.data.reading import domain_from_data, read_records
from dpbayes_sklearn.data.records import Records
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.preprocessing.columns import check_numeric
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Plan, Release
from dpbayes_sklearn.schema import Interval, Schema
from dpbayes_sklearn.schema.declared import intervals_from_bounds, width_of_rows
from dpbayes_sklearn.serialization.models import SUMS_MODEL
from dpbayes_sklearn.sums.posterior import Family, GammaFamily, NormalFamily, SumsPosterior
from dpbayes_sklearn.sums.release import BoundedSums, Column, Prior, finest_grid, plan

__all__ = ["GammaExponential", "NormalMean", "SumsEstimator"]

_NARROWEST_PART, _USUAL_PART = 32.0, 8.0
"""Draws reach scales down to a 32nd of the bounds; the prior expects an eighth of them."""


_CLOSEST, _LARGEST_BOUND = 1e-75, 1e75
"""Bounds beyond these, whose fourth powers are no floats, are refused."""


class SumsEstimator(PrivateEstimator[Records, Prior, Prior, BoundedSums, SumsPosterior]):
    """A posterior of one parameter for every column, from the sum of a bounded statistic."""

    bounds: Any
    prior: Any

    inference: ClassVar[str] = "noise_aware"
    _exported = SUMS_MODEL

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **PROTECTION,
        "mechanism": [StrOptions({"laplace", "sampler"}), Mechanism],
        "bounds": ["array-like", None],
        "prior": ["array-like", None],
    }

    @abstractmethod
    def _column(self, interval: Interval) -> tuple[Column, Family]:
        """Return the statistic of a column, and the prior of its parameter."""

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        declared, width = self.bounds is not None, self._width(reset)
        records = read_records(self, X, labelled=False, reset=reset, width=width, declared=declared)
        check_numeric(self, records.table)
        return records

    @property
    def _declared_width(self) -> int | None:
        return width_of_rows(None, self.bounds)

    def _public_schema(self, records: Records, n: int) -> tuple[Prior, tuple[str, ...]]:
        table = records.table
        leaks: tuple[str, ...] = ()
        if self.bounds is not None:
            intervals = intervals_from_bounds(self.bounds, table.n_columns)
        else:
            table.must_be_readable("bounds")
            leaks = (self._leak("bounds of the columns were", "bounds"),)
            intervals = [domain_from_data(table, j) for j in range(table.n_columns)]
            if get_tags(self).input_tags.positive_only and min(i.low for i in intervals) < 0:
                raise ValueError(
                    f"Negative values in data passed to {type(self).__name__}: set bounds, which "
                    "clip them, or data='laplace' or 'normal'. Nothing was spent."
                )
        if not all(
            i.high - i.low > _CLOSEST and max(-i.low, i.high) < _LARGEST_BOUND for i in intervals
        ):
            raise ValueError(
                f"bounds must be between -{_LARGEST_BOUND:g} and {_LARGEST_BOUND:g}, and more than "
                f"{_CLOSEST:g} apart."
            )
        columns, families = zip(*map(self._column, intervals), strict=True)
        return Prior(columns, families, finest_grid(n, len(columns), self._budget())), leaks

    def _statistics(self, public: Prior, prior: Prior, records: Records) -> BoundedSums:
        return BoundedSums.of(public.columns, records, public.grid)

    def _prior(self, public: Prior) -> Prior:
        return public

    def _plan(self, prior: Prior, facts: Facts, budget: Budget) -> Plan[BoundedSums, SumsPosterior]:
        with suppress(OverflowError):
            return plan(self._mechanism, prior, facts, budget)
        raise ValueError(
            "epsilon, bounds and prior must be of ordinary size: with these, noise or draws are "
            "too large or too small for floats. Nothing was spent."
        )

    def _attach(self, public: Prior, release: Release[SumsPosterior]) -> Self:
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(public.d)])
        intervals = (column.interval for column in public.columns)
        self.schema_ = Schema(dict(zip(names, intervals, strict=True)))
        self.posterior_, self.guarantee_ = release.posterior, release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        self.schema_, self.posterior_, self.guarantee_ = released.values()
        self.n_features_in_ = len(self.schema_)
        if len(self.posterior_.means) != self.n_features_in_:
            raise ValueError("the posterior is not about these columns")
        return self

    def protection(self, distance: npt.ArrayLike) -> float:
        """Return the epsilon that protects the difference of two records.

        The guarantee is for any two records. Two that are close are protected better: the loss
        is proportional to the distance of their statistics (Dimitrakakis et al. 2014,
        Definition 2) and one step of the lattice on which they are added up, up to epsilon.

        Parameters
        ----------
        distance : float or array-like of shape (n_features,)
            By how much the statistics of two records differ: the numbers themselves for means,
            exponential and Laplace data, half of their squared distances from the location for
            the precision of normal data.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if np.isinf(self.guarantee_.epsilon):
            return float("inf")
        apart = np.broadcast_to(np.asarray(distance, dtype=float), self.posterior_.slopes.shape)
        if not (apart >= 0).all():
            raise ValueError("distance must be numbers that are not negative.")
        released = self.posterior_
        losses = np.where(apart > 0, released.slopes * apart + released.roundings, 0.0)
        together = losses.max() if released.joint else losses.sum()
        return float(min(together, self.guarantee_.epsilon))

    def _two(self, name: str, value: Any, usual: tuple[float, float]) -> tuple[float, float]:
        """Return a pair of numbers; the square of the second must fit into a float."""
        if value is None:
            return usual
        pair: tuple[float, ...] = ()
        with suppress(TypeError, ValueError, OverflowError):
            pair = tuple(float(number) for number in np.ravel(value))
        if len(pair) != 2 or not (np.isfinite(pair).all() and 1e-100 <= pair[1] <= 1e100):
            raise InvalidParameterError(
                f"The '{name}' parameter of {type(self).__name__} must be two finite numbers, the "
                f"second between 1e-100 and 1e100. Got {value!r} instead."
            )
        return pair

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        declared = self.bounds is not None  # then every value has its place
        tags.input_tags.allow_nan = tags.input_tags.string = declared
        return tags


@dataclass(eq=False, repr=False)
class NormalMean(SumsEstimator):
    r"""Private posterior of the means of bounded columns.

    With records :math:`x \sim N(\theta, \sigma^2)` and the prior :math:`\theta \sim N(m_0, s_0^2)`
    the posterior is normal, and a function of the sum of the records. What is released is the
    normal law that has the mean and the variance of θ given the noisy sum, so its intervals include
    the noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, for all columns together. ``float("inf")`` gives the exact
        posterior.
    mechanism : {"laplace", "sampler"} or Mechanism, default="laplace"
        Noise on the sums, or draws from tempered posteriors on a public grid between the bounds
        (``mechanisms.Sampler(n_samples=...)``), which need far more records.
    bounds : tuple (low, high), optional
        Public bounds of the records, numbers or one entry for each column. Numbers beyond are
        clipped, missing ones count as the middle. If it is left out, bounds are read from the data,
        with a warning.
    sigma : float, optional
        Public standard deviation of the records; a quarter of the range by default. Intervals are
        too narrow if it is larger.
    prior : tuple (mean, sd), optional
        The middle of the bounds and half of the range by default.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, or all records of a person,
        ``PrivacyUnit("person", max_records=4)``, who are told by ``fit(..., groups=...)``. The
        number of records is public.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    posterior_ : SumsPosterior
        With ``mean()``, ``variance()``, ``credible_interval()``, ``pdf()``, ``sample()``, and the
        ``draws`` of a sampler.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The bounds of the columns.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; neighbours have the same number of records and
    differ in one, unless ``privacy_unit`` says otherwise. With declared bounds no value makes a
    fit fail. :meth:`protection` says how much better records are protected that are close.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import NormalMean
    >>> ages = np.random.default_rng(0).normal(45, 12, size=(2_000, 1))
    >>> model = NormalMean(epsilon=0.5, bounds=(0, 100), sigma=12, random_state=0).fit(ages)
    >>> low, high = model.posterior_.credible_interval(0.95)[0]
    >>> bool(low < 45 < high), bool(high - low < 2)
    (True, True)
    >>> model.protection(5.0)  # of two people whose ages differ by five years
    0.025
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SumsEstimator._parameter_constraints,
        "sigma": [Real, None],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    mechanism: str | Mechanism = "laplace"
    bounds: Any = None
    sigma: float | None = None
    prior: Sequence[float] | None = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _column(self, interval: Interval) -> tuple[Column, Family]:
        low, high = interval.low, interval.high
        width, middle = high - low, (low + high) / 2
        sigma = width / 4 if self.sigma is None else self.sigma
        if not isinstance(sigma, Real) or not 1e-100 <= sigma <= 1e100:
            raise InvalidParameterError(
                "The 'sigma' parameter of NormalMean must be a float in the range [1e-100, 1e100]. "
                f"Got {self.sigma!r} instead."
            )
        mean, spread = self._two("prior", self.prior, (middle, width / 2))
        return Column(interval), NormalFamily(low, high, mean, spread**2, float(sigma) ** 2)


@dataclass(eq=False, repr=False)
class GammaExponential(SumsEstimator):
    r"""Private posterior of the rates, inverse scales or precisions of bounded columns.

    Exponential data have density :math:`\theta e^{-\theta(x - \mu)}`, Laplace data
    :math:`\frac\theta2 e^{-\theta|x - \mu|}`, and normal data :math:`\propto \theta^{1/2}
    e^{-\theta(x - \mu)^2/2}`, with a public location μ. With the prior Gamma(a, b) the posterior of
    θ is Gamma(a + wn, b + S), S being the sum of :math:`x - \mu`, :math:`|x - \mu|` or
    :math:`(x - \mu)^2/2`, and w = 1, 1 or 1/2. What is released is the Gamma law that has the mean
    and the variance of θ given the noisy sum.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, for all columns together. ``float("inf")`` gives the exact
        posterior.
    mechanism : {"laplace", "sampler"} or Mechanism, default="laplace"
        Noise on the sums, or draws from tempered posteriors on a public grid, as in
        Dimitrakakis et al. (2014), which need far more records. Draws have scales between the
        largest distance from the location and a 32nd of it.
    bounds : tuple (low, high), optional
        Public bounds of the records, numbers or one entry for each column. Numbers beyond are
        clipped, which makes rates larger than they are, so let bounds hold nearly all of them.
        Missing ones count as the middle. If it is left out, bounds are read from the data, with a
        warning.
    data : {"exponential", "laplace", "normal"}, default="exponential"
        What the records are.
    location : float, default=0.0
        Where exponential data begin, or what the others are centred at. Public.
    prior : tuple (shape, rate), optional
        By default the shape 1, and a rate for which the scale of the data is about an eighth of
        the largest distance from the location.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, or all records of a person. The number of records is public.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    posterior_, guarantee_, schema_, n_features_in_, feature_names_in_
        As in :class:`NormalMean`.

    Notes
    -----
    **Privacy.** As for :class:`NormalMean`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import GammaExponential
    >>> waits = np.random.default_rng(0).exponential(5.0, size=(2_000, 1))  # minutes
    >>> model = GammaExponential(epsilon=1.0, bounds=(0, 60), random_state=0).fit(waits)
    >>> low, high = model.posterior_.credible_interval(0.95)[0]
    >>> bool(low < 1 / 5.0 < high)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SumsEstimator._parameter_constraints,
        "data": [StrOptions({"exponential", "laplace", "normal"})],
        "location": [float, int],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    mechanism: str | Mechanism = "laplace"
    bounds: Any = None
    data: str = "exponential"
    location: float = 0.0
    prior: Sequence[float] | None = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        begins = self.data == "exponential" and self.location >= 0
        tags.input_tags.positive_only = begins and self.bounds is None
        return tags

    def _column(self, interval: Interval) -> tuple[Column, Family]:
        power, positive = (2, False) if self.data == "normal" else (1, self.data == "exponential")
        column = Column(interval, power, float(self.location), positive)
        low, high = column.range
        if not low < high:
            raise ValueError(
                f"The 'location' parameter of GammaExponential must be below the upper bound of "
                f"exponential data. Got {self.location!r} instead."
            )
        weight = 0.5 if self.data == "normal" else 1.0
        slowest = weight / high
        shape, rate = self._two("prior", self.prior, (1.0, 1.0 / (_USUAL_PART**power * slowest)))
        if not shape > 0:
            raise InvalidParameterError(
                "The 'prior' parameter of GammaExponential must be two positive numbers, shape and "
                f"rate. Got {self.prior!r} instead."
            )
        return column, GammaFamily(slowest, _NARROWEST_PART**power * slowest, shape, rate, weight)
