"""What the posterior of one variable needs: read one column, count, charge, release."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from dpbayes_sklearn._estimator import PrivateEstimator
from dpbayes_sklearn._sklearn_compat import (
    Interval,
    InvalidParameterError,
    StrOptions,
    _fit_context,
)
from dpbayes_sklearn.data.one_column import read_column
from dpbayes_sklearn.mechanisms import Mechanism, Release, mechanism_names
from dpbayes_sklearn.mechanisms._certification import configured
from dpbayes_sklearn.posteriors.categories import Dirichlet, SimplexPrior
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.serialization.parts import CONJUGATE_MODEL
from dpbayes_sklearn.statistics.categories import SimplexCounts

__all__ = ["Codes", "PosteriorRelease"]

Codes = npt.NDArray[np.intp]


class PosteriorRelease(PrivateEstimator):
    """One variable's posterior: read one column, count, charge, release."""

    delta: Any
    prior: Any
    calibrate: bool
    inference: str

    _exported = CONJUGATE_MODEL

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "delta": [Fraction, Interval(Real, 0, 1, closed="left")],
        "mechanism": [StrOptions(mechanism_names("simplex")), Mechanism],
        "calibrate": ["boolean"],
        "inference": [StrOptions({"plug_in", "noise_aware"})],
    }

    @abstractmethod
    def _domain(self, values: npt.NDArray[Any]) -> tuple[Categories, tuple[str, ...]]:
        """Return the categories, and conditions that they put on the guarantee."""

    @abstractmethod
    def _belief(self, categories: Categories) -> Dirichlet:
        """Return the prior belief about the probabilities of the categories, in their order."""

    @abstractmethod
    def _codes(self, categories: Categories, values: npt.NDArray[Any]) -> Codes:
        """Return the positions of records among the categories, or refuse them."""

    def _resolve_mechanism(self) -> Mechanism:
        mechanism = configured(self.mechanism, self.calibrate, float(self.delta))
        mechanism._validate_params()
        return mechanism

    def _delta(self) -> Fraction:
        """Return the delta of the promise: zero if the mechanism needs none."""
        if not 0 <= self.delta < 1:  # a Fraction, which scikit-learn's constraint does not read
            raise InvalidParameterError(
                f"The 'delta' parameter of {type(self).__name__} must be a float in the range "
                f"[0.0, 1.0). Got {self.delta!r} instead."
            )
        spends = getattr(self._resolve_mechanism(), "spends_delta", False)
        return Fraction(self._exact("delta", self.delta)) if spends else Fraction(0)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the posterior of one variable, charging the accountant.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            One value for each person.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self
        """
        fitted = copy(self)
        # a data frame has a name for the column
        validate_data(fitted, X, skip_check_array=True, ensure_2d=False)
        return self._become(fitted._attach(*fitted._read_and_release(X)))

    def _attach(self, categories: Categories, release: Release[Any]) -> Self:
        """Set the fitted attributes."""
        self.n_features_in_ = 1
        self.categories_ = categories
        self.posterior_ = release.posterior
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        categories, posterior, guarantee = released.values()
        belief = self._belief(categories)
        if type(posterior) is not type(belief) or len(posterior.concentration) != len(
            belief.concentration
        ):
            raise ValueError("the posterior is not about these categories")
        return self._attach(categories, Release(posterior, guarantee))

    def _read_and_release(self, X: Any) -> tuple[Categories, Release[Any]]:
        """Validate -> categories -> counts -> charge -> release; X is not used again."""
        budget = self._budget()
        self._check_budget(budget)
        values = read_column(X)
        categories, conditions = self._domain(values)
        prior = SimplexPrior(self._belief(categories), self.inference)
        statistics = SimplexCounts.count(self._codes(categories, values), categories.n_values)
        return categories, self._release(statistics, prior, budget, conditions)

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
        self._tell_about_scores()
        codes = self._codes(self.categories_, read_column(X))
        return float(self.posterior_.log_predictive(codes).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.categorical = True
        return tags
