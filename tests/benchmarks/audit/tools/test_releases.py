"""The audit at the choke point: every mechanism, all runs in a few calls."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.audit.tools.releases import audit_release, released_numbers
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import Beta, SimplexPrior
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.mechanisms import Geometric, Laplace, LaplaceImproved, Sampler
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.schema import Interval

COIN = Network((2,), ((),))
HEADS, TAILS = (CountTables(COIN, (np.array(table),), 1) for table in ([1, 0], [0, 1]))
PRIOR = DirichletPrior(COIN, (np.ones(2),))
ONE, ZERO = SimplexCounts(np.array([1, 0])), SimplexCounts(np.array([0, 1]))


def test_runs_are_independent_and_in_place():
    rows = released_numbers(Laplace(), HEADS, PRIOR, Budget(1), 4000, random_state=0)
    assert rows.shape == (4000, 2)
    assert np.abs(rows.mean(axis=0) - [1, 0]).max() < 0.3
    assert np.abs(np.corrcoef(rows[1:, 0], rows[:-1, 0])[0, 1]) < 0.06
    assert len(np.unique(rows, axis=0)) > 50


def test_draws_are_seen_too():
    rows = released_numbers(Sampler(2, n_points=3), HEADS, PRIOR, Budget(1), 50, random_state=0)
    assert rows.shape == (50, 4)
    assert len(np.unique(rows)) <= 6


@pytest.mark.parametrize("mechanism", [Geometric(), LaplaceImproved()])
def test_counts_of_one_variable(mechanism):
    bound = audit_release(
        mechanism, ONE, ZERO, SimplexPrior(Beta(1, 1)), Budget(1), 20_000, random_state=0
    )
    assert 0.8 < bound.epsilon <= 1.0


def test_moments():
    design = Design((Interval(-1, 1),))
    prior = GaussianPrior(design, noise_variance=0.1)
    sides = [
        LinearRecords(
            design,
            Scale(0.0, 1.0),
            LocalRecords([(Table(np.array([[x], [0.2]])), np.array([x, 0.1]))]),
        )
        for x in (1.0, 0.0)
    ]
    sound, faulty = (
        audit_release(Laplace(), *sides, prior, Budget(epsilon), 110, random_state=0)
        for epsilon in (1, 40)
    )
    assert sound.epsilon <= 1 < faulty.epsilon


def test_workers_draw_other_noise_each():
    calls = (HEADS, TAILS, PRIOR, Budget(1), 15_000)
    alone, together = (audit_release(Laplace(), *calls, n_jobs=n, random_state=0) for n in (1, 2))
    assert alone == together
    assert alone.epsilon <= 1
