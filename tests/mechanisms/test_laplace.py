"""Noise on counts: the scale is exact, and the noise follows its law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import DiscreteLaplace, Noise
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_pmf
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit, exact
from tests.releasing import carried_out


def counts_of(network: Network, n: int = 500) -> CountTables:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    return CountTables.count(network, [(codes[:, :-1].astype(np.uint16), codes[:, -1])])


def released(
    network: Network, epsilon: Any, unit: PrivacyUnit = RECORD, seed: int | None = None
) -> Any:
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    budget = Budget(exact(epsilon), unit=unit)
    mechanism = Laplace(noise="independent")
    return carried_out(mechanism, counts_of(network), prior, budget, Noise.of(seed))


NETWORKS = [
    Network.star([2] * 4, 2),
    Network.star([3, 7], 3),
    Network((2, 3, 2), ((), (0,), (0, 1))),
]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("epsilon", [0.1, 1, Fraction(1, 3), 7.25])
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_the_scale_is_sensitivity_over_epsilon(
    network: Network, epsilon: Any, unit: PrivacyUnit
) -> None:
    release = released(network, epsilon, unit)
    moved = {RECORD: len(network.sizes), FEATURE: network.tables_changed(FEATURE)}[unit]
    scale = Fraction(2 * moved) / exact(epsilon)
    cells = [math.prod(shape) for shape in network.shapes]
    assert release.posterior.released.laws == (DiscreteLaplace.of(scale, cells),)
    assert release.guarantee.epsilon >= float(epsilon)
    assert release.guarantee.unit == unit.name
    assert release.guarantee.delta == 0
    assert release.guarantee.mechanism == "laplace"
    assert release.guarantee.conditions == ()
    for table, shape in zip(release.posterior.released.tables, network.shapes, strict=True):
        assert table.dtype == np.int64  # every released number is an integer
        assert table.shape == shape


def pvalue(noise: Any, scale: float) -> float:
    """Chi-square of the noise against the law of this scale."""
    edge = int(4 * scale)
    inside = discrete_laplace_pmf(np.arange(-edge, edge + 1), scale)
    law = np.array([(1 - inside.sum()) / 2, *inside, (1 - inside.sum()) / 2])
    seen = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=len(law))
    return float(stats.chisquare(seen, noise.size * law).pvalue)


def test_the_noise_follows_its_law_and_a_scale_five_percent_off_is_rejected() -> None:
    network = Network.star([300] * 20, 20)  # 120,020 cells of noise in one release
    exact_tables = counts_of(network).tables
    tables = released(network, 6, seed=1).posterior.released.tables
    noise = np.concatenate([(t - e).ravel() for t, e in zip(tables, exact_tables, strict=True)])
    scale = 2 * 21 / 6
    assert pvalue(noise, scale) > 1e-3
    assert pvalue(noise, 0.95 * scale) < 1e-6
    assert pvalue(noise, 1.05 * scale) < 1e-6
    # the cells of one table, and of different tables, have noise of their own
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(tables[0].ravel(), tables[1].ravel())[0, 1]) < 0.1


def test_without_privacy_the_counts_are_exact() -> None:
    network = NETWORKS[1]
    release = released(network, float("inf"))
    expected = [1.0 + t for t in counts_of(network).tables]
    for got, want in zip(release.posterior.concentrations, expected, strict=True):
        assert (got == want).all()
    assert release.guarantee.epsilon == float("inf")


def test_a_table_of_one_cell_is_public() -> None:
    network = Network.star([3], 1)
    posterior = released(network, 0.001).posterior
    assert posterior.released.tables[1].tolist() == [500]
    assert posterior.released.laws[0].scales[1] == 0
    assert (posterior.released.tables[0] != counts_of(network).tables[0]).any()


def test_the_posterior_clips_to_what_counts_can_be() -> None:
    posterior = released(NETWORKS[0], 0.01).posterior
    for table in posterior.concentrations:
        assert (table >= 1).all()
        assert (table <= 501).all()


def test_two_releases_differ() -> None:
    first, second = (released(NETWORKS[0], 1).posterior.released.tables for _ in range(2))
    assert any((a != b).any() for a, b in zip(first, second, strict=True))
