r"""What the parts of a release lose between neighbours, and what they add up to.

A part loses :math:`\varepsilon` purely, :math:`\rho` in zCDP, and what its (:math:`\varepsilon`)
does not cover has probability :math:`\delta`. Each of the three adds up over the parts of a
release, whatever the library thinks that they share. The same release may be judged by any of the
rules that are theorems: sums of pure losses, zCDP, or the exact loss of Gaussian noise beside a
pure release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.audit._steps import (
    Added,
    Ball,
    Choice,
    LogisticMode,
    Mode,
    StepLaw,
    gaussian_delta,
    quadratic_range,
)
from dpbayes_sklearn.noise import DiscreteGaussian
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace


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

    mode: Mode | LogisticMode
    noise: IntArray
    steps: IntArray
    found: FloatArray

    def key(self) -> bytes:
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
