r"""What a tree must explain to be worth its noise: public, from the sizes and the model's budget.

Naive Bayes leaves the dependence between features out. An edge j - k puts it into the model,
and with it a table of :math:`C V_j V_k` noisy cells; and all tables lose joint noise, which is for
naive Bayes only. Both can be measured in records: dependence by the score of the edge, half an L1
distance, and noise of standard deviation :math:`\sigma` in m cells by :math:`m \sigma / 2`.

On tables with known answers a tree predicted better than naive Bayes if the sum of its scores
was more than about four times the noise that it adds (`DEPENDENCE_PER_NOISE`): dependence given the
class matters less for the class than the features' own laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace
from dpbayes_sklearn.noise.law import laplace_scale, least_noise
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.choices import LARGEST, STEPS
from dpbayes_sklearn.statistics.network import Network

__all__ = ["DEPENDENCE_PER_NOISE", "TreePrices"]

DEPENDENCE_PER_NOISE = 4
"""How many records of dependence outweigh one record of noise."""

LEAST_EPSILON = 1e-6
"""Below it no tree is worth its noise, whatever the prices are."""


@dataclass(frozen=True)
class TreePrices:
    """Prices in steps of a score.

    Attributes
    ----------
    edges : array of int, shape (d, d)
        Of an edge between two features.
    star : int
        Of no tree at all, divided by the d - 1 edges of a tree.
    """

    edges: IntArray
    star: int

    @classmethod
    def of(cls, star: Network, unit: PrivacyUnit, epsilon: float) -> TreePrices:
        """Return the prices of trees over the features of a star, for a model with ``epsilon``.

        The table of the first feature, which no edge makes larger, is left out of both prices.

        >>> prices = TreePrices.of(Network.star([3] * 20, 6), PrivacyUnit(), 1.0)
        >>> (prices.edges[0, 1] // STEPS).item(), prices.star // STEPS
        (6414, 847)
        """
        *values, n_classes = star.sizes
        epsilon = max(epsilon, LEAST_EPSILON)
        free = math.isinf(epsilon) or not star.tables_changed(unit)
        by_table = np.zeros(len(values)) if free else _star_noise(star, unit, epsilon)
        of_tree = 0.0 if free else math.sqrt(2) * unit.moves * len(star.sizes) / epsilon
        cells = n_classes * np.array(values, float)
        edges = _steps(np.outer(cells, values) * of_tree)
        whole = float((cells * by_table).sum())
        return cls(edges, int(_steps(np.array(whole / max(len(values), 1)))))

    @property
    def highest(self) -> int:
        """The highest price."""
        return max(int(self.edges.max(initial=0)), self.star)


def _star_noise(star: Network, unit: PrivacyUnit, epsilon: float) -> FloatArray:
    """Return the standard deviation of the noise in every table of naive Bayes."""
    *values, n_classes = star.sizes
    exact, sizes = Fraction(epsilon), [n_classes * size for size in (*values, 1)]
    changed = unit.moves * star.tables_changed(unit)
    law = least_noise(
        "auto",
        {
            "independent": lambda: DiscreteLaplace.of(laplace_scale(changed, exact), sizes),
            "joint": lambda: ClassRows.of(tuple(values), n_classes, unit.moves, exact),
        },
    )
    return np.sqrt([law.variance(table) for table in range(len(values))])


def _steps(noise: FloatArray) -> IntArray:
    """Return the price of noise, given as cells times standard deviation, in steps of a score."""
    steps = np.floor(STEPS * DEPENDENCE_PER_NOISE / 2 * noise)
    return np.minimum(steps, LARGEST // 2).astype(np.int64)
