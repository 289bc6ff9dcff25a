r"""Balanced binary trees of splits, and tempered laws of their probabilities on a public grid.

**Balanced binary trees of splits: the shape that many-valued variables share everywhere.**

The Fourier mechanism's characters and the samplers' Beta splits both walk these trees.

**Tempered Beta laws on a public grid, and their exact privacy loss for one more observation.**

A split is a coin whose left probability :math:`\theta` is one of J public points of
:math:`[\omega, 1-\omega]`, evenly spaced in :math:`\operatorname{logit}\theta`. After k turns to
the left and m to the right its law is

.. math:: P(\theta) \propto \theta^{a + \tau k} (1-\theta)^{b + \tau m},

for Beta(a, b) the prior (its density times the spacing of the grid, which is proportional to
:math:`\theta(1-\theta)`) and :math:`0 < \tau` the tempering.

**Loss.** One more turn to the left multiplies the weights by :math:`\theta^\tau`, so the log ratio
of the laws is :math:`\tau\ln\theta - \ln E_{k,m}\theta^\tau`. The expectation grows with k and
falls with m (monotone likelihood ratio), hence over all k + m < n it is extreme at (n-1, 0) and
(0, n-1), and the loss is extreme at an end of the grid: two expectations give the worst case.
A turn taken left instead of right multiplies by :math:`(\theta/(1-\theta))^\tau`, likewise.

**Laws over split trees and their privacy loss, for the sampler and the MAP mechanism.**

Every row of every table is a tree of independent splits (a Dirichlet is one exactly). A record
that leaves a row takes one turn away at each split on its path, a record that joins adds one. So
the loss of a release is a sum over the splits that a neighbouring change can touch:

- within a row, from value v to v': the split where their paths part is turned, the splits below
  it on each path lose or gain a turn, those above do not change;
- from one row to another, because a parent changed: both whole paths;
- a record that comes or goes: one whole path of every node.

Records of one person cost as many times as much. Where the number of records is secret, counts of
turns are cut at a public bound, which no change of theirs grows by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import Tables
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import integer_weights, rounding_loss
from dpbayes_sklearn.privacy.budget import PrivacyUnit

_MOST_ENUMERATED = 1000  # Up to this many records the loss of every pair of counts is computed.
_PRECISION_OF_SEARCH = 1e-9  # A value may be smaller than the largest affordable one by this part.


class Split(NamedTuple):
    """A cut of the values ``start..stop-1`` into ``start..middle-1`` and ``middle..stop-1``."""

    start: int
    middle: int
    stop: int


@lru_cache(maxsize=256)
def split_tree(size: int) -> tuple[Split, ...]:
    """Return the size - 1 splits of a variable, every split before those below it.

    >>> split_tree(3)
    (Split(start=0, middle=2, stop=3), Split(start=0, middle=1, stop=2))
    """
    splits: list[Split] = []
    waiting = [(0, size)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start > 1:
            middle = (start + stop + 1) // 2
            splits.append(Split(start, middle, stop))
            waiting += [(middle, stop), (start, middle)]
    return tuple(splits)


@lru_cache(maxsize=256)
def signs(size: int) -> IntArray:
    """Return h_s(v): +1 left of split s, -1 right of it, 0 elsewhere; shape (size, size - 1)."""
    table = np.zeros((size, size - 1), np.int64)
    for s, split in enumerate(split_tree(size)):
        table[split.start : split.middle, s] = 1
        table[split.middle : split.stop, s] = -1
    table.setflags(write=False)
    return table


def depths(size: int) -> IntArray:
    """Return the number of splits above every value: at most the ceiling of log2(size)."""
    return np.asarray(np.abs(signs(size)).sum(axis=1))


@lru_cache(maxsize=256)
def haar(size: int) -> IntArray:
    """Return the characters of one variable, h_0 = 1 first; shape (size, size)."""
    table = np.concatenate([np.ones((size, 1), np.int64), signs(size)], axis=1)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=256)
def inverse_haar(size: int) -> FloatArray:
    """Return M with counts = M @ coefficients.

    A node that holds N records and has coefficient c sends (N + c)/2 to the left and (N - c)/2
    to the right, so all entries are 0 or a signed power of two, and floats are exact.
    """
    on_path = np.abs(signs(size))
    passed = np.cumsum(on_path, axis=1) - on_path  # splits of v's path above split s
    levels = depths(size)[:, None] - np.concatenate([np.zeros((size, 1), int), passed], axis=1)
    table: FloatArray = haar(size) * 0.5**levels
    table.setflags(write=False)
    return table


def leaf_levels(shape: tuple[int, ...]) -> IntArray:
    """Return h, the sum of the depths of a cell's values: it receives 2^-h of the total."""
    return np.asarray(reduce(np.add.outer, [depths(k) for k in shape]))


def sums_left_and_right(table: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return what a table holds left and right of every split of its last axis."""
    h = signs(table.shape[-1])
    return table @ (h > 0), table @ (h < 0)


def leaf_probabilities(left: FloatArray) -> FloatArray:
    """Return the probability of every value: the product of the turns on the way to it.

    ``left[..., s]`` is the probability of turning left at split s.
    """
    h = signs(left.shape[-1] + 1)
    turns = np.where(h > 0, left[..., None, :], np.where(h < 0, 1 - left[..., None, :], 1.0))
    return np.asarray(turns.prod(axis=-1))


def log_odds_of(omega: float) -> float:
    """L = ln((1 - omega) / omega), the log odds of the grid's upper end.

    >>> log_odds_of(0.5)
    0.0
    """
    return float(np.log1p(-omega) - np.log(omega))


def _log_sum(log_terms: FloatArray) -> FloatArray:
    """Return log sum exp over the last axis, which is kept; scipy's costs ten times as much."""
    top = log_terms.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(log_terms - top).sum(axis=-1, keepdims=True)))


@dataclass(frozen=True)
class SplitGrid:
    """Public grid of J points in [omega, 1 - omega], evenly spaced in log odds."""

    omega: float
    points: int

    def __getstate__(self) -> dict[str, Any]:
        return {"omega": self.omega, "points": self.points}

    @cached_property
    def log_left(self) -> FloatArray:
        """Return ln theta of every point."""
        odds = np.linspace(-1.0, 1.0, self.points) * log_odds_of(self.omega)
        return -np.logaddexp(0.0, -odds)

    @property
    def log_right(self) -> FloatArray:
        """Return ln(1 - theta) of every point; the grid is symmetric."""
        return self.log_left[::-1]

    @property
    def left(self) -> FloatArray:
        """Return theta of every point."""
        return np.exp(self.log_left)

    def log_weights(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
        """Return left * ln(theta) + right * ln(1 - theta) along a new last axis."""
        powers = np.asarray(left, np.float64)[..., None], np.asarray(right, np.float64)[..., None]
        return powers[0] * self.log_left + powers[1] * self.log_right

    def rounding(self, power: float) -> float:
        """Bound the loss that integer weights add when the powers sum to at most ``power``."""
        return rounding_loss(self.points, power * -float(self.log_left[0]))

    def loss_of_adding(self, a: float, b: float, tau: float, n: int) -> float:
        """Return the worst loss of one more turn, to either side, at up to n - 1 earlier ones."""
        return max(
            self._worst(a, b, tau * self.log_left, (tau * (n - 1), 0.0), (0.0, tau * (n - 1))),
            self._worst(a, b, tau * self.log_right, (tau * (n - 1), 0.0), (0.0, tau * (n - 1))),
        )

    def loss_of_turning(self, a: float, b: float, tau: float, n: int) -> float:
        """Return the worst loss if one of up to n records goes to the other side of a split."""
        log_odds = tau * (self.log_left - self.log_right)
        return self._worst(a, b, log_odds, (tau * (n - 1), tau), (0.0, tau * n))

    def _worst(
        self, a: float, b: float, change: FloatArray, *corners: tuple[float, float]
    ) -> float:
        """Return max over corners and points of abs(change - ln E exp(change))."""
        losses = []
        for left, right in corners:
            log_law = self.log_weights(a + left, b + right)
            mean = (_log_sum(log_law + change) - _log_sum(log_law))[0]
            losses += [change.max() - mean, mean - change.min()]
        return float(max(losses))

    def law(self, left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
        """Return the normalised masses of the points for these powers."""
        log_law = self.log_weights(left, right)
        return np.asarray(np.exp(log_law - _log_sum(log_law)))

    def mass_sensitivity(self, a: float, b: float, n: int) -> float:
        r"""Return the most that one more turn changes the posterior mass of any point.

        For n up to 1,000 by going through all reachable counts. Beyond, the bound
        :math:`\tanh(L/4)` that holds for every n: with mass p at :math:`\theta` and the rest at
        mean M, the mass changes by :math:`p(1-p)|\theta-M|/(p\theta+(1-p)M)`, which over p is
        largest at :math:`(\sqrt R - 1)/(\sqrt R + 1)`, :math:`R = \theta/M \le e^L`.

        Rounded up beyond floating-point error, which would matter for a score that hardly changes:
        the error of a mass is added, and the result is at least 2**-20.
        """
        power = abs(a) + abs(b) + n
        error = 2.0**-46 * (power * -float(self.log_left[0]) + self.points)
        moved = min(self._largest_move(a, b, n), float(np.tanh(log_odds_of(self.omega) / 4)))
        return max(moved + error, 2.0**-20) * (1 + 2.0**-20)

    def _largest_move(self, a: float, b: float, n: int) -> float:
        """Return the largest change of a mass, by going through all counts if n is not large."""
        if n > _MOST_ENUMERATED:
            return 1.0
        largest = 0.0
        for total in range(n):
            k = np.arange(total + 1)
            before = self.law(a + k, b + total - k)
            for change in (np.exp(self.log_left), np.exp(self.log_right)):
                factor = change / (before @ change)[:, None] - 1
                largest = max(largest, float(np.abs(before * factor).max()))
        return largest


_ROUND_UP = Context(prec=12, rounding=ROUND_CEILING)  # Rounds numbers up to twelve digits.

SplitPriors = list[tuple[FloatArray, FloatArray]]
"""For every node the prior powers (a, b) of its splits."""


def split_priors(alphas: tuple[FloatArray, ...]) -> SplitPriors:
    """Return the Beta parameters of every split of Dirichlet(alpha) rows."""
    return [sums_left_and_right(alpha) for alpha in alphas]


def grid_size(omega: float, n: int) -> int:
    """Return the number of points, 257 to 4097, whose spacing in log odds is below 1/sqrt(n)."""
    half = np.clip(np.ceil(log_odds_of(omega) * np.sqrt(n)), 128, 2048)
    return 2 * int(half) + 1


def release_loss(
    network: Network, grid: SplitGrid, priors: SplitPriors, tau: float, n: int, unit: PrivacyUnit
) -> float:
    """Return the exact worst loss of one joint draw of all tables, rounding included."""
    losses = [_node_loss(grid, tuple(a.tolist()), tuple(b.tolist()), tau, n) for a, b in priors]
    return network_loss(network, losses, unit)


def release_rho(
    network: Network, grid: SplitGrid, priors: SplitPriors, tau: float, n: int, unit: PrivacyUnit
) -> float:
    r"""Return the zCDP of one joint draw of all tables, rounding included.

    If the log ratio of two laws P, Q lies within an interval of width w, they are
    :math:`w^2/8`-zCDP (Cesar and Rogers 2021): :math:`K(s) = \log E_Q (P/Q)^s` has
    :math:`K(0) = K(1) = 0` and :math:`K'' \le w^2/4`, the variance of a variable in such an
    interval, so :math:`D_\alpha = K(\alpha)/(\alpha-1) \le \alpha w^2/8`. At a split that is
    turned w is :math:`2\tau L`, at one that loses or gains a turn :math:`\tau L`, whatever the
    counts; splits are drawn independently, so theirs add up.
    """
    losses = [_node_rho(grid, tuple(a.tolist()), tuple(b.tolist()), tau, n) for a, b in priors]
    # k records change a log ratio k times as much, and its square k² times
    return unit.max_records * network_loss(network, losses, unit) * (1 + 1e-12)


def rounded_up(number: float) -> Fraction:
    """Return a float as a fraction of twelve digits, no less than it.

    >>> rounded_up(0.1), rounded_up(1 / 3)
    (Fraction(100000000001, 1000000000000), Fraction(166666666667, 500000000000))
    """
    return Fraction(_ROUND_UP.create_decimal(Decimal(number)))


_Powers = tuple[float, ...]


@lru_cache(maxsize=4096)  # most nodes have the same prior
def _node_loss(grid: SplitGrid, a: _Powers, b: _Powers, tau: float, n: int) -> tuple[float, float]:
    """Return the worst loss of one node (within a row, from row to row)."""
    splits = list(zip(a, b, strict=True))
    losses = {split: _split_loss(grid, *split, tau, n) for split in set(splits)}
    turning, adding = np.array([losses[split] for split in splits]).reshape(-1, 2).T
    return node_losses(turning, adding)


def _split_loss(grid: SplitGrid, a: float, b: float, tau: float, n: int) -> tuple[float, float]:
    """Return the worst loss of (turning, adding) at one split.

    Twice the rounding: once for the integer weights, once for the floats of the loss itself.
    """
    rounding = 2 * grid.rounding(abs(a) + abs(b) + tau * n)
    return (
        grid.loss_of_turning(a, b, tau, n) + rounding,
        grid.loss_of_adding(a, b, tau, n) + rounding,
    )


@lru_cache(maxsize=4096)
def _node_rho(grid: SplitGrid, a: _Powers, b: _Powers, tau: float, n: int) -> tuple[float, float]:
    """Return the zCDP of one node (within a row, from row to row)."""
    width = tau * log_odds_of(grid.omega)
    splits = zip(a, b, strict=True)
    rounding = np.array([4 * grid.rounding(abs(x) + abs(y) + tau * n) for x, y in splits])
    turning, adding = (np.square(k * width + rounding) / 8 for k in (2, 1))
    return node_losses(turning, adding)


def node_losses(turning: FloatArray, adding: FloatArray) -> tuple[float, float]:
    """Return the worst loss of one node (within a row, from row to row), given its splits'."""
    h = signs(len(adding) + 1)
    on_path = np.abs(h)
    whole = on_path @ adding
    both = on_path[:, None, :] * on_path[None, :, :]
    parting = both * (h[:, None, :] != h[None, :, :])
    within = whole[:, None] + whole[None, :] - 2 * (both @ adding) + parting @ turning
    np.fill_diagonal(within, 0.0)
    return float(within.max(initial=0.0)), 2 * float(whole.max(initial=0.0))


def network_loss(network: Network, losses: list[tuple[float, float]], unit: PrivacyUnit) -> float:
    """Return the worst loss of a neighbouring change, from (within, between) of every node.

    A node whose parents cannot change stays within its row. From row to row there are two paths. A
    record without a class is in no row: in the place of another it changes them as one that goes.
    """
    gone = sum(between / 2 for _, between in losses)
    if unit.size_is_secret:
        return unit.max_records * gone
    within = [inside for inside, _ in losses]
    either = [max(pair) for pair in losses]
    if unit.whole_records:
        pairs = zip(within, either, network.parents, strict=True)
        replaced = sum(e if parents else w for w, e, parents in pairs)
        return unit.max_records * max(replaced, gone)
    children = [[i for i, p in enumerate(network.parents) if u in p] for u in range(network.target)]
    return max(
        (within[u] + sum(either[i] for i in below) for u, below in enumerate(children)), default=0.0
    )


def largest_feasible(
    loss: Callable[[float], float], epsilon: float, low: float, high: float
) -> float:
    """Return the largest value between low and high that was seen to cost at most epsilon.

    ``loss`` should grow. The value returned was itself evaluated, so the claim does not rest on
    that.
    """
    if loss(high) <= epsilon:
        return high
    if loss(low) > epsilon:
        too_small(epsilon)
    least, most = low, high

    def between(t: float) -> float:
        return float(least ** (1 - t) * most**t)

    def excess(t: float) -> float:
        found = loss(between(t)) - epsilon
        return math.inf if math.isnan(found) else found

    # near where the losses cross; what follows makes sure of it
    near = between(brentq(excess, 0.0, 1.0, disp=False))
    nearer = [near * (1 - _PRECISION_OF_SEARCH / 3), near * (1 + _PRECISION_OF_SEARCH / 3)]
    while high / low > 1 + _PRECISION_OF_SEARCH:
        middle = nearer.pop() if nearer else math.sqrt(low * high)  # the latter where losses jump
        if low < middle < high:
            low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low


def too_small(epsilon: float) -> NoReturn:
    """Refuse a budget that the rounding of weights would use up."""
    raise ValueError(
        f"epsilon={epsilon:g} is too small for draws from a grid; use mechanism='laplace', "
        "a larger epsilon or fewer draws."
    )


def draw_tables(
    tables: Tables,
    log_law: Callable[[int, FloatArray, FloatArray], FloatArray],
    grid: SplitGrid,
    n_draws: int,
    noise: Noise,
    most: int | None = None,
) -> Tables:
    """Draw all tables ``n_draws`` times; ``log_law(node, left, right)`` gives a split's weights.

    Turns are cut at ``most`` to either side, if it is given.
    """
    drawn = []
    for node, table in enumerate(tables):
        left, right = sums_left_and_right(table)
        if most is not None:
            left, right = np.minimum(left, most), np.minimum(right, most)
        weights = integer_weights(log_law(node, left, right))
        repeated = np.broadcast_to(weights, (n_draws, *weights.shape))
        drawn.append(leaf_probabilities(grid.left[noise.choose(repeated)]))
    return tuple(drawn)
