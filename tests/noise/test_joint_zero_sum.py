from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.joint import zero_sum_laplace

DRAWS = 40_000
ALPHA = 1e-4


def shells(noise: np.ndarray) -> np.ndarray:
    """How many records would have to be replaced to undo the noise."""
    return np.abs(noise).sum(axis=1) // 2


def number_of_vectors(cells: int, radius: int) -> int:
    """Count integer vectors of sum zero whose positive part sums to ``radius``, one by one."""
    grid = itertools.product(range(-radius, radius + 1), repeat=cells - 1)
    return sum(
        1
        for z in grid
        if sum(map(abs, (*z, -sum(z)))) == 2 * radius  # the last cell closes it
    )


def p_value(noise: np.ndarray, scale: float, cells: int) -> float:
    """Chi-square test of the shells against their exact law."""
    last = 8
    tail = np.arange(last, 400)
    weights = [number_of_vectors(cells, d) * math.exp(-2 * d / scale) for d in range(last)]
    # beyond the counted shells, the number of vectors has a closed form
    weights.append(float(sum(_closed_form(cells, int(d)) * math.exp(-2 * d / scale) for d in tail)))
    law = np.array(weights) / sum(weights)
    observed = np.bincount(np.minimum(shells(noise), last), minlength=last + 1)
    return float(stats.chisquare(observed, law * len(noise)).pvalue)


def _closed_form(cells: int, d: int) -> int:
    return sum(
        math.comb(cells, j) * math.comb(d - 1, j - 1) * math.comb(d + cells - j - 1, cells - j - 1)
        for j in range(1, cells)
    )


@pytest.mark.parametrize("cells", [2, 3, 4])
def test_the_closed_form_of_shell_sizes_equals_counting(cells: int) -> None:
    assert [_closed_form(cells, d) for d in range(1, 6)] == [
        number_of_vectors(cells, d) for d in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("cells", "scale"), [(2, Fraction(2)), (3, Fraction(2)), (4, Fraction(7, 3))]
)
def test_shells_follow_the_law_and_wrong_scales_are_seen(cells: int, scale: Fraction) -> None:
    noise = zero_sum_laplace(scale, cells, DRAWS, random_source(7))
    assert not noise.sum(axis=1).any()
    assert p_value(noise, float(scale), cells) > ALPHA
    for wrong in (Fraction(19, 20), Fraction(21, 20)):
        faulty = zero_sum_laplace(scale * wrong, cells, DRAWS, random_source(7))
        assert p_value(faulty, float(scale), cells) < ALPHA


def test_draws_are_uniform_within_a_shell() -> None:
    noise = zero_sum_laplace(2, 3, DRAWS, random_source(3))
    second = noise[shells(noise) == 2]
    distinct, counts = np.unique(second, axis=0, return_counts=True)
    assert len(distinct) == number_of_vectors(3, 2)
    assert stats.chisquare(counts).pvalue > ALPHA
    # the same test sees a sampler that takes every proposal, whatever its last cell
    free = discrete_laplace(2, (DRAWS, 2), random_source(3))
    proposals = np.column_stack([free, -free.sum(axis=1)])
    taken = proposals[shells(proposals) == 2]
    assert stats.chisquare(np.unique(taken, axis=0, return_counts=True)[1]).pvalue < ALPHA


def test_large_scale_with_long_fraction() -> None:
    scale = 2 / Fraction("0.0012345678901234567")
    noise = zero_sum_laplace(scale, 6, 2000, random_source(5))
    # E[sum |z| / scale] = k - 1: the radius is gamma distributed for a smooth law
    radius = np.abs(noise).sum(axis=1) / float(scale)
    assert abs(radius.mean() - 5) < 5 * math.sqrt(5 / 2000)


def test_no_scale_and_one_cell_mean_no_noise_and_bad_ones_are_refused() -> None:
    assert not zero_sum_laplace(0, 4, 3, random_source(0)).any()
    assert not zero_sum_laplace(9, 1, 3, random_source(0)).any()
    assert zero_sum_laplace(9, 3, 0, random_source(0)).shape == (0, 3)
    with pytest.raises(ValueError, match="cells must be"):
        zero_sum_laplace(1, 0, 1, random_source(0))
    with pytest.raises(ValueError, match="scale must be"):
        zero_sum_laplace(2**41, 2, 1, random_source(0))
