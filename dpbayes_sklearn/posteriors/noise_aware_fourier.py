"""The posterior of a Dirichlet prior given character sums with noise of a known law."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.count_inference.inference import dirichlet_draws
from dpbayes_sklearn.posteriors.fourier_fit import nonnegative_fit
from dpbayes_sklearn.posteriors.fourier_inference import BooleanCharacters
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.fourier import ReleasedCharacters
from dpbayes_sklearn.statistics.network import Network

__all__ = ["NoiseAwareCharacters"]


@dataclass(frozen=True)
class NoiseAwareCharacters(NetworkPosterior):
    """Inference from released character sums and the public law of their noise.

    For a star with two classes and two-valued features this is the exact posterior. For any other
    graph it is the Dirichlet posterior at the non-negative, consistent tables that are nearest to
    the released sums under the covariance of the noise; see :attr:`exact`. In both cases the
    increment that plug-in needs against negative cells is not used.

    Joint noise is treated as independent noise with the same marginals: the dependence through the
    common radius is ignored, so the posterior is then not exact. A secret number of records is
    taken as it was released: the sums of other characters say nothing about it.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCharacters
    means: Tables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", self._expected_tables())

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released sums."""
        return self._boolean and self.released.independent and not self.released.size_laws

    @property
    def _boolean(self) -> bool:
        """Whether planes of counts can be summed: two classes, two-valued features."""
        return self.network.is_star and set(self.network.sizes) == {2}

    def _infer(self) -> BooleanCharacters:
        target, blocks = self.network.target, self.released.blocks
        return BooleanCharacters(
            float(blocks[target,].item()),
            np.array([blocks[j,].item() for j in range(target)], dtype=float),
            np.array([blocks[j, target].item() for j in range(target)], dtype=float),
            self.released.n,
            self.released.noise,
            self.alphas[target],
            np.stack(self.alphas[:target]),
        )

    @cached_property
    def concentrations(self) -> Tables:
        """Parameters of the Dirichlet of every row, at the fitted counts."""
        tolerance = 1e-3 * float(np.sqrt(self.released.noise.variance))
        released = self.released
        counts = nonnegative_fit(self.network, released.blocks, released.n, tolerance)
        return tuple(a + t for a, t in zip(self.alphas, counts, strict=True))

    def _expected_tables(self) -> Tables:
        if self._boolean:
            inference = self._infer()
            return (*inference.table_means, inference.class_mean)
        return tuple(c / c.sum(axis=-1, keepdims=True) for c in self.concentrations)

    def mean(self) -> Tables:
        """Return the expected tables given the released sums."""
        return self.means

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws of the tables."""
        if self._boolean:
            classes, tables = self._infer().sample(rng, n)
            return (*tables, classes)
        return tuple(
            dirichlet_draws(np.broadcast_to(c, (n, *c.shape)), rng) for c in self.concentrations
        )

    def merge(self, other: NoiseAwareCharacters) -> NoiseAwareCharacters:
        """Return the belief after both batches, whose released sums and noises add up."""
        return replace(self, released=self.released.merge(other.released))
