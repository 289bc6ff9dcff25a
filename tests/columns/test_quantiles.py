"""QuantileQuestions: what is asked, of whom, and at what price."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.columns.quantiles import (
    BinEdges,
    CentreAndSpread,
    OuterQuantiles,
    QuantileQuestions,
    RangeAndEdges,
    SortedColumns,
)
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.privacy.budget import RECORD

LOW, HIGH = Fraction(1, 100), Fraction(99, 100)
PLANS = [
    *(BinEdges(k, b) for k in (2, 3, 5, 8, 17) for b in (None, (0.0, 50.0))),
    OuterQuantiles(LOW, HIGH, 1000, 1.0),
    OuterQuantiles(LOW, HIGH, 1000, 1.0, (0.0, 50.0)),
    *(RangeAndEdges(k, 1000, epsilon) for k in (2, 5, 8, 300) for epsilon in (0.01, 1.0, np.inf)),
    CentreAndSpread(1000, 1.0),
    CentreAndSpread(1000, 1.0, (0.0, 50.0)),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_the_shares_of_all_levels_are_the_whole(plan):
    assert sum(level.share for level in plan.levels) == 1
    assert all(level.sensitivity(RECORD) >= 2 for level in plan.levels)


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_questions_do_not_depend_on_the_data(plan):
    def asked(column):
        seen = []

        def choose(ranks, level):
            seen.append((ranks.q, ranks.lattices, level))
            first = ranks.lattices[0]
            return first.value((first.first + first.stop) // 2)

        plan.ask(column, choose)
        return seen

    assert asked(np.arange(7.0)) == asked(np.array([])) == asked(np.full(3, 1e300))


def exact(plan, values):
    column = np.array(values, dtype=float)[:, None]
    columns = SortedColumns(LocalRecords.unlabelled(Table(column)))
    return QuantileQuestions((plan,)).exact(columns)[0]


def test_exact_edges_are_quantiles():
    assert exact(RangeAndEdges(4, 100, np.inf), range(1, 101)) == (1.0, 25.0, 50.0, 75.0, 99.0)
    assert exact(BinEdges(4), range(1, 101)) == (25.0, 50.0, 75.0)
    within = exact(BinEdges(4, (0.0, 128.0)), range(1, 101))
    assert within == pytest.approx((25.0, 50.0, 75.0))


def test_a_value_that_many_share_takes_one_edge():
    edges = exact(BinEdges(8), [0.0] * 92 + [*range(100, 900, 100)])
    assert edges[3] == 0.0
    assert edges[4:] == (200.0, 400.0, 600.0)


def test_ranges_have_no_outliers_and_a_constant_has_none():
    few = [50.0 + k / 100 for k in range(-200, 201)] + [1e12]
    low, high = exact(OuterQuantiles(LOW, HIGH, 402, np.inf), few)
    assert -2 < low - 50 < -1.8 < 1.8 < high - 50 < 2


def test_a_column_of_one_value_has_a_range_around_it():
    low, high = exact(OuterQuantiles(LOW, HIGH, 5, np.inf), [np.pi] * 5)
    assert low == pytest.approx(0, abs=1e-9)
    assert high == pytest.approx(2 * np.pi)
    assert exact(OuterQuantiles(LOW, HIGH, 5, np.inf), [0.0] * 5) == (-1.0, 1.0)


def test_a_side_that_cannot_be_seen_is_as_wide_as_the_other():
    values = [12.0] * 60 + [*np.linspace(5, 11, 40)]
    assert exact(OuterQuantiles(LOW, HIGH, 100, np.inf), values)[1] == 12.0  # there is nothing
    low, high = exact(OuterQuantiles(LOW, HIGH, 100, 1.0), values)
    assert low < 12.0 < high
    assert high - 12.0 == pytest.approx(12.0 - low)


@pytest.mark.parametrize("sign", [1, -1])
def test_quartiles_inside_a_tie_are_mirrored(sign):
    values = sign * np.array([12.0] * 240 + [*np.linspace(5, 11, 160)])
    low, high = exact(OuterQuantiles(LOW, HIGH, 400, 1.0), values)
    assert low < sign * 12.0 < high
    assert high + low == pytest.approx(sign * 24.0)


def test_the_spread_is_that_of_a_normal_law():
    values = np.random.default_rng(0).normal(5, 3, 20_000)
    centre, spread = exact(CentreAndSpread(20_000, np.inf), values)
    assert centre == pytest.approx(5, abs=0.1)
    assert spread == pytest.approx(3, rel=0.03)
    wide = exact(CentreAndSpread(20_000, 0.002), values)  # asks for the half that is nearest
    assert wide[1] == pytest.approx(3, rel=0.03)


def test_missing_values_count_in_no_column():
    columns = SortedColumns(
        LocalRecords.unlabelled(Table(np.array([[np.nan, 1.0], [3.0, np.inf], [2.0, -np.inf]])))
    )
    assert columns.column(0).tolist() == [2.0, 3.0]
    assert np.isfinite(columns.column(1)).all()
    assert (columns.n, columns.n_columns) == (3, 2)


@pytest.mark.parametrize("n", [10, 100_000])
@pytest.mark.parametrize("answers", [(1e22, 1.0, 1e22), (1e22, 1e22, 1e22), (0.0, 0.0, 0.0)])
def test_a_range_is_never_empty(n, answers):
    said = iter(answers)
    plan = OuterQuantiles(Fraction(1, 100), Fraction(99, 100), n, 1.0)
    low, high = plan.ask(np.arange(20.0), lambda ranks, level: next(said))
    assert low < high
    assert low <= answers[0] <= high


def test_the_range_has_an_eighth_to_three_quarters_of_a_budget_as_the_page_says() -> None:
    parts = {
        RangeAndEdges(bins, n, epsilon)._range_part
        for bins in (2, 8, 50)
        for n in (1, 10, 100, 1000, 10**5, 10**8)
        for epsilon in (0.01, 0.1, 1.0, 10.0)
    }
    assert (min(parts), max(parts)) == (Fraction(1, 8), Fraction(3, 4))
