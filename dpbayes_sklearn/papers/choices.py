r"""The papers' release of one of all posteriors, chosen by its distance from the exact one.

Guarantee
---------
*Precondition*: n, k and the prior are public. *Claim*: pure :math:`\varepsilon`-DP;
:math:`(\varepsilon, \delta)`-DP for "hellinger" with ``calibrate=False``. *Proof*: with
``calibrate=True`` by enumeration: the loss of the integer law that is drawn was computed for every
two neighbouring data sets and every outcome, and is at most :math:`\varepsilon`, whatever the
score. Without: for "exponential", between neighbours the score -H(x, r) changes by at most its
global sensitivity :math:`\Delta = \max_x LS(x)`, so the weight of an outcome and the normaliser
change by :math:`e^{\varepsilon/2}` each at most (McSherry and Talwar 2007), and what rounding adds
is taken off the budget beforehand; for "hellinger" by enumeration too, a law whose loss exceeds the
claim being refused. For "local" the scale :math:`LS(x)` depends on the data, so no theorem applies,
and for some priors the loss at nominal :math:`\varepsilon` is above it: it exists only calibrated.

Noise law
---------
:math:`P(r \mid x) \propto \exp(-\varepsilon' H(x, r) / 2 S(x))` over the posteriors r of all m
count vectors of sum n, drawn exactly from integer weights. :math:`\varepsilon'` is
:math:`\varepsilon`, or the nominal budget that calibration finds. S is the global sensitivity
:math:`\Delta` ("exponential"), the local one ("local"), or the smooth one ("hellinger"),
:math:`S(x) = \max_{x'} LS(x') e^{-\gamma d(x, x')}`, :math:`\gamma = \log(1 + \varepsilon' /
2\log(2m/\delta))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.categories.plans import (
    MECHANISMS,
    CategoriesPlan,
    categories_plan,
    noise_of_counts,
)
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.mechanisms import Exponential, Hellinger, Local, Mechanism
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, Noise, ZeroSum
from dpbayes_sklearn.noise.finite import rounding_loss
from dpbayes_sklearn.papers.candidates import (
    Candidates,
    FiniteLaw,
    GaussianNoise,
    ReleaseLaw,
    RowNumbers,
    ScoredCandidates,
    noise_law,
)
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts

AnyFiniteLaw = TypeVar("AnyFiniteLaw", bound=FiniteLaw)

# Calibration aims at a loss this far below epsilon, or 1e-5 of epsilon if that is less.
_CALIBRATION_SLACK = 1e-7
_NEAR_WORST = 8  # Pairs at most this many rows from the worst pair found are looked at first.
_MOST_NOMINAL = 64.0  # Calibration looks for a nominal budget of at most this many epsilon.
_LEAST_EPSILON, _MOST_EPSILON = 1e-12, 1e100  # Floats suffice in this range.


@singledispatch
def sensitivity_of(
    mechanism: Exponential, candidates: Candidates, budget: Budget, nominal: float
) -> FloatArray:
    """Return the scale of the score at every data set: the largest distance of neighbours."""
    largest = candidates.largest_neighbour_distance(mechanism.distance)
    return np.full(len(candidates), largest)


@sensitivity_of.register
def _(mechanism: Hellinger, candidates: Candidates, budget: Budget, nominal: float) -> FloatArray:
    """Return the smooth sensitivity."""
    delta = mechanism.smoothing if mechanism.calibrate else float(budget.delta)
    gamma = math.log1p(nominal / (2 * math.log(2 * len(candidates) / delta)))
    return candidates.smooth_sensitivity(gamma)


@sensitivity_of.register
def _(mechanism: Local, candidates: Candidates, budget: Budget, nominal: float) -> FloatArray:
    """Return the local sensitivity."""
    return candidates.local_sensitivity()


def choice_law(
    mechanism: Exponential, n: int, prior: tuple[float, ...], budget: Budget
) -> ScoredCandidates:
    """Return the law that is drawn from, calibrated or checked; refuse what is not private.

    Calibration takes seconds for thousands of candidates, so laws are kept, by the public facts
    that determine them.

    >>> law = choice_law(Exponential(), 20, (1.0, 1.0), Budget(1))
    >>> round(law.worst_case().epsilon, 4)
    1.0
    >>> paper = choice_law(Hellinger(calibrate=False), 100, (1.0, 1.0), Budget(1, 1e-8))
    >>> round(paper.worst_case().epsilon, 2)
    0.53
    """
    options = tuple(sorted(mechanism.get_params(deep=False).items()))
    kind: Any = type(mechanism)  # mypy takes a class whose instances have no hash for one itself
    return _cached_law(kind, options, n, prior, budget)


@lru_cache(maxsize=64)
def _cached_law(
    kind: type[Exponential],
    options: tuple[tuple[str, Any], ...],
    n: int,
    prior: tuple[float, ...],
    budget: Budget,
) -> ScoredCandidates:
    return _law(kind(**dict(options)), _candidates(n, prior), budget)


@lru_cache(maxsize=64)
def _candidates(n: int, prior: tuple[float, ...]) -> Candidates:
    return Candidates(n, prior)


def _law(mechanism: Exponential, candidates: Candidates, budget: Budget) -> ScoredCandidates:
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon:g} must be from {_LEAST_EPSILON:g} to {_MOST_EPSILON:g} to "
            "choose among posteriors; mechanism='geometric' takes any."
        )
    if mechanism.distance == "total_variation" and len(candidates.prior) > 2:
        raise ValueError(
            "distance='total_variation' is for two categories. Got "
            f"{len(candidates.prior)} instead; use distance='hellinger' or 'kl'."
        )

    def at_nominal(nominal: float) -> ScoredCandidates:
        """Return the mechanism as its authors define it, at a nominal epsilon."""
        scale = sensitivity_of(mechanism, candidates, budget, nominal)
        return ScoredCandidates(candidates, scale, nominal / 2, mechanism.distance)

    if mechanism.calibrate:
        return calibrated(at_nominal, epsilon)
    if mechanism.distance != "hellinger":
        raise ValueError(
            f"distance={mechanism.distance!r} is private by enumeration only: set calibrate=True."
        )
    if mechanism.spends_delta and not delta:
        raise ValueError(
            "The 'hellinger' mechanism with calibrate=False needs a delta in the range (0, 1). "
            "Got 0 instead. Set delta, or calibrate=True, which makes it purely private."
        )
    law = at_nominal(without_rounding(candidates, epsilon))
    within = not mechanism.spends_delta or law.worst_case().epsilon <= epsilon
    if not within and law.worst_case(delta).epsilon > epsilon:
        raise ValueError(
            "The exact loss of the 'hellinger' mechanism is above epsilon for this prior and "
            "number of records. Set calibrate=True, which brings it down to epsilon."
        )
    return law


def without_rounding(candidates: Candidates, epsilon: float) -> float:
    """Return the nominal budget minus everything that rounding may add to the loss.

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
    slack = min(_CALIBRATION_SLACK, 1e-5 * epsilon)
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
        near = [some[(np.abs(some - sorted(pair)) <= _NEAR_WORST).all(axis=1)] for some in pairs]
        suspects = np.unique(np.concatenate([suspects, [sorted(pair)], *near]), axis=0)


def _spread(length: int) -> RowNumbers:
    """Positions in a list, denser towards both ends, where neighbours are farthest apart."""
    steps = np.geomspace(1, length, 24).astype(np.intp) - 1
    return np.unique(np.concatenate([steps, length - 1 - steps]))


def _nominal(
    build: Callable[[float], AnyFiniteLaw], pairs: RowNumbers, target: float, epsilon: float
) -> float:
    """Nominal budget at which the worst of the suspected pairs loses ``target``."""

    def loss(nominal: float) -> float:
        return float(build(nominal).loss(pairs[:, 0], pairs[:, 1]).max())

    low, high = 0.0, epsilon
    while loss(high) <= target:
        if high >= _MOST_NOMINAL * epsilon:
            return high
        low, high = high, 2.0 * high
    root = brentq(lambda nominal: loss(nominal) - target, low, high, xtol=1e-9 * epsilon)
    return float(root)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenPosterior(CategoriesPlan):
    """One of all posteriors, drawn from a law over them."""

    law: ScoredCandidates

    @property
    def structure(self) -> dict[str, Any]:
        """What the candidates follow from."""
        known = self.law.candidates
        return {"kind": "candidates", "n": known.n, "prior": known.prior}

    in_words = "one of all posteriors, near ones more probably"

    def draw(self, exact: SimplexCounts, law: ScoredCandidates, noise: Noise) -> RowNumbers:
        """Draw a candidate for every row of counts."""
        drawn = noise.choose(law.weights(law.candidates.row_of(np.atleast_2d(exact.counts))))
        return drawn.reshape(exact.counts.shape[:-1])

    def read(self, known: None, answer: RowNumbers) -> Dirichlet:
        """Return the chosen posterior, or the one given the choice."""
        counts = self.law.candidates.counts
        if self.prior.inference == "noise_aware":
            chosen = int(answer.flat[0])
            return self.prior.choice(counts, counts[chosen], self.law.log_likelihood(chosen))
        return self.prior.update(ReleasedSimplex.exact(counts[answer]))


@categories_plan.register
def _(mechanism: Exponential, prior: SimplexPrior, facts: Facts, budget: Budget) -> ChosenPosterior:
    if budget.unit.size_is_secret:
        raise ValueError(
            f"The {mechanism.name()} mechanism chooses among all posteriors of a public number of "
            "records; where their number or, with max_weight, their total weight is secret, use "
            "mechanism='geometric'."
        )
    cost = budget if mechanism.spends_delta else budget.without_delta
    if cost.delta and budget.unit.max_records > 1:
        raise ValueError(
            f"The {mechanism.name()} mechanism has no delta for a person of several records; use "
            "calibrate=True, or mechanism='geometric'."
        )
    law = choice_law(mechanism, facts.n, tuple(prior.concentration.tolist()), per_record(cost))
    return ChosenPosterior(cost=cost, mechanism=mechanism.name(), prior=prior, law=law)


def per_record(budget: Budget) -> Budget:
    """Return the budget with which one record is protected: k of them then lose k times as much.

    >>> from dpbayes_sklearn.privacy.budget import PrivacyUnit
    >>> per_record(Budget(Fraction(1), unit=PrivacyUnit("person", max_records=2))).epsilon
    Fraction(1, 2)
    """
    if budget.unit.max_records == 1:
        return budget
    return Budget(Fraction(budget.epsilon) / budget.unit.max_records, budget.delta)


def outcome_law(
    mechanism: Mechanism, n: int, prior: tuple[float, ...], budget: Budget
) -> ReleaseLaw:
    """Return the law of what is released; of noisy counts cut to [0, n] if there are two.

    >>> from dpbayes_sklearn.mechanisms import Geometric
    >>> outcome_law(Geometric(), 20, (1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """
    if not isinstance(mechanism, MECHANISMS):
        raise ValueError(f"The {mechanism.name()} mechanism has no law of categories.")
    k, counts = len(prior), SimplexCounts.of_size(n, len(prior))
    if isinstance(mechanism, Exponential):
        return choice_law(mechanism, n, prior, budget)
    law = noise_of_counts(mechanism, counts, budget)
    if isinstance(law, DiscreteGaussian):
        return GaussianNoise(n, k, law.parameters[0], counts.shifts()[1, 1])
    if isinstance(law, ZeroSum):  # for two categories (d, -d) of scale b, which is d of scale b/2
        return noise_law(n, prior, *((1, law.scale / 2) if k == 2 else (k, law.scale)))
    assert isinstance(law, DiscreteLaplace)
    return noise_law(n, prior, sum(law.sizes), law.scales[0])
