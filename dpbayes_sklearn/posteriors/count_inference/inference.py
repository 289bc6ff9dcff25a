"""Exact Bayes on counts that were released with discrete Laplace noise.

The released tables are data with a known law, so their posterior is computed instead of taking
them for counts. For the star network, whose class is the only parent of every feature, that is
exact: see :mod:`dpbayes_sklearn.posteriors.count_inference.star`. Tables or class counts without
noise fix all class counts; the rows of different classes are then independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import NO_NOISE, UNKNOWN
from dpbayes_sklearn.posteriors.count_inference.lattice import CountTable
from dpbayes_sklearn.posteriors.count_inference.star import NoisyStar

__all__ = ["StarInference", "dirichlet_draws", "infer_star"]


def infer_star(
    class_counts: npt.ArrayLike,
    tables: Sequence[npt.ArrayLike],
    n: int,
    *,
    class_noise: Marginal,
    table_noises: Sequence[Marginal],
    class_alpha: npt.ArrayLike,
    table_alphas: Sequence[npt.ArrayLike],
    fresh: float = 1.0,
    size_noise: Marginal = NO_NOISE,
) -> StarInference:
    """Infer class probabilities and conditional tables from noisy counts of a star network.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Noisy class counts.
    tables : sequence of arrays of shape (C, K_j)
        Noisy counts of every feature's values in every class.
    n : int
        Number of records: exact if it is public, otherwise released with ``size_noise``.
    class_noise, table_noises : Marginal, and one for every table
        The distribution of the noise in a cell; noises are independent.
    class_alpha, table_alphas : array of shape (C,), and arrays of shape (K_j,)
        Parameters of the Dirichlet priors.
    fresh : float, default=1.0
        Share of what all tables say about the class counts that counts as evidence: below 1 if
        their noises repeat each other.
    size_noise : Marginal
        The distribution of the noise in ``n``, over which the posterior then integrates.

    Examples
    --------
    A negative count says that the true one is small, and the other table agrees:

    >>> from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
    >>> noise = LaplaceMarginal(4.0)
    >>> inference = infer_star([45, 58], [[[-9, 47], [52, 8]]], 100,
    ...                        class_noise=noise, table_noises=[noise],
    ...                        class_alpha=[1.0, 1.0], table_alphas=[[1.0, 1.0]])
    >>> inference.class_mean.round(2)
    array([0.44, 0.56])
    >>> inference.table_means[0].round(2)
    array([[0.06, 0.94],
           [0.87, 0.13]])
    """
    classes = CountTable(
        np.atleast_2d(np.asarray(class_counts, dtype=float)),
        class_noise,
        np.asarray(class_alpha, dtype=float),
    )
    features = [
        CountTable(np.asarray(z, dtype=float), noise, np.asarray(alpha, dtype=float))
        for z, noise, alpha in zip(tables, table_noises, table_alphas, strict=True)
    ]
    return StarInference(classes, tuple(features), int(n), fresh, size_noise)


@dataclass(frozen=True)
class StarInference:
    """Posterior of the parameters of a star network given noisy counts of its tables."""

    classes: CountTable
    tables: tuple[CountTable, ...]
    n: int
    fresh: float = 1.0
    size_noise: Marginal = NO_NOISE

    @cached_property
    def _known_class_counts(self) -> FloatArray | None:
        """Class counts that some table shows without noise."""
        if self.classes.exact:
            known: FloatArray = self.classes.noisy[0]
            return known
        exact = (table.noisy.sum(axis=1) for table in self.tables if table.exact)
        return next(exact, None)

    @cached_property
    def _noisy_tables(self) -> list[int]:
        return [j for j, table in enumerate(self.tables) if not table.exact]

    @cached_property
    def _stars(self) -> list[NoisyStar]:
        """One star of all classes, or one of each class if the class counts are known."""
        tables = [self.tables[j] for j in self._noisy_tables]
        known = self._known_class_counts
        if known is None:
            return [NoisyStar(self.classes, tables, self.n, self.fresh, self.size_noise)]
        one = np.ones(1)
        return [
            NoisyStar(
                CountTable(np.full((1, 1), count), UNKNOWN, one),
                [table.row(c) for table in tables],
                int(count),
            )
            for c, count in enumerate(known)
        ]

    @cached_property
    def class_count_laws(self) -> list[tuple[FloatArray, FloatArray]]:
        """Values and probabilities of every class count."""
        return [law for star in self._stars for law in star.class_counts()]

    @cached_property
    def class_mean(self) -> FloatArray:
        """Expected class probabilities (alpha + E[n_c]) / (sum of alphas + n)."""
        expected = np.array([values @ weights for values, weights in self.class_count_laws])
        total = self.classes.alpha + expected
        mean: FloatArray = total / total.sum()
        return mean

    @cached_property
    def table_means(self) -> list[FloatArray]:
        """Expected conditional probabilities of every table, each row adding to one."""
        noisy = iter(range(len(self.tables)))
        means = []
        for table in self.tables:
            if table.exact:
                total = table.alpha + table.noisy
                means.append(total / total.sum(axis=1, keepdims=True))
            else:
                position = next(noisy)
                means.append(np.concatenate([star.row_means(position) for star in self._stars]))
        return means

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, list[FloatArray]]:
        """Draw class probabilities (size, C) and tables (size, C, K_j) from the joint posterior.

        Class counts first, then the cells of every row, then the probabilities given the counts.
        """
        draws = [star.sample(rng, size) for star in self._stars]
        classes = np.concatenate([classes for classes, _ in draws], axis=1)
        counts = [np.broadcast_to(t.noisy, (size, *t.noisy.shape)) for t in self.tables]
        for position, j in enumerate(self._noisy_tables):
            counts[j] = np.concatenate([rows[position] for _, rows in draws], axis=1)
        return (
            dirichlet_draws(self.classes.alpha + classes, rng),
            [dirichlet_draws(t.alpha + k, rng) for t, k in zip(self.tables, counts, strict=True)],
        )


def dirichlet_draws(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw Dirichlet vectors along the last axis, also for parameters near zero.

    Gamma(a) is Gamma(a + 1) U^(1/a), whose logarithm does not underflow.
    """
    log_gamma = np.log(rng.standard_gamma(concentration + 1.0))
    log_gamma -= rng.standard_exponential(concentration.shape) / concentration
    weights = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
    draws: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return draws
