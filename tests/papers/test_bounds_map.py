from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts.dirichlet import DirichletPrior, mode_law
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid
from dpbayes_sklearn.mechanisms import MAP
from dpbayes_sklearn.papers.theory import (
    map_failure_bound,
    map_score_gap,
    mass_change_bound,
    table_lipschitz,
)
from dpbayes_sklearn.privacy import Budget

COIN = Network((2,), ((),))


def released_law(epsilon, heads, n):
    """Law of the production mechanism, its score, exponent and base measure."""
    prior = DirichletPrior(COIN, (np.array([2.0, 2.0]),))
    mechanism = MAP(omega=0.1, n_points=65)
    law = mode_law(mechanism, prior, n, Budget(epsilon))
    grid, log_law = law.grid, law.log_weights
    log_weights = log_law(0, np.array([float(heads)]), np.array([float(n - heads)]))[0]
    base = np.exp(log_law(0, np.zeros(1), np.zeros(1))[0])
    score = heads * grid.log_left + (n - heads) * grid.log_right
    exponent = np.ptp(log_weights - np.log(base)) / np.ptp(score)
    law = np.exp(log_weights - log_weights.max())
    return law / law.sum(), score, exponent, base / base.sum()


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("heads", [0, 12, 30])
def test_lemma_4(epsilon, heads):
    law, score, exponent, base = released_law(epsilon, heads, 30)
    used = []
    for t in np.geomspace(0.05, 60, 40):
        good, bad = base[score > score.max() - t].sum(), law[score <= score.max() - 2 * t].sum()
        bound = map_failure_bound(exponent, t, good)
        assert bad <= bound * (1 + 1e-9)
        used.append(bad / bound)
    print(f"Lemma 4 at epsilon={epsilon}, {heads} of 30: at most {max(used):.2f} of the bound")
    assert max(used) > 0.4


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_score_gap(epsilon):
    law, score, exponent, base = released_law(epsilon, 12, 30)
    for delta in (0.3, 0.05):
        gap = map_score_gap(exponent, base[score.argmax()], delta)
        assert law[score <= score.max() - gap].sum() <= delta


def test_gap_is_attained_up_to_the_base_measure():
    """Two points: the bound is exact but for the normaliser."""
    best, exponent, gap = 0.5, 3.0, 2.0
    failure = 0.5 * np.exp(-exponent * gap)
    failure /= failure + best
    assert map_score_gap(exponent, best, failure) == pytest.approx(gap, rel=0.15)


@pytest.mark.parametrize("omega", [0.1, 0.3, 0.45])
def test_masses_change_less_than_the_bound(omega):
    bound = mass_change_bound(table_lipschitz(omega), 1.0)
    assert SplitGrid(omega, 33).mass_sensitivity(1.0, 1.0, 60) <= bound
