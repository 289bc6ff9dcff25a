"""Read off the production code what a release draws from: laws, not draws.

A release is run with its samplers replaced by recorders. Once they return zeros: what comes out is
what noise would have been added to. Then they return marks, large numbers of both signs and a
different one for each draw: the difference tells which number carries which noise, and which none.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.audit._steps import Added, Choice, Fixed, Opaque, StepLaw
from dpbayes_sklearn.audit._universes import released
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    Noise,
    NoiseLaw,
    SupNorm,
    ZeroSum,
    class_rows,
    discrete_gaussian,
    discrete_laplace,
    joint,
    matrix,
)
from dpbayes_sklearn.noise.integers import RandomSource
from dpbayes_sklearn.privacy.budget import Budget

_MARK = 1 << 32  # Marks are multiples of this, which is larger than any count.
_ALONE, _GAUSSIAN = -1, -2  # These stand for a group of noises where none cancels.
_laplace = discrete_laplace._proposals
_gaussian = discrete_gaussian._proposals
_boxes = joint.discrete_boxes
_rows = class_rows.many_rows
_matrices = matrix.wishart_differences


def no_bytes(size: int) -> bytes:
    """Return zeros: nothing is left to chance while laws are read."""
    return bytes(size)


@dataclass(eq=False)
class Recorder(Noise):
    """Stands in for the samplers, and remembers the law of every single draw."""

    marks: int = 0  # 1 or -1: draws are marked by large numbers of both signs
    scales: list[Fraction] = field(default_factory=list)  # one for each noise
    groups: list[int] = field(default_factory=list)  # noises that cancel share a number
    boxes: dict[int, tuple[int, int]] = field(default_factory=dict)  # noise: its box, its side
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)  # noise: its draw, its row
    matrices: list[tuple[Fraction, ...]] = field(default_factory=list)  # weights of coordinates
    weights: list[npt.NDArray[np.uint64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(no_bytes)

    def laplace(self, scale: Fraction, count: int, source: RandomSource) -> IntArray:
        """Stand in for proposals of independent noise; those that are too many go unused."""
        if source is not no_bytes:  # a simulation of the public noise law, no part of the release
            return _laplace(scale, count, source)
        return self._noise(scale, count, [_ALONE] * count)

    def gaussian(self, variance: Fraction, count: int, source: RandomSource) -> IntArray:
        """Stand in for proposals of Gaussian noise, whose scale is its parameter sigma²."""
        if source is not no_bytes:
            return _gaussian(variance, count, source)
        return self._noise(variance, count, [_GAUSSIAN] * count)

    def zero_sum(self, scale: Fraction, cells: int, count: int, source: RandomSource) -> IntArray:
        """Stand in for proposals of noise that cancels."""
        first = len(self.scales)
        together = [first + row for row in range(count) for _ in range(cells)]
        return self._noise(scale, count * cells, together).reshape(count, cells)

    def box(self, sides: IntArray, scale: Fraction, count: int, source: RandomSource) -> IntArray:
        """Stand in for noises of many entries each."""
        if source is not no_bytes:
            return _boxes(sides, scale, count, source)
        rows = []
        for _ in range(count):
            first = len(self.scales)
            self.boxes |= {first + i: (first, int(side)) for i, side in enumerate(sides)}
            rows.append(self._noise(scale, len(sides), [_ALONE] * len(sides)))
        return np.stack(rows)

    def matrix(
        self, scale: Fraction, weights: tuple[Fraction, ...], count: int, source: RandomSource
    ) -> IntArray:
        """Stand in for noises of whole matrices."""
        if source is not no_bytes:
            return _matrices(scale, weights, count, source)
        self.matrices += [weights] * count
        entries = len(weights) * (len(weights) + 1) // 2
        return self._noise(scale, count * entries, [_ALONE] * count * entries).reshape(
            count, entries
        )

    def row_noise(
        self, sizes: Sequence[int], scale: Fraction, count: int, source: RandomSource
    ) -> Iterator[tuple[int, list[IntArray]]]:
        """Stand in for rows of equal sum; the sum is marked as a row of its own."""
        if source is not no_bytes:
            yield from _rows(sizes, scale, count, source)
            return
        cells = [*sizes, 1]
        members = np.repeat(np.arange(len(cells)), cells).tolist()
        for _ in range(count):
            first = len(self.scales)
            self.rows |= {first + i: (first, row) for i, row in enumerate(members)}
            noise = self._noise(scale, len(members), [_ALONE] * len(members))
            *rows, total = np.split(noise, np.cumsum(cells)[:-1])
            yield int(total[0]), rows

    def _noise(self, scale: Fraction, count: int, groups: list[int]) -> IntArray:
        first = len(self.scales)
        self.scales += [Fraction(scale)] * count
        self.groups += groups
        numbers = np.arange(first + 1, first + count + 1)
        return self.marks * np.where(numbers % 2, numbers, -numbers) * _MARK

    @staticmethod
    def names(marks: FloatArray) -> IntArray:
        """Return which noise was added, by the marks that it left; -1 if none was."""
        return np.asarray(np.rint(np.abs(marks) / _MARK).astype(np.int64) - 1)

    def choose(self, weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """Note the weights; choose always the first point."""
        self.weights.append(np.array(weights))
        return np.zeros(weights.shape[:-1], np.intp)

    @contextmanager
    def installed(self) -> Iterator[Recorder]:
        """Replace the samplers at the bottom, so that wrappers around them are seen through."""
        with planted(
            (discrete_laplace, "_proposals", self.laplace),
            (discrete_gaussian, "_proposals", self.gaussian),
            (joint, "_proposals", self.zero_sum),
            (joint, "discrete_boxes", self.box),
            (class_rows, "many_rows", self.row_noise),
            (matrix, "wishart_differences", self.matrix),
        ):
            yield self


def laws_of_release(
    mechanism: Mechanism | None,
    statistics: Any,
    prior: Any,
    budget: Budget,
    noise: type[Noise] = Noise,
) -> list[StepLaw]:
    """Return the laws of all that leaves a release; ``prior`` hands back what it is given.

    First comes what carries no noise, as one law.
    """
    given = mechanism, statistics, prior, budget
    # what draws is recorded below the noise that is made
    kind = Recorder if noise is Noise else type(noise.__name__, (noise, Recorder), {})
    centres, public, recorder = _run(kind(0), *given)
    up = down = centres
    if recorder.scales:
        (up, _, _), (down, _, _) = _run(kind(1), *given), _run(kind(-1), *given)
    laws: list[StepLaw] = [
        Choice(row[None]) for w in recorder.weights for row in w.reshape(-1, w.shape[-1])
    ]
    bare, noises = _noises(centres, up - centres, down - centres, recorder)
    laws += noises
    return [Fixed(pickle.dumps([public, bare, [type(law).__name__ for law in laws]])), *laws]


def _run(
    recorder: Recorder, mechanism: Any, statistics: Any, prior: Any, budget: Budget
) -> tuple[FloatArray, bytes, Recorder]:
    with recorder.installed():
        public = released(mechanism, statistics, prior, budget, recorder)
    arrays, rest = _taken_apart(public)
    numbers = np.concatenate([np.ravel(a).astype(np.float64) for a in arrays] or [np.empty(0)])
    steps = numbers * getattr(public, "grid", 1)  # where sums lie on a public lattice
    return steps, pickle.dumps(rest), recorder


def _taken_apart(thing: Any) -> tuple[list[npt.NDArray[Any]], list[Any]]:
    """Return all arrays of a released object, and all else that is in it."""
    if isinstance(thing, np.ndarray):
        return [thing], [thing.shape, thing.dtype.str]
    if is_dataclass(thing):
        parts: list[Any] = [getattr(thing, f.name) for f in fields(thing)]
    elif isinstance(thing, Mapping):
        parts = [*thing.values()]
    elif isinstance(thing, tuple) and not hasattr(thing, "_fields"):
        parts = [*thing]
    else:
        return [], [thing]
    pairs = [_taken_apart(part) for part in parts]
    rest = [type(thing).__name__, *(list(thing) if isinstance(thing, Mapping) else [])]
    return [a for arrays, _ in pairs for a in arrays], [*rest, *(r for _, r in pairs)]


def _noises(centres: Any, up: Any, down: Any, recorder: Recorder) -> tuple[Any, list[StepLaw]]:
    """Sort the released numbers by the noise they carry; first those that carry none."""
    named = Recorder.names(up)
    marks = np.where(named % 2, -(named + 1), named + 1) * _MARK
    added = np.array_equal(up, marks) and np.array_equal(down, -marks)
    if not added or (named >= len(recorder.scales)).any():
        return None, [Opaque()]  # more is done with noise than to add it to integers
    bare: list[Any] = [centres[named < 0].tolist(), np.flatnonzero(named < 0).tolist()]
    together: dict[tuple[Fraction, int, int], list[int]] = defaultdict(list)
    first_holder: dict[int, int] = {}
    for cell in np.flatnonzero(named >= 0).tolist():
        noise = int(named[cell])
        if noise in first_holder:  # numbers that share one noise tell their difference
            bare.append(float(centres[cell] - centres[first_holder[noise]]))
            continue
        first_holder[noise] = cell
        shared, _ = recorder.boxes.get(noise) or recorder.rows.get(noise, (-1, 0))
        together[recorder.scales[noise], recorder.groups[noise], shared].append(cell)
    laws: list[StepLaw] = []
    for (scale, group, shared), cells in together.items():
        centre = centres[cells].astype(np.int64)
        bare += [cells, (centres[cells] - centre).tolist()]  # noise hides no fraction
        own = [int(noise) for noise in named[cells]]
        if own[0] in recorder.rows:
            laws.append(_class_rows(centre, scale, own, recorder))
            continue
        law: NoiseLaw = DiscreteLaplace.of(scale, [len(cells)])
        if group == _GAUSSIAN:
            law = DiscreteGaussian((scale,), (len(cells),))
        elif group >= 0:
            law = ZeroSum(scale, len(cells))
        elif shared >= 0:
            law = SupNorm(scale, tuple(recorder.boxes[noise][1] for noise in own))
        laws.append(Added(centre, law))
    return bare, laws


def _class_rows(
    centre: IntArray, scale: Fraction, noises: list[int], recorder: Recorder
) -> StepLaw:
    """Return the rows of one class; their sum alone may be missing, as any row tells it."""
    draw = recorder.rows[noises[0]][0]
    drawn = [noise for noise, (first, _) in recorder.rows.items() if first == draw]
    if not set(drawn[:-1]) <= set(noises):
        return Opaque()
    rows = [recorder.rows[noise][1] for noise in drawn[:-1]]
    values = tuple(rows.count(row) for row in sorted(set(rows)))
    order = np.argsort([drawn.index(noise) for noise in noises])
    cells = centre[order][: len(drawn) - 1]
    total = centre[order][-1] if len(noises) == len(drawn) else cells[: values[0]].sum()
    return Added(np.append(cells, total), ClassRows(scale, values, 1, 1))
