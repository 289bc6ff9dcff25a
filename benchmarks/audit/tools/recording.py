"""Noise that notes the law of every step of a fit, and answers as an earlier fit did.

What `Noise` is handed is what is drawn from, whatever was planned or charged. A second fit along
the answers of the first shows the laws of neighbouring data given the same past: the loss of a
release in several steps, of which later ones use what earlier ones said, is the sum over steps.

A part loses epsilon purely, rho in zCDP, and what its epsilon does not cover has probability delta.
Each of the three adds up over the parts of a release, whatever the library thinks that they share.
The same release may be judged by any of the rules that are theorems: sums of pure losses, zCDP, or
the exact loss of Gaussian noise beside a pure release.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce, singledispatch
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from benchmarks.audit.tools.steps import (
    Added,
    Ball,
    Choice,
    ConvexMode,
    Fixed,
    LogisticMode,
    OrderedMode,
    Placed,
    SoftmaxMode,
    StepLaw,
    gaussian_delta,
    quadratic_range,
    seen_records,
    weighed_records,
)
from benchmarks.audit.tools.universes import released
from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.losses import HuberLoss, InWindows
from dpbayes_sklearn.logistic.mode import LogisticLoss
from dpbayes_sklearn.logistic.ordered import OrderedLoss
from dpbayes_sklearn.logistic.softmax import SoftmaxLoss
from dpbayes_sklearn.noise import DiscreteGaussian, Noise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.noise.integers import RandomSource, random_source
from dpbayes_sklearn.noise.noise import Objective, Weights
from dpbayes_sklearn.privacy.budget import Budget

_ABSENT = object()  # Stands for an attribute that the object itself does not have.


@contextmanager
def planted(*replacements: tuple[Any, str, Any]) -> Iterator[None]:
    """Run a block with attributes of modules, classes or objects replaced: (owner, name, value).

    >>> import math
    >>> with planted((math, "pi", 3)):
    ...     math.pi
    3
    >>> math.pi > 3
    True
    """
    with ExitStack() as stack:
        for owner, name, value in replacements:
            was = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else _ABSENT
            if was is _ABSENT:
                stack.callback(delattr, owner, name)
            else:
                stack.callback(setattr, owner, name, was)
            setattr(owner, name, value)
        yield


class Part(NamedTuple):
    """What a part of a release loses: purely, in zCDP, and the probability of what is beyond."""

    pure: float = 0.0
    rho: float = 0.0
    delta: float = 0.0


def together(parts: Iterable[Part]) -> Part:
    """Add up."""
    return Part(*(float(sum(column)) for column in zip(Part(), *parts, strict=True)))


def covered(parts: Iterable[Part], epsilon: float, delta: float) -> bool:
    """Tell whether (epsilon, delta) covers all parts by one of the rules.

    Some are judged by their pure losses and the others, which gain most by it, by zCDP.
    """
    order = sorted(parts, key=lambda part: part.pure**2 / part.rho if part.rho else 0.0)
    left = delta - together(order).delta
    splits = [(together(order[:i]), order[i:]) for i in range(len(order) + 1)]
    return left >= 0 and any(_by_both(pure, rest, epsilon, left) for pure, rest in splits)


def _by_both(pure: Part, rest: list[Part], epsilon: float, delta: float) -> bool:
    """Add a pure loss to what zCDP, or the exact loss of Gaussian noise, converts to."""
    rho = together(rest).rho
    if not rho:
        return pure.pure <= epsilon
    if not (math.isfinite(pure.pure + rho) and delta):
        return False
    gaussian = all(math.isinf(part.pure) for part in rest if part.rho)
    exact = gaussian and _beside(rho, pure.pure, epsilon) <= delta
    return exact or pure.pure + _zcdp(rho, delta) <= epsilon


def _zcdp(rho: float, delta: float) -> float:
    """Convert zCDP (Canonne, Kamath and Steinke 2020) at the best of many orders."""
    order = 1 + np.exp(np.linspace(-5, 15, 4001))
    gap = np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)
    return float((order * rho + gap).min())


def _beside(rho: float, pure: float, epsilon: float) -> float:
    """Return the delta of Gaussian noise beside a randomised response of ``pure``."""
    keeps = 1 / (1 + math.exp(-pure))
    less, more = (gaussian_delta(math.sqrt(2 * rho), epsilon + side * pure) for side in (-1, 1))
    return keeps * less + (1 - keeps) * more


@dataclass(frozen=True)
class Texts(StepLaw):
    """Which texts are published: for every column the law that was drawn from, and the counts."""

    columns: tuple[tuple[TruncatedLaplace, tuple[tuple[str, int], ...]], ...]

    def key(self) -> bytes:
        """Return what two equal steps have in common."""
        return repr(self.columns).encode()

    def _loss(self, other: Texts) -> float:
        return self.loss_beyond(other, 0.0)

    def loss_beyond(self, other: Texts, delta: float) -> float:
        """Return the least epsilon that goes with delta: every text that changed is a coin."""
        coins = [
            _coin(law, dict(mine).get(text, 0), dict(theirs).get(text, 0))
            for (law, mine), (_, theirs) in zip(self.columns, other.columns, strict=True)
            for text in sorted({text for text, _ in {*mine} ^ {*theirs}})
        ]
        if [law for law, _ in self.columns] != [law for law, _ in other.columns]:
            return math.inf
        if not coins:
            return 0.0
        p, q = (
            reduce(np.multiply.outer, side, np.ones(1)).ravel() for side in zip(*coins, strict=True)
        )
        return _least_epsilon(p, q, delta)


def _coin(law: TruncatedLaplace, here: int, there: int) -> tuple[FloatArray, FloatArray]:
    """Return the chances that counts are above the reach of their noise, and that they are not."""
    z = np.arange(-law.reach, law.reach + 1)
    weights = np.exp(-np.abs(z) / float(law.scale))
    sides = [count + z > law.reach for count in (here, there)]
    one, other = (np.array([weights[a].sum(), weights[~a].sum()]) for a in sides)
    return one / weights.sum(), other / weights.sum()


def _least_epsilon(p: FloatArray, q: FloatArray, delta: float) -> float:
    """Return the least epsilon with a hockey-stick divergence of at most delta."""
    both = (p > 0) & (q > 0)
    ratios = np.log(p[both] / q[both])

    def beyond(epsilon: float) -> float:
        return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())

    if delta < p[q == 0].sum():
        return math.inf
    low, high = 0.0, float(ratios.max(initial=0.0))
    while high - low > 1e-12 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True)
class ModeSearch(StepLaw):
    """Where the search for a mode ended: it must be within a step of the exact minimum."""

    mode: ConvexMode | LogisticMode
    noise: IntArray
    steps: IntArray
    found: FloatArray

    def key(self) -> bytes:
        """Return nothing: where a search ends is judged by its distance."""
        return b""

    def _loss(self, other: ModeSearch) -> float:
        return 0.0 if max(self.distance, other.distance) <= 1 else math.inf

    @property
    def distance(self) -> float:
        """A bound, in steps, on the distance of what was found from the minimum."""
        plan = self.mode.plan
        if not np.array_equal(np.rint(self.found / plan.step), self.steps):
            return math.inf
        return float(self.mode.left(self.found, self.noise) / plan.ridge.min() / plan.step)


@dataclass(frozen=True)
class Calibrated(Added):
    """Gaussian noise, and its rho at the declared sensitivity of what it is added to."""

    bound: float


@dataclass(frozen=True)
class ScoredChoice(Choice):
    """A choice by scores that change by ``most``, and what it loses where they do."""

    bound: float
    scores: IntArray
    most: int


def worst_of_choice(
    weights: Callable[[IntArray], npt.NDArray[np.uint64]], candidates: int, up: int, down: int
) -> float:
    """Return what a choice loses if one score, far below the others, rises and all others fall."""
    if not up:
        return 0.0
    last = np.arange(candidates) == candidates - 1
    losses = []
    for gap in 2 ** np.arange(16) * max(up, down):
        before = np.where(last, -gap, 0)
        sides = [Choice(weights(s)) for s in (before, before + np.where(last, up, -down))]
        losses.append(max(sides[0].loss(sides[1]), sides[1].loss(sides[0])))
    return float(max(losses))


@singledispatch
def lost(one: Any, other: Any) -> Part:
    """Return what a step loses between two data sets, in either direction."""
    pure = float(max(one.loss(other), other.loss(one)))
    return Part(pure, pure**2 / 2)


# The loss between steps of which only one of two neighbours has an outcome.
_NEVER = Part(math.inf, math.inf, 1.0)


@lost.register
def _(one: Added, other: Any) -> Part:
    if not (isinstance(other, Added) and one.law == other.law):
        return _NEVER
    shift = one.centre - other.centre
    if isinstance(one.law, DiscreteGaussian):
        rho = max(float(one.law.rho(shift)), getattr(one, "bound", 0.0))
        return Part(math.inf if rho else 0.0, rho)
    pure = float(one.law.privacy_loss(shift))
    return Part(pure, pure**2 / 2)


@lost.register
def _(one: Choice, other: Any) -> Part:
    pure = float(max(one.loss(other), other.loss(one)))
    if not math.isfinite(pure):
        return _NEVER
    ratios = one._log_law - other._log_law
    rho = float((np.ptp(ratios, axis=-1) ** 2).sum()) / 8
    if not isinstance(one, ScoredChoice):
        return Part(pure, rho)
    if np.abs(one.scores - other.scores).max() > one.most:
        return _NEVER
    bound = max(one.bound, other.bound)
    return Part(max(pure, bound), max(rho, bound**2 / 2))


@lost.register
def _(one: Ball, other: Any) -> Part:
    pure = one.loss(other)
    if not math.isfinite(pure):
        return _NEVER
    width = quadratic_range(other.precision - one.precision, one.linear - other.linear, one.radius)
    return Part(float(pure), one.n_draws * width**2 / 8)


class Recording:
    """The steps of one fit, what they answered, and at which step each run of a search began.

    Parameters
    ----------
    along : Recording, optional
        Every step answers what it did there, if it is of the same kind.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial
    >>> from dpbayes_sklearn.noise import made_by
    >>> recording = Recording()
    >>> with made_by(recording.noise):
    ...     model = BetaBinomial().fit([True, False, True])
    >>> [(step.centre.tolist(), type(step.law).__name__) for step in recording.steps]
    [([2, 1], 'ZeroSum')]
    """

    def __init__(self, along: Recording | None = None) -> None:
        self.steps: list[StepLaw] = []
        self.said: list[tuple[type[StepLaw], Any]] = []
        self.runs: list[int] = []
        self._past = None if along is None else along.said
        self.leads = along is None or not along.steps  # bounds are the same for all that follow
        self.declared: float | None = None  # what the next step loses at its declared sensitivity
        self._owners: list[Noise] = []

    def noise(self, source: RandomSource | None = None) -> Noise:
        """Return noise that this recording listens to."""
        return _Recorder(self, source)

    def bound(self) -> float | None:
        """Return what is declared about the next step, once."""
        declared, self.declared = self.declared, None
        return declared

    def answer(self, step: StepLaw, draw: Callable[[], Any], owner: Noise, start: int) -> Any:
        """Note a step; return what was said at its place before, if it was of the same kind."""
        past, place = self._past, len(self.steps)
        known = past is not None and place < len(past) and past[place][0] is type(step)
        since = self._owners[start:]
        if since and owner not in since:  # others drew since it was made: it is that of a run
            self.runs.append(start)
        self._owners.append(owner)
        self.steps.append(step)
        said = past[place][1] if past is not None and known else draw()
        self.said.append((type(step), said))
        return said


class _Recorder(Noise):
    """The noise of one release."""

    def __init__(self, log: Recording, source: RandomSource | None) -> None:
        super().__init__(source)
        self._log, self._start = log, len(log.steps)
        self._inside: list[Any] | None = None  # what is drawn for a step that knows its records

    def _answer(self, step: StepLaw, draw: Callable[[], Any]) -> Any:
        return self._log.answer(step, draw, self, self._start)

    def add(self, arrays: Sequence[IntArray], law: NoiseLaw) -> tuple[AnyArray, ...]:
        """Note what noise is added to."""
        if self._inside is not None:
            noisy = super().add(arrays, law)
            self._inside.append((law, arrays, noisy))
            return noisy
        flat = np.concatenate([np.ravel(array) for array in arrays])
        declared = self._log.bound() if isinstance(law, DiscreteGaussian) else None
        step = Added(flat, law) if declared is None else Calibrated(flat, law, declared)
        noisy = self._answer(step, lambda: Noise.add(self, arrays, law))
        if sum(map(np.size, noisy)) != flat.size:
            raise ValueError("Which steps a release takes depends on the data.")
        return tuple(np.reshape(own, np.shape(a)) for own, a in zip(noisy, arrays, strict=True))

    def choose(self, weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """Note the weights."""
        drawn = self._answer(Choice(_rows(weights)), lambda: Noise.choose(self, weights))
        return np.asarray(drawn)

    def choose_by(self, scores: IntArray, weights: Weights, up: int, down: int) -> int:
        """Note the weights, and what they lose at worst."""
        own = weights(scores)
        bound = worst_of_choice(weights, len(scores), up, down) if self._log.leads else 0.0
        step = ScoredChoice(_rows(own), bound, scores, max(up, down))
        return int(self._answer(step, lambda: Noise.choose(self, own))[0])

    def place(self, masses: Sequence[int], weights: Sequence[int]) -> int:
        """Note the segments."""
        step = Placed(tuple(accumulate(masses)), tuple(weights), self._log.bound() or 0.0)
        return int(self._answer(step, lambda: Noise.place(self, masses, weights)))

    def ball(
        self, precision: FloatArray, linear: FloatArray, radius: float, n_draws: int
    ) -> FloatArray:
        """Note the Gaussian."""
        step = Ball(np.array(precision), np.array(linear), float(radius), n_draws)
        drawn = self._answer(step, lambda: Noise.ball(self, precision, linear, radius, n_draws))
        return np.asarray(drawn)

    def common(
        self, columns: Sequence[Mapping[str, int]], law: TruncatedLaplace
    ) -> tuple[tuple[str, ...], ...]:
        """Note the counts of texts."""
        step = Texts(tuple((law, tuple(sorted(counts.items()))) for counts in columns))
        found: tuple[tuple[str, ...], ...] = self._answer(
            step, lambda: Noise.common(self, columns, law)
        )
        return found

    def minimum(self, objective: Objective) -> FloatArray:
        """Note the records, the noise that was drawn, and where the search ended."""
        seen, self._inside = _Ended(objective), []
        try:
            released = super().minimum(seen)
            (gradient_noise, _, drawn), (jitter, (steps,), _) = self._inside
        finally:
            self._inside = None
        mode = mode_of(objective, gradient_noise, jitter)
        released = np.asarray(self._answer(mode, lambda: released))
        found = ModeSearch(mode, np.concatenate(drawn), steps, seen.found)
        self._answer(found, lambda: None)
        return released


class _Ended:
    """An objective that remembers where its search ended."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.gradient_noise, self.jitter, self.step = (
            objective.gradient_noise,
            objective.jitter,
            objective.step,
        )

    def minimum(self, *noise: IntArray) -> FloatArray:
        """Search."""
        self.found = self._objective.minimum(*noise)
        return self.found


def mode_of(
    objective: Any, gradient_noise: NoiseLaw, jitter: NoiseLaw
) -> ConvexMode | LogisticMode:
    """Return the step of an objective with the noise that was drawn for it."""
    body = objective.plan.body._replace(law=gradient_noise)
    plan = replace(objective.plan, body=body, jitter=cast(SupNorm, jitter))
    loss = objective.loss
    if isinstance(loss, SoftmaxLoss):
        return SoftmaxMode(weighed_records(loss.records), plan, objective, loss.blocks)
    if isinstance(loss, OrderedLoss):
        return OrderedMode(weighed_records(loss.records), plan, objective, loss.blocks)
    if isinstance(loss, LogisticLoss):
        counted = loss.records.reader.counted
        return LogisticMode(weighed_records(loss.records), plan, objective, loss.blocks, counted)
    if not isinstance(loss, HuberLoss):
        raise TypeError(f"No step is known for {type(loss).__name__}.")
    design = loss.records.design if isinstance(loss.rows, InWindows) else None
    return ConvexMode(seen_records(loss), plan, objective, design)


def _rows(weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return np.array(np.reshape(weights, (-1, np.shape(weights)[-1])))


class Transcript:
    """What one release said, step by step, and the laws of any data set along it.

    It is made once, with real noise. All that comes out at the end must be the same for all data
    sets, because the transcript is.
    """

    def __init__(
        self, mechanism: Any, statistics: Any, prior: Any, budget: Budget, seed: int
    ) -> None:
        self._public = mechanism, prior, budget
        self._said = Recording()
        released(mechanism, statistics, prior, budget, self._said.noise(random_source(seed)))

    def laws(self, statistics: Any) -> list[StepLaw]:
        """Return the laws of a data set along this transcript; first what carries no noise."""
        (mechanism, prior, budget), own = self._public, Recording(self._said)
        posterior = released(mechanism, statistics, prior, budget, own.noise())
        kinds, same = ([(type(s), s.n_answers) for s in log.steps] for log in (own, self._said))
        if kinds != same:
            raise ValueError("Which steps a release takes depends on the data.")
        return [Fixed(pickle.dumps([[kind.__name__ for kind, _ in kinds], posterior])), *own.steps]
