r"""Predictions of a discrete network: log p(x, c) of every record x and class c.

**Scores of naive Bayes, :math:`\log p(x, c) = \log p(c) + \sum_j \log p(x_j \mid c)`.**

Logarithms are rounded so that no sum of them rounds. A record's score therefore has the same bits
wherever the record stands, and its terms may be added in whichever order and groups are fastest:

- Few rows: one feature at a time.
- Many rows: neighbouring features share a table of all combinations of their values, so there are
  fewer terms; the codes of a group, side by side in the bits of a byte, are the cell of its table.
  The sums are a product of a sparse matrix, with a one for each record's cell in every group.
- Sparse rows: the score of a row of zeros, and what each stored value changes,
  :math:`\log p(x_j \mid c) - \log p(0_j \mid c)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import Tables
from dpbayes_sklearn.counts.temperature import Evidence
from dpbayes_sklearn.data.encoder import Codes, Encoder, SparseCodes
from dpbayes_sklearn.data.records import Table

RowFunction = Callable[[FloatArray], AnyArray]
"""A function of log p(x, c), one row for each record and one column for each class."""

_FEW_ROWS = 64  # Fewer rows do not pay for tables of groups.
_FEW_CLASSES = 4  # Up to here products with one vector for each class are faster.
_TERMS = 1 << 17  # This many terms are added up at a time.
_CACHE_CELLS = 1 << 16  # Tables of up to half a megabyte of doubles stay in the cache.


class Classifying(Protocol):
    """A posterior of a discrete network."""

    def log_predictive(self, codes: Codes | SparseCodes, /) -> FloatArray:
        """Return log p(x, c) for every row and class."""


def answer_by_row(
    posterior: Classifying, encoder: Encoder, of: RowFunction, like: AnyArray, table: Table
) -> AnyArray:
    """Return ``of`` the log joint of every row.

    ``like`` is an array without rows that has the type and the columns of the answer.
    """
    out = np.empty((table.n_rows, *like.shape[1:]), like.dtype)
    for rows, codes in encoder.compact_chunks(table):
        out[rows] = of(posterior.log_predictive(codes))
    return out


def most_probable(classes: AnyArray, joint: FloatArray) -> AnyArray:
    """Return the most probable class, the first of equals."""
    if len(classes) == 2:  # far faster than a search of every row
        return np.asarray(classes[(joint[:, 1] > joint[:, 0]).astype(np.intp)])
    return np.asarray(classes[joint.argmax(axis=1)])


def log_sum(joint: FloatArray) -> FloatArray:
    """Return log p(x) = log sum_c p(x, c)."""
    top = _finite_top(joint)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(joint - top).sum(axis=1)) + top[:, 0])


def log_proba(joint: FloatArray) -> FloatArray:
    """Return log p(c | x) = log p(x, c) - log p(x)."""
    return joint - log_sum(joint)[:, None]


def proba(joint: FloatArray) -> FloatArray:
    """Return p(c | x)."""
    if joint.shape[1] == 2:
        gap = joint[:, 1] - joint[:, 0]
        return np.stack([expit(-gap), expit(gap)], axis=1)
    power = np.exp(joint - _finite_top(joint))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def _finite_top(joint: FloatArray) -> FloatArray:
    """Return the largest log of every row, as a column; 0 of a row that is impossible."""
    top: FloatArray = joint.max(axis=1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    return top


class _Groups(NamedTuple):
    """Tables of all combinations of values of neighbouring features."""

    together: int  # Features in a group.
    starts: npt.NDArray[np.int32]  # (groups,): the first cell of each group.
    tables: FloatArray  # (cells of all groups, classes): the first group's hold log p(c), too.


class StarScores:
    """The function from codes of records to log p(x, c), one row for each record.

    Its tables are log p(x_j | c), (classes, values), of every feature; log p(c) comes last.
    """

    def __init__(self, log_tables: tuple[FloatArray, ...]) -> None:
        *features, classes = log_tables
        self._sizes = np.array([table.shape[1] for table in features])
        self._starts = np.cumsum(self._sizes) - self._sizes
        terms = np.concatenate([table.T for table in features])
        self._terms, self._classes = exact_in_sums(terms, self._starts, classes)
        self._bits = int(self._sizes.max() - 1).bit_length()

    def __call__(self, codes: Codes | SparseCodes) -> FloatArray:
        """Return log p(x, c) for every row and class."""
        if isinstance(codes, SparseCodes):
            return self._of_stored(codes)
        if len(codes) < _FEW_ROWS:
            terms = self._terms.take(codes + self._starts, axis=0)
            return np.asarray(terms.sum(axis=1) + self._classes)
        return self._of_groups(codes)

    def _of_groups(self, codes: Codes) -> FloatArray:
        groups = self._groups
        n, n_groups = len(codes), len(groups.starts)
        step = max(1, min(n, _TERMS // n_groups))
        ends = np.arange(0, step * n_groups + 1, n_groups, dtype=np.int32)
        ones = np.ones(step * n_groups)
        scores = np.empty((n, len(self._classes)), order="F" if self._few_classes else "C")
        for start in range(0, n, step):
            cells = side_by_side(codes[start : start + step], self._bits, groups.together)
            cells += groups.starts
            rows = csr_array(
                (ones[: cells.size], cells.ravel(), ends[: len(cells) + 1]),
                shape=(len(cells), len(groups.tables)),
            )
            self._multiply(rows, groups.tables, scores[start : start + step])
        return scores

    def _of_stored(self, rows: SparseCodes) -> FloatArray:
        if not np.isfinite(self._terms).all():  # a probability of zero cannot be divided by
            return self(rows.dense())
        of_zero = self._terms[self._starts + rows.zeros]
        gains = self._terms - np.repeat(of_zero, self._sizes, axis=0)
        cells = self._starts[rows.columns] + rows.codes
        stored = csr_array((np.ones(len(cells)), cells, rows.starts), (len(rows), len(gains)))
        scores = np.empty((len(rows), len(self._classes)))
        self._multiply(stored, gains, scores)
        scores += of_zero.sum(axis=0) + self._classes
        return scores

    def _multiply(self, rows: csr_array, tables: FloatArray, out: FloatArray) -> None:
        if not self._few_classes:
            out[:] = rows @ tables
            return
        for c in range(out.shape[1]):
            out[:, c] = rows @ tables[:, c]

    @property
    def _few_classes(self) -> bool:
        return len(self._classes) <= _FEW_CLASSES

    @cached_property
    def _groups(self) -> _Groups:
        together, n_classes = self._most_together(), len(self._classes)
        n_groups, n_values = -(-len(self._sizes) // together), 1 << self._bits
        if together == 1:
            starts, tables = self._starts, self._terms.copy()
        else:
            padded = np.zeros((n_groups * together, n_values, n_classes))
            padded[: len(self._sizes)][np.arange(n_values) < self._sizes[:, None]] = self._terms
            each = padded.reshape(n_groups, together, n_values, n_classes)
            sums = each[:, -1]
            for i in range(together - 2, -1, -1):  # the first feature has the lowest bits
                sums = (sums[:, :, None] + each[:, None, i]).reshape(n_groups, -1, n_classes)
            starts, tables = np.arange(n_groups) * sums.shape[1], sums.reshape(-1, n_classes)
        tables[: starts[1] if n_groups > 1 else None] += self._classes
        ordered = np.asarray(tables, order="F" if self._few_classes else "C")
        return _Groups(together, starts.astype(np.int32), ordered)

    def _most_together(self) -> int:
        """Return how many features share a table that stays in the cache."""
        columns = 1 if self._few_classes else len(self._classes)
        for together in (8, 4, 2):
            cells = -(-len(self._sizes) // together) << (together * self._bits)
            if together * self._bits <= 8 and cells * columns <= _CACHE_CELLS:
                return together
        return 1


def side_by_side(codes: Codes, bits: int, together: int) -> npt.NDArray[np.int32]:
    """Return the codes of neighbouring columns in the bits of one number, the first lowest.

    A code has so many bits at most, and those ``together`` (1, 2, 4 or 8 columns) at most 8. A last
    group that has too few columns is filled with zeros.

    >>> side_by_side(np.array([[1, 2, 3]], np.uint8), bits=2, together=2)
    array([[9, 3]], dtype=int32)
    """
    if together == 1:
        return codes.astype(np.int32)
    n, d = codes.shape
    groups = -(-d // together)
    whole = np.zeros((n, groups * together), np.uint8)
    np.copyto(whole[:, :d], codes, casting="unsafe")
    if bits == 1 and together == 8:
        return np.packbits(whole, bitorder="little").reshape(n, groups).astype(np.int32)
    words: AnyArray = whole.view(f"<u{together}")
    moved = 1
    while moved < together:  # two codes side by side, then two pairs, and so on
        words |= words >> moved * (8 - bits)
        moved *= 2
    words &= (1 << bits * together) - 1
    return words.astype(np.int32)


def exact_in_sums(
    terms: FloatArray, starts: npt.NDArray[np.intp], constants: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return terms and constants rounded to multiples of a power of two whose sums are exact.

    A sum has one term (cells, columns) of each group of cells, and the constants (columns,). If no
    column exceeds T in total, multiples of s = T / 2**51 add up to at most 2**53 s, even if each is
    a difference of two terms. Infinite ones stay as they are.

    >>> terms, _ = exact_in_sums(np.full((3, 1), 1 / 3), np.arange(3), np.zeros(1))
    >>> bool(abs(terms[0] - 1 / 3) < 2.0**-50), bool(terms.sum() == 3 * terms[0])
    (True, True)
    """
    sizes = np.abs(np.where(np.isfinite(terms), terms, 0.0))
    finite = np.where(np.isfinite(constants), constants, 0.0)
    totals = np.maximum.reduceat(sizes, starts, axis=0).sum(axis=0) + np.abs(finite)
    step = max(2.0 ** (np.frexp(totals.max(initial=0.0))[1] - 51), 2.0**-1000)  # not to underflow
    return np.rint(terms / step) * step, np.rint(constants / step) * step


Scores = Callable[[Codes | SparseCodes], FloatArray]
"""A function from codes of records to log p(x, c), one row for each record."""


def log_joint(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the sum over nodes of log p(node | parents) for every class; shape (rows, classes)."""
    return scores_of(network, log_tables)(codes)


def scores_of(network: Network, log_tables: Tables) -> Scores:
    """Return the function from codes to log p(x, c).

    Every row's are the same, bit by bit, wherever the row stands and whatever else there is.
    """
    return StarScores(log_tables) if network.is_star else partial(_by_node, network, log_tables)


def weighted(log_tables: Tables, weights: FloatArray | None) -> Tables:
    """Return the log tables times the weights of their features; the class has none."""
    if weights is None:
        return log_tables
    *features, classes = log_tables
    return (*(w * table for w, table in zip(weights, features, strict=True)), classes)


def _by_node(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the same, added node by node: a product of matrices rounds rows by their position."""
    if isinstance(codes, SparseCodes):
        codes = codes.dense()
    total = np.zeros((len(codes), network.sizes[-1]))
    for family, log_table in zip(network.families, log_tables, strict=True):
        others = [u for u in family if u != network.target]
        if len(others) == len(family):  # the same for every class
            by_class = log_table[..., None]
        else:
            by_class = np.moveaxis(log_table, family.index(network.target), -1)
        total += by_class[tuple(codes[:, u] for u in others)]
    return total


def evidence_of(
    network: Network, log_tables: Tables, weights: Mapping[float, FloatArray]
) -> Evidence:
    """Return the function from codes to log p(c) and the features' weighted log probabilities.

    There are weights (n_features,) for each emphasis. Every row's are the same, bit by bit,
    wherever the row stands and whatever else there is.
    """
    *features, classes = log_tables
    plain = (*features, np.zeros_like(classes))
    each = [weighted(plain, w) for w in weights.values()]
    if network.is_star:  # all emphases at once, as if each had classes of its own
        stacked = tuple(np.concatenate(tables) for tables in zip(*each, strict=True))
        return partial(_of_star, classes, tuple(weights), StarScores(stacked))
    prior = scores_of(network, (*map(np.zeros_like, features), classes))
    found = (scores_of(network, tables) for tables in each)
    return partial(_of_network, prior, dict(zip(weights, found, strict=True)))


def _of_star(
    classes: FloatArray, emphases: tuple[float, ...], scores: Scores, codes: Codes | SparseCodes
) -> tuple[FloatArray, dict[float, FloatArray]]:
    found = np.split(scores(codes), len(emphases), axis=1)
    return classes, dict(zip(emphases, found, strict=True))


def _of_network(
    prior: Scores, found: dict[float, Scores], codes: Codes | SparseCodes
) -> tuple[FloatArray, dict[float, FloatArray]]:
    return prior(codes), {emphasis: scores(codes) for emphasis, scores in found.items()}
