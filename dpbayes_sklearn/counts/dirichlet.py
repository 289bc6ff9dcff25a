r"""Dirichlet beliefs about the tables of a network: conjugate Bayes on counts.

Tables may also be drawn, from a tempered posterior or by the exponential mechanism: every row is a
tree of splits (:mod:`dpbayes_sklearn.counts.splits`). The proofs stand with the options of
:mod:`~dpbayes_sklearn.mechanisms`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.fourier import ReleasedCharacters
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior, dirichlet_draws
from dpbayes_sklearn.counts.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.counts.posterior import NetworkPosterior
from dpbayes_sklearn.counts.splits import (
    SplitGrid,
    SplitPriors,
    grid_size,
    largest_feasible,
    network_loss,
    node_losses,
    release_loss,
    release_rho,
    split_priors,
    too_small,
)
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables
from dpbayes_sklearn.mechanisms import MAP, Sampler
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.release import Facts

_OMEGA = 0.2
"""Truncation of probabilities: best of 0.02..0.4 in the naive Bayes experiment where tempering is
needed."""
_LEAST_OMEGA = 1e-9
"""Probabilities are truncated at no less than this, however large epsilon is."""
_LEAST_TAU, _MOST_TAU = 1e-12, 1e9
"""Exponents of the likelihood between which the largest affordable one is looked for."""
_COARSE = 33
"""Points of the grid for ``score="posterior"``, whose score is the mass of a point."""


@dataclass(frozen=True)
class DirichletPrior:
    """Independent Dirichlet(alpha) beliefs about every row of every table."""

    network: Network
    # For every node the pseudo-counts of its values, the same for all parents' values.
    alphas: tuple[FloatArray, ...]
    # How released counts are read: as exact counts, as counts with noise of a known law, or
    # likewise with a prior that is learned from them.
    inference: str = "plug_in"
    # For every node, whether its values are adjacent intervals of a number; only the learned prior
    # makes use of it. Empty means that none is.
    ordered: tuple[bool, ...] = ()
    # Power of the features' probabilities in predictions; "auto" if it is learned.
    temperature: float | str = 1.0

    def update(self, released: ReleasedCounts | ReleasedCharacters) -> NetworkPosterior:
        """Return the belief after seeing released counts or character sums."""
        if not released.laws:
            return DirichletPosterior(self, released)
        return _INFERENCE[self.inference](self, released)


@dataclass(frozen=True)
class DirichletPosterior(NetworkPosterior):
    """Dirichlet(alpha + counts), counts being released ones made non-negative ("plug in")."""

    prior: DirichletPrior
    released: ReleasedCounts | ReleasedCharacters

    @property
    def network(self) -> Network:  # type: ignore[override]
        """Return the graph."""
        return self.prior.network

    @cached_property
    def concentrations(self) -> Tables:
        """Parameters of the Dirichlet of every row."""
        counts = self.released.clipped()
        return tuple(a + t for a, t in zip(self.prior.alphas, counts, strict=True))

    def mean(self) -> Tables:
        """Return alpha / sum(alpha) of every row."""
        return tuple(c / c.sum(axis=-1, keepdims=True) for c in self.concentrations)

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return independent Dirichlet draws of every row."""
        repeated = (np.broadcast_to(c, (n, *c.shape)) for c in self.concentrations)
        return tuple(dirichlet_draws(c, rng) for c in repeated)

    def merge(self, other: DirichletPosterior) -> DirichletPosterior:
        """Return the belief after both batches, whose released counts add up."""
        merged = self.released.merge(other.released)  # type: ignore[arg-type]
        return DirichletPosterior(self.prior, merged)


def noise_aware(
    prior: DirichletPrior, released: ReleasedCounts | ReleasedCharacters
) -> NetworkPosterior:
    """Read released counts as exact ones plus noise of a known law."""
    if isinstance(released, ReleasedCounts):
        return NoiseAwarePosterior(prior.network, prior.alphas, released.with_class())
    return NoiseAwareCharacters(prior.network, prior.alphas, released)


def adaptive(
    prior: DirichletPrior, released: ReleasedCounts | ReleasedCharacters
) -> NetworkPosterior:
    """Likewise, with a prior that is learned from the counts; none is learned from characters."""
    if not isinstance(released, ReleasedCounts):
        return noise_aware(prior, released)
    ordered = prior.ordered or (False,) * len(prior.network.sizes)
    return AdaptivePosterior(prior.network, prior.alphas, released.with_class(), ordered)


_INFERENCE = {"plug_in": DirichletPosterior, "noise_aware": noise_aware, "adaptive": adaptive}
"""Inference is a function of the prior and of what was released."""


class TemperedLaw(NamedTuple):
    r"""A split is drawn with :math:`P(\theta) \propto \theta^{a+\tau k}(1-\theta)^{b+\tau m}`."""

    grid: SplitGrid
    tau: float
    powers: SplitPriors  # For every node the powers (a, b) of its splits.
    # loss, rho: What all draws together cost: epsilon, and zCDP.
    loss: float
    rho: float = math.inf

    def log_weights(self, node: int, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the weights of the grid given the numbers of turns to either side."""
        a, b = self.powers[node]
        return self.grid.log_weights(a + self.tau * left, b + self.tau * right)


class MassLaw(NamedTuple):
    r"""A split is drawn with :math:`P(\theta) \propto \pi(\theta)e^{s\,\xi(\theta)}`.

    Its score :math:`\xi` is the posterior mass of a point of the grid, ``strengths`` are the s.
    """

    grid: SplitGrid
    powers: SplitPriors
    strengths: list[FloatArray]

    def log_weights(self, node: int, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the weights of the grid given the numbers of turns to either side."""
        a, b = self.powers[node]
        score = self.grid.law(a + left, b + right)
        return np.asarray(self.grid.log_weights(a, b) + self.strengths[node][..., None] * score)


def most_turns(facts: Facts) -> tuple[int, int | None]:
    """Return (most records at a split, clip limit of each side or None)."""
    if not facts.laws:
        return facts.n, None
    return 2 * facts.n_bound, facts.n_bound


def sampler_law(mechanism: Sampler, prior: DirichletPrior, n: int, budget: Budget) -> TemperedLaw:
    """Choose grid and tempering for at most n turns; purely private ones if delta buys nothing."""
    rho_left = float(zcdp_rho(budget.epsilon, budget.delta))
    law = _sampler_law(mechanism, prior, n, budget, rho_left)
    pure = rho_left and law.loss <= budget.epsilon
    return _sampler_law(mechanism, prior, n, budget, 0.0) if pure else law


def _sampler_law(
    mechanism: Sampler, prior: DirichletPrior, n: int, budget: Budget, rho_left: float
) -> TemperedLaw:
    epsilon, priors = float(budget.epsilon), split_priors(prior.alphas)

    def grid(omega: float) -> SplitGrid:
        return SplitGrid(omega, mechanism.n_points or grid_size(omega, n))

    def loss(omega: float, tau: float) -> float:
        public = prior.network, grid(omega), priors, tau, n, budget.unit
        return mechanism.n_samples * release_loss(*public)

    def rho(omega: float, tau: float) -> float:
        public = prior.network, grid(omega), priors, tau, n, budget.unit
        return mechanism.n_samples * release_rho(*public)

    def price(omega: float, tau: float) -> float:
        """Return what is spent of epsilon: purely, or by the zCDP that (epsilon, delta) has."""
        if not rho_left:
            return loss(omega, tau)
        return min(loss(omega, tau), epsilon * rho(omega, tau) / rho_left)

    omega, tau = mechanism.omega or _OMEGA, 1.0
    if price(omega, tau) > epsilon:
        tau = largest_feasible(lambda t: price(omega, t), epsilon, _LEAST_TAU, 1.0)
    elif mechanism.omega is None:
        omega = 1 / largest_feasible(
            lambda spread: price(1 / spread, 1.0), epsilon, 1 / omega, 1 / _LEAST_OMEGA
        )
    return TemperedLaw(grid(omega), tau, priors, loss(omega, tau), rho(omega, tau))


def mode_law(
    mechanism: MAP, prior: DirichletPrior, n: int, budget: Budget
) -> TemperedLaw | MassLaw:
    """Return the law that concentrates on the most probable tables, by the mechanism's score."""
    law = _density_law if mechanism.score == "log_posterior" else _mass_law
    return law(mechanism, prior, n, budget)


def _density_law(mechanism: MAP, prior: DirichletPrior, n: int, budget: Budget) -> TemperedLaw:
    grid = SplitGrid(mechanism.omega, mechanism.n_points or grid_size(mechanism.omega, n))
    priors = split_priors(prior.alphas)

    def loss(tau: float) -> float:
        return release_loss(prior.network, grid, _sharpened(priors, tau), tau, n, budget.unit)

    tau = largest_feasible(loss, float(budget.epsilon), _LEAST_TAU, _MOST_TAU)
    return TemperedLaw(grid, tau, _sharpened(priors, tau), loss(tau))


def _sharpened(priors: SplitPriors, tau: float) -> SplitPriors:
    """Return the powers of w * density^max(1, tau), the spacing w being theta (1 - theta)."""
    power = max(1.0, tau)
    return [(1 + power * (a - 1), 1 + power * (b - 1)) for a, b in priors]


def _mass_law(mechanism: MAP, prior: DirichletPrior, n: int, budget: Budget) -> MassLaw:
    grid = SplitGrid(mechanism.omega, mechanism.n_points or _COARSE)
    priors = split_priors(prior.alphas)
    turns = network_loss(
        prior.network,
        [node_losses(np.full(len(a), 2.0), np.ones(len(a))) for a, _ in priors],
        budget.unit,
    )
    most_power = n + max(float((a + b).max(initial=1.0)) for a, b in priors)
    per_turn = float(budget.epsilon) / max(turns, 1.0) - 2 * grid.rounding(most_power)
    if per_turn <= 0:
        too_small(float(budget.epsilon))
    strengths = []
    for a, b in priors:
        moved = [_mass_sensitivity(grid, *split, n) for split in zip(a, b, strict=True)]
        strengths.append(per_turn / (2 * np.array(moved)))
    return MassLaw(grid, priors, strengths)


_mass_sensitivity = lru_cache(maxsize=256)(SplitGrid.mass_sensitivity)


def averaging_error(n_draws: int, delta: float) -> float:
    r"""Return :math:`\sqrt{\ln(2/\delta)/2N}`.

    The average answer of N draws to a query with values in [0, 1] is so close to the posterior mean
    of the query, with probability at least 1 - δ (Hoeffding).

    >>> round(averaging_error(1000, delta=0.05), 3)
    0.043
    """
    return math.sqrt(math.log(2 / delta) / (2 * n_draws))
