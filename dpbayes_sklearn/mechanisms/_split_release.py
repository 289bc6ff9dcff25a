r"""Laws over split trees and their privacy loss, for the sampler and the MAP mechanism.

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
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

import numpy as np
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.finite import finite_draw, integer_weights
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.noise.truncated_beta import SplitGrid, log_odds_of
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.counts import CountTables, Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import leaf_probabilities, signs, sums_left_and_right

__all__ = [
    "SplitPriors",
    "draw_tables",
    "grid_size",
    "largest_feasible",
    "most_turns",
    "network_loss",
    "release_loss",
    "release_rho",
    "rounded_up",
    "split_priors",
    "too_small",
]

_UP = Context(prec=12, rounding=ROUND_CEILING)
_CLOSE = 1e-9  # part by which a value may be smaller than the largest that is affordable

SplitPriors = list[tuple[FloatArray, FloatArray]]
"""For every node the prior powers (a, b) of its splits."""


def split_priors(alphas: tuple[FloatArray, ...]) -> SplitPriors:
    """Return the Beta parameters of every split of Dirichlet(alpha) rows."""
    return [sums_left_and_right(alpha) for alpha in alphas]


def most_turns(statistics: CountTables) -> tuple[int, int | None]:
    """Return how many turns a split can have: n, or a public bound and where either side is cut."""
    if not statistics.size_laws:
        return statistics.n, None
    return 2 * statistics.n_bound, statistics.n_bound


def grid_size(omega: float, n: int) -> int:
    """Return so many points that their spacing in log odds is below 1/sqrt(n), in 257..4097."""
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
    return Fraction(_UP.create_decimal(Decimal(number)))


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

    A node whose parents cannot change stays within its row. From row to row there are two paths.
    """
    if unit.size_is_secret:
        return unit.max_records * sum(between / 2 for _, between in losses)
    within = [inside for inside, _ in losses]
    either = [max(pair) for pair in losses]
    if unit.whole_records:
        pairs = zip(within, either, network.parents, strict=True)
        return unit.max_records * sum(e if parents else w for w, e, parents in pairs)
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
    nearer = [near * (1 - _CLOSE / 3), near * (1 + _CLOSE / 3)]
    while high / low > 1 + _CLOSE:
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
    source: RandomSource,
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
        drawn.append(leaf_probabilities(grid.left[finite_draw(repeated, source)]))
    return tuple(drawn)
