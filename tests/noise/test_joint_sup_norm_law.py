"""Joint noise: how far one record moves any sum, and the public law that follows from it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.counts.fourier import CharacterSums
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise import DiscreteLaplace, SupNorm
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit, exact

NETWORKS = [
    Network.star([2, 2, 2], 2),
    Network.star([3, 5], 3),
    Network.star([4], 1),
    Network.star([1], 3),  # no feature can change
    Network.star([1], 1),  # nothing can change
    Network((2, 2, 2), ((), (), (0, 1))),
    Network((2, 3, 4, 2), ((), (0,), (0, 1), (0, 2))),
    Network((3,), ((),)),
]


def sums_of(network: Network, record: tuple[int, ...]) -> CharacterSums:
    codes = np.array([record])
    return CharacterSums.of(CountTables.count(network, [(codes[:, :-1], codes[:, -1])]))


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_no_pair_of_records_moves_a_sum_farther_and_one_moves_it_as_far(network: Network) -> None:
    records = [*product(*(range(k) for k in network.sizes))]
    sums = {record: sums_of(network, record) for record in records}
    for unit in (RECORD, FEATURE):
        most = 0
        for one, other in product(records, records):
            differ = [u for u, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            if unit == FEATURE and (len(differ) != 1 or differ == [network.target]):
                continue
            for support, block in sums[one].blocks.items():
                most = max(most, int(np.abs(block - sums[other].blocks[support]).max()))
        assert sums[records[0]].sup_sensitivity(unit) == most
    count = sum(block.size for block in sums[records[0]].blocks.values())
    assert sums[records[0]].size == count


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 7, 1000])
@pytest.mark.parametrize("size", [1, 3, 33, 115, 2001])
def test_the_grid_is_the_coarsest_on_which_most_proposals_are_accepted(
    size: int, epsilon: float
) -> None:
    law = SupNorm.of((1,) * size, 2, exact(epsilon))
    assert law.scale == 2 / exact(epsilon)
    assert law.steps == law.scale * law.grid
    assert law.grid & (law.grid - 1) == 0
    assert law.acceptance >= 0.6
    coarser = SupNorm(law.scale, law.sides, max(1, law.grid // 2))
    assert law.grid == 1 or coarser.acceptance < 0.61
    assert law.variance() == pytest.approx(4 / epsilon**2 * (size + 1) * (size + 2) / 3)


def test_long_fractions_are_rounded_to_more_noise() -> None:
    epsilon = Fraction(10**30 + 7, 10**30)
    assert 0 < SupNorm.of((1,) * 33, 2, epsilon).scale - 2 / epsilon < Fraction(1, 2**50)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [(Fraction(10**9), "too large for joint noise"), (Fraction(1, 10**18), "too small")],
)
def test_what_does_not_fit_is_refused(epsilon: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SupNorm.of((1,) * 115, 2, epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        (Fraction(0), (1,) * 3, 4),
        (Fraction(2), (), 4),
        (Fraction(2), (1, 0), 4),
        (Fraction(2), (1,) * 3, 6),
        (Fraction(2), (1,) * 3, 0),
    ],
    ids=str,
)
def test_impossible_laws_are_refused(wrong: tuple[Fraction, tuple[int, ...], int]) -> None:
    with pytest.raises(ValueError, match=r"power of two|needs a sum"):
        SupNorm(*wrong)


def chosen(network: Network, epsilon: Fraction, unit: PrivacyUnit = RECORD) -> type:
    return type(CharacterSums(network, {}, 100).law("auto", unit, epsilon))


def test_auto_takes_the_law_with_less_variance() -> None:
    for d in (1, 4, 57):
        assert chosen(Network.star([2] * d, 2), Fraction(1, 10)) is SupNorm
    assert chosen(Network.star([2] * 57, 2), Fraction(1), FEATURE) is DiscreteLaplace
    assert chosen(Network.star([16] * 20, 4), Fraction(1)) is DiscreteLaplace
    assert chosen(Network.star([2], 2), Fraction(1000)) is DiscreteLaplace  # hardly any noise
    assert chosen(Network.star([2] * 16, 2), Fraction(10**9)) is DiscreteLaplace  # does not fit
    assert chosen(Network.star([1], 1), Fraction(1)) is DiscreteLaplace  # nothing can change


def test_no_law_is_chosen_by_name_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="too large for joint noise"):
        CharacterSums(Network.star([2] * 16, 2), {}, 9).law("joint", RECORD, Fraction(10**9))


@pytest.mark.parametrize("sides", [(1, 1), (2, 1), (1, 3, 2)], ids=str)
@pytest.mark.parametrize("grid", [1, 2])
def test_the_privacy_loss_of_a_shift_is_the_worst_log_ratio(
    sides: tuple[int, ...], grid: int
) -> None:
    """P(z) falls with max_i ceil(|z_i|/c_i) / steps, so log ratios are differences of norms."""
    law = SupNorm(Fraction(3, 2), sides, grid)

    def norm(steps: tuple[int, ...]) -> int:
        return max(-(-abs(z) // c) for z, c in zip(steps, sides, strict=True))

    points = [*product(range(-7, 8), repeat=len(sides))]
    for shift in product((-2, 0, 1), repeat=len(sides)):
        moved = [tuple(z - grid * s for z, s in zip(p, shift, strict=True)) for p in points]
        worst = max(norm(m) - norm(p) for p, m in zip(points, moved, strict=True))
        assert law.privacy_loss(np.array(shift)) == worst / law.steps


@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_the_largest_error_keeps_within_its_bound(delta: float) -> None:
    law = SupNorm.of((1,) * 9, 2, Fraction(1))
    noise = np.abs(draw(law, 4000, random_source(0))).max(axis=1) / law.grid
    beyond = (noise > law.error_bound(delta)).mean()
    assert delta / 2 < beyond < delta * 1.2
