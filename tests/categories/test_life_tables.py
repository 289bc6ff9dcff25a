"""Life tables: what a record changes, equality with the exact table, and refusals of cells."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from dpbayes_sklearn.categories.life_tables import Cells, LifeTables, count_cells, plan
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import DiscreteLaplace, ZeroSum
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval

DOMAINS = Interval(0, 3, edges=[1, 2, 3]), Categories([0, 1])
EVENT = Categories([0, 1])
TIMES, LABELS = (-1.0, 0.0, 1.0, 2.9, 3.0, np.inf, np.nan), (0.0, 1.0, np.nan)
EVERYBODY = [*product(TIMES, (0.0, 1.0, 7.0), LABELS)]
RNG = np.random.default_rng(0)


def counts(rows):
    *columns, y = np.array(rows, float).reshape(-1, 3).T
    return count_cells(DOMAINS, EVENT, LocalRecords([(Table(np.stack(columns, 1)), y)])).counts


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit(neighbours="add_remove")], ids=str)
def test_any_neighbours_lose_at_most_epsilon_and_some_lose_all_of_it(unit) -> None:
    law = plan(Cells(2, 3), Facts(1), Budget(Fraction(1), unit=unit)).law
    empty = np.zeros(Cells(2, 3).total, np.int64)
    own = np.array([counts([row]) for row in EVERYBODY])
    assert (own.sum(axis=1) == 1).all()
    shifts = own - empty if unit.size_is_secret else (own[:, None] - own).reshape(-1, own.shape[1])
    assert max(law.privacy_loss(shift) for shift in np.unique(shifts, axis=0)) == 1


def test_records_are_in_the_cells_that_the_model_says() -> None:
    rows = [(0, 0, 1), (1, 0, 1), (0.5, 0, 0), (3, 1, 1), (99, 1, 0), (np.nan, 1, np.nan)]
    assert counts(rows).reshape(2, 7).tolist() == [[1, 1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0, 2]]


def test_the_noise_adds_to_zero_where_the_number_of_records_is_public() -> None:
    public, secret = (
        plan(Cells(1, 2), Facts(9), Budget(Fraction(1), unit=PrivacyUnit(neighbours=neighbours)))
        for neighbours in ("replace", "add_remove")
    )
    assert (public.law, public.n) == (ZeroSum(Fraction(2), 5), 9)
    assert (secret.law, secret.n) == (DiscreteLaplace.of(Fraction(1), [5]), None)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 32,768 cells. Got 40,002 instead"):
        Cells(2, 10_000).check()


def exact_table(d, w, n):
    """Return actuarial survival and Greenwood's standard error of its logarithm, in a loop."""
    survival, variance, found = 1.0, 0.0, []
    for events, left in zip(d, w, strict=True):
        exposed = n - left / 2
        survival *= 1 - events / exposed
        variance += events / (exposed * (exposed - events))
        found.append((survival, variance**0.5))
        n -= events + left
    return np.array(found).T


def test_without_noise_it_is_the_actuarial_table() -> None:
    d, w = RNG.integers(5, 20, 6), RNG.integers(0, 15, 6)
    cells = np.append(np.stack([w, d], 1).ravel(), 40)
    found = LifeTables(cells[None], int(cells.sum()), ()).survival(0)
    survival, error = exact_table(d, w, cells.sum())
    assert np.allclose(found.estimate, survival)
    assert found.events.tolist() == d.tolist()
    assert (found.high - found.low > 1.9 * 1.96 * survival * error).all()
    wider = LifeTables(cells[None], int(cells.sum()), ()).survival(0, 0.99)
    assert (wider.low < found.low).all()
    assert (wider.high > found.high).all()
    # Wilson's form has nearly the width of the usual interval
    cells[0:12:2], survival = 0, exact_table(d, 0 * w, cells[1:12:2].sum() + 40)
    all_stay = LifeTables(cells[None], int(cells.sum()), ()).survival(0)
    assert np.allclose(all_stay.high - all_stay.low, 2 * 1.96 * np.prod(survival, 0), rtol=0.1)


@pytest.mark.parametrize("when", [0.0, 0.3, 1.0])
def test_intervals_hold_whenever_within_an_interval_records_leave(when) -> None:
    # Half of those at risk leave at one moment of each of six intervals; deaths are even.
    risk, cells, exact, survival = 20_000.0, [], 1.0, []
    for _ in range(6):
        dead = risk * 0.2 * when
        gone = (risk - dead) / 2
        left = risk - dead - gone
        later = left * (1 - 0.8 / (1 - 0.2 * when))
        exact *= (1 - 0.2 * when) * (1 - later / left)
        cells, survival, risk = [*cells, gone, dead + later], [*survival, exact], left - later
    found = LifeTables(np.array([[*np.rint(cells), round(risk)]], int), 20_000, ()).survival(0)
    assert (found.low <= survival).all()
    assert (survival <= found.high).all()
    assert when == 0.3 or (np.abs(found.estimate - survival) > 0.02).any()


def test_logrank_allows_for_when_one_group_leaves() -> None:
    # In both groups 5 % of those at risk die each month; 40 % of one leave just before.
    cells, risk = np.zeros((2, 13)), np.array([5000.0, 5000.0])
    for k in range(6):
        cells[0, 2 * k] = 0.4 * risk[0]
        cells[:, 2 * k + 1] = 0.05 * (risk - cells[:, 2 * k])
        risk = 0.95 * (risk - cells[:, 2 * k])
    cells[:, 12] = risk
    at_once = LifeTables(np.rint(cells).astype(int), 10_000, ()).logrank()
    assert at_once.p > 0.5
    cells[0, 1:12:2] *= 4
    assert LifeTables(np.rint(cells).astype(int), 10_000, ()).logrank().p < 1e-6


def test_without_censoring_the_interval_is_wilsons() -> None:
    n, alive = 50, 30
    found = LifeTables(np.array([[0, n - alive, 0, 0, alive]]), n, ()).survival(0)
    z, p = 1.959964, alive / n
    middle, reach = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert found.low[0] == pytest.approx((middle - reach) / (1 + z**2 / n), rel=1e-5)
    assert found.high[1] == pytest.approx((middle + reach) / (1 + z**2 / n), rel=1e-5)


def test_noise_widens_intervals_by_the_variance_along_the_gradient() -> None:
    cells, step = np.array([[0, 20, 0, 20, 0, 5, 150]]), 1e-4
    table = LifeTables(cells, int(cells.sum()), (DiscreteLaplace.of(Fraction(3), [7]),))
    survival = [
        LifeTables(cells + step * np.eye(7)[j], None, ()).survival(0).estimate for j in range(7)
    ]
    plain = LifeTables(cells, int(cells.sum()), ()).survival(0)
    gradient = (np.array(survival) - plain.estimate) / step
    noise = np.sqrt(table.laws[0].variance() * (gradient**2).sum(axis=0))
    noisy = table.survival(0)
    k = len(noisy.estimate)
    grown = ((noisy.high - noisy.low) / 3.92) ** 2 - ((plain.high - plain.low)[:k] / 3.92) ** 2
    assert k == 3
    assert np.allclose(grown, noise[:k] ** 2, rtol=0.1)


def test_tables_end_where_noise_hides_how_many_are_at_risk() -> None:
    cells = np.array([[0, 60, 0, 20, 0, 10, 0, 4, 6]])
    assert LifeTables(cells, 100, ()).end(0) == 4
    ends = [LifeTables(cells, 100, (ZeroSum(Fraction(b), 9),)).end(0) for b in (1, 4, 16)]
    assert ends == [4, 2, 1]


def test_nothing_is_said_where_nobody_is_at_risk() -> None:
    empty = LifeTables(np.zeros((2, 7), np.int64), 0, (ZeroSum(Fraction(2), 14),))
    assert len(empty.survival(1).estimate) == len(empty.difference(0, 1).estimate) == 0
    assert np.isnan(empty.logrank().p)
    assert empty.logrank().intervals == 0


def test_without_noise_and_censoring_logrank_is_the_usual_one() -> None:
    d = RNG.integers(5, 20, (3, 4))
    cells = np.zeros((3, 9), np.int64)
    cells[:, 1:8:2], cells[:, 8] = d, 50
    risk = 50 + np.cumsum(d[:, ::-1], axis=1)[:, ::-1]
    z, v = np.zeros(3), np.zeros((3, 3))
    for k in range(4):
        share, events, n = risk[:, k] / risk[:, k].sum(), d[:, k].sum(), risk[:, k].sum()
        z += d[:, k] - events * share
        v += events * (n - events) / (n - 1) * (np.diag(share) - np.outer(share, share))
    statistic = z[:2] @ np.linalg.solve(v[:2, :2], z[:2])
    found = LifeTables(cells, int(cells.sum()), ()).logrank()
    assert found.statistic == pytest.approx(statistic)
    assert found.p == pytest.approx(chi2.sf(statistic, 2))
    assert (found.df, found.intervals) == (2, 4)


def test_order_of_groups_does_not_matter() -> None:
    cells = RNG.integers(5, 30, (3, 11))
    laws = (ZeroSum(Fraction(2), 33),)
    one, other = (LifeTables(cells[order], 500, laws).logrank() for order in ([0, 1, 2], [2, 0, 1]))
    assert one.statistic == pytest.approx(other.statistic)
    ahead, behind = (LifeTables(cells, 500, laws).difference(*g) for g in ((0, 1), (1, 0)))
    assert np.allclose(ahead.low, -behind.high)
