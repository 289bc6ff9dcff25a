"""How far the exact statistics of two data sets lie apart, and how far they may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.columns.plans import NumbersAndTexts, TextCounts
from dpbayes_sklearn.columns.quantiles import SortedColumns
from dpbayes_sklearn.convex.coordinates import first_map
from dpbayes_sklearn.convex.record_sums import (
    STEPS,
    UNIT_TARGET,
    ProductSum,
    Residuals,
    count_evenly,
    count_tails,
    sum_products,
    sum_scores,
)
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.convex.tails import EDGES
from dpbayes_sklearn.counts.dependence import ColumnScores, EdgeScores
from dpbayes_sklearn.counts.fourier import CharacterSums
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.counts.temperature import LabelledCounts
from dpbayes_sklearn.logistic import softmax
from dpbayes_sklearn.logistic.blocks import even_nodes
from dpbayes_sklearn.logistic.record_sums import LabelledRecords, MappedRecords, on_lattice
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.regression.gram import GramMatrix
from dpbayes_sklearn.regression.moments import gram, largest_grid, whole_block
from dpbayes_sklearn.release import RecordCount
from dpbayes_sklearn.sums.release import BoundedSums

_LIMIT = 0.7  # Vectors longer than this are shortened: some are, some are not.


class Shift(NamedTuple):
    """A statistic, the distance between its two values, and its declared sensitivity."""

    what: str
    moved: float
    sensitivity: float


def shifts(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return the shifts of statistics of the same kind; infinite where public facts differ.

    A search hands its mechanism records, which have no sensitivity.
    """
    return next((of(one, other, unit) for kind, of in _BY_TYPE if isinstance(one, kind)), [])


def _between(what: str, one: Iterable[Any], other: Iterable[Any], sensitivity: float) -> Shift:
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)]
    if any(a.shape != b.shape for a, b in pairs):
        return Shift(what, math.inf, sensitivity)
    return Shift(what, float(sum(np.abs(a - b).sum() for a, b in pairs)), sensitivity)


def _public(what: str, one: Any, other: Any) -> list[Shift]:
    """Return an infinite change if something differs that must not."""
    return [] if one == other else [Shift(f"public facts of the {what}", math.inf, 0.0)]


def _counts(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    if broken := _public("counts", *((s.network, _known_n(s, unit)) for s in (one, other))):
        return broken
    mine, theirs = CharacterSums.of(one), CharacterSums.of(other)
    blocks = mine.blocks.values(), theirs.blocks.values()
    farthest = [0, *(np.abs(a - b).max() for a, b in zip(*blocks, strict=True))]
    return [
        _between("counts", one.tables, other.tables, one.sensitivity(unit)),
        _between("character sums", blocks[0], blocks[1], mine.sensitivity(unit)),
        Shift("largest character sum", float(max(farthest)), mine.sup_sensitivity(unit)),
        *(_rows(one, other, unit) if one.network.is_star else []),
    ]


def _rows(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return how far the largest rows of all classes move: infinitely if their sums differ."""
    *tables, classes = (a - b for a, b in zip(one.tables, other.tables, strict=True))
    agree = all(np.array_equal(table.sum(axis=-1), classes) for table in tables)
    each = [np.abs(classes), *(np.abs(table).sum(axis=-1) for table in tables)]
    moved = float(np.max(each, axis=0).sum()) if agree else math.inf
    return [Shift("largest rows of counts", moved, one.class_row_sensitivity(unit))]


def _sums(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    if broken := _public("sums", (one.n, one.grid), (other.n, other.grid)):
        return broken
    moved = float(np.abs(one.sums - other.sums).max())
    return [Shift("largest change of a sum", moved, float(one.sensitivity(unit)))]


def _simplex(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    known = [(_known_n(s, unit), s.n_categories) for s in (one, other)]
    if broken := _public("counts", *known):
        return broken
    return [_between("counts", [one.counts], [other.counts], one.sensitivity(unit))]


def _linear(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return how far sums of products, histograms, scores and products of scores move."""
    facts = [(m.structure, unit.size_is_secret or m.n) for m in (one, other)]
    if broken := _public("records", *facts):
        return broken
    both, design = (one, other), one.design
    grid, block = largest_grid(one.n, 1.0), whole_block(design).protecting(unit)
    matrix, exact = GramMatrix.of(design).protecting(unit), [gram(m, grid) for m in both]
    mine, theirs = (sums[block.rows, block.columns] for sums in exact)
    first, numbers = first_map(design, np.zeros(0), np.ones(0)), int(design.numbers.sum())
    p, asked = len(first), Residuals.of(first, np.linspace(-1, 1, len(first)), UNIT_TARGET)

    def told(of: Callable[..., Any], **public: Any) -> list[Any]:
        given = partial(of, design=design, scale=one.scale, **public)
        return [m.total(given) for m in both]

    evenly = [np.append(c, m.n_missing) for c, m in zip(told(count_evenly), both, strict=True)]
    tails = told(count_tails, residuals=asked, edges=EDGES)
    scores = np.subtract(*told(sum_scores, residuals=asked, limit=_LIMIT))
    plain = np.subtract(*told(sum_products, residuals=asked, limit=_LIMIT))
    squared = np.subtract(*told(sum_products, residuals=asked, limit=_LIMIT, weighted=True))
    law = ProductSum(p).law(unit, Fraction(1))
    steps = float(unit.n_changed * STEPS)
    return [
        _between(
            "moments, in steps of the grid", [mine], [theirs], float(block.sensitivity) * grid**2
        ),
        _as_matrix(matrix, np.subtract(*exact)[matrix.rows, matrix.columns], grid),
        _between("even histograms", evenly[:1], evenly[1:], unit.n_changed * (1 + numbers)),
        _between("sizes of scores", [tails[0][:2]], [tails[1][:2]], unit.n_changed),
        _between("lengths of records", [tails[0][2]], [tails[1][2]], unit.n_changed),
        Shift("score, in steps", float(np.linalg.norm(scores)), steps),
        Shift("curvature, over its noise", float(law.privacy_loss(plain)), 1.0),
        Shift("squared scores, over their noise", float(law.privacy_loss(squared)), 1.0),
    ]


def _columns(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return how many records of a column are not in the other: those of the unit may be gone."""
    facts = [(_known_n(c, unit), c.n_columns) for c in (one, other)]
    if broken := _public("columns", *facts):
        return broken
    return [
        Shift(
            f"records of column {j}",
            float(_apart(one.column(j), other.column(j))),
            float(unit.max_records),
        )
        for j in range(one.n_columns)
    ]


def _apart(one: Any, other: Any) -> int:
    mine, theirs = Counter(one.tolist()), Counter(other.tolist())
    return max((mine - theirs).total(), (theirs - mine).total())


def _scores(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return how far the scores of candidates move at most."""
    facts = [(_known_n(s, unit), len(s.scores), s.sensitivity(unit)) for s in (one, other)]
    if broken := _public("scores", *facts):
        return broken
    moved = np.abs(one.scores - other.scores).max(initial=0)
    return [Shift("largest change of a score", float(moved), float(one.sensitivity(unit)))]


def _known_n(statistics: Any, unit: PrivacyUnit) -> int | None:
    """Return the number of records if it is public; one that was released is in the plans."""
    return None if unit.size_is_secret else statistics.n


def _texts(one: Any, other: Any, unit: PrivacyUnit) -> list[Shift]:
    """Return how far the counts of texts of a column move, together and each by itself."""
    facts = [(_known_n(t, unit), t.n_columns) for t in (one, other)]
    if broken := _public("texts", *facts):
        return broken
    pairs = zip(one.columns, other.columns, strict=True)
    each = [[0, *(abs(a[text] - b[text]) for text in {*a, *b})] for a, b in pairs]
    return [
        *(Shift("counts of texts", float(sum(moves)), float(unit.n_changed)) for moves in each),
        *(Shift("a count of texts", float(max(m)), float(unit.max_records)) for m in each),
    ]


def _as_matrix(matrix: GramMatrix, shift: IntArray, grid: int) -> Shift:
    """Return the nuclear norm of the weighted moments."""
    law = matrix.law(Fraction(1), 1)
    moved = float(law.privacy_loss(shift)) * float(matrix.sensitivity) / grid**2
    return Shift("moments as a matrix", moved * (1 - 1e-12), float(matrix.sensitivity))


_ROUNDING = 1e-9  # Residuals are rounded, far below this.


def _labelled(one: LabelledRecords, other: LabelledRecords, unit: PrivacyUnit) -> list[Shift]:
    """Compare histograms, and gradients at several coefficients, in the norm of their noise."""
    blocks = one.blocks
    found = _public("records", one.structure, other.structure)
    sides = [side.read() for side in (one, other)]
    columns = blocks.looked_at
    bins = np.cumsum([blocks.cells(j).n_values for j in columns])
    counts = [np.split(side.histograms(columns), bins[:-1]) for side in sides]
    moved = max((float(np.abs(a - b).sum()) for a, b in zip(*counts, strict=True)), default=0.0)
    if columns:
        found.append(Shift("histograms of columns", moved, unit.n_changed))
    mapped = [side.mapped(even_nodes(len(blocks.numbers))) for side in sides]
    classes = 2 if one.counted else one.classes.n_values
    rng, several = np.random.default_rng(0), classes > 2
    for scale in (0.0, 1.0, 30.0):
        at = on_lattice(scale * rng.normal(size=(classes if several else 1, blocks.width)))
        first, second = (_gradients(side, at) for side in mapped)
        by_block = np.add.reduceat(np.abs(first - second), [0, *blocks.starts[:-1]], axis=1)
        moved = max(float(by_block.max(axis=1).sum()) - _ROUNDING, 0.0)
        # residuals of several classes have an L1 norm of at most 2
        found.append(Shift(f"gradients at {scale:g}", moved, unit.n_changed * (1 + several)))
    return found


def _gradients(side: MappedRecords, at: FloatArray) -> FloatArray:
    """Return the sums of weights times residuals, one row for each class; of two classes one."""
    if len(at) == 1:
        return side.gradient(at[0])[0][None]
    ask = partial(softmax._gradient, reader=side.reader, values=tuple(map(side.values, at)))
    coarse, fine = side.records.total(ask)
    return np.array([side.by_weight(own) for own in np.stack([coarse, fine], axis=-1)])


# How the changes of statistics are measured, by their type; the first that fits counts.
_BY_TYPE: list[tuple[type, Callable[[Any, Any, PrivacyUnit], list[Shift]]]] = [
    (CountTables, _counts),
    (LabelledCounts, lambda one, other, unit: _counts(one.counts, other.counts, unit)),
    (SimplexCounts, _simplex),
    (LinearRecords, _linear),
    (SortedColumns, _columns),
    (ColumnScores, _scores),
    (EdgeScores, _scores),
    (TextCounts, _texts),
    (
        NumbersAndTexts,
        lambda one, other, unit: [
            *_columns(one.numbers, other.numbers, unit),
            *_texts(one.texts, other.texts, unit),
        ],
    ),
    (
        RecordCount,
        lambda one, other, unit: [
            Shift("number of records", abs(one.n - other.n), float(one.sensitivity(unit)))
        ],
    ),
    (BoundedSums, _sums),
    (LabelledRecords, _labelled),
]
