"""Dirichlet beliefs about the tables of a network: conjugate Bayes on counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.fourier import ReleasedCharacters
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior, dirichlet_draws
from dpbayes_sklearn.counts.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.counts.posterior import NetworkPosterior
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables

__all__ = ["DirichletPosterior", "DirichletPrior"]


@dataclass(frozen=True)
class DirichletPrior:
    """Independent Dirichlet(alpha) beliefs about every row of every table.

    Attributes
    ----------
    network : Network
    alphas : tuple of arrays
        For every node the pseudo-counts of its values, the same for all parents' values.
    inference : {"plug_in", "noise_aware", "adaptive"}
        How released counts are read: as exact counts, as counts with noise of a known law, or
        likewise with a prior that is learned from them.
    ordered : tuple of bool
        For every node, whether its values are adjacent intervals of a number; only the learned
        prior makes use of it. Empty means that none is.
    temperature : float or "auto"
        Power of the features' probabilities in predictions; "auto" if it is learned.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    inference: str = "plug_in"
    ordered: tuple[bool, ...] = ()
    temperature: float | str = 1.0

    def update(self, released: ReleasedCounts | ReleasedCharacters) -> NetworkPosterior:
        """Return the belief after seeing released counts or character sums."""
        if not released.laws:
            return plug_in(self, released)
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


def plug_in(
    prior: DirichletPrior, released: ReleasedCounts | ReleasedCharacters
) -> NetworkPosterior:
    """Read released counts as exact ones."""
    return DirichletPosterior(prior, released)


def noise_aware(
    prior: DirichletPrior, released: ReleasedCounts | ReleasedCharacters
) -> NetworkPosterior:
    """Read released counts as exact ones plus noise of a known law."""
    if isinstance(released, ReleasedCounts):
        return NoiseAwarePosterior(prior.network, prior.alphas, released)
    return NoiseAwareCharacters(prior.network, prior.alphas, released)


def adaptive(
    prior: DirichletPrior, released: ReleasedCounts | ReleasedCharacters
) -> NetworkPosterior:
    """Likewise, with a prior that is learned from the counts; none is learned from characters."""
    if not isinstance(released, ReleasedCounts):
        return noise_aware(prior, released)
    ordered = prior.ordered or (False,) * len(prior.network.sizes)
    return AdaptivePosterior(prior.network, prior.alphas, released, ordered)


_INFERENCE = {"plug_in": plug_in, "noise_aware": noise_aware, "adaptive": adaptive}
"""Inference is a function of the prior and of what was released."""
