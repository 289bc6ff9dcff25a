"""What a change of a record costs on trees of splits, against going through all changes."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import (
    SplitGrid,
    draw_tables,
    grid_size,
    largest_feasible,
    log_odds_of,
    network_loss,
    node_losses,
    signs,
    split_priors,
)
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit

FloatArray = npt.NDArray[np.float64]


def within(v: int, w: int, turning: FloatArray, adding: FloatArray) -> float:
    """Cost of value w for v in the same row, split by split."""
    total = 0.0
    h = signs(len(adding) + 1)
    for s, (before, after) in enumerate(zip(h[v], h[w], strict=True)):
        if before and after:
            total += turning[s] if before != after else 0.0
        elif before or after:
            total += adding[s]
    return total


def between(v: int, w: int, adding: FloatArray) -> float:
    """Cost of leaving one row at v and joining another at w."""
    paths = np.abs(signs(len(adding) + 1))
    return float(paths[v] @ adding + paths[w] @ adding)


def random_losses(size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Losses of (turning, adding); a turn taken back and another way costs at most both."""
    adding = rng.uniform(0.1, 1, size - 1)
    return adding * rng.uniform(1, 2, size - 1), adding


@pytest.mark.parametrize("size", range(1, 7))
def test_losses_of_a_node(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(10):
        turning, adding = random_losses(size, rng)
        pairs = list(product(range(size), repeat=2))
        inside, across = node_losses(turning, adding)
        assert inside == pytest.approx(max(within(v, w, turning, adding) for v, w in pairs))
        assert across == pytest.approx(max(between(v, w, adding) for v, w in pairs))


def worst_change(network: Network, losses: Any, unit: PrivacyUnit) -> float:
    """The most that replacing a record costs, over all pairs of records."""
    worst = 0.0
    kinds = list(product(*(range(k) for k in network.sizes)))
    for x, y in product(kinds, kinds):
        changed = {u for u in range(len(x)) if x[u] != y[u]}
        if unit == FEATURE and (len(changed) > 1 or network.target in changed):
            continue
        total = 0.0
        for node, parents in enumerate(network.parents):
            turning, adding = losses[node]
            if changed & set(parents):
                total += between(x[node], y[node], adding)
            else:
                total += within(x[node], y[node], turning, adding)
        worst = max(worst, total)
    return worst


GRAPHS = [
    Network((2, 3, 2), ((2,), (0,), ())),
    Network((2, 2, 2), ((), (), (0, 1))),
    Network((3, 2, 3), ((), (0, 2), (0,))),
    Network((2, 2, 2, 2), ((3,), (0, 3), (1, 3), ())),
    Network((2, 2, 2, 2), ((), (0,), (0, 1), (2,))),
    Network((1, 4, 2), ((2,), (0,), ())),
]
STARS = [Network.star([2], 2), Network.star([3, 5], 2), Network.star([2, 2, 2], 3)]


@pytest.mark.parametrize("network", [*STARS, *GRAPHS])
def test_the_loss_of_a_network(network: Network) -> None:
    rng = np.random.default_rng(1)
    for unit in (RECORD, FEATURE):
        shares = []
        for _ in range(5):
            losses = [random_losses(k, rng) for k in network.sizes]
            claimed = network_loss(network, [node_losses(*pair) for pair in losses], unit)
            exact = worst_change(network, losses, unit)
            assert exact <= claimed * (1 + 1e-12)
            shares.append(exact / claimed)
        if network.is_star:
            assert min(shares) == pytest.approx(1)  # for naive Bayes nothing is given away
        assert np.mean(shares) > 0.6


def test_one_class_or_one_value_costs_nothing() -> None:
    nothing = node_losses(np.zeros(0), np.zeros(0))
    assert nothing == (0, 0)
    assert network_loss(Network.star([1], 1), [nothing, nothing], RECORD) == 0
    assert network_loss(Network.star([1], 1), [nothing, nothing], FEATURE) == 0


def test_splits_of_a_dirichlet_are_betas() -> None:
    (a, b), (c, d) = split_priors((np.array([0.5, 2.0, 4.0]), np.ones(4)))
    assert a.tolist() == [2.5, 0.5]
    assert b.tolist() == [4.0, 2.0]
    assert c.tolist() == [2, 1, 1]
    assert d.tolist() == [2, 1, 1]


@pytest.mark.parametrize("n", [1, 10**3, 10**6, 10**9])
def test_the_grid_is_finer_than_the_posterior(n: int) -> None:
    for omega in (0.01, 0.2, 0.49):
        points = grid_size(omega, n)
        assert 257 <= points <= 4097
        spacing = 2 * log_odds_of(omega) / (points - 1)
        assert spacing <= 1 / np.sqrt(n) * (1 + 1e-9) or points == 4097


def test_the_largest_feasible_value_was_seen_to_be_feasible() -> None:
    seen = []

    def loss(x: float) -> float:
        seen.append(x)
        return x**2

    found = largest_feasible(loss, 2.0, 1e-6, 1e6)
    assert found in seen
    assert found**2 <= 2 < (found * (1 + 1e-8)) ** 2
    assert largest_feasible(loss, 2.0, 1e-6, 1.0) == 1
    with pytest.raises(ValueError, match="too small for draws from a grid"):
        largest_feasible(loss, 2.0, 10.0, 100.0)
    # even a loss that does not grow is within the budget where it is returned
    assert abs(np.sin(largest_feasible(lambda x: abs(np.sin(x)), 0.5, 0.1, 8.0))) <= 0.5


def test_drawn_tables_follow_the_law_of_the_splits() -> None:
    grid = SplitGrid(0.1, 9)
    counts = np.array([[5, 1, 3], [0, 2, 2]])

    def log_law(node: int, left: Any, right: Any) -> FloatArray:
        assert node == 0
        return grid.log_weights(1 + left, 1 + right)

    draws = draw_tables((counts,), log_law, grid, 20_000, Noise.of(3))[0]
    assert draws.shape == (20_000, 2, 3)
    np.testing.assert_allclose(draws.sum(axis=-1), 1, rtol=1e-12)
    first = draws[:, 0, 2]  # right of the first split of row 0: 6 to the left, 3 to the right
    on_grid = np.abs(1 - first[:, None] - grid.left)
    assert on_grid.min(axis=1).max() < 1e-12
    seen = np.bincount(on_grid.argmin(axis=1), minlength=9)
    for powers, accepted in (((7, 4), True), ((7, 5), False), ((6, 4), False)):
        pvalue = stats.chisquare(seen, 20_000 * grid.law(*powers)).pvalue
        assert (pvalue > 1e-3) if accepted else (pvalue < 1e-6)


@pytest.mark.parametrize(
    ("loss", "epsilon", "found"),
    [
        (lambda x: x, 1e-12, 1e-12),  # at one end of the search
        (lambda x: x, 0.3, 0.3),
        (lambda x: x if x < 0.2 else math.inf, 0.3, 0.2),  # losses jump, or are not to be had
        (lambda x: x if x < 0.2 else math.nan, 0.3, 0.2),
        (lambda x: float(x >= 0.2), 0.3, 0.2),
    ],
)
def test_losses_that_jump_and_ends_of_the_search(loss, epsilon: float, found: float) -> None:
    value = largest_feasible(loss, epsilon, 1e-12, 1.0)
    assert loss(value) <= epsilon
    assert value == pytest.approx(found, rel=3e-9)
