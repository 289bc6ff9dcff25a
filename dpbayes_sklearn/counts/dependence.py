r"""How strongly columns depend on the target or on each other: scores of small sensitivity.

**How strongly columns depend on the target: scores of small sensitivity, for choosing columns.**

With counts :math:`N_{vc}` of the values v of a column and c of the target, the score is n times the
distance in total variation between their joint law and the product of their laws,

.. math:: nR = \frac{1}{2n} \sum_{v,c} |n N_{vc} - N_v N_c|

(PrivBayes, Zhang et al. 2017), an integer over 2n, rounded down to steps of 1/1024.

**Sensitivity.** A record that is replaced changes the matrix :math:`n N_{vc} - N_v N_c` by

.. math:: n(e_{v'c'} - e_{vc}) - (e_{v'} - e_v) \otimes s - r \otimes (e_{c'} - e_c)
    - (e_{v'} - e_v) \otimes (e_{c'} - e_c)

r and s being the row and column sums. Its L1 norm depends on :math:`r_v, r_{v'}, s_c, s_{c'}` only,
and is convex in them, so it is largest at a corner of what they can be: `dependence_sensitivity`
goes through all corners. Over 2n it is below 2 if column or target has two values, otherwise
below 3.

**A record without a target** is in no cell, and n is public: the matrix is that of the m records
that have one, and the score its norm over 2n. In the place of a record of v and c it changes the
matrix by :math:`N - r \otimes e_c - e_v \otimes s + m e_{vc}` (before it), of L1 norm
:math:`4(m - r_v - s_c + N_{vc}) \le 4(m - 1)`: no more than a record does whose value alone is
replaced.

A record that comes or goes changes the score by at most 2, as one of a single class does in the
third part. That it can be nearly 2 even for a column
of two values is seen from one record that differs from all others in both: without it the score is
0, with it :math:`2(n-1)/n`. Records of a person change it one after the other. If numbers change by
no more than a whole number of steps, so do they rounded down.

**What a tree must explain to be worth its noise: public, from the sizes and the model's budget.**

Naive Bayes leaves the dependence between features out. An edge j - k puts it into the model,
and with it a table of :math:`C V_j V_k` noisy cells; and all tables lose joint noise, which is for
naive Bayes only. Both can be measured in records: dependence by the score of the edge, half an L1
distance, and noise of standard deviation :math:`\sigma` in m cells by :math:`m \sigma / 2`.

On tables with known answers a tree predicted better than naive Bayes if the sum of its scores
was more than about four times the noise that it adds (`DEPENDENCE_PER_NOISE`): dependence given the
class matters less for the class than the features' own laws.

**How strongly two features depend on each other given the class, for choosing a tree.**

With counts :math:`N_{jkc}` the score of the edge between two features is

.. math:: \tfrac12 \sum_{c} \sum_{j,k} |N_{jkc} - N_{jc} N_{kc} / N_c|,

n times a distance in total variation, rounded down to a lattice of 1/1024.

**Sensitivity.** A record that leaves a class of m records changes the matrix :math:`N_{jk}` of the
class by 1 in L1. The product :math:`m\,p \otimes q` of its margins becomes
:math:`(mp - e_j) \otimes q'` with :math:`q' - q = (q - e_k)/(m-1)`, a change of
:math:`\|mp \otimes (q'-q)\|_1 + \|e_j \otimes q'\|_1 \le 2(1 - q_k)\,m/(m-1) + 1 \le 3`, because
:math:`q_k \ge 1/m`. So the score changes by at most 2, likewise for a record that comes, and by at
most 4 if one is replaced. Records of a person change it one after the other. Rounding adds a step,
floats another. Prices (the second part) are public and change none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Records, Shard, with_target
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace
from dpbayes_sklearn.noise.law import laplace_scale, least_noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema.domains import Categories

DEPENDENCE_STEPS = 1024
"""Steps of a score in one record."""

LARGEST_SCORE = DEPENDENCE_STEPS * 2**32
"""Larger scores count as this one: a public bound, also where the number of records is secret."""


QUESTION_SHARE = Fraction(1, 4)
"""Share of the budget for the choice between a tree and none."""

DEPENDENCE_PER_NOISE = 4
"""How many records of dependence outweigh one record of noise."""
LEAST_EPSILON = 1e-6
"""Below this epsilon the noise of any tree outweighs its gain."""
STAR, TREE = "star", "tree"
"""Whether features depend on the class only, or on one of each other too."""


class Scored(Protocol):
    """Exact scores of candidates: sensitive."""

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any score."""

    def options(self, chosen: tuple[Any, ...]) -> tuple[list[Any], IntArray]:
        """Return what can be chosen after earlier choices, and the scores."""


@dataclass(frozen=True)
class Choices(ABC):
    """Public: the nodes that are chosen from, the class last."""

    network: Network

    @property
    @abstractmethod
    def shares(self) -> tuple[Fraction, ...]:
        """What every choice gets of the budget; together 1, if there are any."""

    @property
    @abstractmethod
    def most_candidates(self) -> int:
        """How many candidates one choice has at most; 0 if nothing is chosen."""


@dataclass(frozen=True)
class ColumnChoice(Choices):
    """The choice of k columns."""

    k: int

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The same for each column; empty if all columns are taken."""
        return (Fraction(1, self.k),) * self.k if self.k < self.network.target else ()

    @property
    def most_candidates(self) -> int:
        """All columns, for the first choice."""
        return self.network.target if self.shares else 0


@dataclass(frozen=True)
class TreeChoice(Choices):
    """The choice between a tree over all columns and none, then of its edges."""

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """A quarter for the first question, the same for each edge."""
        edges = self.network.target - 1
        return (QUESTION_SHARE, *[(1 - QUESTION_SHARE) / edges] * edges) if edges > 0 else ()

    @property
    def most_candidates(self) -> int:
        """Edges between the halves of the columns, when half of them are in the tree."""
        columns = self.network.target
        return (columns // 2) * (columns - columns // 2) if self.shares else 0


def dependence(table: IntArray) -> int:
    """Return 2n times the score of a table of counts of values and classes.

    >>> dependence(np.array([[3, 0], [0, 1]]))
    12
    """
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    return int(np.abs(n * table - np.outer(rows, columns)).sum())


@lru_cache
def dependence_sensitivity(n: int, n_values: int, n_classes: int) -> int:
    """Return how far a replaced record can change `dependence` of n records.

    >>> dependence_sensitivity(10, 2, 2), dependence_sensitivity(10, 4, 3)
    (36, 54)
    """
    if min(n_values, n_classes) < 2:
        return 0

    def corners(size: int) -> list[tuple[int, int]]:
        """Return the extreme sums of the old and the new place, without the record itself."""
        return [(n, 0), (1, n - 1), *([(1, 0)] if size > 2 else [])]

    one_place = 4 * (n - 1)  # only the value or only the class is replaced
    return max(
        one_place, *(_change(n, *r, *s) for r, s in product(corners(n_values), corners(n_classes)))
    )


def _change(n: int, r: int, r_new: int, s: int, s_new: int) -> int:
    """Return the L1 norm of the change, for sums r, s of the old place and of the new one."""
    here, there = abs(n - s - r + 1), abs(n - s_new - r_new - 1)
    crossed = abs(r_new - s + 1) + abs(s_new - r + 1)
    return here + there + crossed + 2 * (n - s - s_new) + 2 * (n - r - r_new)


@dataclass(frozen=True, repr=False)
class ColumnScores:
    """Sensitive: the score of every column, from which some are chosen one after the other."""

    scores: IntArray  # The score of each column, in steps.
    n: int
    sizes: tuple[int, ...]  # Numbers of values of the columns, and of the target.

    @classmethod
    def of(cls, counts: CountTables) -> ColumnScores:
        """Return the scores of counts of naive Bayes."""
        *tables, _ = counts.tables
        exact = (dependence(np.asarray(table, np.int64)) for table in tables)
        scores = [
            min(DEPENDENCE_STEPS * score // (2 * max(counts.n, 1)), LARGEST_SCORE)
            for score in exact
        ]
        return cls(np.array(scores, np.int64), counts.n, counts.network.sizes)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any of the scores, in steps."""
        *values, n_classes = self.sizes
        if min(max(values), n_classes) < 2:
            return 0
        if unit.size_is_secret:
            return 2 * DEPENDENCE_STEPS * unit.max_records
        widest = max(dependence_sensitivity(self.n, k, n_classes) for k in values)
        return -(-unit.max_records * DEPENDENCE_STEPS * widest // (2 * self.n))

    def options(self, chosen: tuple[int, ...]) -> tuple[list[int], IntArray]:
        """Return the columns that are not chosen yet, and their scores."""
        left = [j for j in range(len(self.scores)) if j not in chosen]
        return left, self.scores[left]


@dataclass(frozen=True)
class TreePrices:
    """Prices in steps of a score."""

    edges: IntArray  # Of an edge between two features.
    star: int  # Of no tree at all, divided by the d - 1 edges of a tree.

    @classmethod
    def of(cls, star: Network, unit: PrivacyUnit, epsilon: float) -> TreePrices:
        """Return the prices of trees over the features of a star, for a model with ``epsilon``.

        The table of the first feature, which no edge makes larger, is left out of both prices.

        >>> prices = TreePrices.of(Network.star([3] * 20, 6), PrivacyUnit(), 1.0)
        >>> (prices.edges[0, 1] // DEPENDENCE_STEPS).item(), prices.star // DEPENDENCE_STEPS
        (6414, 847)
        """
        *values, n_classes = star.sizes
        epsilon = max(epsilon, LEAST_EPSILON)
        free = math.isinf(epsilon) or not star.tables_changed(unit)
        by_table = np.zeros(len(values)) if free else _star_noise(star, unit, epsilon)
        of_tree = 0.0 if free else math.sqrt(2) * unit.n_changed * len(star.sizes) / epsilon
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
    changed = unit.n_changed * star.tables_changed(unit)
    law = least_noise(
        "auto",
        {
            "independent": lambda: DiscreteLaplace.of(laplace_scale(changed, exact), sizes),
            "joint": lambda: ClassRows.of(tuple(values), n_classes, unit.n_changed, exact),
        },
    )
    return np.sqrt([law.variance(table) for table in range(len(values))])


def _steps(noise: FloatArray) -> IntArray:
    """Return the price of noise, given as cells times standard deviation, in steps of a score."""
    steps = np.floor(DEPENDENCE_STEPS * DEPENDENCE_PER_NOISE / 2 * noise)
    return np.minimum(steps, LARGEST_SCORE // 2).astype(np.int64)


Edge = tuple[int, int]


def conditional_dependence(counts: IntArray) -> int:
    """Return the score of a table of counts (j, k, class), in steps of 1/1024.

    >>> both = np.zeros((2, 2, 1), int)
    >>> both[0, 0], both[1, 1] = 50, 50
    >>> conditional_dependence(both) / 1024
    50.0
    """
    of_class = np.maximum(counts.sum(axis=(0, 1)), 1)
    product = counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None] / of_class
    return int(np.floor(DEPENDENCE_STEPS / 2 * np.abs(counts - product).sum() + 2.0**-20))


@dataclass(frozen=True, repr=False)
class PairTables:
    """Sensitive: the counts of every two features and the class."""

    sizes: tuple[int, ...]  # Numbers of values of the features, and of the class.
    counts: IntArray  # The cells (j, k, class) of all pairs j > k, one pair after the other.
    n: int  # Number of records.

    @classmethod
    def of(cls, codes: AnyArray, labels: AnyArray, sizes: tuple[int, ...]) -> PairTables:
        """Count records, given as codes of features and classes."""
        tables = [np.empty(0, np.int64)]
        for (j, k), shape in _pairs(sizes):
            cell = codes[:, j].astype(np.int64) * shape[1] + codes[:, k]
            tables.append(np.bincount(cell * shape[2] + labels, minlength=prod(shape)))
        return cls(sizes, np.concatenate(tables), len(labels))

    @classmethod
    def of_records(
        cls, records: Records, encoder: Encoder, classes: Categories, skips: bool
    ) -> PairTables:
        """Count records, wherever they are; if ``skips``, those that have a class."""

        def count(shard: Shard) -> PairTables:
            n = shard.table.n_rows
            if skips:
                shard = with_target(shard, classes.is_known(shard.target))
            codes, labels = encoder.encode(shard.table), classes.encode(shard.target)
            return replace(cls.of(codes, labels, (*encoder.sizes, classes.n_values)), n=n)

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
    """Sensitive: the score of every pair of features, less its price, for choosing a tree."""

    scores: IntArray  # Symmetric; the highest price is added to all, so that none is negative.
    star: int  # What the mean score of a tree is compared with: public.
    n: int  # Number of records.

    @classmethod
    def of(cls, tables: PairTables, prices: TreePrices) -> EdgeScores:
        """Return the scores of all pairs."""
        scores = np.zeros((len(tables.sizes) - 1,) * 2, np.int64)
        for (j, k), counts in tables:
            scores[j, k] = scores[k, j] = min(conditional_dependence(counts), LARGEST_SCORE)
        less = np.minimum(scores - prices.edges + prices.highest, LARGEST_SCORE)
        return cls(less, prices.highest - prices.star, tables.n)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any of the scores, in steps."""
        return 2 * DEPENDENCE_STEPS * unit.n_changed + 2

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
