"""Joint noise: how far one record moves any sum, and the public law that follows from it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.laws.sup_norm import JointNoise, joint_varies_less
from dpbayes_sklearn.noise.sup_norm import box_acceptance
from dpbayes_sklearn.privacy.budget import exact
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.fourier import CharacterSums
from dpbayes_sklearn.statistics.network import Network

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
    for unit in ("record", "feature"):
        most = 0
        for one, other in product(records, records):
            differ = [u for u, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            if unit == "feature" and (len(differ) != 1 or differ == [network.target]):
                continue
            for support, block in sums[one].blocks.items():
                most = max(most, int(np.abs(block - sums[other].blocks[support]).max()))
        assert sums[records[0]].largest_movement(unit) == most
    count = sum(block.size for block in sums[records[0]].blocks.values())
    assert sums[records[0]].size == count


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 7, 1000])
@pytest.mark.parametrize("size", [1, 3, 33, 115, 2001])
def test_the_grid_is_the_coarsest_on_which_most_proposals_are_accepted(
    size: int, epsilon: float
) -> None:
    law = JointNoise.of(size, 2, exact(epsilon))
    assert law.scale == 2 / exact(epsilon)
    assert law.steps == law.scale * law.grid
    assert law.grid & (law.grid - 1) == 0
    assert box_acceptance(size, float(law.steps)) >= 0.6
    assert law.grid == 1 or box_acceptance(size, float(law.steps) / 2) < 0.61
    assert law.variance == pytest.approx(4 / epsilon**2 * (size + 1) * (size + 2) / 3)


def test_long_fractions_are_rounded_to_more_noise() -> None:
    epsilon = Fraction(10**30 + 7, 10**30)
    assert 0 < JointNoise.of(33, 2, epsilon).scale - 2 / epsilon < Fraction(1, 2**50)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [(Fraction(10**9), "too large for joint noise"), (Fraction(1, 10**18), "too small")],
)
def test_what_does_not_fit_is_refused(epsilon: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JointNoise.of(115, 2, epsilon)


@pytest.mark.parametrize(
    "wrong", [(Fraction(0), 3, 4), (Fraction(2), 0, 4), (Fraction(2), 3, 6), (Fraction(2), 3, 0)]
)
def test_impossible_laws_are_refused(wrong: tuple[Fraction, int, int]) -> None:
    with pytest.raises(ValueError, match=r"power of two|needs a sum"):
        JointNoise(*wrong)


def test_the_law_with_less_variance() -> None:
    for d in (1, 4, 57):  # Boolean naive Bayes
        assert joint_varies_less(2 * d + 1, 2, 4 * d, Fraction(1, 10))
    assert not joint_varies_less(115, 2, 4, Fraction(1))  # one feature of a record
    assert not joint_varies_less(3 * 20 * 16, 2, 2 * 20 * 8, Fraction(1))  # many values
    assert not joint_varies_less(3, 2, 4, Fraction(1000))  # integers hardly need any noise
    assert not joint_varies_less(33, 2, 64, Fraction(10**9))  # joint noise does not fit
    assert not joint_varies_less(2, 0, 0, Fraction(1))
