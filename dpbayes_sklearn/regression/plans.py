"""How moments of a regression are released: a plan for each mechanism.

The proofs stand with the mechanisms' options. Every choice is made from the number of records, the
columns' domains and the budget; what a later step needs besides is released by an earlier one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch

import numpy as np

from dpbayes_sklearn.data.records import LocalRecords
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
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.gaussian import composed_rho
from dpbayes_sklearn.regression.ball_draws import (
    REAL_ARITHMETIC,
    BallDrawPlan,
    check_draws,
    draws_cost,
    release_draws,
)
from dpbayes_sklearn.regression.design import Design, Reach, Scale
from dpbayes_sklearn.regression.gram import (
    NARROWEST,
    GaussianGram,
    GramMatrix,
    gaussian_gram,
    gram_block,
    noise_of_products,
)
from dpbayes_sklearn.regression.location import Located
from dpbayes_sklearn.regression.mode import check_mode, shares_of
from dpbayes_sklearn.regression.moments import Block, Moments, pairs_block, whole_block
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.record_sums import RADII
from dpbayes_sklearn.regression.release import (
    NoisyMoments,
    Products,
    Stages,
    by_levels,
    gaussian_stages,
    noisy_moments,
    regression_posterior,
    release_mode,
    scaled_by_residuals,
    stages,
    two_stages,
    uneven,
)
from dpbayes_sklearn.regression.step_noise import Shares, gaussian_grid, widening
from dpbayes_sklearn.release import Expense, Facts, Plan, less_noise

_WIDER_FROM, _LARGER_FROM, _LARGER_FROM_EACH = 1000.0, 3000.0, 500.0
"""Records times epsilon from which windows are wider, and from which bounds of a record's norm are
larger: in all, and for each column. The more columns, the more the bound saves."""

_GAUSSIAN_WIDER_FROM = 1500.0
"""The same of Gaussian noise, for windows and for the bound of a record's norm."""

_MODE_COLUMNS = 20
"""Columns beyond which moments with Gaussian noise are better than a purely private mode."""

_GAUSSIAN_MODE_BELOW = 40
"""Records times epsilon for each column below which a mode with Gaussian noise beats moments."""

_SHARPEST = 1e9
"""Exponent of the likelihood at most: a regression drawn with less error than data ever have."""

_MOST_COORDINATES = 4000
"""More need tens of gigabytes: a matrix of 1,200 takes one, and half a minute."""

_MOST_DRAWS, _MATRICES = 1_000_000, 200
"""Numbers, and matrices, that the public simulation of an increment draws at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsPlan(Plan[Moments, GaussianPosterior]):
    """A release of a regression."""

    prior: GaussianPrior
    facts: Facts

    def _known(self, statistics: Moments) -> Moments:
        """Return the queries with what is public: who is protected, and how many records."""
        protected = statistics.protecting(self.cost.unit)
        return protected.sized(self.facts) if self.facts.laws else protected


class ExactMoments(MomentsPlan):
    """No noise: no privacy is asked for."""

    def release(self, statistics: Moments, noise: Noise) -> GaussianPosterior:
        """Return the exact posterior."""
        return self.prior.update(self._known(statistics).without_noise())


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPlan(MomentsPlan):
    """A release in steps that share the budget."""

    shares: Shares

    @property
    def steps(self) -> tuple[Expense, ...]:
        """The steps, each with its part of epsilon; Gaussian noise shares rho, not epsilon."""
        if self.shares.gaussian:
            return super().steps
        names = ("place of the target", "places of columns", "means of two-valued columns",
                 "mean of the target", "products of columns and target", "residuals",
                 "residuals weighted by columns", "correlations of columns")  # fmt: skip
        unit, shares = self.cost.unit, self.shares
        parts = zip(names, (*shares[:6], shares.uneven, shares.pairs), strict=True)
        return tuple(Expense(what, Budget(own, unit=unit)) for what, own in parts if own)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyProducts(SharedPlan):
    """Noise in the products of all columns and the target, in one stage or in two."""

    stages: Stages = Stages.MOMENTS

    def release(self, statistics: Moments, noise: Noise) -> GaussianPosterior:
        """Release places, products, the target's mean and the residuals."""
        moments, shares = self._known(statistics), self.shares
        if self.stages is Stages.MODE:
            return release_mode(moments, self.prior, self.cost, noise)
        wider = _GAUSSIAN_WIDER_FROM if shares.gaussian else _WIDER_FROM
        products = Products(self._block, widening(self._n_epsilon, wider))
        if self.stages is Stages.BOTH:
            return two_stages(moments, self.prior, self._in_two_stages, products, noise)
        return regression_posterior(moments, self.prior, shares, products, noise)

    @property
    def _n_epsilon(self) -> float:
        return self.facts.n * float(self.shares.per_record)

    def _block(self, places: Located) -> GramMatrix | Block | GaussianGram:
        """Return the products of values in their windows."""
        return self.products(places.reach(self.prior.design))

    def products(self, reach: Reach | None = None) -> GramMatrix | Block | GaussianGram:
        """Return the products of values in windows of this reach, or of a usual one."""
        design, unit, both = self.prior.design, self.cost.unit, self.stages is Stages.BOTH
        deviations = norm_deviations(self._n_epsilon, design, both)
        if self.shares.gaussian:
            deviations = deviations if both else gaussian_deviations(self._n_epsilon)
            return gaussian_gram(design, reach, deviations).protecting(unit)
        if reach is not None:
            reach = reach._replace(known=both)
        return gram_block(design, unit, reach, deviations)

    def beats(self, other: NoisyProducts) -> bool:
        """Tell which has less variance on average over the released products.

        Two stages are better than a mode, and that is better than one stage of moments, unless
        columns are many.
        """
        order = [Stages.BOTH, Stages.MODE, Stages.MOMENTS]
        if len(self.prior.design.features) > _MODE_COLUMNS:
            order = [Stages.BOTH, Stages.MOMENTS, Stages.MODE]
        if self.stages is not other.stages:
            return order.index(self.stages) < order.index(other.stages)
        mine, theirs = (
            noise_of_products(plan.prior.design, plan.products(), plan.share_of_products)
            for plan in (self, other)
        )
        return mine < theirs

    @property
    def share_of_products(self) -> Fraction:
        """Part of epsilon, or of rho, that the products have; in two stages, those of residuals."""
        both = self.stages is Stages.BOTH
        return (self._in_two_stages if both else self.shares).model

    @property
    def _in_two_stages(self) -> Shares:
        return self.shares.in_two_stages(self.facts.n, len(self.prior.design.features))


@dataclass(frozen=True, kw_only=True, eq=False)
class ChebyshevSums(SharedPlan):
    """Noise in the sums of Chebyshev polynomials, raised so that moments need no repair."""

    stealth: float

    def release(self, statistics: Moments, noise: Noise) -> GaussianPosterior:
        """Release all sums at once."""
        moments, shares, unit = self._known(statistics), self.shares, self.cost.unit
        design = moments.design
        block = whole_block(design).protecting(unit)
        products = Products(lambda _: block, widening(moments.n * float(shares.per_record)))
        noisy, places = noisy_moments(moments, shares, products, noise)
        moments = moments.knowing(places.share_known)
        increment = moment_increment(design, self.stealth, unit) / float(shares.model)
        released = noisy.released(places.window, increment)
        found = self.prior.update(released, places, uneven=uneven(moments, shares, noise))
        return scaled_by_residuals(found, moments, shares, noise)


class PerturbedMode(MomentsPlan):
    """The mode of a robust posterior, its gradient perturbed."""

    def release(self, statistics: Moments, noise: Noise) -> GaussianPosterior:
        """Release the mode."""
        return release_mode(self._known(statistics), self.prior, self.cost, noise)


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnCoefficients(MomentsPlan):
    """Draws of the coefficients from a tempered posterior, or of one near its mode."""

    n_draws: int
    sharp: bool

    def release(self, statistics: Moments, noise: Noise) -> GaussianPosterior:
        """Draw the coefficients."""
        return release_draws(
            self._known(statistics), self.prior, self.cost, noise, self._law, self.n_draws
        )

    def _law(self, affordable: float, variance: float) -> BallDrawPlan:
        if not self.sharp:
            return BallDrawPlan(min(affordable, 1 / variance), 1.0, self.n_draws)
        weight = min(affordable, _SHARPEST / variance)
        return BallDrawPlan(weight, max(1.0, weight * variance), 1)


def plan(mechanism: Mechanism, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    """Return how a regression is released; what cannot be released is refused."""
    make = moments_plan.dispatch(type(mechanism))
    if budget.infinite and make is not moments_plan.dispatch(object):
        cost = budget.without_delta
        return ExactMoments(cost=cost, mechanism=mechanism.name(), prior=prior, facts=facts)
    if prior.design.width > _MOST_COORDINATES:
        raise ValueError(
            f"The model has {prior.design.width} coefficients, more than {_MOST_COORDINATES}: "
            "merge categories or leave out columns."
        )
    made: MomentsPlan = make(mechanism, prior, facts, budget)
    return made


def structure_of(prior: GaussianPrior, facts: Facts, unit: PrivacyUnit) -> Moments:
    """Return queries of records that nobody has, with these public facts."""
    return Moments(prior.design, Scale(0.0, 1.0), LocalRecords([]), unit, facts)


@singledispatch
def moments_plan(
    mechanism: Mechanism, prior: GaussianPrior, facts: Facts, budget: Budget
) -> MomentsPlan:
    """Return how moments are released, by the type of the mechanism; others are refused."""
    raise ValueError(f"The {mechanism.name()} mechanism cannot release moments statistics.")


def mechanism_names() -> set[str]:
    """Return the names of the mechanisms that release a regression.

    >>> sorted(mechanism_names())
    ['auto', 'fourier', 'gaussian', 'laplace', 'map', 'sampler']
    """
    return registered_names(moments_plan)


@moments_plan.register
def _laplace(
    mechanism: Laplace, prior: GaussianPrior, facts: Facts, budget: Budget
) -> NoisyProducts:
    shares = laplace_shares(prior, facts.n, budget)
    shares.grid(prior.design, facts.n)  # refuses noise that cannot be drawn
    how = stages(structure_of(prior, facts, budget.unit), prior, budget)
    return NoisyProducts(
        cost=budget.without_delta,
        mechanism=mechanism.name(),
        prior=prior,
        facts=facts,
        shares=_with_pairs(shares, prior.design, facts.n, how),
        stages=how,
    )


def _with_pairs(shares: Shares, design: Design, n: int, how: Stages) -> Shares:
    """Return shares with one for the correlations of numbers, if there are two stages."""
    if how is not Stages.BOTH or not design.intercept:
        return shares
    return shares.with_pairs(n, pairs_block(design).l1_sensitivity)


@moments_plan.register
def _gaussian(
    mechanism: Gaussian, prior: GaussianPrior, facts: Facts, budget: Budget
) -> NoisyProducts:
    shares = gaussian_shares(prior, facts.n, budget)
    cost = budget._replace(rho=shares.total)
    how = gaussian_stages(prior.design, facts.n, shares, prior.inference)
    return NoisyProducts(
        cost=cost,
        mechanism=mechanism.name(),
        prior=prior,
        facts=facts,
        shares=_with_pairs(shares, prior.design, facts.n, how),
        stages=how,
    )


@moments_plan.register
def _(mechanism: Auto, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    """Take what is better by public facts.

    A mode with Gaussian noise, of many columns, is better than one with pure noise, and than
    moments if there are few records for each column, or many levels.
    """
    public = prior, facts, budget
    best = pure = _laplace(Laplace(), *public)
    if pure.stages is not Stages.MODE or by_levels(prior.design) == 1:
        best = less_noise(pure, lambda: _gaussian(Gaussian(), *public))
    records = facts.n * float(best.shares.per_record)
    few = records < _GAUSSIAN_MODE_BELOW * len(prior.design.features)
    if (few or best.stages is Stages.MODE) and prior.inference == "noise_aware":
        with suppress(ValueError):  # if there is no exact noise, or more columns than a mode has
            mode = _map(MAP(), *public)
            return mode if mode.cost.delta else best
    return best


@moments_plan.register
def _(mechanism: Fourier, prior: GaussianPrior, facts: Facts, budget: Budget) -> ChebyshevSums:
    # only matrix noise gains if signs are centred
    shares = laplace_shares(prior, facts.n, budget, centre_signs=False)
    shares.grid(prior.design, facts.n)
    return ChebyshevSums(
        cost=budget.without_delta,
        mechanism=mechanism.name(),
        prior=prior,
        facts=facts,
        shares=shares,
        stealth=mechanism.stealth,
    )


@moments_plan.register
def _(mechanism: Sampler, prior: GaussianPrior, facts: Facts, budget: Budget) -> DrawnCoefficients:
    structure = structure_of(prior, facts, budget.unit)
    check_draws(structure, prior, budget)
    rho, needs_delta = draws_cost(structure, prior, budget, mechanism.n_samples)
    delta = budget.delta if needs_delta else Fraction(0)
    return DrawnCoefficients(
        cost=budget._replace(delta=delta, rho=rho),
        mechanism=mechanism.name(),
        conditions=(REAL_ARITHMETIC,),
        prior=prior,
        facts=facts,
        n_draws=mechanism.n_samples,
        sharp=False,
    )


@moments_plan.register
def _map(mechanism: MAP, prior: GaussianPrior, facts: Facts, budget: Budget) -> MomentsPlan:
    structure, name = structure_of(prior, facts, budget.unit), mechanism.name()
    check_draws(structure, prior, budget)
    cost = budget.without_delta
    if prior.coef_bound is None:
        mode = check_mode(structure, shares_of(structure, prior, budget).model, budget)
        cost = budget._replace(rho=None) if mode.needs_delta else cost
        return PerturbedMode(cost=cost, mechanism=name, prior=prior, facts=facts)
    return DrawnCoefficients(
        cost=cost,
        mechanism=name,
        conditions=(REAL_ARITHMETIC,),
        prior=prior,
        facts=facts,
        n_draws=1,
        sharp=True,
    )


def laplace_shares(
    prior: GaussianPrior, n: int, budget: Budget, *, centre_signs: bool = True
) -> Shares:
    """Return the shares of epsilon that the steps of a regression have."""
    return Shares.of(
        budget,
        n,
        int(prior.design.numbers.sum()),
        int(prior.design.signs.sum()) * centre_signs,
        mean=prior.design.intercept,
        residuals=prior.noise_variance is None,
        weighted=_weighted(prior),
    )


def _weighted(prior: GaussianPrior) -> int:
    """Return how many weighted sums of residuals intervals of coefficients need."""
    wanted = prior.noise_variance is None and prior.inference == "noise_aware"
    return wanted * (prior.design.width + 1)


def gaussian_shares(prior: GaussianPrior, n: int, budget: Budget) -> Shares:
    """Return the shares of rho that the steps of a regression have."""
    design, (epsilon, delta, *_) = prior.design, budget
    per_record = Fraction(zcdp_rho(epsilon, delta)) / budget.unit.max_records**2
    grid = gaussian_grid(design, n, per_record)
    size = design.width + 2
    numbers = size * (3 * size // 2 + 2 * len(RADII) + 5)  # at most so many, in two stages
    return Shares.of_rho(
        composed_rho(epsilon, delta, numbers, grid**2 // NARROWEST),
        budget,
        n,
        int(design.numbers.sum()),
        int(design.signs.sum()),
        mean=design.intercept,
        residuals=prior.noise_variance is None,
        weighted=_weighted(prior),
    )


def norm_deviations(n_epsilon: float, design: Design, two_stages: bool = False) -> float:
    """Return the deviations of a record's squared norm beyond which it is scaled.

    In two stages scaling concerns the change to the first one only: more records may be scaled.
    """
    records = max(_LARGER_FROM, _LARGER_FROM_EACH * len(design.features))
    return widening(n_epsilon, records) ** (2 if two_stages else 4)


def gaussian_deviations(n_epsilon: float) -> float:
    """Return the same for Gaussian noise in one stage."""
    return widening(n_epsilon, _GAUSSIAN_WIDER_FROM) ** 2


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
