r"""What a release draws from, read off the production code, and the exact loss between two of them.

A release is a list of steps. Each has a law, and the loss between the laws of two data sets is
known in closed form:

- **Added** adds integers z of a :class:`~dpbayes_sklearn.noise.NoiseLaw` to some integers c: the
  law knows the loss of every shift c - c'. Both laws must be the same, or the ratio of their tails
  has no bound.
- **Choice** draws independent points with integer weights: the sum over rows of
  :math:`\max_j [\log (w_j/W) - \log(w'_j/W')]`.
- **Placed** draws a point of a lattice, whose weight is that of its segment: the largest ratio
  over the common refinement of both lists of segments, in exact rationals.
- **Ball** draws from :math:`e^{-\frac12 w^\top A w + b^\top w}` on a ball: at most the range of
  :math:`\tfrac12 w^\top(A'-A)w + (b-b')^\top w` over it.
- **Mode** releases the minimum of a perturbed objective: the records that only one side has move
  its gradient by at most h times their coordinates, wherever the minimum is, and the volume by at
  most :math:`\prod(1 + x^\top\Lambda^{-1}x)`; the noise of the search is paid for on both sides.

Whatever else a release contains must not move at all.

The perturbed mode of a logistic regression as a step of a release.

Between two data sets, the records that only one of them has move the gradient by :math:`\sum \pm
r\,x` with residuals r of the sign that their labels fix, wherever the mode is: a convex function of
residuals, which is largest at corners. The volume moves by at most :math:`\prod(1 + \tfrac14
x^\top B\Lambda^{-1}B^\top x)`; the noise of the search is paid for on both sides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, singledispatch
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr, ndtr, softmax

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS
from dpbayes_sklearn.logistic.posterior import class_contrasts
from dpbayes_sklearn.logistic.softmax import Lift
from dpbayes_sklearn.noise import ClassRows, DiscreteGaussian, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.ball import BallNoise

_MOST_RECORDS = 12  # Two neighbours have no more records that only one of them has.
_OUTWARD = 2.0**-44  # Differences of logarithms of 62-bit integers err by less than this.


class StepLaw(ABC):
    """One step of a release on one data set."""

    @property
    def n_outcomes(self) -> int:
        """Number of log ratios that a loss looks at."""
        return 1

    @property
    def n_answers(self) -> int:
        """How many numbers it answers."""
        return 1

    @abstractmethod
    def key(self) -> bytes:
        """Return bytes that are the same for equal laws, and for them only."""

    def loss(self, other: StepLaw) -> Fraction | float:
        """Return the worst of log(P(outcome) / P'(outcome)), or a bound from above."""
        return self._loss(other) if type(other) is type(self) else math.inf

    @abstractmethod
    def _loss(self, other: Any) -> Fraction | float:
        """Return the loss against a step of the same type."""


@dataclass(frozen=True)
class Added(StepLaw):
    """Integers with noise of a known law."""

    centre: IntArray
    law: NoiseLaw

    @property
    def n_answers(self) -> int:
        """Number of integers."""
        return self.centre.size

    def key(self) -> bytes:
        return repr(self.law).encode() + b"|" + self.centre.tobytes()

    def _loss(self, other: Added) -> Fraction | float:
        if self.law != other.law:
            return math.inf
        return self.law.privacy_loss(self.centre - other.centre)


def shared_laws(releases: list[list[StepLaw]]) -> list[list[StepLaw]]:
    """Return the steps with one object for all equal noise laws, which are then soon compared."""
    known: dict[str, NoiseLaw] = {}

    def shared(step: StepLaw) -> StepLaw:
        if not isinstance(step, Added):
            return step
        return replace(step, law=known.setdefault(repr(step.law), step.law))

    return [[shared(step) for step in own] for own in releases]


@dataclass(frozen=True)
class Choice(StepLaw):
    """Independent draws from rows of integer weights."""

    weights: npt.NDArray[np.uint64]

    @property
    def n_outcomes(self) -> int:
        return self.weights.size

    n_answers = n_outcomes

    def key(self) -> bytes:
        return repr(self.weights.shape).encode() + self.weights.tobytes()

    def _loss(self, other: Choice) -> float:
        """Return the sum over rows of the largest log ratio, rounded outward."""
        if self.weights.shape != other.weights.shape:
            return math.inf
        if ((self.weights == 0) != (other.weights == 0)).any():
            return math.inf
        most = float((self._log_law - other._log_law).max(axis=-1).sum())
        return most + len(self.weights) * _OUTWARD

    @property
    def _log_law(self) -> FloatArray:
        totals = self.weights.sum(axis=-1, keepdims=True, dtype=np.uint64)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights.astype(np.float64)) - np.log(totals.astype(np.float64))
        return np.where(self.weights == 0, 0.0, logs)

    def ratio(self, other: Choice) -> Fraction:
        """Return the worst ratio of probabilities as an exact fraction."""
        product = Fraction(1)
        for mine, theirs in zip(self.weights.tolist(), other.weights.tolist(), strict=True):
            pairs = zip(mine, theirs, strict=True)
            product *= max(Fraction(w, v) for w, v in pairs if v) * Fraction(sum(theirs), sum(mine))
        return product


@dataclass(frozen=True)
class Placed(StepLaw):
    """A unit of mass of public lattices, in segments up to ``ends``, each unit of one weight.

    ``bound`` is what all questions of a level may lose; 0 for all but the first of them.
    """

    ends: tuple[int, ...]
    weights: tuple[int, ...]
    bound: float = 0.0

    @property
    def n_outcomes(self) -> int:
        return len(self.weights)

    def key(self) -> bytes:
        return repr((self.ends, self.weights)).encode()

    def _loss(self, other: Placed) -> float:
        if self.ends[-1] != other.ends[-1]:
            return math.inf
        ratio = self.ratio(other)
        return math.log(ratio.numerator) - math.log(ratio.denominator) + _OUTWARD

    def ratio(self, other: Placed) -> Fraction:
        """Return the worst ratio of probabilities of a unit of mass as an exact fraction."""
        edges = sorted({0, *self.ends, *other.ends})
        mine, theirs = self._at(edges[:-1]), other._at(edges[:-1])
        most = max(Fraction(a, b) for a, b in zip(mine, theirs, strict=True))
        return most * Fraction(other._total, self._total)

    def _at(self, starts: list[int]) -> list[int]:
        ends = np.array(self.ends, dtype=object)
        return [self.weights[i] for i in np.searchsorted(ends, starts, side="right").tolist()]

    @property
    def _total(self) -> int:
        masses = (b - a for a, b in pairwise((0, *self.ends)))
        return sum(mass * weight for mass, weight in zip(masses, self.weights, strict=True))


@dataclass(frozen=True)
class Ball(StepLaw):
    """Independent draws from a Gaussian restricted to a ball."""

    precision: FloatArray
    linear: FloatArray
    radius: float
    n_draws: int

    def key(self) -> bytes:
        numbers = (self.radius, self.n_draws)
        return repr(numbers).encode() + self.precision.tobytes() + self.linear.tobytes()

    def _loss(self, other: Ball) -> float:
        """Return the range of the difference of the exponents over the ball, from above."""
        if (self.radius, self.n_draws) != (other.radius, other.n_draws):
            return math.inf
        curvature, slope = other.precision - self.precision, self.linear - other.linear
        return self.n_draws * quadratic_range(curvature, slope, self.radius)


Row = tuple[float, ...]


@dataclass(frozen=True)
class PerturbedMinimum(StepLaw):
    """The minimum of a perturbed objective, of ``records`` that end with their target."""

    records: FloatArray
    plan: Any
    objective: Any = field(default=None, compare=False, repr=False)

    def key(self) -> bytes:
        order = np.lexsort(self.records.T)
        return self._public + self.records[order].tobytes()

    @property
    def _public(self) -> bytes:
        plan = self.plan
        arrays = (plan.ridge, plan.centre, plan.body.variance)
        laws = (plan.gradient_noise, plan.jitter, plan.step, plan.error, plan.body.inexact)
        return repr([*(each.tolist() for each in arrays), *laws]).encode()

    def with_noise(self, law: NoiseLaw) -> Any:
        """Return the objective with other noise of the gradient."""
        body = self.plan.body._replace(law=law)
        return replace(self.objective, plan=replace(self.plan, body=body))

    @cached_property
    def _counts(self) -> Counter[Row]:
        """How often each record occurs; many neighbours are compared with each other."""
        return Counter(map(tuple, self.records.tolist()))

    def _loss(self, other: PerturbedMinimum) -> float:
        return self.loss_beyond(other, 0.0)

    def loss_beyond(self, other: PerturbedMinimum, delta: float) -> float:
        """Return the epsilon that goes with delta, from above; infinite of Gaussian noise at 0."""
        if self._public != other._public:
            return math.inf
        changed = {row for row, _ in self._counts.items() ^ other._counts.items()}
        mine, theirs = (
            Counter({row: own._counts[row] for row in changed}) for own in (self, other)
        )
        gone, come = ([*(a - b).elements()] for a, b in ((mine, theirs), (theirs, mine)))
        if not (gone or come):
            return 0.0
        if len(gone + come) > _MOST_RECORDS:  # all records change
            return math.inf
        volume, search = max(map(self._volume, (gone, come))), float(2 / self.plan.jitter.scale)
        corners = self._corners(gone, come)
        if not isinstance(self.plan.gradient_noise, DiscreteGaussian):
            return self._gradient_loss(corners) + volume + search
        ratios = np.sqrt(-2 * self._exponents(corners))
        left = delta * math.exp(-search / 2)
        return _epsilon_of_shifts(ratios, len(gone + come), left) + volume + search

    def _gradient_loss(self, corners: FloatArray) -> float:
        """Return what pure noise of the gradient, in its cells, loses if it is shifted."""
        law = self.plan.gradient_noise
        cells = 2 * max(law.sizes) / float(law.scale) if isinstance(law, ClassRows) else 0.0
        return float(-self._exponents(corners).min()) + cells

    @abstractmethod
    def _corners(self, gone: list[Row], come: list[Row]) -> FloatArray:
        """Return the farthest shifts of the gradient between two lists of records, in rows."""

    @abstractmethod
    def _exponents(self, gradients: FloatArray) -> FloatArray:
        """Return log densities of the noise at rows of gradients, up to a constant."""

    @abstractmethod
    def _volume(self, rows: list[Row]) -> float:
        """Return the change of the log determinant that records make at most."""

    @abstractmethod
    def left(self, found: FloatArray, noise: IntArray) -> float:
        """Return the norm of the gradient at what was found, and how far the noise may be off."""

    @abstractmethod
    def log_density(self, w: FloatArray) -> FloatArray:
        """Return the log of the density of the exact minimum at rows of coefficients."""


@dataclass(frozen=True)
class ConvexMode(PerturbedMinimum):
    """That of a Huber loss; ``records`` are (v, target, limit)."""

    design: Any = None

    @property
    def _lattice(self) -> float:
        """Steps of the noise in a unit of the gradient: as it is made of what is drawn."""
        law = self.plan.gradient_noise
        unit = np.zeros(law.size)
        unit[[0, -1]] = 1.0  # of blocks, a step of the first one and of their sum
        moved = self.plan.body.gradient(*np.split(unit, np.cumsum(law.sizes)[:-1]))
        return 1 / float(np.abs(moved).max())

    def _corners(self, gone: list[Row], come: list[Row]) -> FloatArray:
        rows = np.array(gone + come)
        v = rows[:, :-2] * rows[:, -1:]
        return np.asarray(np.array([*product((-1, 1), repeat=len(v))]) @ v)

    def _exponents(self, gradients: FloatArray) -> FloatArray:
        design, steps = self.design, gradients * self._lattice
        if design is None:
            return exponent_of(self.plan.gradient_noise, steps, [], False)
        first = int(design.intercept)
        starts = np.flatnonzero(np.diff(design.column, prepend=-1)).tolist()
        ends = [*starts[1:], design.width]
        blocks = [
            (slice(first + a, first + b), bool(design.single[a]))
            for a, b in zip(starts, ends, strict=True)
        ]
        return exponent_of(self.plan.gradient_noise, steps, blocks, design.intercept)

    def _volume(self, rows: list[Row]) -> float:
        return sum(
            math.log1p((np.square(np.array(row[:-2])) / self.plan.ridge).sum()) for row in rows
        )

    def _seen(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.records[:, :-2], self.records[:, -2], self.records[:, -1]

    def left(self, found: FloatArray, noise: IntArray) -> float:
        plan, (v, t, limits) = self.plan, self._seen()
        descent = np.clip(t - v @ found, -limits, limits) @ v
        drawn = np.split(noise, np.cumsum(plan.gradient_noise.sizes)[:-1])
        gradient = plan.ridge * (found - plan.centre) - descent - plan.body.gradient(*drawn)
        return float(np.linalg.norm(gradient) + plan.body.inexact)

    def log_density(self, w: FloatArray) -> FloatArray:
        v, t, limits = self._seen()
        residuals = t - w @ v.T
        descent = np.clip(residuals, -limits, limits) @ v
        exponents = self._exponents(self.plan.ridge * (w - self.plan.centre) - descent)
        inside = (np.abs(residuals) < limits).astype(np.float64)
        curvature = np.einsum("rn,ni,nj->rij", inside, v, v) + np.diag(self.plan.ridge)
        return np.asarray(np.linalg.slogdet(curvature)[1] + exponents)


def _epsilon_of_shifts(ratios: FloatArray, records: int, delta: float) -> float:
    """Return the epsilon that goes with delta if noise may be shifted to any of some corners.

    By adding up the deltas of all corners; of more than two records, by twice that of zCDP.
    """
    if not delta:
        return math.inf
    if records > 2:
        order, rho = 1 + np.exp(np.linspace(-5, 15, 4001)), float(ratios.max()) ** 2 / 2
        gap = np.log1p(-1 / order) - (np.log(delta / 2) + np.log(order)) / (order - 1)
        return float((order * rho + gap).min())
    low, high = 0.0, 1e4

    def beyond(epsilon: float) -> float:
        return sum(gaussian_delta(float(mu), epsilon) for mu in ratios if mu > 0)

    while high - low > 1e-9 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= delta else (middle, high)
    return high


@singledispatch
def exponent_of(
    law: Any, gradients: FloatArray, blocks: list[tuple[slice, bool]], constant: bool
) -> FloatArray:
    """Return log densities of noise at rows of gradients in steps, up to a constant.

    Blocks are columns and whether they are a number or a sign; a constant comes first.
    """
    raise TypeError(f"No density is known for {type(law).__name__}.")


@exponent_of.register
def _(
    law: SupNorm, gradients: FloatArray, blocks: list[tuple[slice, bool]], constant: bool
) -> FloatArray:
    return np.asarray(-np.abs(gradients).max(axis=1) / float(law.scale))


@exponent_of.register
def _(
    law: BallNoise, gradients: FloatArray, blocks: list[tuple[slice, bool]], constant: bool
) -> FloatArray:
    return np.asarray(-np.linalg.norm(gradients, axis=1) / float(law.scale))


@exponent_of.register
def _(
    law: ClassRows, gradients: FloatArray, blocks: list[tuple[slice, bool]], constant: bool
) -> FloatArray:
    entries = [np.abs(gradients[:, :1]).sum(axis=1)] * constant
    norms = [*entries, *(np.abs(gradients[:, where]).sum(axis=1) for where, _ in blocks)]
    return np.asarray(-np.max(norms, axis=0) / float(law.scale))


@exponent_of.register
def _(
    law: DiscreteGaussian, gradients: FloatArray, blocks: list[tuple[slice, bool]], constant: bool
) -> FloatArray:
    total, parameters = np.zeros(len(gradients)), [float(each) for each in law.parameters]
    for (where, single), parameter in zip(blocks, parameters, strict=False):
        own = gradients[:, where]
        squares = own**2 / 2 if single else (own - own.mean(axis=1, keepdims=True)) ** 2
        total -= squares.sum(axis=1) / (2 * parameter)
    sums = [gradients[:, where].sum(axis=1) for where, single in blocks if not single]
    sums = [gradients[:, 0]] if constant else sums[:1]
    return np.asarray(total - sum(np.square(own) for own in sums) / (2 * parameters[-1]))


@dataclass(frozen=True)
class Fixed(StepLaw):
    """What leaves a release without noise: it must be the same for all data sets."""

    content: bytes

    def key(self) -> bytes:
        return self.content

    def _loss(self, other: Fixed) -> Fraction | float:
        """Return 0 for the same content and infinity for any other."""
        return Fraction(0) if self.content == other.content else math.inf


@dataclass(frozen=True)
class Opaque(StepLaw):
    """Numbers whose law could not be read: nothing can be promised about them."""

    def key(self) -> bytes:
        return b""

    def _loss(self, other: Opaque) -> float:
        """Return infinity."""
        return math.inf


def seen_records(loss: Any) -> FloatArray:
    """Return (v, target, limit) of all records as a Huber loss sees them."""

    def collected(shard: Any) -> list[FloatArray]:
        chunks = loss.rows.chunks(shard, *loss.records.structure)
        return [np.column_stack([v.T * loss.rows.unit, t, limits]) for v, t, limits in chunks]

    # lists that are added up hold a record as often as it counts
    rows = loss.records.total(collected)
    return np.concatenate([np.empty((0, loss.n_parameters + 2)), *rows])


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""Return the delta of a normal of variance 1 that is shifted by mu (Balle and Wang 2018).

    .. math:: \delta = \Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon\Phi(-\mu/2 - \varepsilon/\mu)
    """
    far, near = (side * mu / 2 - epsilon / mu for side in (-1, 1))
    return float(ndtr(near) - np.exp(epsilon + log_ndtr(far)))


def quadratic_range(curvature: FloatArray, slope: FloatArray, radius: float) -> float:
    r"""Bound max - min of :math:`\tfrac12 w^\top Hw + g^\top w` over a ball, from above.

    For every :math:`\lambda > \max(0, h_i)` the maximum is at most
    :math:`\tfrac12(\sum_i g_i^2/(\lambda - h_i) + \lambda B^2)`, and the best of them is exact.

    >>> round(quadratic_range(np.array([[2.0]]), np.array([0.0]), 3.0), 6)
    9.0
    """
    return _largest(curvature, slope, radius) + _largest(-curvature, -slope, radius)


def _largest(curvature: FloatArray, slope: FloatArray, radius: float) -> float:
    values, axes = np.linalg.eigh(curvature)
    squares = (axes.T @ slope) ** 2
    top = max(0.0, float(values[-1]))
    size = top + float(np.sqrt(squares.sum())) / radius
    if size == 0:
        return 0.0

    def bound(log_gap: float) -> float:
        gap = size * math.exp(log_gap)
        return 0.5 * float((squares / (gap + (top - values))).sum() + (top + gap) * radius**2)

    best = minimize_scalar(bound, bounds=(-40.0, 3.0), method="bounded", options={"xatol": 1e-9})
    return min(float(best.fun), bound(-40.0)) * (1 + 1e-9)


def weighed_records(records: Any) -> FloatArray:
    """Return (weights, known part of z, label) of all records as a release sees them."""

    def known(codes: Any) -> FloatArray:
        parts = (np.broadcast_to(t.known, len(t.left)) for t in records.tables)
        each = [part[codes[:, j]] for j, part in enumerate(parts)]
        return np.asarray(np.sum([np.full(len(codes), records.level), *each], axis=0))

    def collected(shard: Any) -> list[FloatArray]:
        weights, chunks = records.reader.blocks.weights, records.reader.chunks(shard)
        return [
            np.column_stack([weights(x, records.tables) / WEIGHT_STEPS, known(x), y])
            for x, y in chunks
        ]

    rows = records.records.total(collected)
    return np.concatenate([np.empty((0, records.reader.blocks.width + 2)), *rows])


@dataclass(frozen=True)
class LogisticMode(PerturbedMinimum):
    """That of a logistic regression; ``records`` are (weights, known part of z, label).

    Labels s that are ``counted`` have the residual (1 + s)q - s, between -s and 1.
    """

    blocks: Any = None
    counted: bool = False

    def _weight(self, label: Any) -> Any:
        return 1 + label if self.counted else 1.0

    @property
    def _x(self) -> FloatArray:
        return np.asarray(self.records[:, :-2] @ self.blocks.basis)

    def _residuals(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals and second derivatives at rows of parameters."""
        known, y = self.records[:, -2:].T
        q, weight = expit(w @ self._x.T + known), self._weight(y)
        return weight * q - y, weight * q * (1 - q)

    @property
    def _lattice(self) -> float:
        """Steps of the noise in a unit of the gradient, by a step of one weight."""
        sizes = self.blocks.sizes
        widest = int(np.argmax(sizes))
        unit = [np.eye(1, k)[0] * (j == widest) for j, k in enumerate((*sizes, 1))]
        moved = float(np.linalg.norm(self.plan.body.gradient(*unit)))
        return math.sqrt(1 - 1 / sizes[widest]) / moved

    def _corners(self, gone: list[Row], come: list[Row]) -> FloatArray:
        signed = [(1, row) for row in gone] + [(-1, row) for row in come]
        ends = [(0.0, float(sign * (1 if row[-1] == 0 else -1))) for sign, row in signed]
        if self.counted:
            ends = [(-sign * float(row[-1]), float(sign)) for sign, row in signed]
        return np.asarray(np.array([*product(*ends)]) @ np.array([row[:-2] for _, row in signed]))

    def _exponents(self, gradients: FloatArray) -> FloatArray:
        starts, law = self.blocks.starts.tolist(), self.plan.gradient_noise
        blocks = [(slice(a, b), False) for a, b in pairwise(starts)]
        return exponent_of(law, gradients * self._lattice, blocks, True)

    def _volume(self, rows: list[Row]) -> float:
        own = np.array(rows).reshape(len(rows), self.records.shape[1])
        x, weight = own[:, :-2] @ self.blocks.basis, self._weight(own[:, -1])
        return float(np.log1p(weight * (np.square(x) / self.plan.ridge).sum(axis=1) / 4).sum())

    def log_density(self, w: FloatArray) -> FloatArray:
        """Return the log of the density of the exact mode at rows of parameters.

        Needs an intercept: then a gradient determines the noise.
        """
        blocks, ridge = self.blocks, self.plan.ridge
        x, (residuals, bent) = self._x, self._residuals(w)
        gradient = ridge * (w - self.plan.centre) + residuals @ x
        noise = gradient @ blocks.basis.T
        for start, size in zip(blocks.starts, blocks.sizes, strict=False):
            noise[:, start : start + size] += gradient[:, :1] / size
        curvature = np.einsum("rn,ni,nj->rij", bent, x, x) + np.diag(ridge)
        return np.asarray(np.linalg.slogdet(curvature)[1] + self._exponents(noise))

    def left(self, found: FloatArray, noise: IntArray) -> float:
        plan, blocks = self.plan, self.blocks
        by_block = np.split(noise, np.cumsum(blocks.sizes))
        residuals = self._residuals(found[None])[0][0]
        gradient = plan.ridge * (found - plan.centre) + residuals @ self._x
        gradient -= plan.body.gradient(*by_block)
        return float(np.linalg.norm(gradient) + plan.body.inexact)


@dataclass(frozen=True)
class OrderedMode(LogisticMode):
    """That of ordered classes: a record is a mean over cuts; ``blocks`` end with that of cuts."""

    def _at_cuts(self, row: Row | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights of a record at every cut, and whether it is above."""
        cuts = self.blocks.sizes[-1]
        own = np.tile(np.array(row[:-2]), (cuts, 1))
        return np.hstack([own, np.eye(cuts)]), (row[-1] > np.arange(cuts)).astype(float)

    @property
    def _x(self) -> FloatArray:
        each = [self._at_cuts(row)[0] for row in self.records]
        rows = np.concatenate([np.empty((0, self.blocks.width)), *each])
        return np.asarray(rows @ self.blocks.basis)

    def _residuals(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        cuts = self.blocks.sizes[-1]
        y = np.concatenate([np.empty(0), *(self._at_cuts(row)[1] for row in self.records)])
        q = expit(w @ self._x.T)
        return (q - y) / cuts, q * (1 - q) / cuts

    def _corners(self, gone: list[Row], come: list[Row]) -> FloatArray:
        cuts, width, ends = self.blocks.sizes[-1], self.blocks.width, []
        for sign, row in [*((1, row) for row in gone), *((-1, row) for row in come)]:
            x, above = self._at_cuts(row)
            moved = sign * (1 - 2 * above)[:, None] * x / cuts
            ends.append([np.array(c) @ moved for c in product((0.0, 1.0), repeat=cuts)])
        found = [np.sum(own, axis=0) for own in product(*ends)]
        return np.array(found).reshape(-1, width)

    def _volume(self, rows: list[Row]) -> float:
        """Return it with the largest second derivative at every cut, which no other exceeds."""
        found = 0.0
        for row in rows:
            v = self._at_cuts(row)[0] @ self.blocks.basis / np.sqrt(self.plan.ridge)
            found += float(np.linalg.slogdet(np.eye(len(v)) + v @ v.T / (4 * len(v)))[1])
        return found


@dataclass(frozen=True)
class SoftmaxMode(LogisticMode):
    """That of several classes; ``records`` are (weights, known part of z, label)."""

    @property
    def _lift(self) -> Lift:
        return Lift.of(self.objective.loss.n_classes)

    @property
    def _lattice(self) -> float:
        """Steps of the noise in a unit of the gradient, by a step of one weight in one noise."""
        sizes, noises = self.blocks.sizes, self._lift.groups.shape[1]
        widest = int(np.argmax(sizes))
        unit = [np.eye(1, noises * k)[0] * (j == widest) for j, k in enumerate((*sizes, 1))]
        moved = float(np.linalg.norm(self.plan.body.gradient(*unit)))
        one = float(np.linalg.norm(self._lift.contrasts[:, 0]))
        return one * math.sqrt(1 - 1 / sizes[widest]) / moved

    def _shifts(self, row: Row) -> list[FloatArray]:
        """Return by how much a record may move the noises: its corners, and nothing."""
        x, y = np.array(row[:-2]), int(row[-1])
        classes, noises = self._lift.groups.shape
        found = [np.zeros((noises, len(x)))]
        for c in set(range(classes)) - {y}:
            towards = np.eye(classes)[c] - np.eye(classes)[y]
            same = np.abs(self._lift.groups.T @ towards) == 2  # the pair itself
            own = np.where(same, self._lift.groups.T @ towards / 2, 0.0)
            pairs = bool((self._lift.groups < 0).any())
            found.append(np.outer(own if pairs else towards, x))
        return found

    def _corners(self, gone: list[Row], come: list[Row]) -> FloatArray:
        signed = [(1, row) for row in gone] + [(-1, row) for row in come]
        ends = [[sign * own for own in self._shifts(row)] for sign, row in signed]
        return np.array([np.ravel(sum(own)) for own in product(*ends)])

    def _exponents(self, gradients: FloatArray) -> FloatArray:
        noises = self._lift.groups.shape[1]
        each = gradients.reshape(len(gradients), noises, -1)
        own = [super(SoftmaxMode, self)._exponents(each[:, g]) for g in range(noises)]
        return np.asarray(np.sum(own, axis=0))

    def _gradient_loss(self, corners: FloatArray) -> float:
        cells = 2 * max(self.blocks.sizes) * self._lift.groups.shape[1]
        scale = float(self.plan.gradient_noise.scale)
        return float(cells / scale - self._exponents(corners).min())

    def _volume(self, rows: list[Row]) -> float:
        classes = len(self._lift.groups)
        x = np.array(rows).reshape(len(rows), self.records.shape[1])[:, :-2] @ self.blocks.basis
        lengths = (np.square(x) / self.plan.ridge[: x.shape[1]]).sum(axis=1)
        return float((classes - 1) * np.log1p(lengths / classes).sum())

    def _seen(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return contrasts of classes, contrasts of records, probabilities, and these less 1."""
        contrasts = class_contrasts(len(self._lift.groups))
        x, y = self.records[:, :-2] @ self.blocks.basis, self.records[:, -1].astype(int)
        shares = softmax(x @ (contrasts @ w.reshape(len(contrasts.T), -1)).T, axis=1)
        return contrasts, x, shares, shares - np.eye(len(contrasts))[y]

    def log_density(self, w: FloatArray) -> FloatArray:
        """Return the log of the density of the exact mode at rows of parameters.

        With a constant and one column of two levels: then the noise of every level is an integral
        over one number, by how much all noises may differ with one sum.
        """
        return np.array([self._log_density(own) for own in w])

    def _log_density(self, w: FloatArray) -> float:
        contrasts, x, shares, residuals = self._seen(w)
        gradient = contrasts.T @ residuals.T @ x + (self.plan.ridge * w).reshape(-1, 2)
        middle, apart = gradient[:, 0] / 2, gradient[:, 1] / math.sqrt(2)
        spread = np.einsum("ra,ab->rab", shares, np.eye(len(contrasts)))
        spread -= np.einsum("ra,rb->rab", shares, shares)
        turned = np.einsum("ak,rab,bl->rkl", contrasts, spread, contrasts)
        curvature = np.einsum("rkl,ri,rj->kilj", turned, x, x).reshape(len(w), -1)
        volume = np.linalg.slogdet(curvature + np.diag(self.plan.ridge))[1]
        return float(volume) + sum(map(self._log_integral, (middle + apart, middle - apart)))

    def _log_integral(self, level: FloatArray) -> float:
        """Return the log of the integral over all noises that make those of a level."""
        lift, scale = self._lift.contrasts, float(self.plan.gradient_noise.scale) / self._lattice
        free = np.linalg.svd(lift)[2][-1]
        ends = np.sort(-(np.linalg.pinv(lift) @ level) / free)
        lengths = np.abs(ends[:, None] - ends).sum(axis=1) * abs(float(free[0])) / scale
        least, rate = lengths.min(), abs(float(free[0])) / scale
        heights, total = np.exp(least - lengths), 0.0
        for i, (a, b) in enumerate(pairwise(ends), start=1):
            slope = (2 * i - len(ends)) * rate
            flat = heights[i] * (b - a)
            total += flat if slope == 0 else (heights[i - 1] - heights[i]) / slope
        return math.log(total + (heights[0] + heights[-1]) / (len(ends) * rate)) - float(least)

    def left(self, found: FloatArray, noise: IntArray) -> float:
        noises, sizes = self._lift.groups.shape[1], (*self.blocks.sizes, 1)
        drawn = np.split(noise, noises * np.cumsum(sizes)[:-1])
        contrasts, x, _, residuals = self._seen(found)
        gradient = (contrasts.T @ residuals.T @ x).ravel() + self.plan.ridge * found
        left = np.linalg.norm(gradient - self.plan.body.gradient(*drawn))
        return float(left) + float(self.plan.body.inexact)
