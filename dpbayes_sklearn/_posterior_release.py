"""What the posterior of one variable needs: one column, its categories and their counts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from dpbayes_sklearn._estimator import DELTA, PrivateEstimator
from dpbayes_sklearn._protection import PROTECTION
from dpbayes_sklearn._scoring import warn_about_scores
from dpbayes_sklearn._sklearn_compat import StrOptions
from dpbayes_sklearn.data.reading import check_kind, read_column
from dpbayes_sklearn.data.table import column_kind
from dpbayes_sklearn.mechanisms import Mechanism, Release, mechanism_names
from dpbayes_sklearn.mechanisms._certification import configured
from dpbayes_sklearn.posteriors.categories import Beta, Dirichlet, SimplexPrior
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.schema.kinds import Kind
from dpbayes_sklearn.serialization.parts import CONJUGATE_MODEL
from dpbayes_sklearn.statistics.categories import SimplexCounts

__all__ = ["Codes", "Column", "PosteriorRelease"]

Codes = npt.NDArray[np.intp]


class Column(NamedTuple):
    """Values of one variable, and what the type of their column declares them to be."""

    values: npt.NDArray[Any]
    kind: Kind

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.values)

    def at(self, positions: Codes) -> Column:
        """Return the records at some positions."""
        return self._replace(values=self.values[positions])


class PosteriorRelease(PrivateEstimator):
    """The posterior of one variable, released from counts of its categories."""

    prior: Any
    calibrate: bool
    inference: str

    _exported = CONJUGATE_MODEL
    _looks_at_n: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        **PROTECTION,
        "mechanism": [StrOptions(mechanism_names("simplex")), Mechanism],
        "calibrate": ["boolean"],
        "inference": [StrOptions({"plug_in", "median", "noise_aware"})],
    }

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

    def _records(self, X: Any, y: Any, *, reset: bool) -> Column:
        # a data frame has a name for the column
        validate_data(self, X, reset=reset, skip_check_array=True, ensure_2d=False)
        values = read_column(X, may_be_empty=self._unit.size_is_secret)
        return Column(values, column_kind(X))

    def _check_types(self, public: Categories, records: Column) -> None:
        check_kind(public, records.kind, "X")

    def _statistics(self, public: Categories, records: Column) -> SimplexCounts:
        return SimplexCounts.count(self._codes(public, records.values), public.n_values)

    def _prior(self, public: Categories) -> SimplexPrior:
        return SimplexPrior(self._belief(public), self.inference)

    def _attach(self, public: Categories, release: Release[Any]) -> Self:
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
