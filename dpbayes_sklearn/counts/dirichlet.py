"""Dirichlet beliefs about the tables of a network: conjugate Bayes on counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

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


class Released(Protocol):
    """Counts, or character sums, after noise."""

    @property
    def network(self) -> Network:
        """Return the graph that was counted."""

    def merge(self, other: Any) -> Any:
        """Return both batches together."""

    def clipped(self) -> Tables:
        """Return tables of counts that are not negative."""


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

    def update(self, released: ReleasedCounts) -> NetworkPosterior:
        """Return the belief after seeing released counts."""
        if self.inference == "plug_in" or not released.laws:
            return DirichletPosterior(self, released)
        if self.inference == "adaptive":
            ordered = self.ordered or (False,) * len(self.network.sizes)
            return AdaptivePosterior(self.network, self.alphas, released, ordered)
        return NoiseAwarePosterior(self.network, self.alphas, released)

    def update_fourier(self, released: ReleasedCharacters) -> NetworkPosterior:
        """Return the belief after seeing released character sums; none is learned from them."""
        if self.inference == "plug_in" or not released.laws:
            return DirichletPosterior(self, released)
        return NoiseAwareCharacters(self.network, self.alphas, released)


@dataclass(frozen=True)
class DirichletPosterior(NetworkPosterior):
    """Dirichlet(alpha + counts), counts being released ones made non-negative ("plug in")."""

    prior: DirichletPrior
    released: Released

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
        return DirichletPosterior(self.prior, self.released.merge(other.released))
