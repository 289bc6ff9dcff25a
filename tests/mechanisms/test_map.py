"""MAP: the prior for little budget, the most probable tables for much."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpbayes_sklearn.counts.dirichlet import DirichletPrior, mode_law
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import MAP
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import integer_weights
from dpbayes_sklearn.privacy.budget import Budget, exact
from tests.releasing import carried_out

NETWORK = Network.star([2], 2)
FEATURE = 0
K, M = 16, 4  # turns to the left and to the right at the split looked at
SCORES = ["log_posterior", "posterior"]


def law_of(
    score: str, alpha: tuple[float, float], epsilon: float, n: int = 20, **options: Any
) -> tuple[SplitGrid, npt.NDArray[np.float64]]:
    """The grid and the law that the feature's split is drawn from after K and M turns."""
    prior = DirichletPrior(NETWORK, (np.array(alpha), np.ones(2)))
    mechanism = MAP(score=score, **options)
    law = mode_law(mechanism, prior, n, Budget(exact(epsilon)))
    weights = integer_weights(law.log_weights(FEATURE, np.array([float(K)]), np.array([float(M)])))[
        0
    ]
    return law.grid, weights / weights.sum(dtype=float)


PRIORS = [(1.0, 1.0), (3.0, 1.0), (1.0, 9.0), (0.5, 0.5), (6.0, 6.0), (0.01, 20.0)]


@pytest.mark.parametrize("alpha", PRIORS)
def test_much_budget_finds_the_mode_of_the_posterior(alpha: tuple[float, float]) -> None:
    grid, law = law_of("log_posterior", alpha, 1e5, n_points=2049)
    a, b = alpha
    mode = np.clip((a + K - 1) / (a + b + K + M - 2), 0.1, 0.9)
    assert law @ grid.left == pytest.approx(mode, abs=0.01)
    assert law @ (grid.left - mode) ** 2 < 0.005**2 * 4
    # not the largest likelihood, unless the prior is flat
    if abs(mode - K / (K + M)) > 0.02:
        assert abs(law @ grid.left - K / (K + M)) > 0.015


@pytest.mark.parametrize("alpha", [(1.0, 9.0), (6.0, 6.0)])
def test_a_prior_that_is_not_sharpened_would_find_the_largest_likelihood(
    alpha: tuple[float, float],
) -> None:
    # prior * likelihood^tau, tau to infinity: the prior is forgotten
    grid, (a, b) = SplitGrid(0.1, 2049), alpha
    mode = (a + K - 1) / (a + b + K + M - 2)
    for tau in (100.0, 1e4):
        forgetful = grid.law(a + tau * K, b + tau * M)
        assert forgetful @ grid.left == pytest.approx(K / (K + M), abs=0.01)
        assert abs(forgetful @ grid.left - mode) > 0.05


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("alpha", PRIORS)
def test_little_budget_gives_the_prior(score: str, alpha: tuple[float, float]) -> None:
    grid, law = law_of(score, alpha, 1e-4)
    expected = grid.law(*alpha)
    assert np.abs(law - expected).sum() < 1e-3
    _, spent = law_of(score, alpha, 20.0)
    assert np.abs(spent - expected).sum() > 0.1  # more budget does move it


@pytest.mark.parametrize("alpha", [(1.0, 1.0), (3.0, 1.0), (1.0, 9.0)])
def test_much_budget_finds_the_point_of_the_largest_mass(alpha: tuple[float, float]) -> None:
    grid, law = law_of("posterior", alpha, 1e4)
    masses = grid.law(alpha[0] + K, alpha[1] + M)
    assert law.argmax() == masses.argmax()
    assert law.max() > 0.99


@pytest.mark.parametrize("score", SCORES)
def test_the_law_sharpens_with_the_budget(score: str) -> None:
    tops = [law_of(score, (2.0, 2.0), e, n_points=33)[1].max() for e in (1, 10, 100, 1000)]
    assert (np.diff(tops) > 0).all()


@pytest.mark.parametrize("alpha", [(1e4, 1e4), (1e3, 0.01), (1e6, 1.0)])
def test_a_score_that_hardly_moves_is_not_magnified(alpha: tuple[float, float]) -> None:
    # the prior says it all: a sensitivity of 1e-16 would turn floating-point error into loss
    prior = DirichletPrior(NETWORK, (np.array(alpha), np.ones(2)))
    law = mode_law(MAP(score="posterior"), prior, 20, Budget(exact(1)))
    k = np.arange(20.0)[:, None]
    rows = [integer_weights(law.log_weights(FEATURE, k + i, 19 - k + (1 - i))) for i in (0, 1)]
    laws = [np.log(r / r.sum(axis=-1, keepdims=True, dtype=float)) for r in rows]
    assert np.isfinite(laws[0]).all()
    assert np.abs(laws[0] - laws[1]).max() <= 1


def test_draws_of_a_release() -> None:
    counts = CountTables(NETWORK, (np.array([[K, M], [0, 0]]), np.array([K + M, 0])), K + M)
    prior = DirichletPrior(NETWORK, (np.ones(2), np.ones(2)))
    for score in SCORES:
        release = carried_out(MAP(score=score), counts, prior, Budget(exact(1e4)), Noise())
        table = release.posterior.draws[0][0]
        assert table[0, 0] == pytest.approx(K / (K + M), abs=0.07)
        assert len(release.posterior.weights) == 1
        assert release.guarantee.mechanism == "map"
