"""Posterior draws around a mode: what a record can change, the law that is drawn, its audit."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import kstest

from benchmarks.audit.tools.ratios import audit_ratios
from benchmarks.audit.tools.recording import Recording
from benchmarks.audit.tools.steps import Ball
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic.blocks import Blocks, even_nodes
from dpbayes_sklearn.logistic.draws import LogisticDrawPlan, score_of_records
from dpbayes_sklearn.logistic.mode import LogisticLoss, exact_mode, plan_mode
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval

WORLDS = {
    "levels": (Blocks((Categories(range(2)), Categories(range(3)))), (0, 1)),
    "numbers": (Blocks((Interval(0, 1), Interval(0, 1)), "linear"), (0.0, 0.3, 1.0)),
    "no constant": (Blocks((Interval(0, 1), Categories(range(2))), intercept=False), (0.0, 1.0)),
}
ADDED = PrivacyUnit("record", neighbours="add_remove")


def mapped(blocks, X, y):
    records = LocalRecords([(Table(np.asarray(X, float)), np.asarray(y))])
    coded = LabelledRecords(blocks, Categories([0, 1]), records).read()
    return coded.mapped(even_nodes(len(blocks.numbers)))


def plan_of(blocks, n, loss, unit=RECORD, prior=1.0, n_draws=1, epsilon=1):
    mode = plan_mode(blocks, n, Fraction(epsilon), unit, 100.0, prior)
    return LogisticDrawPlan.of(blocks, mode, n, Fraction(loss), unit, prior, n_draws)


def ball_of(plan, records, centre):
    """Return the law that draws around a centre are made from."""
    seen = Recording()
    plan.draw(plan.ask(records, centre), None, seen.noise())
    (step,) = seen.steps
    assert isinstance(step, Ball)
    return step


@pytest.mark.parametrize("reach", [0.5, 3.9, 4.1, 20.0])
def test_the_range_of_a_score_is_that_of_the_claim(reach):
    blocks = Blocks((Categories(range(2)),), intercept=False)
    claimed = score_of_records(blocks, np.array([reach * np.sqrt(2)]), 1.0)
    r = np.linspace(0, 1, 2001)
    parts = 2 * r * reach + r * (1 - r) * reach**2 / 2  # both terms at their largest
    assert claimed == pytest.approx(parts.max(), rel=1e-5)
    u = np.linspace(-reach, reach, 801)
    scores = np.outer(r, u) - np.outer(r * (1 - r), u**2) / 2  # one u, as records have
    assert np.ptp(scores, axis=1).max() <= claimed


@pytest.mark.parametrize("unit", [RECORD, ADDED])
@pytest.mark.parametrize("world", WORLDS)
def test_no_neighbours_lose_more_than_a_draw_may_and_some_nearly_do(world, unit):
    blocks, values = WORLDS[world]
    plan, shared = plan_of(blocks, 3, 2, unit), ([0.0, 1.0], 1)
    own = [*product(product(values, repeat=2), (0, 1))]
    centres = [np.zeros(blocks.parameters)]
    rng = np.random.default_rng(0)
    centres += [30 * rng.normal(size=blocks.parameters) for _ in range(12)]  # residuals of 0 and 1
    worst = 0.0
    for centre in centres:
        rows = [[shared], *([shared, record] for record in own)]
        laws = [ball_of(plan, mapped(blocks, *zip(*each, strict=True)), centre) for each in rows]
        pairs = product(laws[:1], laws[1:]) if unit is ADDED else combinations(laws[1:], 2)
        worst = max(worst, *(max(a.loss(b), b.loss(a)) for a, b in pairs))
    assert worst <= 2
    # of two records only one block may differ if both have a residual of 1
    assert worst > (1.9 if unit is ADDED else 1.4)


def test_with_all_of_epsilon_draws_follow_the_posterior():
    """As sharp as the posterior itself: normal around the mode, with the inverse curvature."""
    rng = np.random.default_rng(1)
    blocks = Blocks((Interval(0, 1), Categories(range(3))), "linear")
    X = np.column_stack([rng.random(3000), rng.integers(0, 3, 3000)])
    y = (rng.random(3000) < 0.2 + 0.5 * X[:, 0]).astype(int)
    records = mapped(blocks, X, y)
    plan = plan_of(blocks, 3000, 10**6, n_draws=600, epsilon=10**6)
    assert plan.weight == pytest.approx(1)
    mode = exact_mode(LogisticLoss(records, blocks), np.ones(blocks.parameters))
    wide = plan._replace(radius=10 * plan.radius)
    draws = wide.draw(wide.ask(records, mode), None, Noise.of(0))
    basis = blocks.basis
    precision = basis.T @ records.curvature(basis @ mode) @ basis + np.eye(len(mode))
    white = draws @ np.linalg.cholesky(precision)
    assert kstest(white.ravel(), "norm").pvalue > 1e-4
    sharper = wide._replace(weight=2 * wide.weight)
    other = sharper.draw(sharper.ask(records, mode), None, Noise.of(0)) @ np.linalg.cholesky(
        precision
    )
    assert kstest(other.ravel(), "norm").pvalue < 1e-6


def test_audit_of_a_draw_sees_twice_its_sharpness():
    """Another record keeps most draws at one end of the ball; the few at the other tell most."""
    blocks = Blocks((Categories(range(2)),), intercept=False)
    plan, centre = plan_of(blocks, 2, 2, ADDED, prior=1e-6), np.array([-30.0])
    sides = [
        ball_of(plan, mapped(blocks, [[0.0]] * records, [1] * records), centre)
        for records in (1, 2)
    ]
    assert sides[0].loss(sides[1]) > 1.99
    assert audit_ratios([sides[0]], [sides[1]], 60_000).epsilon <= 2
    assert audit_ratios([sides[0]], [sides[1]], 60_000, sharper=True).epsilon > 2
