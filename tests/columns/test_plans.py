"""Private quantiles: within their claim on all small data sets, near in rank on large ones."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_loss
from dpbayes_sklearn.columns import plans, quantiles
from dpbayes_sklearn.columns.plans import QuantilePlan
from dpbayes_sklearn.columns.quantiles import (
    BinEdges,
    CentreAndSpread,
    OuterQuantiles,
    QuantileQuestions,
    RangeAndEdges,
    SortedColumns,
)
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget

LOW, HIGH = Fraction(1, 10), Fraction(9, 10)
ALL = [
    BinEdges(2),
    BinEdges(4),
    BinEdges(4, (0.0, 4.0)),
    BinEdges(6),
    OuterQuantiles(LOW, HIGH, 3, 1.0),
    OuterQuantiles(LOW, HIGH, 3, 1.0, (0.0, 4.0)),
    RangeAndEdges(2, 3, 1.0),
    RangeAndEdges(2, 3, 1000.0),  # which looks for edges beyond the range, too
    CentreAndSpread(3, 1.0),
    CentreAndSpread(3, 1.0, (-1.0, 4.0)),
]


@pytest.mark.parametrize("plan", ALL, ids=repr)
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_all_neighbours_stay_within_the_claim(plan, epsilon):
    found = enumerate_loss(None, QuantileQuestions((plan,)), 3, epsilon=epsilon, transcripts=2)
    assert found.within
    assert found.ratio > 0.3


def test_a_median_uses_up_its_claim():
    found = enumerate_loss(None, QuantileQuestions((BinEdges(2),)), 4, epsilon=8.0, transcripts=2)
    assert found.within
    assert found.ratio > 0.97


def test_columns_share_the_budget():
    both = QuantileQuestions((BinEdges(2), BinEdges(2, (0.0, 4.0))))
    found = enumerate_loss(None, both, 2, epsilon=8.0, transcripts=2)
    assert found.within
    assert found.ratio > 0.4
    with mock.patch.object(QuantileQuestions, "n_columns", 1):  # each takes all of it
        assert enumerate_loss(None, both, 2, epsilon=8.0).loss > 1.5 * found.loss


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (
            quantiles,
            "_disjoint",
            lambda share, fractions: quantiles.Level(share, Fraction(1), Fraction(1)),
        ),
        (plans, "rate", lambda level, epsilon, unit: float(epsilon / level.sensitivity(unit))),
    ],
)
def test_too_small_a_sensitivity_or_too_large_a_share_is_seen(owner, name, wrong):
    with mock.patch.object(owner, name, wrong):
        found = enumerate_loss(None, QuantileQuestions((BinEdges(4),)), 3, epsilon=6.0)
    assert not found.within


def released(values, plan, epsilon, seed=0):
    statistics = SortedColumns(LocalRecords.unlabelled(Table(np.asarray(values, float)[:, None])))
    budget = Budget(Fraction(str(epsilon)))
    plan = QuantilePlan.of(QuantileQuestions((plan,)), budget)
    return plan.release(statistics, Noise.of(seed))[0]


N = 10_000
RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.normal(size=N),
    "log-normal": RNG.lognormal(8, 2, N),
    "outliers": np.where(RNG.random(N) < 0.01, 1e6, RNG.normal(50, 10, N)),
    "years": RNG.integers(1950, 2010, N),
    "seconds": 1.7e9 + 3e7 * RNG.random(N),
    "tiny": 1e-300 * RNG.normal(size=N),
    "huge": 1e300 * RNG.random(N),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "log-normal"])
def test_a_range_does_not_cut_off_outer_edges(name):
    """With enough records edges have the error of their own share, 7/8 of the budget."""
    ordered, wanted = np.sort(np.asarray(COLUMNS[name], float)), np.arange(1, 8) / 8
    away = []
    for seed in range(20):
        _, *edges, _ = released(ordered, RangeAndEdges(8, N, 1.0), 1.0, seed)
        low, high = (np.searchsorted(ordered, edges, side=side) / N for side in ("left", "right"))
        away.append(np.maximum(np.maximum(low - wanted, wanted - high), 0).mean())
    assert np.mean(away) * N < 20  # records; 8 with bounds


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_any_magnitude_are_found(name):
    ordered = np.sort(np.asarray(COLUMNS[name], float))
    edges = released(ordered, BinEdges(4), 0.5)
    low, high = (np.searchsorted(ordered, edges, side=side) / N for side in ("left", "right"))
    away = np.maximum(np.maximum(low - [0.25, 0.5, 0.75], [0.25, 0.5, 0.75] - high), 0)
    assert away.max() < 0.03
    ends = released(ordered, OuterQuantiles(Fraction(1, 100), Fraction(99, 100), N, 1.0), 1.0)
    outside = np.mean((ordered < ends[0]) | (ordered > ends[1]))
    assert outside < 0.06
    middle = np.diff(np.quantile(ordered, [0.05, 0.95]))[0]
    assert name == "outliers" or ends[1] - ends[0] < 4 * middle


@pytest.mark.parametrize("value", [0.0, 5.0, -np.pi, 1e300])
def test_a_constant_column_is_found_exactly(value):
    plan = OuterQuantiles(Fraction(1, 100), Fraction(99, 100), N, 1.0)
    low, high = released(np.full(N, value), plan, 1.0)
    assert low / 2 + high / 2 == pytest.approx(value, rel=1e-9)
    assert high - low == pytest.approx(2 * max(1, abs(value)))


@pytest.mark.parametrize("plan", ALL, ids=repr)
@pytest.mark.parametrize("column", [[np.nan] * 4, [np.inf, -np.inf, 1e308, -1e308], [5e-324] * 4])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 1e6])
def test_every_column_has_finite_ordered_answers(plan, column, epsilon):
    answers = released(column, plan, epsilon)
    assert np.isfinite(answers).all()
    if not isinstance(plan, CentreAndSpread):
        assert (np.diff(answers) >= 0).all()
