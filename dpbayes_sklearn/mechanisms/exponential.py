r"""The exponential mechanism over all posteriors that n records can lead to.

Guarantee
---------
*Precondition*: counts of n records in k categories; n, k and the prior are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: with ``calibrate=True`` by enumeration: the loss of the integer
law that is drawn was computed for every two neighbouring data sets and every outcome, and is at
most :math:`\varepsilon`, whatever the score. With ``calibrate=False``: between neighbours the
score -H(x, r) changes by at most its global sensitivity :math:`\Delta = \max_x LS(x)`, so the
weight of an outcome and the normaliser change by :math:`e^{\varepsilon/2}` each at most (McSherry
and Talwar 2007); what rounding adds is taken off the budget beforehand.

Noise law
---------
:math:`P(r \mid x) \propto \exp(-\varepsilon' H(x, r) / 2\Delta)` over the posteriors r of all
count vectors of sum n, drawn exactly from integer weights; :math:`\varepsilon'` is
:math:`\varepsilon`, or the larger nominal budget that calibration finds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpbayes_sklearn._sklearn_compat import StrOptions
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.categories.candidates import (
    Candidates,
    FiniteLaw,
    RowNumbers,
    ScoredCandidates,
)
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.categories.distances import DISTANCES
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import rounding_loss
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Exponential"]

AnyFiniteLaw = TypeVar("AnyFiniteLaw", bound=FiniteLaw)

_TARGET = 1e-7  # The loss aimed at is so little below epsilon, or a relative 1e-5.
_NEAR = 8  # Pairs at most this many rows from the worst pair found are looked at first.
_LARGEST = 64.0  # No nominal budget beyond this many epsilon is looked for.
_LEAST_EPSILON, _MOST_EPSILON = 1e-12, 1e100  # Floats suffice in this range.


class Exponential(Mechanism):
    """Exponential mechanism over posteriors: Hellinger distance over global sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the exponent until the exact worst-case loss equals epsilon. Takes
        seconds for thousands of candidates; the result is cached, by public facts only.
    distance : {"hellinger", "total_variation", "kl"}, default="hellinger"
        The distance of a candidate from the exact posterior by which it is scored: choose the one
        in which you measure the error. The guarantee of the others is by enumeration alone, so they
        need ``calibrate=True``. "total_variation" is for two categories.

    Examples
    --------
    >>> law = Exponential().law(20, (1.0, 1.0), Budget(1))
    >>> round(law.worst_case().epsilon, 4)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "distance": [StrOptions(set(DISTANCES))],
    }

    def __init__(self, calibrate: bool = True, distance: str = "hellinger") -> None:
        self.calibrate = calibrate
        self.distance = distance

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> ScoredCandidates:
        """Return the law that is drawn from. It depends on nothing but its arguments."""
        options = tuple(sorted(self.get_params(deep=False).items()))
        kind: Any = type(self)  # mypy takes a class whose instances have no hash for one itself
        return _cached_law(kind, options, n, prior, budget)

    def _law(self, candidates: Candidates, budget: Budget) -> ScoredCandidates:
        epsilon = float(budget.epsilon)
        if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
            raise ValueError(
                f"epsilon={epsilon:g} must be from {_LEAST_EPSILON:g} to {_MOST_EPSILON:g} to "
                "choose among posteriors; mechanism='geometric' takes any."
            )
        if self.distance == "total_variation" and len(candidates.prior) > 2:
            raise ValueError(
                "distance='total_variation' is for two categories. Got "
                f"{len(candidates.prior)} instead; use distance='hellinger' or 'kl'."
            )
        if self.calibrate:
            return calibrated(lambda e: self._at_nominal(candidates, budget, e), epsilon)
        if self.distance != "hellinger":
            raise ValueError(
                f"distance={self.distance!r} is private by enumeration only: set calibrate=True."
            )
        return self._at_nominal(candidates, budget, without_rounding(candidates, epsilon))

    def _at_nominal(
        self, candidates: Candidates, budget: Budget, nominal: float
    ) -> ScoredCandidates:
        """Return the mechanism as its authors define it, at a nominal epsilon."""
        sensitivity = self._sensitivity(candidates, budget, nominal)
        return ScoredCandidates(candidates, sensitivity, nominal / 2, self.distance)

    def _sensitivity(self, candidates: Candidates, budget: Budget, nominal: float) -> FloatArray:
        """Return the scale of the score at every data set."""
        largest = candidates.largest_neighbour_distance(self.distance)
        return np.full(len(candidates), largest)

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        if budget.unit.size_is_secret:
            raise ValueError(
                f"The {self.name()} mechanism chooses among all posteriors of a public number of "
                "records; where their number is secret use mechanism='geometric'."
            )
        if budget.delta and budget.unit.max_records > 1:
            raise ValueError(
                f"The {self.name()} mechanism has no delta for a person of several records; use "
                "calibrate=True, or mechanism='geometric'."
            )
        self.law(statistics.n, tuple(prior.concentration.tolist()), per_record(budget))

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, noise: Noise
    ) -> Dirichlet:
        law = self.law(statistics.n, tuple(prior.concentration.tolist()), per_record(budget))
        counts = law.candidates.counts
        rows = law.candidates.row_of(np.atleast_2d(statistics.counts))
        drawn = noise.choose(law.weights(rows))
        if prior.inference == "noise_aware":
            return prior.choice(counts, counts[drawn[0]], law.log_likelihood(int(drawn[0])))
        return prior.update(ReleasedSimplex.exact(counts[drawn].reshape(statistics.counts.shape)))


def per_record(budget: Budget) -> Budget:
    """Return the budget with which one record is protected: k of them then lose k times as much.

    >>> from dpbayes_sklearn.privacy.unit import PrivacyUnit
    >>> per_record(Budget(Fraction(1), unit=PrivacyUnit("person", max_records=2))).epsilon
    Fraction(1, 2)
    """
    if budget.unit.max_records == 1:
        return budget
    return Budget(Fraction(budget.epsilon) / budget.unit.max_records, budget.delta)


@lru_cache(maxsize=64)
def _cached_law(
    mechanism: type[Exponential],
    options: tuple[tuple[str, Any], ...],
    n: int,
    prior: tuple[float, ...],
    budget: Budget,
) -> ScoredCandidates:
    """Laws by the public facts that determine them."""
    return mechanism(**dict(options))._law(_candidates(n, prior), budget)


@lru_cache(maxsize=64)
def _candidates(n: int, prior: tuple[float, ...]) -> Candidates:
    return Candidates(n, prior)


def without_rounding(candidates: Candidates, epsilon: float) -> float:
    """Nominal budget that is left when everything rounding may add has been taken off.

    Distances err by at most rho, so a score changes by at most (1 + 3 rho / sensitivity) times
    the computed sensitivity; integer weights add their own rounding loss.
    """
    relative = 3 * candidates.rounding / float(candidates.local_sensitivity().min())
    nominal = (epsilon - rounding_loss(len(candidates))) / (1 + relative)
    if nominal <= 0:
        raise ValueError(
            f"epsilon={epsilon:g} is too small for a choice among {len(candidates):,} "
            "candidates; use mechanism='geometric' or a larger epsilon."
        )
    return nominal


def calibrated(build: Callable[[float], AnyFiniteLaw], epsilon: float) -> AnyFiniteLaw:
    """Return the law whose exact worst-case loss is epsilon, and never above.

    ``build(nominal)`` is the mechanism run at a nominal budget, which is found by bracketing over a
    few suspected pairs of neighbours. Then all pairs are gone through, and as long as one
    of them is above epsilon, the worst joins the suspects. What is returned went through.
    """
    slack = min(_TARGET, 1e-5 * epsilon)
    target = epsilon - slack
    pairs = [np.column_stack(sides) for sides in build(epsilon).candidates.neighbours()]
    suspects = np.concatenate([some[_spread(len(some))] for some in pairs])
    while True:
        law = build(_nominal(build, suspects, target, epsilon))
        worst, pair = law.worst_rows()
        if worst <= epsilon:
            return law
        target -= slack  # so that no rounding can keep this from ending
        # as the nominal budget goes down, a pair close by may become the worst
        near = [some[_close_to(some, pair)] for some in pairs]
        suspects = np.unique(np.concatenate([suspects, [sorted(pair)], *near]), axis=0)


def _spread(length: int) -> RowNumbers:
    """Positions in a list, denser towards both ends, where neighbours are farthest apart."""
    steps = np.geomspace(1, length, 24).astype(np.intp) - 1
    return np.unique(np.concatenate([steps, length - 1 - steps]))


def _close_to(pairs: RowNumbers, pair: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Tell which pairs of rows are within a few rows of ``pair``."""
    return np.asarray((np.abs(pairs - sorted(pair)) <= _NEAR).all(axis=1))


def _nominal(
    build: Callable[[float], AnyFiniteLaw], pairs: RowNumbers, target: float, epsilon: float
) -> float:
    """Nominal budget at which the worst of the suspected pairs loses ``target``."""

    def loss(nominal: float) -> float:
        return float(build(nominal).loss(pairs[:, 0], pairs[:, 1]).max())

    low, high = 0.0, epsilon
    while loss(high) <= target:
        if high >= _LARGEST * epsilon:
            return high
        low, high = high, 2.0 * high
    root = brentq(lambda nominal: loss(nominal) - target, low, high, xtol=1e-9 * epsilon)
    return float(root)
