"""Noise of all tables: how far one record moves the norm, and the public law that follows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn.laws.class_rows import RowNoise, rows_vary_less
from dpbayes_sklearn.noise.class_rows import discrete_rows
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy.budget import exact
from dpbayes_sklearn.statistics.counts import CountTables, ReleasedCounts
from dpbayes_sklearn.statistics.network import Network

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
@pytest.mark.parametrize("unit", ["record", "feature"])
def test_no_pair_of_records_moves_the_norm_farther_and_one_moves_it_as_far(
    network: Network, unit: str
) -> None:
    records = [*product(*(range(k) for k in network.sizes))]
    most = 0
    for other_record in records[:: max(1, len(records) // 3)]:  # someone else's
        for one, other in product(records, records):
            differ = [u for u, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            if unit == "feature" and (len(differ) != 1 or differ == [network.target]):
                continue
            pair = (counts_of(network, [r, other_record]) for r in (one, other))
            most = max(most, norm(*pair))
    assert counts_of(network, records[:1]).row_movement(unit) == most


def test_a_network_that_is_no_star_is_refused() -> None:
    tree = Network((2, 2, 2), ((2,), (0,), ()))
    with pytest.raises(ValueError, match=r"is for naive Bayes; use noise='independent'"):
        counts_of(tree, [(0, 0, 0)]).row_movement("record")


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 7, 1000])
@pytest.mark.parametrize("sizes", [(2,), (2,) * 57, (16,) * 5, (1, 1), ()])
def test_the_scale_is_exact_and_the_grid_the_coarsest_that_is_fine_enough(
    sizes: tuple[int, ...], epsilon: float
) -> None:
    law = RowNoise.of(sizes, 2, exact(epsilon))
    dimension = 1 + sum(size - 1 for size in sizes)
    assert law.scale == 2 / exact(epsilon)
    assert law.steps == law.scale * law.grid
    assert law.grid & (law.grid - 1) == 0
    assert dimension <= law.steps
    assert law.grid == 1 or law.steps / 2 < dimension


def test_long_fractions_are_rounded_to_more_noise() -> None:
    epsilon = Fraction(10**30 + 7, 10**30)
    assert 0 < RowNoise.of((2, 2), 2, epsilon).scale - 2 / epsilon < Fraction(1, 2**50)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [(Fraction(10**9), "too large for joint noise"), (Fraction(1, 10**18), "too small")],
)
def test_what_does_not_fit_is_refused(epsilon: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowNoise.of((2,) * 57, 2, epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        (Fraction(0), (2,), 4),
        (Fraction(2), (2, 0), 4),
        (Fraction(2), (2,), 6),
        (Fraction(2), (2,), 0),
        (Fraction(2), (2,), 2**25),
    ],
    ids=str,
)
def test_impossible_laws_are_refused(wrong: tuple[Fraction, tuple[int, ...], int]) -> None:
    with pytest.raises(ValueError, match=r"power of two|positive scale|at least one value"):
        RowNoise(*wrong)


@pytest.mark.parametrize("sizes", [(2,) * 6, (3, 5), (2, 7, 1), (4,)], ids=str)
def test_variances_are_near_those_of_draws(sizes: tuple[int, ...]) -> None:
    """The formulas are those of a fine lattice, of rows whose sums are small against the norm."""
    law, runs, source = RowNoise(Fraction(50), sizes, 1), 1200, random_source(4)
    totals, cells = np.empty(runs), [np.empty((runs, size)) for size in sizes]
    for i in range(runs):
        totals[i], rows = discrete_rows(sizes, law.steps, source)
        for cell, row in zip(cells, rows, strict=True):
            cell[i] = row
    assert (totals**2).mean() == pytest.approx(law.total_variance, rel=0.25)
    for size, cell in zip(sizes, cells, strict=True):
        assert (cell**2).mean() == pytest.approx(law.cell_variance(size), rel=0.25)
        assert law.laplace_scale(size) == pytest.approx((law.cell_variance(size) / 2) ** 0.5)
    assert law.laplace_scale(None) == pytest.approx((law.total_variance / 2) ** 0.5)


def test_the_law_with_less_variance() -> None:
    for d in (2, 4, 57):
        assert rows_vary_less((2,) * d, 2, 2 * (d + 1), Fraction(1, 10))
    assert rows_vary_less((16,) * 20, 2, 42, Fraction(1))
    assert not rows_vary_less((2,) * 57, 2, 2, Fraction(1))  # one feature of a record
    assert not rows_vary_less((2,) * 3, 2, 8, Fraction(1000))  # integers hardly need any noise
    assert not rows_vary_less((2,) * 57, 2, 116, Fraction(10**9))  # joint noise does not fit
    assert not rows_vary_less((1,), 0, 0, Fraction(1))


def test_released_counts_know_their_lattice() -> None:
    network = Network.star([2, 3], 2)
    tables = tuple(np.zeros(shape) for shape in network.shapes)
    law, other = RowNoise(Fraction(2), (2, 3), 4), RowNoise(Fraction(1), (2, 3), 8)
    one = ReleasedCounts(network, tables, 5, ((law,),) * 3)
    assert (one.grid, one.independent) == (4, False)
    assert one.laplace_scales(1) == (law.laplace_scale(3),)
    assert one.laplace_scales(2) == (law.laplace_scale(None),)
    both = one.merge(ReleasedCounts(network, tables, 7, ((other,),) * 3))
    assert (both.grid, both.n, both.scales) == (8, 12, ((law, other),) * 3)
    alone = ReleasedCounts(network, tables, 5, ((Fraction(6),),) * 3)
    assert (alone.grid, alone.independent, alone.laplace_scales(0)) == (1, True, (6.0,))
    assert not one.merge(alone).independent
