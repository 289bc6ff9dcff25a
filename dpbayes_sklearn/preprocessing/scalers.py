"""Columns mapped to a public range, or to bins, by private quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._compat import InvalidParameterError, Range, StrOptions
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import Where
from dpbayes_sklearn.columns.quantiles import (
    Answers,
    BinEdges,
    CentreAndSpread,
    ColumnQuestions,
    OuterQuantiles,
    RangeAndEdges,
)
from dpbayes_sklearn.preprocessing.columns import Columns, ColumnwiseTransformer, share
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

# A range without declared bounds reaches between these quantiles.
_ENDS = Fraction(1, 100), Fraction(99, 100)


@dataclass(eq=False, repr=False)
class PrivateMinMaxScaler(ColumnwiseTransformer):
    """Scale columns to a public range by two private quantiles; no bounds need to be known.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, shared equally by the columns. ``float("inf")`` gives exact
        quantiles.
    feature_range : tuple (low, high), default=(0, 1)
        Range of what is returned: the public domain of the output.
    quantiles : tuple (low, high), default=(0.01, 0.99)
        Which quantiles of a column are mapped to the ends of ``feature_range``; values beyond are
        clipped. If there are too few records for them at this ``epsilon``, quantiles nearer to
        the median are found, and the wanted ones follow from them as for a normal distribution.
    bounds : tuple (low, high), optional
        Public bounds of the columns, numbers or one entry per column, if something is known: the
        quantiles are looked for between them only.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    data_min_, data_max_ : ndarray of shape (n_features,)
        The private quantiles, the ends of the range of each column.
    guarantee_ : PrivacyGuarantee

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; ``privacy_unit`` says who is protected. Nothing
    needs to be declared, and no value makes a fit fail: a missing value, or one that is no number,
    counts in no quantile and is mapped to the middle. Dates are seconds since 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
    >>> wages = np.random.default_rng(0).lognormal(7, 0.5, size=(5_000, 1))
    >>> scaler = PrivateMinMaxScaler(epsilon=0.5, random_state=0).fit(wages)
    >>> scaler.transform([[0.0], [1e9]])
    array([[0.],
           [1.]])
    >>> bool(150 < scaler.data_min_[0] < 500), bool(2_500 < scaler.data_max_[0] < 4_500)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ColumnwiseTransformer._parameter_constraints,
        "feature_range": [tuple],
        "quantiles": [tuple],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    feature_range: tuple[float, float] = (0, 1)
    quantiles: tuple[float, float] = (0.01, 0.99)
    bounds: Any = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _questions(self, j: int, columns: Columns) -> ColumnQuestions:
        low, high = two_numbers(self, "quantiles", 0.0, 1.0)
        if not low < 0.5 < high:
            raise InvalidParameterError(
                "The 'quantiles' parameter of PrivateMinMaxScaler must have low < 0.5 < high. "
                f"Got {self.quantiles!r} instead."
            )
        two_numbers(self, "feature_range", -1e300, 1e300)
        return OuterQuantiles(
            share(low), share(high), columns.n, columns.epsilon, columns.bounds[j], columns.unit
        )

    @property
    def _uses_n(self) -> Where:  # type: ignore[override]
        # between bounds, all quantiles are asked for as they are
        return "in the schema" if self.bounds is None else "nowhere"

    def _set(self, answers: Answers) -> None:
        self.data_min_, self.data_max_ = np.array(answers).T.copy()

    def _apply(self, numbers: FloatArray) -> FloatArray:
        low, high = self.feature_range
        span = self.data_max_ - self.data_min_
        inside = np.clip(numbers, self.data_min_, self.data_max_) - self.data_min_
        shares = np.where(span > 0, inside / np.where(span > 0, span, 1.0), 0.5)
        shares = np.where(np.isnan(numbers), 0.5, shares)
        return np.asarray(np.clip(low + shares * (high - low), low, high))

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return numbers of the columns' own units; what was clipped stays clipped."""
        low, high = self.feature_range
        shares = (self._inverse_input(X) - low) / (high - low)
        return np.asarray(self.data_min_ + shares * (self.data_max_ - self.data_min_))


def two_numbers(estimator: Any, name: str, least: float, most: float) -> tuple[float, float]:
    """Return a parameter that must be a pair low < high within a range."""
    given = getattr(estimator, name)
    try:
        low, high = (float(end) for end in given)
        fine = least <= low < high <= most
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise InvalidParameterError(
            f"The {name!r} parameter of {type(estimator).__name__} must be a tuple (low, high) of "
            f"numbers from {least:g} to {most:g}, low < high. Got {given!r} instead."
        )
    return low, high


@dataclass(eq=False, repr=False)
class PrivateStandardScaler(ColumnwiseTransformer):
    """Centre columns at a private median and scale them by a private spread.

    The spread is the standard deviation of a normal law with as many records within the same
    distance of the median: robust against outliers, unlike a standard deviation.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, shared equally by the columns. ``float("inf")`` gives the exact
        median and spread.
    clip : float, default=3.0
        What is returned lies between ``-clip`` and ``clip``: the public domain of the output.
    bounds : tuple (low, high), optional
        Public bounds, if they are known, as in :class:`PrivateMinMaxScaler`.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        The private median and spread of each column; a spread of 0 becomes 1.
    guarantee_ : PrivacyGuarantee

    Notes
    -----
    **Privacy.** As for :class:`PrivateMinMaxScaler`; a missing value is mapped to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn.preprocessing import PrivateStandardScaler
    >>> heights = np.random.default_rng(0).normal(170, 10, size=(5_000, 1))
    >>> scaler = PrivateStandardScaler(epsilon=0.5, random_state=0).fit(heights)
    >>> scaler.center_.round(-1), scaler.scale_.round(-1)
    (array([170.]), array([10.]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ColumnwiseTransformer._parameter_constraints,
        "clip": [Range(Real, 0, None, closed="neither")],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    clip: float = 3.0
    bounds: Any = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _questions(self, j: int, columns: Columns) -> ColumnQuestions:
        return CentreAndSpread(columns.n, columns.epsilon, columns.bounds[j], columns.unit)

    def _set(self, answers: Answers) -> None:
        self.center_, spread = np.array(answers).T.copy()
        self.scale_ = np.where(spread > 0, spread, 1.0)

    def _apply(self, numbers: FloatArray) -> FloatArray:
        scaled = np.clip((numbers - self.center_) / self.scale_, -self.clip, self.clip)
        return np.where(np.isnan(scaled), 0.0, scaled)

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return numbers of the columns' own units; what was clipped stays clipped."""
        return np.asarray(self.center_ + self._inverse_input(X) * self.scale_)


@dataclass(eq=False, repr=False)
class PrivateKBinsDiscretizer(ColumnwiseTransformer):
    """Cut columns into bins at private edges; no bounds need to be known.

    Parameters
    ----------
    n_bins : int or array-like of shape (n_features,), default=8
        Number of bins of each column; the codes are 0, ..., ``n_bins - 1``, whether or not all of
        them occur. Powers of two use the budget best.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of about as many records each, or of the same width between the 1 % and the 99 %
        quantile. A value that many records share takes one edge of the first kind, and the other
        edges go to the rest. Without ``bounds``, a part of the budget first finds the range from
        the 1 % to the 99 % quantile, and all edges are within it.
    epsilon : float, default=1.0
        Privacy budget of one fit, shared equally by the columns. ``float("inf")`` gives exact
        quantiles.
    bounds : tuple (low, high), optional
        Public bounds, if they are known, as in :class:`PrivateMinMaxScaler`.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    bin_edges_ : list of ndarray
        The private edges of each column, without the outer ends; a value has the code of how many
        edges are not above it.
    n_bins_ : ndarray of shape (n_features,)
    guarantee_ : PrivacyGuarantee

    Notes
    -----
    **Privacy.** As for :class:`PrivateMinMaxScaler`; a missing value has the code ``n_bins // 2``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5_000)
    >>> X = rng.lognormal(8 + y[:, None], 1.0, size=(5_000, 3))
    >>> model = make_pipeline(
    ...     PrivateKBinsDiscretizer(8, epsilon=0.2, random_state=0),
    ...     BayesianNaiveBayes(0.8, bounds=(0, 7), n_bins=8, classes=[0, 1], random_state=0),
    ... ).fit(X, y)
    >>> model.score(X, y) > 0.78
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ColumnwiseTransformer._parameter_constraints,
        "n_bins": [Range(Integral, 2, 2**16, closed="both"), "array-like"],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    n_bins: int | npt.ArrayLike = 8
    _: KW_ONLY
    strategy: str = "quantile"
    epsilon: float = 1.0
    bounds: Any = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _each_n_bins(self, d: int) -> list[int]:
        given = np.asarray(self.n_bins)
        fine = given.dtype.kind in "iu" and given.shape in {(), (d,)}
        if not fine or not ((given >= 2) & (given <= 2**16)).all():
            raise InvalidParameterError(
                "The 'n_bins' parameter of PrivateKBinsDiscretizer must be an int from 2 to 65536, "
                f"or one for each of the {d} features."
            )
        each: list[int] = np.broadcast_to(given, (d,)).tolist()
        return each

    def _questions(self, j: int, columns: Columns) -> ColumnQuestions:
        bins, bounds = self._each_n_bins(len(columns.bounds))[j], columns.bounds[j]
        if self.strategy == "quantile" and bounds is None:
            return RangeAndEdges(bins, columns.n, columns.epsilon, columns.unit)
        if self.strategy == "quantile":
            return BinEdges(bins, bounds)
        return OuterQuantiles(*_ENDS, columns.n, columns.epsilon, bounds, columns.unit)

    @property
    def _uses_n(self) -> Where:  # type: ignore[override]
        return "in the schema" if self.bounds is None else "nowhere"

    def _set(self, answers: Answers) -> None:
        each = self._each_n_bins(len(answers))
        self.n_bins_ = np.array(each)
        self.bin_edges_ = [
            np.array(answer[1:-1] if self.bounds is None else answer)
            if self.strategy == "quantile"
            else np.linspace(answer[0], answer[1], bins + 1)[1:-1]
            for answer, bins in zip(answers, each, strict=True)
        ]

    def _apply(self, numbers: FloatArray) -> AnyArray:
        codes = np.empty(numbers.shape, np.uint8 if self.n_bins_.max() <= 256 else np.uint16)
        for j, edges in enumerate(self.bin_edges_):
            code = np.searchsorted(edges, numbers[:, j], side="right")
            codes[:, j] = np.where(np.isnan(numbers[:, j]), self.n_bins_[j] // 2, code)
        return codes

    def _epsilon_wanted(self, n: int, n_features: int) -> float:
        """Return what places edges within 3 % of the records: 20 ranks for each level."""
        if self.strategy == "uniform":
            return super()._epsilon_wanted(n, n_features)
        levels = len(BinEdges(max(self._each_n_bins(n_features))).levels)
        return 20 * levels * n_features / (0.03 * n) * self._unit.n_changed / RECORD.n_changed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return the middle of each code's bin; outer bins are as wide as their neighbours."""
        codes = np.nan_to_num(self._inverse_input(X))
        numbers = np.empty(codes.shape)
        for j, edges in enumerate(self.bin_edges_):
            widths = np.diff(edges) if len(edges) > 1 else np.zeros(1)
            ends = [edges[0] - widths[0], *edges, edges[-1] + widths[-1]]
            middles = np.array(ends[:-1]) / 2 + np.array(ends[1:]) / 2
            numbers[:, j] = middles[np.clip(codes[:, j], 0, len(edges)).astype(np.intp)]
        return numbers
