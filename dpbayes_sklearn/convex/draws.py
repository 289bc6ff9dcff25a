r"""Draws of coefficients from a Gaussian restricted to a ball: the paper's truncated prior.

The ball has a public centre c, the perturbed mode that half of the budget is spent on
(:mod:`~dpbayes_sklearn.convex.mode`), and a radius B, what is nominally known of
the error of c. With the residual :math:`r = t - c^\top x`, clipped to h, and :math:`v = w - c` the
score of a record is

.. math:: \kappa\left(r\,v^\top x - \tfrac12 (v^\top x)^2\right), \qquad \|v\| \le B

which is that of the Gaussian likelihood but for what does not depend on v. Records have a norm of
at most R (one for every number, sign, column of levels and the constant), so
:math:`|v^\top x| \le BR`, and over the ball the score of a record has a range of at most
:math:`\kappa\,a(h, BR)`,

.. math:: a(h, b) = 2hb \text{ if } b \le h, \text{ else } \tfrac12(h + b)^2 .

A record that comes or goes changes the exponent of every w by its score, and the normalisation by
a number within its range: so a draw loses :math:`\kappa\,a`, twice that if a record is replaced,
and k times as much for k records of a person.

With ``coef_bound`` there is no mode: c is 0, h bounds the target itself, and B is declared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, frexp, isqrt, ldexp, sqrt
from typing import Any, Self

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.hull import record_squares
from dpbayes_sklearn.convex.losses import HuberLoss, InWindows, on_lattice
from dpbayes_sklearn.convex.mode import Found, ModePlan
from dpbayes_sklearn.convex.posterior import CoefficientDraws, GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget, Exact
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.release import Facts, Step

REAL_ARITHMETIC = (
    "the Gaussian draws behave as draws of real numbers (they are made in 64-bit floats and "
    "rounded to a public lattice)"
)
_MODE_SHARE = Fraction(1, 2)  # The centre of the draws is found with this part of what is left.
_FLOAT_SPARE = 1 - 2.0**-30  # This factor covers the rounding of floats.
_MOST_EVIDENCE = 10**13  # From this n times epsilon on floats cannot hold the density.
_TARGET_REACH = 2.5  # A target that is drawn without a mode is cut at so many deviations.
_SHARPEST = 1e9  # Exponent of a likelihood at most: less error than data ever have.


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawsPlan(ModePlan):
    """Look, mode, and draws around it; with a declared bound of the coefficients no mode."""

    n_draws: int
    sharp: bool

    @classmethod
    def of(  # type: ignore[override]
        cls,
        mechanism: str,
        prior: GaussianPrior,
        facts: Facts,
        budget: Budget,
        n_draws: int,
        sharp: bool = False,
    ) -> Self:
        """Return the plan, refusing budgets at which floats could not hold the density."""
        if facts.n * budget.epsilon > _MOST_EVIDENCE:
            raise ValueError(
                f"epsilon={float(budget.epsilon):g} is too large for draws of coefficients from "
                f"{facts.n} records; use float('inf') for exact Bayes without privacy."
            )
        plan = cls(
            cost=budget, mechanism=mechanism, conditions=(REAL_ARITHMETIC,), prior=prior,
            facts=facts, n_draws=n_draws, sharp=sharp,
        )  # fmt: skip
        spends, each = any(budget.delta and s.cost.delta for s in plan.steps), plan.draws_budget
        others = sum(Fraction(step.cost.epsilon) ** 2 / 2 for step in plan.steps[:-1])
        rho = n_draws * plan.loss**2 / 8 + others
        cost = budget._replace(delta=each.delta if spends else Fraction(0), rho=rho)
        return replace(plan, cost=cost)

    @property
    def purely(self) -> bool:
        """The mode has pure noise: the delta is for the draws."""
        return True

    @cached_property
    def mode_share(self) -> Fraction:
        """What the look leaves is shared with the draws."""
        left = self.epsilon - self.look_share
        return left * _MODE_SHARE if self.prior.coef_bound is None else Fraction(0)

    @cached_property
    def draws_share(self) -> Fraction:
        """The epsilon of all draws."""
        return self.epsilon - self.look_share - self.mode_share

    @cached_property
    def loss(self) -> Fraction:
        """The range of the log ratio that each draw may have."""
        return loss_of_a_draw(self.draws_share, self.cost.delta, self.n_draws)

    @cached_property
    def draws_budget(self) -> Budget:
        """What the draws spend; a delta if the losses add up to more than their epsilon."""
        needed = self.n_draws * self.loss > self.draws_share
        delta = self.cost.delta if needed else Fraction(0)
        return Budget(self.draws_share, delta, self.cost.unit, self.n_draws * self.loss**2 / 8)

    @cached_property
    def steps(self) -> tuple[Step[LinearRecords, Found], ...]:
        """Look, mode and draws."""
        draws = Step(
            "draws of the coefficients", self.draws_budget, self.draws_law,
            "Gaussian draws in a ball", structure={"kind": "scores in a ball"},
            ask=self.ask_draws, read=self.read_draws, draw=_drawn,
        )  # fmt: skip
        return (self.look, self.mode, draws) if self.mode_share else (self.look, draws)

    def place(self, found: Found) -> tuple[InWindows, FloatArray, float]:
        """Return how records are read, and centre and radius of the ball: all public."""
        squares = record_squares(self.prior.design)
        if self.prior.coef_bound is not None:
            rows = InWindows(found.windows, found.target, _TARGET_REACH, squares)
            return rows, np.zeros(len(squares)), self.prior.coef_bound * _TARGET_REACH
        assert found.rows is not None
        spread = 1 / (found.n * self.with_constant(1.0, found.squares))
        return (
            found.rows,
            on_lattice(found.belief),
            _few_bits(sqrt(float((found.variance + spread).sum()))),
        )

    def weight(self, found: Found) -> float:
        """Return the kappa: that of the posterior, or what a draw may lose."""
        rows, _, radius = self.place(found)
        norm = sqrt(float(rows.squares.sum()))
        worst = self.cost.unit.n_changed * score_range(rows.limit, radius * norm)
        most = _SHARPEST if self.sharp else 1 / self._noise(found)
        return min(float(self.loss) / worst, most) * _FLOAT_SPARE

    def draws_law(self, found: Found) -> dict[str, float]:
        """Return what the loss of a draw follows from."""
        rows, _, radius = self.place(found)
        known = {"limit": rows.limit, "radius": radius, "squares": float(rows.squares.sum())}
        return {**known, "weight": self.weight(found), "draws": self.n_draws}

    def _noise(self, found: Found) -> float:
        """Return the residual variance that is supposed, in deviations of the target."""
        declared = self.prior.noise_variance
        return 1.0 if declared is None else declared / found.target.deviation**2

    def ask_draws(self, records: LinearRecords, found: Found) -> _Gaussian:
        """Return the density of a draw around the centre: sensitive."""
        rows, centre, radius = self.place(found)
        loss, weight = HuberLoss(records, rows, len(centre)), self.weight(found)
        sharpness = max(1.0, weight * self._noise(found)) if self.sharp else 1.0
        precisions = self.with_constant(0.0, self.declared(found) * sharpness)
        linear = -weight * loss.gradient(centre) - precisions * centre
        ball = np.full(len(centre), len(centre) / radius**2)  # the ball, as a prior
        ball[: int(self.prior.design.intercept)] = 0.0
        precision = np.diag(precisions + ball) + weight * loss.products()
        return _Gaussian(precision, linear, radius, self.n_draws)

    def read_draws(self, found: Found, drawn: FloatArray) -> Found:
        """Return the draws, and the belief they leave."""
        _, centre, radius = self.place(found)
        seen = self.weight(found) * found.n * self.with_constant(1.0, found.squares)
        precisions = self.with_constant(0.0, self.declared(found))
        widest = radius**2 / (len(seen) + 2)  # the variance of a uniform draw from the ball
        own = np.minimum(1 / (precisions + seen), widest)
        draws, gain = centre + drawn, seen / (precisions + seen)
        mean, error = draws.mean(axis=0), own / len(draws)
        expected = self.usual(found) if self.prior.coef_bound is not None else found.variance
        if self.prior.inference != "noise_aware":
            return replace(found, draws=draws, belief=mean, variance=own + error)
        variance = 1 / (gain**2 / error + 1 / expected)
        belief = centre + variance * gain / error * (mean - centre)
        return replace(found, draws=draws, belief=belief, variance=variance)

    def posterior(self, found: Found) -> CoefficientDraws:
        """Return the belief, with the draws on the scale of the bounds."""
        belief = super().posterior(found)
        first = 0 if self.prior.design.intercept else 1
        drawn = np.column_stack([np.zeros((len(found.draws), first)), found.draws])
        moved = drawn @ found.windows.to_bounds().T * found.target.deviation
        moved[:, 0] += found.target.centre
        return CoefficientDraws(**vars(belief), draws=moved)


@dataclass(frozen=True)
class _Gaussian:
    """**Sensitive:** the density of a draw."""

    precision: FloatArray
    linear: FloatArray
    radius: float
    n_draws: int


def _drawn(density: _Gaussian, law: Any, noise: Noise) -> FloatArray:
    return noise.ball(density.precision, density.linear, density.radius, density.n_draws)


def _few_bits(radius: float) -> float:
    """Round up to eight bits, so that multiples of a power of two of it are exact.

    >>> _few_bits(0.3)
    0.30078125
    """
    part, power = frexp(radius)
    return ldexp(ceil(256 * part), power - 8)


def score_range(limit: float, reach: float) -> float:
    r"""Return the range of :math:`ru - u^2/2` over :math:`|r| \le` limit, :math:`|u| \le` reach.

    >>> score_range(1.0, 0.5), score_range(1.0, 1.0), score_range(1.0, 3.0)
    (1.0, 2.0, 8.0)
    """
    return 2 * limit * reach if reach <= limit else (limit + reach) ** 2 / 2


def loss_of_a_draw(epsilon: Fraction, delta: Exact, n_draws: int) -> Fraction:
    r"""Return the range of the log ratio that each of N draws may have.

    :math:`\varepsilon/N`, or with a delta :math:`\sqrt{8\rho/N}` if that is more: a draw whose log
    ratio has a range of w is :math:`w^2/8`-zCDP (``counts.splits.release_rho``).

    >>> float(loss_of_a_draw(Fraction(1), Fraction(1, 10**6), 50))
    0.062...
    """
    squared = 8 * Fraction(zcdp_rho(epsilon, delta)) / n_draws
    root = Fraction(isqrt(int(squared * 10**40)), 10**20)
    return max(epsilon / n_draws, root)
