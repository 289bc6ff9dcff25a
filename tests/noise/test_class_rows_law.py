"""Noise of all tables: how far one record moves the norm, and the public law that follows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw, sum_of
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit, exact

STARS = [
    Network.star([2, 2], 2),
    Network.star([3, 2, 1], 2),
    Network.star([4], 1),
    Network.star([1, 1], 3),  # no feature can change
    Network.star([1], 1),  # nothing can change
    Network.star([], 3),
]


def counts_of(network: Network, records: Any) -> CountTables:
    codes = np.array(records)
    return CountTables.count(network, [(codes[:, :-1], codes[:, -1])])


def norm(one: CountTables, other: CountTables) -> int:
    """Sum over classes of the largest L1 norm of a row's change; sums of rows must agree."""
    changes = [a - b for a, b in zip(one.tables, other.tables, strict=True)]
    total, far = changes[-1], 0
    for c in range(len(total)):
        rows = [change[c] for change in changes[:-1]]
        assert all(row.sum() == total[c] for row in rows)
        far += max([int(np.abs(row).sum()) for row in rows] or [abs(int(total[c]))])
    return far


@pytest.mark.parametrize("network", STARS, ids=str)
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_no_pair_of_records_moves_the_norm_farther_and_one_moves_it_as_far(
    network: Network, unit: PrivacyUnit
) -> None:
    records = [*product(*(range(k) for k in network.sizes))]
    most = 0
    for other_record in records[:: max(1, len(records) // 3)]:  # someone else's
        for one, other in product(records, records):
            differ = [u for u, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            if unit == FEATURE and (len(differ) != 1 or differ == [network.target]):
                continue
            pair = (counts_of(network, [r, other_record]) for r in (one, other))
            most = max(most, norm(*pair))
    assert counts_of(network, records[:1]).class_row_sensitivity(unit) == most


def test_a_network_that_is_no_star_is_refused() -> None:
    tree = Network((2, 2, 2), ((2,), (0,), ()))
    with pytest.raises(ValueError, match=r"is for naive Bayes; use noise='independent'"):
        counts_of(tree, [(0, 0, 0)]).class_row_sensitivity(RECORD)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 7, 1000])
@pytest.mark.parametrize("sizes", [(2,), (2,) * 57, (16,) * 5, (1, 1), ()])
def test_the_scale_is_exact_and_the_grid_the_coarsest_that_is_fine_enough(
    sizes: tuple[int, ...], epsilon: float
) -> None:
    law = ClassRows.of(sizes, 2, 2, exact(epsilon))
    dimension = 1 + sum(size - 1 for size in sizes)
    assert law.scale == 2 / exact(epsilon)
    assert law.steps == law.scale * law.grid
    assert law.grid & (law.grid - 1) == 0
    assert dimension <= law.steps
    assert law.grid == 1 or law.steps / 2 < dimension


def test_long_fractions_are_rounded_to_more_noise() -> None:
    epsilon = Fraction(10**30 + 7, 10**30)
    assert 0 < ClassRows.of((2, 2), 2, 2, epsilon).scale - 2 / epsilon < Fraction(1, 2**50)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [(Fraction(10**9), "too large for joint noise"), (Fraction(1, 10**18), "too small")],
)
def test_what_does_not_fit_is_refused(epsilon: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassRows.of((2,) * 57, 2, 2, epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        (Fraction(0), (2,), 2, 4),
        (Fraction(2), (2, 0), 2, 4),
        (Fraction(2), (2,), 0, 4),
        (Fraction(2), (2,), 2, 6),
        (Fraction(2), (2,), 2, 0),
        (Fraction(2), (2,), 2, 2**25),
    ],
    ids=str,
)
def test_impossible_laws_are_refused(wrong: tuple[Fraction, tuple[int, ...], int, int]) -> None:
    with pytest.raises(ValueError, match=r"power of two|positive scale|at least one value"):
        ClassRows(*wrong)


@pytest.mark.parametrize("sizes", [(2,) * 6, (3,) * 3, (3, 5), (2, 7, 1), (4,)], ids=str)
def test_variances_are_near_those_of_draws(sizes: tuple[int, ...]) -> None:
    """The formulas are those of a fine lattice."""
    law = ClassRows(Fraction(50), sizes, 1, 1)
    noise = draw(law, 2000, random_source(4))
    seen = np.split((noise.astype(float) ** 2).mean(axis=0), np.cumsum(law.sizes)[:-1])
    for table, squares in enumerate(seen):
        assert squares.mean() == pytest.approx(law.variance(table), rel=0.09)
        assert law.marginal(table).variance == pytest.approx(law.variance(table))
    assert law.variance(len(sizes)) == law.shared_row_variance


def chosen(sizes: list[int], epsilon: Fraction, unit: PrivacyUnit = RECORD) -> type:
    network = Network.star(sizes, 2)
    return type(CountTables(network, (), 100).law("auto", unit, epsilon))


def test_auto_takes_the_law_with_less_variance() -> None:
    for d in (2, 4, 57):
        assert chosen([2] * d, Fraction(1, 10)) is ClassRows
    assert chosen([16] * 20, Fraction(1)) is ClassRows
    assert chosen([2] * 57, Fraction(1), FEATURE) is DiscreteLaplace
    assert chosen([2] * 3, Fraction(1000)) is DiscreteLaplace  # integers hardly need any noise
    assert chosen([2] * 57, Fraction(10**9)) is DiscreteLaplace  # joint noise does not fit


def test_auto_is_independent_for_other_networks() -> None:
    tree = Network((2, 2, 2), ((2,), (0,), ()))
    assert type(counts_of(tree, [(0, 0, 0)]).law("auto", RECORD, Fraction(1))) is DiscreteLaplace


def test_the_arrays_are_the_tables_and_the_class_counts() -> None:
    network = Network.star([2, 3], 2)
    law = counts_of(network, [(0, 0, 0)]).law("joint", RECORD, Fraction(1))
    assert law.sizes == tuple(int(np.prod(shape)) for shape in network.shapes)
    noise = np.split(draw(law, 5, random_source(0)), np.cumsum(law.sizes)[:-1], axis=1)
    rows = [table.reshape(5, 2, -1).sum(axis=2) for table in noise]
    assert all((row == rows[-1]).all() for row in rows)  # all rows of a class have one sum


def test_the_privacy_loss_of_neighbours_attains_epsilon() -> None:
    network = Network.star([2, 3], 2)
    records = [*product(*(range(k) for k in network.sizes))]
    counts = [counts_of(network, [record, records[0]]) for record in records]
    law = counts[0].law("joint", RECORD, Fraction(7, 10))
    flat = [np.concatenate([table.ravel() for table in each.tables]) for each in counts]
    losses = [law.privacy_loss(a - b) for a, b in product(flat, flat)]
    assert max(losses) == Fraction(7, 10)
    impossible = np.zeros(law.size, np.int64)
    impossible[0] = 1
    assert law.privacy_loss(impossible) == np.inf


def test_released_counts_know_their_lattice() -> None:
    network = Network.star([2, 3], 2)
    tables = tuple(np.zeros(shape) for shape in network.shapes)
    law, other = ClassRows(Fraction(2), (2, 3), 2, 4), ClassRows(Fraction(1), (2, 3), 2, 8)
    one = ReleasedCounts(network, tables, 5, (law,))
    assert (one.grid, one.independent) == (4, False)
    assert one.noise(1) == law.marginal(1)
    both = one.merge(ReleasedCounts(network, tables, 7, (other,)))
    assert (both.grid, both.n, both.laws) == (8, 12, (law, other))
    assert both.noise(2) == sum_of([law.marginal(2), other.marginal(2)])
    alone = ReleasedCounts(network, tables, 5, (DiscreteLaplace.of(Fraction(6), [4, 6, 2]),))
    assert (alone.grid, alone.independent, alone.noise(0).variance) == (1, True, 72.0)
    assert not one.merge(alone).independent
