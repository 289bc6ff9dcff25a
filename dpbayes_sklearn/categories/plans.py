r"""How the counts of one variable are released: with noise.

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
follows is post-processing.

The mechanisms of the papers that choose a posterior ("exponential", "hellinger", "local") register
their plan in :mod:`~dpbayes_sklearn.papers.choices`.

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

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, singledispatch
from typing import Any

from dpbayes_sklearn._typing import AnyArray, IntArray
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
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
from dpbayes_sklearn.noise import DiscreteGaussian, NoiseLaw, least_noise
from dpbayes_sklearn.noise.discrete_gaussian import drawable
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.gaussian import calibrated_variance, gaussian_rho
from dpbayes_sklearn.release import Facts, OneStepPlan

MECHANISMS = (Auto, Exponential, Gaussian, Geometric, Hellinger, Laplace, LaplaceImproved, Local)
"""The mechanisms that release counts of categories."""

# The noise of :meth:`SimplexCounts.law` that a mechanism adds.
_NOISE: dict[type[Mechanism], str] = {
    Laplace: "independent",
    LaplaceImproved: "all_but_last",
    Geometric: "zero_sum",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoriesPlan(OneStepPlan[SimplexCounts, Dirichlet]):
    """A release of the counts of categories."""

    prior: SimplexPrior

    @property
    def structure(self) -> dict[str, Any]:
        """How many categories there are."""
        return {"kind": "categories", "categories": len(self.prior.concentration)}

    @property
    def what(self) -> str:
        """The counts."""
        return f"counts of {len(self.prior.concentration)} categories"


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts(CategoriesPlan):
    """Noise in the first ``law.size`` counts; a public sum ``n`` determines the rest."""

    law: NoiseLaw
    n: int | None

    def ask(self, statistics: SimplexCounts, known: None) -> list[IntArray]:
        """Return the counts that get noise."""
        return [statistics.counts[..., : self.law.size]]

    def read(self, known: None, answer: Sequence[AnyArray]) -> Dirichlet:
        """Return the posterior given noisy counts."""
        return self.prior.update(ReleasedSimplex(answer[0], self.n, (self.law,)))


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPosterior(CategoriesPlan):
    """No noise, where no privacy is asked for."""

    law: None = None

    def read(self, known: None, answer: SimplexCounts) -> Dirichlet:
        """Return the exact posterior."""
        return self.prior.update(answer.without_noise())


def plan(mechanism: Mechanism, prior: SimplexPrior, facts: Facts, budget: Budget) -> CategoriesPlan:
    """Return how a mechanism releases counts of categories, or refuse what it cannot do."""
    make = categories_plan.dispatch(type(mechanism))
    if budget.infinite and make is not categories_plan.dispatch(object):
        return ExactPosterior(cost=budget, mechanism=mechanism.name(), prior=prior)
    return make(mechanism, prior, facts, budget)


@singledispatch
def categories_plan(
    mechanism: Mechanism, prior: SimplexPrior, facts: Facts, budget: Budget
) -> CategoriesPlan:
    """Return how categories are released, by the type of the mechanism; others are refused."""
    raise ValueError(f"The {mechanism.name()} mechanism cannot release counts of categories.")


@categories_plan.register
def _noise_in_counts(
    mechanism: Auto | Laplace | LaplaceImproved | Geometric | Gaussian,
    prior: SimplexPrior,
    facts: Facts,
    budget: Budget,
) -> NoisyCounts:
    counts = SimplexCounts.of_size(0, len(prior.concentration))
    law = noise_of_counts(mechanism, counts, budget)
    cost, used = budget.without_delta, Geometric if isinstance(mechanism, Auto) else mechanism
    if isinstance(law, DiscreteGaussian):
        shifts = counts.shifts(budget.unit)
        rho = gaussian_rho(law.parameters[0], shifts) if shifts else Fraction(0)
        cost, used = budget._replace(rho=rho), Gaussian
    n = None if budget.unit.size_is_secret else facts.n
    return NoisyCounts(cost=cost, mechanism=used.name(), prior=prior, law=law, n=n)


def noise_of_counts(mechanism: Mechanism, counts: SimplexCounts, budget: Budget) -> NoiseLaw:
    """Return the law of the noise that a mechanism adds to counts of these public sizes."""
    if isinstance(mechanism, Auto):
        either = (Geometric(), Gaussian())
        laws = {m.name(): partial(noise_of_counts, m, counts, budget) for m in either}
        return least_noise("auto", laws)
    if isinstance(mechanism, Gaussian):
        return gaussian_law(counts, budget)
    return counts.law(_NOISE[type(mechanism)], budget.unit, Fraction(budget.epsilon))


def gaussian_law(counts: SimplexCounts, budget: Budget) -> DiscreteGaussian:
    """Return the Gaussian noise of the least variance that the budget allows."""
    return drawable(counts.gaussian_law(budget.unit, calibrated_variance(budget)))
