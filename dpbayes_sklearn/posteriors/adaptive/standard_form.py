r"""Released tables in one form, whatever the noise: row contrasts, and class counts.

A released row z of a class with :math:`n_c` records is split into its contrasts
:math:`u_k = z_k - \bar z`, with :math:`E u = n_c(\theta - 1/K)`, and its sum, which all features
share. Noise is isotropic on contrasts, of variance :math:`\sigma_j^2` per degree of freedom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["Rows", "counts_from_rows", "group_rows", "merge_counts"]


@dataclass(frozen=True)
class Rows:
    """Rows of J features that have the same number K of values.

    Attributes
    ----------
    features : tuple of int
        Which features these are.
    contrasts : array of shape (J, C, K)
        Released counts less their row means.
    noise : array of shape (J,)
        Variance of the noise, per degree of freedom of the contrasts.
    ordered : bool
        Whether the values are adjacent intervals of a number.
    """

    features: tuple[int, ...]
    contrasts: FloatArray
    noise: FloatArray
    ordered: bool

    @property
    def size(self) -> int:
        """Number K of values."""
        return int(self.contrasts.shape[2])

    def shares(self, counts: FloatArray) -> FloatArray:
        """Return unbiased row estimates u/n_c + 1/K for given class counts: (J, C, K)."""
        return np.asarray(self.contrasts / counts[:, None] + 1.0 / self.size)


def group_rows(
    tables: Sequence[FloatArray], contrast_variance: Sequence[float], ordered: Sequence[bool]
) -> list[Rows]:
    """Group features by number of values and order, leaving out those with a single value.

    >>> tables = [np.ones((2, 2)), np.ones((2, 3)), np.zeros((2, 2)), np.ones((2, 1))]
    >>> [rows.features for rows in group_rows(tables, [1.0] * 4, [False] * 4)]
    [(0, 2), (1,)]
    """
    alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for j, table in enumerate(tables):
        if table.shape[1] > 1:
            alike[table.shape[1], bool(ordered[j]) and table.shape[1] > 2].append(j)
    groups = []
    for (_, sequential), features in sorted(alike.items()):
        stacked = np.stack([np.asarray(tables[j], np.float64) for j in features])
        noise = np.array([float(contrast_variance[j]) for j in features])
        contrasts = stacked - stacked.mean(axis=2, keepdims=True)
        groups.append(Rows(tuple(features), contrasts, noise, sequential))
    return groups


def counts_from_rows(
    tables: Sequence[FloatArray], contrast_variance: Sequence[float]
) -> tuple[FloatArray, float]:
    r"""Estimate class counts from row sums when the noise of cells is independent.

    A row sum of K cells has variance :math:`K \sigma^2`; weights are inverse variances.

    >>> counts_from_rows([np.array([[3.0, 1.0], [2.0, 4.0]])], [1.0])
    (array([4., 6.]), 2.0)
    """
    precision = np.array(
        [1.0 / (t.shape[1] * v) for t, v in zip(tables, contrast_variance, strict=True)]
    )
    sums = np.stack([table.sum(axis=1) for table in tables])
    total = float(precision.sum())
    return np.asarray(precision @ sums / total), 1.0 / total


def merge_counts(
    first: tuple[FloatArray, float], second: tuple[FloatArray, float]
) -> tuple[FloatArray, float]:
    """Average two independent noisy estimates of the same counts by their inverse variances.

    >>> merge_counts((np.array([4.0]), 1.0), (np.array([7.0]), 2.0))
    (array([5.]), 0.6666666666666666)
    """
    (a, v), (b, w) = first, second
    return np.asarray((a * w + b * v) / (v + w)), v * w / (v + w)
