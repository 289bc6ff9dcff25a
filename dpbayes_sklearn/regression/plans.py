"""How a linear regression is released: a plan for each mechanism.

Moments between the declared bounds are released in one step, as the papers do: their noise is
relative to the bounds. The engine of convex models is what "auto" chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, singledispatch
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.draws import DrawsPlan
from dpbayes_sklearn.convex.linear import LinearPlan
from dpbayes_sklearn.convex.mode import MOST_PARAMETERS, ModePlan
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.mechanisms import (
    MAP,
    Auto,
    Fourier,
    Gaussian,
    Laplace,
    Mechanism,
    Sampler,
    registered_names,
)
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.gaussian import composed_rho
from dpbayes_sklearn.regression.gram import (
    NARROWEST,
    GaussianGram,
    GramMatrix,
    gaussian_gram,
    gram_block,
)
from dpbayes_sklearn.regression.inference import update
from dpbayes_sklearn.regression.moments import (
    Block,
    NoisyMoments,
    exact_moments,
    gram,
    largest_grid,
    whole_block,
)
from dpbayes_sklearn.release import Facts, Plan, Step, StepPlan

LinearRelease = Plan[LinearRecords, GaussianPosterior]

_MISSING_SHARE = Fraction(1, 50)  # The number of records without a target gets this part.
_SEEN = 3.5  # It is believed if it is so many standard deviations above 0.
_OF_VARIANCE = 2**10  # Gaussian noise has a variance below 2**80, while scales are below 2**50.
_MOST_DRAWS, _MATRICES = 1_000_000, 200
"""Numbers, and matrices, that the public simulation of an increment draws at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactMoments(Plan[LinearRecords, GaussianPosterior]):
    """No noise: no privacy is asked for."""

    prior: GaussianPrior
    facts: Facts

    def release(self, statistics: LinearRecords, noise: Noise) -> GaussianPosterior:
        """Return the exact posterior."""
        return update(self.prior, exact_moments(statistics))


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsPlan(StepPlan[LinearRecords, GaussianPosterior]):
    """Noise in the products of all columns and the target."""

    prior: GaussianPrior
    facts: Facts
    block: GramMatrix | Block | GaussianGram
    grid: int
    law: NoiseLaw
    products: Budget  # What the products spend.
    stealth: float = 0.0  # Of Chebyshev sums: the chance that they need no repair; 0 for none.

    @cached_property
    def steps(self) -> tuple[Step[LinearRecords, Any], ...]:
        """How many records have no target, and the products."""
        products: Step[LinearRecords, Any] = Step(
            "products of columns and target", self.products, self.law,
            ask=self.ask_products, read=self.read_products, structure=self._structure,
        )  # fmt: skip
        if self.cost.unit.size_is_secret:  # records without a target are left out
            return (products,)
        share = Fraction(self.cost.epsilon) - Fraction(self.products.epsilon)
        law = DiscreteLaplace.of(laplace_scale(self.cost.unit.max_records, share), [1])
        missing: Step[LinearRecords, Any] = Step(
            "records without a target", Budget(share, unit=self.cost.unit), law,
            ask=lambda records, known: [np.array([records.n_missing])],
            read=self.read_missing, structure="records without a target",
        )  # fmt: skip
        return missing, products

    @property
    def _structure(self) -> dict[str, Any]:
        design, block = self.prior.design, self.block
        columns = np.concatenate([[-1], design.column, [-2]])
        kinds = np.where(design.levels, "level", np.where(design.numbers, "number", "sign"))
        return {
            "kind": "products", "grid": self.grid, "rows": block.rows, "columns": block.columns,
            "kinds": ["constant", *kinds.tolist(), "number"], "column": columns,
            "weights": GramMatrix.of(design).weights,
        }  # fmt: skip

    def read_missing(self, known: None, noisy: list[IntArray]) -> int:
        """Return how many records have a target."""
        missing, law = float(noisy[0][0]), self.steps[0].law
        seen = missing > _SEEN * float(law.variance()) ** 0.5
        return int(max(1, self.facts.n - round(missing) * seen))

    def ask_products(self, records: LinearRecords, known: int | None) -> list[IntArray]:
        """Return the sums, in the order of the law."""
        exact = gram(records, self.grid)[self.block.rows, self.block.columns]
        return np.split(exact, np.cumsum(self.law.sizes)[:-1])

    def read_products(self, known: int | None, noisy: list[IntArray]) -> GaussianPosterior:
        """Return the belief that the moments leave."""
        found = NoisyMoments.of(self.prior.design, self.facts.n if known is None else known)
        unit = float(self.grid) ** 2
        found.put(self.block, np.concatenate(noisy) / unit, self.law.variances / unit**2)
        return update(self.prior, found.released(self.increment))

    @property
    def increment(self) -> float:
        """What is added to every diagonal entry."""
        if not self.stealth:
            return 0.0
        whole = moment_increment(self.prior.design, self.stealth, self.cost.unit)
        return whole / float(self.products.epsilon)


def plan(mechanism: Mechanism, prior: GaussianPrior, facts: Facts, budget: Budget) -> LinearRelease:
    """Return how a regression is released; what cannot be released is refused."""
    make = linear_plan.dispatch(type(mechanism))
    if not budget.unit.whole_records:
        raise ValueError("Linear regression protects whole records: privacy_unit='record'.")
    if budget.infinite and make is not linear_plan.dispatch(object):
        cost = budget.without_delta
        return ExactMoments(cost=cost, mechanism=mechanism.name(), prior=prior, facts=facts)
    if prior.design.width > MOST_PARAMETERS:
        raise ValueError(
            f"The model has {prior.design.width} coefficients, more than {MOST_PARAMETERS}: "
            "merge categories or leave out columns."
        )
    made: LinearRelease = make(mechanism, prior, facts, budget)
    return made


@singledispatch
def linear_plan(
    mechanism: Mechanism, prior: GaussianPrior, facts: Facts, budget: Budget
) -> LinearRelease:
    """Return how a regression is released, by the type of the mechanism; others are refused."""
    raise ValueError(f"The {mechanism.name()} mechanism cannot release moments statistics.")


def mechanism_names() -> set[str]:
    """Return the names of the mechanisms that release a regression.

    >>> sorted(mechanism_names())
    ['auto', 'fourier', 'gaussian', 'laplace', 'map', 'sampler']
    """
    return registered_names(linear_plan)


def _of_products(budget: Budget) -> Fraction:
    """Return the part of epsilon that the products have."""
    epsilon = Fraction(budget.epsilon)
    return epsilon if budget.unit.size_is_secret else epsilon * (1 - _MISSING_SHARE)


@linear_plan.register
def _(mechanism: Laplace, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    block = gram_block(prior.design, budget.unit)
    return _with_noise(mechanism, prior, facts, budget, block)


@linear_plan.register
def _(mechanism: Fourier, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    block = whole_block(prior.design).protecting(budget.unit)
    return _with_noise(mechanism, prior, facts, budget, block, mechanism.stealth)


def _with_noise(
    mechanism: Mechanism,
    prior: GaussianPrior,
    facts: Facts,
    budget: Budget,
    block: GramMatrix | Block,
    stealth: float = 0.0,
) -> MomentsPlan:
    share, size = _of_products(budget), prior.design.width + 2
    scale = 2 * budget.unit.n_changed * size**2 / float(share)
    grid = largest_grid(facts.n_bound, scale)
    return MomentsPlan(
        cost=budget.without_delta,
        mechanism=mechanism.name(),
        prior=prior,
        facts=facts,
        block=block,
        grid=grid,
        law=block.law(share, grid),
        products=Budget(share, unit=budget.unit),
        stealth=stealth,
    )


@linear_plan.register
def _(mechanism: Gaussian, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    share, block = _of_products(budget), gaussian_gram(prior.design).protecting(budget.unit)
    least = float(zcdp_rho(share, budget.delta))  # exact composition finds no less
    widest = math.sqrt(float(block.bound / min(block.weights)) / max(2 * least, 1e-300))
    grid = largest_grid(facts.n_bound, _OF_VARIANCE * widest)
    rho = Fraction(composed_rho(share, budget.delta, len(block), grid**2 // NARROWEST))
    products = Budget(share, budget.delta, budget.unit, rho)
    missing = Fraction(budget.epsilon) - share
    return MomentsPlan(
        cost=budget._replace(rho=rho + missing**2 / 2),
        mechanism=mechanism.name(),
        prior=prior,
        facts=facts,
        block=block,
        grid=grid,
        law=block.law(rho, grid),
        products=products,
    )


@linear_plan.register
def _(mechanism: Auto, prior: GaussianPrior, facts: Facts, budget: Budget) -> LinearRelease:
    """Take the whole recipe if there are enough records, otherwise a mode alone."""
    if prior.inference == "noise_aware" and LinearPlan.suits(prior, facts, budget):
        return LinearPlan(
            cost=budget.without_delta, mechanism=MAP().name(), prior=prior, facts=facts
        )
    return ModePlan.of(MAP().name(), prior, facts, budget)


@linear_plan.register
def _(mechanism: MAP, prior: GaussianPrior, facts: Facts, budget: Budget) -> LinearRelease:
    if prior.coef_bound is not None:
        return DrawsPlan.of(mechanism.name(), prior, facts, budget, 1, sharp=True)
    return ModePlan.of(mechanism.name(), prior, facts, budget)


@linear_plan.register
def _(mechanism: Sampler, prior: GaussianPrior, facts: Facts, budget: Budget) -> LinearRelease:
    return DrawsPlan.of(mechanism.name(), prior, facts, budget, mechanism.n_samples)


@lru_cache(maxsize=64)
def moment_increment(design: Design, stealth: float, unit: PrivacyUnit = RECORD) -> float:
    """Return the ``stealth`` quantile of max(0, -smallest eigenvalue of the noise) at epsilon 1.

    On [-1, 1] the characters are Chebyshev polynomials, x and 2x² - 1. Raising the constant's
    coefficient by 2s raises every sum of squares by s, so moments plus noise plus s times the
    identity are positive semi-definite with this probability. Found by simulating the public
    noise law with a fixed generator: no data, so no cost. Noise shrinks as 1/epsilon.
    """
    block, simulated, grid = whole_block(design).protecting(unit), Noise(random_source(0)), 2**10
    law, smallest = block.law(Fraction(1), grid), list[float]()
    while len(smallest) < _MATRICES:  # several at a time, of wide tables few
        many = min(_MATRICES - len(smallest), 1 + _MOST_DRAWS // law.size)
        for sums in simulated.draw(law, many) / (law.grid * grid**2):
            noise = NoisyMoments.of(design, 0)
            noise.put(block, sums, law.variances / grid**4)
            smallest.append(float(np.linalg.eigvalsh(noise.gram)[0]))
    return max(0.0, float(np.quantile(-np.array(smallest), stealth, method="higher")))
