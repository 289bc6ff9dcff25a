"""What a Dirichlet prior becomes when counts are seen through noise of a known law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.posteriors.network_posterior import NetworkPosterior
from dpbayes_sklearn.posteriors.noisy_counts import StarInference, infer_star
from dpbayes_sklearn.statistics.counts import ReleasedCounts, Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["NoiseAwarePosterior"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseAwarePosterior(NetworkPosterior):
    """Exact Bayes on released counts and the public law of their noise.

    For a star (naive Bayes) all tables are read together, through the class counts they share. In
    any other graph every family's table is read by itself, the number of records in each state of
    the parents being unknown but for what that table says.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCounts

    @cached_property
    def _stars(self) -> list[StarInference]:
        """One star for naive Bayes, else one for every family."""
        z, alphas, scales = self.released.tables, self.alphas, self.released.scales
        if self.network.is_star:
            return [self._star(z[-1], scales[-1], alphas[-1], z[:-1], scales[:-1], alphas[:-1])]
        stars = []
        for table, law, alpha in zip(z, scales, alphas, strict=True):
            states = prod(table.shape[:-1])
            # without parents there is one state, which all n records are in
            total, known = np.full(states, self.released.n), () if states == 1 else (np.inf,)
            rows = table.reshape(states, -1)
            stars.append(self._star(total, known, np.ones(states), [rows], [law], [alpha]))
        return stars

    def _star(
        self,
        class_counts: npt.NDArray[np.int64],
        class_scales: Sequence[Fraction | float],
        class_alpha: FloatArray,
        tables: Sequence[npt.NDArray[np.int64]],
        table_scales: Sequence[Sequence[Fraction]],
        table_alphas: Sequence[FloatArray],
    ) -> StarInference:
        return infer_star(
            class_counts,
            tables,
            self.released.n,
            class_scales=[float(b) for b in class_scales],
            table_scales=[[float(b) for b in scales] for scales in table_scales],
            class_alpha=class_alpha,
            table_alphas=table_alphas,
        )

    @cached_property
    def _mean(self) -> Tables:
        if self.network.is_star:
            (star,) = self._stars
            return (*star.table_means, star.class_mean)
        means = [star.table_means[0] for star in self._stars]
        return tuple(m.reshape(s) for m, s in zip(means, self.network.shapes, strict=True))

    def mean(self) -> Tables:
        """Return the expected tables given the released counts."""
        return self._mean

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws: exact counts given released ones, then tables given counts."""
        if self.network.is_star:
            (star,) = self._stars
            classes, tables = star.sample(rng, n)
            return (*tables, classes)
        draws = [star.sample(rng, n)[1][0] for star in self._stars]
        return tuple(d.reshape(n, *s) for d, s in zip(draws, self.network.shapes, strict=True))

    def merge(self, other: NoiseAwarePosterior) -> NoiseAwarePosterior:
        """Return the belief after both batches, whose released counts and noises add up."""
        return replace(self, released=self.released.merge(other.released))
