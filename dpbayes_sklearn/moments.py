"""One release, many regressions: second moments of all columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.published import column_number
from dpbayes_sklearn.base.supervised import Declared, TableEstimator
from dpbayes_sklearn.convex.coefficients import (
    Coefficient,
    CoefficientTable,
    RegressionSummary,
    coefficient_table,
    joint_covariance,
)
from dpbayes_sklearn.convex.coordinates import first_map, n_coordinates
from dpbayes_sklearn.convex.design import Design, Scale, Windows
from dpbayes_sklearn.convex.moments import MOST_COORDINATES, MomentsPlan
from dpbayes_sklearn.convex.posterior import GaussianPosterior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.convex.regressions import Moments
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.reading import read_records
from dpbayes_sklearn.data.records import LocalRecords, Records, quiet_numpy
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.serialization.models import MOMENTS_MODEL

__all__ = ["Correlations", "PrivateMoments"]

_WHOLE = Scale(0.0, 1.0)  # There is no target: every column is among the features.
_MOST_R2_ERROR = 0.05  # R² is stated if its noise has at most this standard deviation.

_LARGEST_SD = 0.4  # A correlation whose standard deviation is larger is not identified.


class Correlations(CoefficientTable):
    """Correlations with intervals that include the privacy noise, one row for each pair."""

    title: ClassVar[str] = "Correlations"


@dataclass(eq=False, repr=False)
class PrivateMoments(TableEstimator[Design, LinearRecords, Moments]):
    """All second moments of a table in one release, from which any regressions are computed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit: of all regressions and correlations together.
    bounds : tuple (low, high), optional
        Public bounds of the columns, numbers or one entry for each column.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; its target has no part. Declare only
        columns that are needed: noise grows with their number. At most 20 coordinates are taken:
        the constant, one for each number and each column of two values, K - 1 for K categories.
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
    posterior_ : Moments
        What was released.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Privacy.** Every ``fit`` spends ``epsilon``; ``privacy_unit`` says who is protected.
    :meth:`regress` and :meth:`correlations` compute from what was released, at no further cost.

    What is estimated is least squares within the declared bounds, a missing number counting as
    what its :class:`Interval` says. Intervals include the noise, the sampling error for residuals
    of any shape, and what far records may change; what the release does not tell is called not
    identified.

    Not included are far records that the noise hides: with 1 % of 3,000 records 5 to 10 spreads out
    on a line of the opposite slope, intervals of the slope held in 10 of 73 fits (epsilon 3).
    Columns that are constant, or sums of others, make noise of all others larger: leave them out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from dpbayes_sklearn import Interval, PrivateMoments, Schema
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.uniform(20, 60, 20_000)})
    >>> frame["pay"] = 10 + 0.5 * frame["age"] + rng.normal(0, 5, 20_000)
    >>> schema = Schema({"age": Interval(15, 70), "pay": Interval(0, 80)})
    >>> model = PrivateMoments(1.0, schema=schema, random_state=0).fit(frame)
    >>> slope = model.regress("pay", on=["age"]).table["age"]
    >>> bool(slope.low < 0.5 < slope.high), bool(slope.high - slope.low < 0.05)
    (True, True)
    >>> len(model.correlations())
    1
    """

    inference: ClassVar[str] = "noise_aware"
    _exported = MOMENTS_MODEL

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "bounds": ["array-like", None],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    epsilon: float = 1.0
    _: KW_ONLY
    bounds: Any = None
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @property
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the columns")

    @property
    def _target(self) -> Declared:
        return Declared("schema", None, "nothing was")

    def _target_from_data(self, values: AnyArray) -> NoReturn:
        raise TypeError("PrivateMoments has no target: pass it as a column of X.")

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        own: Any = {"declared": self._declares_columns, "width": self._width(reset)}
        own["may_be_empty"] = self._declared_unit.size_is_secret
        part = self._declared_part(X, reset)
        return read_records(self, part, labelled=False, reset=reset, **own)

    def _nobody(self, n: int, n_features: int | None) -> Records:
        return PrivateEstimator._nobody(self, n, n_features)

    def _public_schema(self, records: Records, n: int) -> tuple[Schema, tuple[str, ...]]:
        columns, leaks, conditions = self._columns(records, n)
        return Schema(columns), (*leaks, *conditions, *self._paid_before())

    def _prior(self, public: Schema) -> Design:
        return Design(tuple(public.columns.values()))

    def _statistics(self, public: Schema, prior: Design, records: Records) -> LinearRecords:
        if isinstance(records, LocalRecords):  # which are asked several times
            records = records.read_once([*public.columns.values()])
        return LinearRecords(prior, _WHOLE, records)

    def _plan(self, prior: Design, facts: Facts, budget: Budget) -> MomentsPlan:
        if not budget.unit.whole_records:
            raise ValueError("PrivateMoments protects whole records: privacy_unit='record'.")
        if (p := n_coordinates(prior)) > MOST_COORDINATES:
            raise ValueError(
                f"PrivateMoments takes up to {MOST_COORDINATES} coordinates, and these columns "
                f"have {p}: declare fewer columns, or fewer categories. Nothing was spent."
            )
        plan = MomentsPlan(cost=budget, mechanism="laplace", design=prior, facts=facts)
        _ = plan.steps  # refuses an epsilon that is too small
        return plan

    def _attach(self, public: Schema, release: Release[Moments]) -> Self:
        self.schema_ = public
        self.posterior_, self.guarantee_ = release.posterior, release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        public, posterior, guarantee = released.values()
        design = self._prior(public)
        usual = first_map(design, np.zeros(0), np.ones(0))
        first, p = posterior.first, len(usual)
        fits = first.shape == usual.shape and len(posterior.pairs) == p * (p + 1) // 2
        if not fits or ((first != 0) != (usual != 0))[:, 1:].any() or (first[0] != usual[0]).any():
            raise ValueError("the moments are not those of these columns")
        self.n_features_in_ = len(public)
        self._attach(public, Release(posterior, guarantee))
        single = [j for j in range(len(public)) if len(self._coordinates([j])) == 1]
        try:
            self.correlations()
            for j in single:
                if not design.domains[j].marks_missing:
                    self.regress(j)
        except (ArithmeticError, np.linalg.LinAlgError):
            raise ValueError("no regression can be computed from the moments") from None
        return self

    def regress(
        self, target: int | str, on: Sequence[int | str] | None = None, level: float = 0.95
    ) -> RegressionSummary:
        """Return least squares of a column on others, at no further privacy cost.

        Parameters
        ----------
        target : int or str
            A column of numbers, or one of two values: then of whether it has the second one.
        on : sequence of int or str, optional
            The columns that explain it; all others if left out.
        level : float, default=0.95
            Nominal coverage of the intervals.

        Returns
        -------
        RegressionSummary
            Its ``table`` has the coefficients, its ``r2`` is NaN where noise hides it.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level!r} instead.")
        design, names = self._prior(self.schema_), [*self.schema_.columns]
        j = column_number(names, target)
        others = [k for k in range(len(names)) if k != j]
        columns = others if on is None else [column_number(names, c) for c in on]
        if j in columns or len({*columns}) < len(columns):
            raise ValueError("on must name different columns, and not the target.")
        domain, own = design.domains[j], self._coordinates([j])
        if len(own) > 1 or domain.marks_missing:
            raise ValueError(
                f"The target {target!r} must be a column of numbers without an indicator of "
                "missing ones, or of two values."
            )
        kept = {names[k]: design.domains[k] for k in columns}
        sub = Design(tuple(kept.values()))
        column = np.array([feature.column for feature in design.features])[design.column]
        places = [i for k in columns for i in np.flatnonzero(column == k)]
        rows = [0, *self._coordinates(columns)]
        with quiet_numpy():
            found = self.posterior_.regression(sub, own[0], rows, places)
            spread = found.slopes.sampling + found.slopes.privacy
            windows, n = Windows.whole(sub.width), self.posterior_.n
            posterior = GaussianPosterior(
                found.slopes.mean, spread, found.residual, found.slopes, windows, n
            )
            # the second of two values is 1, the first 0
            centres, halves = Design((domain,)).scales
            centre, half = (centres[0], halves[0]) if domain.is_numeric else (0.5, 0.5)
            table = coefficient_table(Schema(kept), sub, posterior, half, centre, level)
            return RegressionSummary(
                table,
                joint_covariance(sub, posterior, table),
                math.sqrt(found.residual) * half,
                found.r2 if found.r2_sd <= _MOST_R2_ERROR else math.nan,
                n,
                str(self.guarantee_),
            )

    def correlations(
        self,
        columns: Sequence[int | str] | None = None,
        given: Sequence[int | str] = (),
        level: float = 0.95,
    ) -> Correlations:
        """Return the correlations of all pairs of columns, at no further privacy cost.

        Parameters
        ----------
        columns : sequence of int or str, optional
            Columns of numbers or of two values; all of these that are not ``given`` if left out.
        given : sequence of int or str, default=()
            Columns whose linear effects are taken out first: partial correlations.
        level : float, default=0.95
            Nominal coverage of the intervals.

        Returns
        -------
        Correlations
            Text, HTML, and ``to_frame()`` for a data frame; a row is called ``first, second``.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level!r} instead.")
        names = [*self.schema_.columns]
        fixed = [column_number(names, c) for c in given]
        single = [j for j in range(len(names)) if len(self._coordinates([j])) == 1]
        wanted = [j for j in single if j not in fixed]
        if columns is not None:
            wanted = [column_number(names, c) for c in columns]
        if not {*wanted} <= {*single} - {*fixed} or len({*wanted}) < len(wanted):
            raise ValueError(
                "columns must be different columns of numbers or of two values, none of them given."
            )
        rows, reach = [0, *self._coordinates(fixed)], float(ndtri(0.5 + level / 2))
        with quiet_numpy():
            found = [
                _row(
                    f"{names[a]}, {names[b]}",
                    reach,
                    *self.posterior_.correlation(self._coordinates([a, b]), rows),
                )
                for a, b in combinations(wanted, 2)
            ]
        return Correlations(tuple(found), level)

    def _coordinates(self, columns: Sequence[int]) -> list[int]:
        """Return the rows of the released coordinates that belong to columns."""
        design = self._prior(self.schema_)
        column = np.array([feature.column for feature in design.features])[design.column]
        owner = [column[np.flatnonzero(row)[0]] for row in self.posterior_.first[1:, 1:]]
        return [1 + int(i) for j in columns for i in np.flatnonzero(np.array(owner) == j)]


def _row(name: str, reach: float, value: float, sampling: float, privacy: float) -> Coefficient:
    """Return the row of a correlation with these variances."""
    sd = math.sqrt(sampling + privacy)
    if not sd < _LARGEST_SD:
        return Coefficient(name, math.nan, math.inf, -math.inf, math.inf, *[math.nan] * 3)
    low, estimate, high = (min(max(value + t * sd, -1.0), 1.0) for t in (-reach, 0.0, reach))
    parts = math.sqrt(sampling), math.sqrt(privacy)
    return Coefficient(name, estimate, sd, low, high, *parts, value / sd if sd else math.inf)
