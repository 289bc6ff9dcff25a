"""Splits on a grid: the exact losses are those of going through all counts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpbayes_sklearn.counts.splits import SplitGrid, log_odds_of
from dpbayes_sklearn.noise.finite import integer_weights
from tests.releasing import law_loss

PRIORS = [(1.0, 1.0), (0.01, 0.01), (50.0, 50.0), (0.5, 7.0), (30.0, 0.02), (-4.0, 3.0)]
GRIDS = [SplitGrid(0.05, 33), SplitGrid(0.3, 5), SplitGrid(1e-4, 65), SplitGrid(0.2, 2)]


def log_laws(grid: SplitGrid, a: float, b: float, tau: float, n: int) -> npt.NDArray[np.float64]:
    """Log masses for all counts (k, m) up to n each; shape (n + 1, n + 1, points)."""
    k = tau * np.arange(n + 1.0)
    weights = grid.log_weights(*np.broadcast_arrays(a + k[:, None], b + k[None, :]))
    top = weights.max(axis=-1, keepdims=True)
    log_law: npt.NDArray[np.float64] = weights - top
    return log_law - np.log(np.exp(log_law).sum(axis=-1, keepdims=True))


def brute_force(grid: SplitGrid, a: float, b: float, tau: float, n: int) -> tuple[float, float]:
    """The worst loss of (adding, turning) over all reachable counts."""
    laws = log_laws(grid, a, b, tau, n)
    k, m = np.nonzero(np.add.outer(np.arange(n), np.arange(n)) < n)  # k + m <= n - 1
    left, right = laws[k + 1, m], laws[k, m + 1]
    adding = max(np.abs(laws[k, m] - after).max() for after in (left, right))
    return float(adding), float(np.abs(left - right).max())


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("a", "b"), PRIORS)
def test_losses_are_extreme_at_the_corners(grid: SplitGrid, a: float, b: float) -> None:
    for n in (1, 2, 7, 60):
        for tau in (0.001, 0.1, 1.0, 5.0):
            exact = brute_force(grid, a, b, tau, n)
            claimed = grid.loss_of_adding(a, b, tau, n), grid.loss_of_turning(a, b, tau, n)
            np.testing.assert_allclose(claimed, exact, rtol=1e-9, atol=1e-11)
            # and never above the closed form
            bound = tau * log_odds_of(grid.omega)
            assert claimed[0] <= bound * (1 + 1e-12) + 1e-13
            assert claimed[1] <= 2 * bound * (1 + 1e-12) + 1e-13


def test_one_record_more_or_less_would_be_noticed() -> None:
    grid, args = SplitGrid(0.05, 33), (1.0, 1.0, 0.1)
    adding, turning = brute_force(grid, *args, 20)
    for n in (19, 21):
        assert abs(grid.loss_of_adding(*args, n) / adding - 1) > 1e-3
        assert abs(grid.loss_of_turning(*args, n) / turning - 1) > 1e-3


def test_known_figures() -> None:
    grid = SplitGrid(0.05, 4097)  # Beta(1, 1), one of 200 records replaced
    for tau, exact, bound in ((0.01, 0.0402, 0.0589), (0.001, 0.0031, 0.0059)):
        assert grid.loss_of_turning(1, 1, tau, 200) == pytest.approx(exact, abs=6e-5)
        assert round(2 * tau * log_odds_of(0.05), 4) == bound


@pytest.mark.parametrize("grid", [*GRIDS, SplitGrid(0.05, 257), SplitGrid(0.001, 4097)])
def test_rounding_to_integers_stays_within_its_bound(grid: SplitGrid) -> None:
    for n, tau in ((5, 0.2), (300, 1.0), (300, 1e-6)):
        for k in range(0, n, 37):
            before = grid.log_weights(1 + tau * k, 1 + tau * (n - 1 - k))
            after = grid.log_weights(1 + tau * (k + 1), 1 + tau * (n - 1 - k))
            loss = law_loss(integer_weights(before), integer_weights(after))
            assert loss <= grid.loss_of_adding(1, 1, tau, n) + grid.rounding(2 + tau * n)


@pytest.mark.parametrize("omega", [1e-9, 0.01, 0.3, 0.4999])
@pytest.mark.parametrize("points", [2, 5, 256, 257])
def test_the_grid_is_symmetric_and_even_in_log_odds(omega: float, points: int) -> None:
    grid = SplitGrid(omega, points)
    np.testing.assert_allclose(grid.left[[0, -1]], [omega, 1 - omega], rtol=1e-12)
    np.testing.assert_allclose(np.exp(grid.log_left) + np.exp(grid.log_right), 1, rtol=1e-12)
    odds = grid.log_left - grid.log_right
    step = 2 * log_odds_of(omega) / (points - 1)
    np.testing.assert_allclose(np.diff(odds), step, rtol=1e-6)


def test_the_law_is_the_truncated_beta_law() -> None:
    grid, law = SplitGrid(0.02, 4097), stats.beta(3.5, 8)
    share = law.cdf(0.4) - law.cdf(0.02)
    expected = share / (law.cdf(0.98) - law.cdf(0.02))
    masses = grid.law(3.5, 8)
    assert masses.sum() == pytest.approx(1)
    assert masses[grid.left < 0.4].sum() == pytest.approx(expected, abs=1e-3)
    assert masses @ grid.left == pytest.approx(law.mean(), abs=1e-3)


# -------------------------------------------------------------- score="posterior"


def brute_force_mass(grid: SplitGrid, a: float, b: float, n: int) -> float:
    laws = np.exp(log_laws(grid, a, b, 1.0, n))
    k, m = np.nonzero(np.add.outer(np.arange(n), np.arange(n)) < n)
    moves = [np.abs(laws[k, m] - after).max() for after in (laws[k + 1, m], laws[k, m + 1])]
    return float(max(moves))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("a", "b"), PRIORS)
def test_the_sensitivity_of_masses_is_exact(grid: SplitGrid, a: float, b: float) -> None:
    L = log_odds_of(grid.omega)
    for n in (1, 2, 9, 60):
        exact = brute_force_mass(grid, a, b, n)
        claimed = grid.mass_sensitivity(a, b, n)
        assert exact < claimed <= max(exact, 2.0**-20) * (1 + 1e-6) + 1e-9
        assert claimed <= math.tanh(L / 4) * (1 + 1e-6) + 1e-9
        assert claimed <= min(1, math.sqrt(L))


def test_the_bound_for_many_records_holds_and_is_nearly_met() -> None:
    closest = 0.0
    for grid in (*GRIDS, SplitGrid(0.1, 3), SplitGrid(0.45, 2)):
        bound = grid.mass_sensitivity(1, 1, 1001)
        tanh = math.tanh(log_odds_of(grid.omega) / 4)
        assert tanh < bound < tanh * (1 + 1e-6) + 1e-9
        for a, b in PRIORS:
            closest = max(closest, brute_force_mass(grid, a, b, 60) / bound)
    assert 0.9 < closest <= 1
