r"""How the posterior of one variable is released: noise in its counts, or a choice of a posterior.

Guarantee
---------
*Precondition*: counts of n records in k categories; k is public, and n unless records may be added
or removed. *Claim*: pure :math:`\varepsilon`-DP ("laplace", "laplace_improved", "geometric"),
:math:`(\varepsilon, \delta)`-DP ("gaussian"). *Proof*: a replaced record changes the counts by
:math:`e_i - e_j`, of L1 norm 2. Independent noise has scale :math:`2/\varepsilon`, or
:math:`1/\varepsilon` in the only count that two categories of a public sum need. "laplace_improved"
releases the first k - 1 counts, which change by :math:`\Delta = \min(2, k - 1)`, with scale
:math:`\Delta/\varepsilon`. "geometric" draws noise of sum zero, and by the triangle inequality
:math:`P(y \mid x) / P(y \mid x') \le e^{\varepsilon \|x - x'\|_1 / 2} = e^\varepsilon`. What
follows is post-processing. For choices see :mod:`dpbayes_sklearn.categories.exponential`.

Noise law
---------
"laplace", "laplace_improved": independent, :math:`P(Z = z) \propto e^{-|z|/b}` on the integers.
"geometric": :math:`P(Z = z) \propto e^{-\varepsilon \|z\|_1 / 2}` over integer vectors of sum zero;
for two categories the two-sided geometric law of scale :math:`1/\varepsilon`, which is optimal for
every prior and every monotone loss (Ghosh, Roughgarden and Sundararajan 2009). The noisy counts
keep the public sum, so for more categories there is less noise than with independent noise.
"gaussian": discrete Gaussian, of the least variance that the budget allows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

import numpy as np

from dpbayes_sklearn.categories.candidates import (
    GaussianNoise,
    ReleaseLaw,
    ScoredCandidates,
    noise_law,
)
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.categories.exponential import choice_law
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.mechanisms import (
    Auto,
    Exponential,
    Gaussian,
    Geometric,
    Hellinger,
    Laplace,
    LaplaceImproved,
    Local,
    Mechanism,
)
from dpbayes_sklearn.noise import DiscreteGaussian, Noise, NoiseLaw
from dpbayes_sklearn.noise.discrete_gaussian import drawable
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.gaussian import Shifts, calibrated_variance, gaussian_rho
from dpbayes_sklearn.release import Facts, Plan

__all__ = ["MECHANISMS", "NoisyCounts", "categories_plan", "noise_of_counts", "outcome_law", "plan"]


MECHANISMS = (Auto, Exponential, Gaussian, Geometric, Hellinger, Laplace, LaplaceImproved, Local)
"""The mechanisms that release counts of categories."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts(Plan[SimplexCounts, Dirichlet]):
    """Noise in as many counts as the law has numbers; a public sum ``n`` completes the others."""

    prior: SimplexPrior
    law: NoiseLaw
    n: int | None

    def release(self, statistics: SimplexCounts, noise: Noise) -> Dirichlet:
        """Return the posterior given noisy counts."""
        (noisy,) = noise.add([statistics.counts[..., : self.law.size]], self.law)
        return self.prior.update(ReleasedSimplex(noisy, self.n, (self.law,)))


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenPosterior(Plan[SimplexCounts, Dirichlet]):
    """One of all posteriors, drawn from a law over them."""

    prior: SimplexPrior
    law: ScoredCandidates

    def release(self, statistics: SimplexCounts, noise: Noise) -> Dirichlet:
        """Return the chosen posterior, or the one given the choice."""
        counts = self.law.candidates.counts
        rows = self.law.candidates.row_of(np.atleast_2d(statistics.counts))
        drawn = noise.choose(self.law.weights(rows))
        if self.prior.inference == "noise_aware":
            likelihood = self.law.log_likelihood(int(drawn[0]))
            return self.prior.choice(counts, counts[drawn[0]], likelihood)
        return self.prior.update(
            ReleasedSimplex.exact(counts[drawn].reshape(statistics.counts.shape))
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPosterior(Plan[SimplexCounts, Dirichlet]):
    """No noise, where no privacy is asked for."""

    prior: SimplexPrior

    def release(self, statistics: SimplexCounts, noise: Noise) -> Dirichlet:
        """Return the exact posterior."""
        return self.prior.update(statistics.without_noise())


def plan(
    mechanism: Mechanism, prior: SimplexPrior, facts: Facts, budget: Budget
) -> Plan[SimplexCounts, Dirichlet]:
    """Return how a mechanism releases counts of categories, or refuse what it cannot do."""
    make = categories_plan.dispatch(type(mechanism))
    if budget.infinite and make is not categories_plan.dispatch(object):
        return ExactPosterior(cost=budget, mechanism=mechanism.name(), prior=prior)
    return make(mechanism, prior, facts, budget)


@singledispatch
def categories_plan(
    mechanism: Mechanism, prior: SimplexPrior, facts: Facts, budget: Budget
) -> Plan[SimplexCounts, Dirichlet]:
    """Return how categories are released, by the type of the mechanism; others are refused."""
    raise ValueError(f"The {mechanism.name()} mechanism cannot release counts of categories.")


@categories_plan.register
def _noise_in_counts(
    mechanism: Laplace | LaplaceImproved | Geometric | Gaussian,
    prior: SimplexPrior,
    facts: Facts,
    budget: Budget,
) -> NoisyCounts:
    counts = SimplexCounts.of_size(0, len(prior.concentration))
    law = noise_of_counts(mechanism, counts, budget)
    cost = budget._replace(delta=Fraction(0))
    if isinstance(law, DiscreteGaussian):
        cost = budget._replace(rho=_rho(law, counts.shifts(budget.unit)))
    n = None if budget.unit.size_is_secret else facts.n
    return NoisyCounts(cost=cost, mechanism=mechanism.name(), prior=prior, law=law, n=n)


@categories_plan.register
def _(
    mechanism: Auto, prior: SimplexPrior, facts: Facts, budget: Budget
) -> Plan[SimplexCounts, Dirichlet]:
    counts = SimplexCounts.of_size(0, len(prior.concentration))
    return categories_plan(_least_noise(counts, budget), prior, facts, budget)


@categories_plan.register
def _(mechanism: Exponential, prior: SimplexPrior, facts: Facts, budget: Budget) -> ChosenPosterior:
    if budget.unit.size_is_secret:
        raise ValueError(
            f"The {mechanism.name()} mechanism chooses among all posteriors of a public number of "
            "records; where their number is secret use mechanism='geometric'."
        )
    cost = budget if mechanism.spends_delta else budget._replace(delta=Fraction(0))
    if cost.delta and budget.unit.max_records > 1:
        raise ValueError(
            f"The {mechanism.name()} mechanism has no delta for a person of several records; use "
            "calibrate=True, or mechanism='geometric'."
        )
    law = choice_law(mechanism, facts.n, tuple(prior.concentration.tolist()), per_record(cost))
    return ChosenPosterior(cost=cost, mechanism=mechanism.name(), prior=prior, law=law)


def per_record(budget: Budget) -> Budget:
    """Return the budget with which one record is protected: k of them then lose k times as much.

    >>> from dpbayes_sklearn.privacy.unit import PrivacyUnit
    >>> per_record(Budget(Fraction(1), unit=PrivacyUnit("person", max_records=2))).epsilon
    Fraction(1, 2)
    """
    if budget.unit.max_records == 1:
        return budget
    return Budget(Fraction(budget.epsilon) / budget.unit.max_records, budget.delta)


def _least_noise(counts: SimplexCounts, budget: Budget) -> Geometric | Gaussian:
    """Return the mechanism with less variance on average over the counts."""
    with suppress(ValueError):  # without a delta, or with too small an epsilon
        pure, other = (noise_of_counts(m, counts, budget) for m in (Geometric(), Gaussian()))
        if other.variances.mean() < pure.variances.mean():
            return Gaussian()
    return Geometric()


def _rho(law: DiscreteGaussian, shifts: Shifts) -> Fraction:
    return gaussian_rho(law.parameters[0], shifts) if shifts else Fraction(0)


# The noise of :meth:`SimplexCounts.law` that a mechanism adds.
_NOISE: dict[type[Mechanism], str] = {
    Laplace: "independent",
    LaplaceImproved: "all_but_last",
    Geometric: "zero_sum",
}


def noise_of_counts(mechanism: Mechanism, counts: SimplexCounts, budget: Budget) -> NoiseLaw:
    """Return the law of the noise that a mechanism adds to counts of these public sizes."""
    if isinstance(mechanism, Gaussian):
        return gaussian_law(counts, budget)
    return counts.law(_NOISE[type(mechanism)], budget.unit, Fraction(budget.epsilon))


def gaussian_law(counts: SimplexCounts, budget: Budget) -> DiscreteGaussian:
    """Return the Gaussian noise of the least variance that the budget allows."""
    return drawable(counts.gaussian_law(budget.unit, calibrated_variance(budget)))


def outcome_law(
    mechanism: Mechanism, n: int, prior: tuple[float, ...], budget: Budget
) -> ReleaseLaw:
    """Return the law of what is released; of noisy counts cut to [0, n] if there are two.

    >>> outcome_law(Geometric(), 20, (1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """
    if not isinstance(mechanism, MECHANISMS):
        raise ValueError(f"The {mechanism.name()} mechanism has no law of categories.")
    k, counts = len(prior), SimplexCounts.of_size(n, len(prior))
    if isinstance(mechanism, Auto):
        mechanism = _least_noise(counts, budget)
    if isinstance(mechanism, Exponential):
        return choice_law(mechanism, n, prior, budget)
    if isinstance(mechanism, Gaussian):
        (variance,) = gaussian_law(counts, budget).parameters
        return GaussianNoise(n, k, variance, counts.shifts()[1, 1])
    cells = k - 1 if isinstance(mechanism, LaplaceImproved) else k if k > 2 else 1
    sensitivity = 2 if isinstance(mechanism, Laplace) else min(2, cells)
    return noise_law(n, prior, cells, sensitivity / Fraction(budget.epsilon))
