"""The exact worst-case privacy loss of a mechanism, over all data sets of a small world.

What a release draws from is read off the production code. It is run with its samplers replaced by
recorders. Once they return zeros: what comes out is what noise would have been added to. Then they
return marks, large numbers of both signs and a different one for each draw: the difference tells
which number carries which noise, and which none.
"""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audit.tools.recording import Transcript, planted
from benchmarks.audit.tools.steps import Added, Choice, Fixed, Opaque, Placed, StepLaw, shared_laws
from benchmarks.audit.tools.universes import DataSet, Indices, Universe, released, universe_of
from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    MatrixNoise,
    Noise,
    NoiseLaw,
    SupNorm,
    ZeroSum,
    ball,
    class_rows,
    discrete_gaussian,
    discrete_laplace,
    joint,
    matrix,
)
from dpbayes_sklearn.noise.integers import RandomSource
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit, exact
from dpbayes_sklearn.release import Facts, RecordCount, size_share

_MARK = 1 << 32  # Marks are multiples of this, which is larger than any count.
_ALONE, _GAUSSIAN = -1, -2  # These stand for a group of noises where none cancels.
_laplace = discrete_laplace._proposals
_gaussian = discrete_gaussian._proposals
_boxes = joint.discrete_boxes
_rows = class_rows.many_rows
_matrices = matrix.wishart_differences
_vectors = ball.ball_vectors


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
    whole: dict[int, NoiseLaw] = field(default_factory=dict)  # first noise of one: its law
    whole_of: dict[int, int] = field(default_factory=dict)  # noise: the first of its law
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
        return self._joint(MatrixNoise(scale, weights), count)

    def vectors(
        self, scale: Fraction, dimension: int, count: int, source: RandomSource
    ) -> IntArray:
        """Stand in for noises of whole vectors."""
        if source is not no_bytes:
            return _vectors(scale, dimension, count, source)
        return self._joint(ball.BallNoise(scale, dimension), count)

    def _joint(self, law: MatrixNoise | ball.BallNoise, count: int) -> IntArray:
        """Mark noises that have a density together only."""
        drawn = []
        for _ in range(count):
            first = len(self.scales)
            self.whole[first] = law
            self.whole_of |= dict.fromkeys(range(first, first + law.size), first)
            drawn.append(self._noise(law.scale, law.size, [_ALONE] * law.size))
        return np.stack(drawn)

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
            (ball, "ball_vectors", self.vectors),
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


def _taken_apart(thing: Any) -> tuple[list[AnyArray], list[Any]]:
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
        shared = recorder.whole_of.get(noise, shared)
        together[recorder.scales[noise], recorder.groups[noise], shared].append(cell)
    laws: list[StepLaw] = []
    law: NoiseLaw
    for (scale, group, shared), cells in together.items():
        centre = centres[cells].astype(np.int64)
        bare += [cells, (centres[cells] - centre).tolist()]  # noise hides no fraction
        own = [int(noise) for noise in named[cells]]
        if own[0] in recorder.rows:
            laws.append(_class_rows(centre, scale, own, recorder))
            continue
        if own[0] in recorder.whole_of:
            law = recorder.whole[shared]
            told = own == [*range(shared, shared + law.size)]
            laws.append(Added(centre, law) if told else Opaque())
            continue
        law = DiscreteLaplace.of(scale, [len(cells)])
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


_FLOATS = 1e-12  # A norm that is computed in floats is known up to this part.
_CLEAR = 1e-9  # Below (1 - 1e-9) epsilon floats decide; closer, compare exact fractions.


@dataclass(frozen=True)
class Enumeration:
    """Result of the enumeration of all neighbouring data sets.

    Attributes
    ----------
    loss : float
        Worst log ratio of the probabilities of an outcome; infinite if an outcome of one data
        set is impossible for its neighbour.
    claim : float
        The claimed epsilon.
    within : bool
        True if the loss is at most the claim: decided in exact rationals where ``exact``.
    exact : bool
        True if ``loss`` is the exact worst case (as a float, rounded up); False if it is an upper
        bound, for the transcripts that were tried.
    worst_pair : pair of tuples
        The records of the two neighbours with the largest loss.
    n_pairs, n_outcomes : int
        Number of pairs of neighbours, and of log ratios that were compared. Noise on the integers
        has infinitely many outcomes; a closed form replaces them and counts as one.
    """

    loss: float
    claim: float
    within: bool
    exact: bool
    worst_pair: tuple[tuple[Any, ...], tuple[Any, ...]]
    n_pairs: int
    n_outcomes: int

    @property
    def ratio(self) -> float:
        """Return the part of the claim that the worst pair uses up."""
        return self.loss / self.claim


def enumerate_loss(
    mechanism: str | Mechanism | None,
    structure: Any,
    n: int,
    *,
    epsilon: float = 1.0,
    unit: PrivacyUnit | str = "record",
    prior: float | Sequence[float] = 1.0,
    transcripts: int = 2,
    noise: type[Noise] = Noise,
) -> Enumeration:
    """Compute the worst loss over all neighbouring data sets of n records of a universe.

    Every data set is counted by the production statistics and released by the production
    mechanism, with recorders in place of its samplers. The distributions that would have been
    drawn from are compared; stated sensitivities are not used. While this runs, no other thread
    may fit.

    Parameters
    ----------
    mechanism : str or Mechanism
        None for quantiles and choices, which have one way of release.
    structure : Network, int, Design or QuantileQuestions
        What a record is: the nodes of a network, one of k categories, the columns of a
        regression, whose numbers take five values each, or columns of which quantiles are asked.
    n : int
        Number of records. All multisets of n records are enumerated, so keep it small.
    epsilon : float, default=1.0
    unit : PrivacyUnit or {"record", "feature"}, default="record"
        Where records may be added or removed, n is the larger number, and something was released
        about it before.
    prior : float or sequence of float, default=1.0
        Pseudo-counts, or the precision of a regression's prior.
    transcripts : int, default=2
        For a regression or quantiles, which are released in several steps: so many outcomes of the
        earlier steps are tried, drawn with fixed seeds.
    noise : subclass of Noise, optional
        What makes the noise of a release in one step, for noise of one's own.

    Returns
    -------
    Enumeration

    Examples
    --------
    >>> from benchmarks.audit.tools import enumerate_loss
    >>> from dpbayes_sklearn.counts.network import Network
    >>> found = enumerate_loss("laplace", Network.star([2, 2], 2), n=3)
    >>> found.loss, found.within, found.n_pairs
    (1.0, True, 1620)
    >>> enumerate_loss("geometric", 2, n=5).worst_pair
    (((0,), (0,), (0,), (0,), (1,)), ((0,), (0,), (0,), (0,), (0,)))
    """
    chosen = None if mechanism is None else resolve_mechanism(mechanism)
    universe = universe_of(structure)
    budget = Budget(exact(epsilon), unit=PrivacyUnit.of(unit))
    data_sets = universe.data_sets(n, budget.unit)
    first, second = universe.neighbours(n, budget.unit)
    size = known_size(n, budget)
    if not len(first):
        raise ValueError("There are no two neighbouring data sets in this world.")
    readers = readers_of(chosen, universe, data_sets, prior, budget, transcripts, noise)
    found = [
        _Comparison([read(universe.observed(d, size)) for d in data_sets], first, second)
        for read in readers
    ]
    worst = max(found, key=lambda c: c.loss)
    pair = [tuple(universe.records[i] for i in data_sets[side]) for side in worst.pair]
    return Enumeration(
        worst.loss,
        float(budget.epsilon),
        all(c.within(Fraction(budget.epsilon)) for c in found),
        universe.is_finite,
        (pair[0], pair[1]),
        len(first),
        sum(c.n_outcomes for c in found),
    )


def known_size(n: int, budget: Budget) -> Facts | None:
    """Return what was released about a secret number of records before: the same for all."""
    if not budget.unit.size_is_secret:
        return None
    law = RecordCount(n).law(budget.unit, size_share(Fraction(budget.epsilon)))
    return Facts(n, (law,))


def readers_of(
    mechanism: Mechanism | None,
    universe: Universe,
    data_sets: list[DataSet],
    prior: Any,
    budget: Budget,
    transcripts: int,
    noise: type[Noise] = Noise,
) -> list[Callable[[Any], list[StepLaw]]]:
    """Return ways to read the laws of statistics: one, or one for each transcript."""
    belief = universe.prior(prior)
    if universe.is_finite:
        return [lambda statistics: laws_of_release(mechanism, statistics, belief, budget, noise)]
    size = known_size(len(data_sets[-1]), budget)
    starts = (data_sets[seed * 7919 % len(data_sets)] for seed in range(transcripts))
    return [
        Transcript(mechanism, universe.observed(s, size), belief, budget, seed).laws
        for seed, s in enumerate(starts)
    ]


class _Comparison:
    """The losses of all pairs, in both directions, added up over the steps of the release."""

    def __init__(self, laws: list[list[StepLaw]], first: Indices, second: Indices) -> None:
        steps = max(map(len, laws))
        self._laws = [[*own, *[Fixed(b"")] * (steps - len(own))] for own in shared_laws(laws)]
        self._here, self._there = (
            np.concatenate(sides) for sides in ((first, second), (second, first))
        )
        self.n_outcomes = 0
        self._total = np.zeros(len(self._here))
        self._kinds = np.stack([self._add(step) for step in range(steps)], axis=1)
        worst = int(np.argmax(self._total))
        self.pair = int(self._here[worst]), int(self._there[worst])

    def _add(self, step: int) -> Indices:
        """Add the loss of every pair at one step; return numbers that tell losses apart.

        Equal laws are compared only once.
        """
        numbers: dict[bytes, int] = {}
        laws: list[StepLaw] = []
        number_of = np.empty(len(self._laws), np.intp)
        for i, own in enumerate(self._laws):
            number_of[i] = numbers.setdefault(own[step].key(), len(laws))
            if number_of[i] == len(laws):
                laws.append(own[step])
        here, there = number_of[self._here], number_of[self._there]
        pairs, which = np.unique(here * len(laws) + there, return_inverse=True)
        losses = _losses([(laws[p // len(laws)], laws[p % len(laws)]) for p in pairs.tolist()])
        self._total += np.array(losses, np.float64)[which]
        self.n_outcomes += int(np.array([law.n_outcomes for law in laws])[here].sum())
        seen: dict[Any, int] = {}
        # a fraction is the loss itself; a float may stand for several that differ a little
        keys = (x if isinstance(x, Fraction) else (i, x) for i, x in enumerate(losses))
        return np.array([seen.setdefault(key, len(seen)) for key in keys], np.intp)[which]

    @property
    def loss(self) -> float:
        """Return the worst loss of all pairs."""
        pairs = zip(*(self._laws[side] for side in self.pair), strict=True)
        each = [one.loss(other) for one, other in pairs]
        if all(isinstance(loss, Fraction) for loss in each):
            return float(sum(each))
        return float(self._total.max())

    def within(self, epsilon: Fraction) -> bool:
        """Tell whether no pair loses more, in exact rationals where floats could not decide."""
        close = np.flatnonzero(self._total > float(epsilon) * (1 - _CLEAR))
        _, examples = np.unique(self._kinds[close], axis=0, return_index=True)
        worst_first = close[examples][np.argsort(-self._total[close[examples]])]
        return all(
            self._pair_within(int(self._here[i]), int(self._there[i]), epsilon) for i in worst_first
        )

    def _pair_within(self, here: int, there: int, epsilon: Fraction) -> bool:
        rest, ratio = Fraction(0), Fraction(1)
        for one, other in zip(self._laws[here], self._laws[there], strict=True):
            loss = one.loss(other)
            if math.isinf(loss):
                return False
            if isinstance(one, (Choice, Placed)):
                points: Any = other
                ratio *= one.ratio(points)
            else:
                rest += loss if isinstance(loss, Fraction) else Fraction(loss * (1 - _FLOATS))
        return rest <= epsilon and ratio <= _exp_from_below(epsilon - rest)


def _losses(pairs: list[tuple[StepLaw, StepLaw]]) -> list[Fraction | float]:
    """Return the loss of every pair; with the same noise it depends on their difference only."""
    known: dict[tuple[int, bytes], Fraction | float] = {}
    losses = []
    for one, other in pairs:
        if isinstance(one, Added) and isinstance(other, Added) and one.law is other.law:
            shift = id(one.law), (one.centre - other.centre).tobytes()
            if shift not in known:
                known[shift] = one.loss(other)
            losses.append(known[shift])
        else:
            losses.append(one.loss(other))
    return losses


def _exp_from_below(x: Fraction) -> Fraction:
    """Return a rational no larger than exp(x), x >= 0, off by a relative 1e-12 for x up to 20."""
    term = total = Fraction(1)
    for k in range(1, 80):
        term *= Fraction(x) / k
        total += term
    return total
