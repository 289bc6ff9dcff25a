r"""How strongly two features depend on each other given the class, for choosing a tree.

With counts :math:`N_{jkc}` the score of the edge between two features is

.. math:: \tfrac12 \sum_{c} \sum_{j,k} |N_{jkc} - N_{jc} N_{kc} / N_c|,

n times a distance in total variation, rounded down to a lattice of 1/1024.

**Sensitivity.** A record that leaves a class of m records changes the matrix :math:`N_{jk}` of the
class by 1 in L1. The product :math:`m\,p \otimes q` of its margins becomes
:math:`(mp - e_j) \otimes q'` with :math:`q' - q = (q - e_k)/(m-1)`, a change of
:math:`\|mp \otimes (q'-q)\|_1 + \|e_j \otimes q'\|_1 \le 2(1 - q_k)\,m/(m-1) + 1 \le 3`, because
:math:`q_k \ge 1/m`. So the score changes by at most 2, likewise for a record that comes, and by at
most 4 if one is replaced. Records of a person change it one after the other. Rounding adds a step,
floats another. Prices (:mod:`dpbayes_sklearn.statistics.tree_prices`) are public and change none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import minimum_spanning_tree

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.schema.domains import Categories
from dpbayes_sklearn.statistics.choices import LARGEST, STEPS
from dpbayes_sklearn.statistics.tree_prices import TreePrices

__all__ = ["STAR", "TREE", "EdgeScores", "PairTables", "conditional_dependence"]

Edge = tuple[int, int]
STAR, TREE = "star", "tree"
"""Whether features depend on the class only, or on one of each other too."""


def conditional_dependence(counts: IntArray) -> int:
    """Return the score of a table of counts (j, k, class), in steps of 1/1024.

    >>> both = np.zeros((2, 2, 1), int)
    >>> both[0, 0], both[1, 1] = 50, 50
    >>> conditional_dependence(both) / 1024
    50.0
    """
    of_class = np.maximum(counts.sum(axis=(0, 1)), 1)
    product = counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None] / of_class
    return int(np.floor(STEPS / 2 * np.abs(counts - product).sum() + 2.0**-20))


@dataclass(frozen=True, repr=False)
class PairTables:
    """Sensitive: the counts of every two features and the class.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of values of the features, and of the class.
    counts : array of int
        The cells (j, k, class) of all pairs j > k, one pair after the other.
    n : int
        Number of records.
    """

    sizes: tuple[int, ...]
    counts: IntArray
    n: int

    @classmethod
    def of(
        cls, codes: npt.NDArray[Any], labels: npt.NDArray[Any], sizes: tuple[int, ...]
    ) -> PairTables:
        """Count records, given as codes of features and classes."""
        tables = [np.empty(0, np.int64)]
        for (j, k), shape in _pairs(sizes):
            cell = codes[:, j].astype(np.int64) * shape[1] + codes[:, k]
            tables.append(np.bincount(cell * shape[2] + labels, minlength=prod(shape)))
        return cls(sizes, np.concatenate(tables), len(labels))

    @classmethod
    def of_records(cls, records: Records, encoder: Encoder, classes: Categories) -> PairTables:
        """Count records, wherever they are."""

        def count(shard: Shard) -> PairTables:
            codes, labels = encoder.encode(shard.table), classes.encode(shard.target)
            return cls.of(codes, labels, (*encoder.sizes, classes.n_values))

        return records.total(count)

    def __add__(self, other: PairTables) -> PairTables:
        """Return the counts of the records of both."""
        return PairTables(self.sizes, self.counts + other.counts, self.n + other.n)

    def __iter__(self) -> Iterator[tuple[Edge, IntArray]]:
        """Yield the features of every pair, and their table (j, k, class)."""
        start = 0
        for edge, shape in _pairs(self.sizes):
            stop = start + prod(shape)
            yield edge, self.counts[start:stop].reshape(shape)
            start = stop


def _pairs(sizes: tuple[int, ...]) -> Iterator[tuple[Edge, tuple[int, int, int]]]:
    """Yield every pair of features j > k and the shape of its table."""
    *features, n_classes = sizes
    for j, of_j in enumerate(features):
        for k, of_k in enumerate(features[:j]):
            yield (j, k), (of_j, of_k, n_classes)


@dataclass(frozen=True, repr=False)
class EdgeScores:
    """Sensitive: the score of every pair of features, less its price, for choosing a tree.

    Attributes
    ----------
    scores : array of int, shape (d, d)
        Symmetric; the highest price is added to all, so that none is negative.
    star : int
        What the mean score of a tree is compared with: public.
    n : int
        Number of records.
    """

    scores: IntArray
    star: int
    n: int

    kind: ClassVar[str] = "scores"

    @classmethod
    def of(cls, tables: PairTables, prices: TreePrices) -> EdgeScores:
        """Return the scores of all pairs."""
        scores = np.zeros((len(tables.sizes) - 1,) * 2, np.int64)
        for (j, k), counts in tables:
            scores[j, k] = scores[k, j] = min(conditional_dependence(counts), LARGEST)
        less = np.minimum(scores - prices.edges + prices.highest, LARGEST)
        return cls(less, prices.highest - prices.star, tables.n)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any of the scores, in steps."""
        return 2 * STEPS * unit.moves + 2

    def options(self, chosen: tuple[Any, ...]) -> tuple[list[Any], IntArray]:
        """Return what comes next, and the scores.

        First `TREE` or `STAR`; then, for a tree, the edges (new feature, feature of the tree). It
        grows from the first feature.
        """
        if not chosen:
            return [TREE, STAR], np.array([self._mean_of_the_best_tree(), self.star])
        first, *grown = chosen
        if first == STAR:
            return [], np.empty(0, np.int64)
        inside = [0, *(child for child, _ in grown)]
        edges = [(j, k) for j in range(len(self.scores)) if j not in inside for k in inside]
        return edges, np.array([self.scores[edge] for edge in edges], np.int64)

    def _mean_of_the_best_tree(self) -> int:
        """Return the largest mean score of the edges of a tree, rounded down.

        Every tree's sum differs between neighbours by at most as many sensitivities as it has
        edges, and so does the largest sum: their means differ by one.
        """
        # the solver takes zeros for missing edges, so every edge gets a negative weight
        tree = minimum_spanning_tree(-1.0 - self.scores).tocoo()
        return int(self.scores[tree.row, tree.col].sum()) // (len(self.scores) - 1)

    def without_noise(self) -> EdgeScores:
        """Return the scores themselves, where no privacy is asked for."""
        return self
