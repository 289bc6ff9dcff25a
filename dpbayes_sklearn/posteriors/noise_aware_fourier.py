"""What a Dirichlet prior becomes when character sums are seen through noise of a known law."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.count_inference.cell_weights import NoiseLaw
from dpbayes_sklearn.posteriors.count_inference.inference import dirichlet_draws
from dpbayes_sklearn.posteriors.fourier_fit import nonnegative_fit
from dpbayes_sklearn.posteriors.fourier_inference import BooleanCharacters, SumLaw
from dpbayes_sklearn.posteriors.joint_law import MarginalLaw
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
    the released sums under the covariance of the noise: :attr:`exact` tells. In both cases the
    increment that plug-in needs against negative cells is not used.

    Noise that all sums share is taken as if each sum had a noise of its own, of the same law: what
    the entries tell about their common radius is left out, so the posterior is not exact. After
    several batches of which one has such noise, the nearest tables are used.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCharacters

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released sums."""
        return self._boolean and not self.released.joint

    @property
    def _boolean(self) -> bool:
        """Whether the law of every sum's noise is at hand, and planes of counts can be summed."""
        known = not self.released.joint or len(self.released.scales) == 1
        return known and self.network.is_star and set(self.network.sizes) == {2}

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was released; everything else follows from it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def _law(self) -> SumLaw:
        if self.released.joint:
            return MarginalLaw(self.released.joint[0])
        return NoiseLaw([float(scale) for scale in self._scales])

    @property
    def _scales(self) -> list[Fraction]:
        return [scale for scale in self.released.scales if isinstance(scale, Fraction)]

    @property
    def _variance(self) -> float:
        """Variance of the noise of a sum, all batches together."""
        joint = sum(law.variance for law in self.released.joint)
        return joint + 2.0 * sum(float(scale) ** 2 for scale in self._scales)

    def _infer(self) -> BooleanCharacters:
        target, blocks = self.network.target, self.released.blocks
        return BooleanCharacters(
            float(blocks[target,].item()),
            np.array([blocks[j,].item() for j in range(target)], dtype=float),
            np.array([blocks[j, target].item() for j in range(target)], dtype=float),
            self.released.n,
            self._law,
            self.alphas[target],
            np.stack(self.alphas[:target]),
        )

    @cached_property
    def concentrations(self) -> Tables:
        """Parameters of the Dirichlet of every row, at the fitted counts."""
        tolerance = 1e-3 * float(np.sqrt(self._variance))
        released = self.released
        counts = nonnegative_fit(self.network, released.blocks, released.n, tolerance)
        return tuple(a + t for a, t in zip(self.alphas, counts, strict=True))

    @cached_property
    def _mean(self) -> Tables:
        if self._boolean:
            inference = self._infer()
            return (*inference.table_means, inference.class_mean)
        return tuple(c / c.sum(axis=-1, keepdims=True) for c in self.concentrations)

    def mean(self) -> Tables:
        """Return the expected tables given the released sums."""
        return self._mean

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
