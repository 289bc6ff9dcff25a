"""The sampler against its law: the right scale passes, 5 % on either side is rejected."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpbayes_sklearn.noise.discrete_laplace import (
    discrete_laplace,
    discrete_laplace_logpmf,
    discrete_laplace_pmf,
    discrete_laplace_survival,
    discrete_laplace_variance,
    laplace_magnitudes,
)
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import MAX_TERM, representable_scale

DRAWS = 1_000_000
PASSES = 1e-3
REJECTED = 1e-9

SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(10),
    Fraction(100, 3),
    Fraction(10_001, 7),
    1 / Fraction(0.1),  # what the float 0.1 really is: a 56-bit numerator
    Fraction(2**57 - 1, 2**52 + 3),  # 57 bits: rounded up
]


def distribution(k: npt.NDArray[np.int64], scale: Fraction) -> npt.NDArray[np.float64]:
    """P(Z <= k), summed from the weights exp(-|z|/scale)."""
    q = math.exp(-1 / scale)
    lower = np.exp(-np.abs(k + (k >= 0)) / float(scale)) / (1 + q)
    return np.where(k >= 0, 1 - lower, lower)


def chi_square(draws: npt.NDArray[np.int64], scale: Fraction) -> float:
    """P value of the draws under the law, over about sixty cells on both sides of 0."""
    levels = np.linspace(0, 1, 31)[1:-1] ** 3 * (1 - 1e-4)
    above = (1 - levels) * (1 + math.exp(-1 / float(scale))) / 2
    far = np.unique(np.maximum(np.ceil(-np.log(above) * float(scale)) - 1, 0).astype(np.int64))
    edges = np.unique(np.concatenate([-far - 1, far]))  # cells (edge, next edge]
    cells = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    expected = draws.size * np.diff(distribution(edges, scale), prepend=0.0, append=1.0)
    assert expected.min() > 5
    return float(stats.chisquare(cells, expected).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.3g}")
def test_the_law_passes_and_five_percent_on_either_side_is_rejected(scale: Fraction) -> None:
    source = random_source(20)
    assert chi_square(discrete_laplace(scale, DRAWS, source), scale) > PASSES
    for wrong in (Fraction(95, 100), Fraction(105, 100)):
        assert chi_square(discrete_laplace(scale * wrong, DRAWS, source), scale) < REJECTED


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.3g}")
def test_one_side_of_the_law_passes_and_five_percent_on_either_side_is_rejected(
    scale: Fraction,
) -> None:
    def one_side(drawn: Fraction) -> npt.NDArray[np.int64]:
        """Return draws of the whole law: a sign for each, and every other zero is dropped."""
        draws = laplace_magnitudes(drawn, DRAWS, random_source(22))
        assert draws.min() == 0
        negative = np.frombuffer(random_source(24)(DRAWS), np.uint8) < 128
        return np.where(negative, -draws, draws)[(draws > 0) | ~negative]

    assert chi_square(one_side(scale), scale) > PASSES
    for wrong in (Fraction(95, 100), Fraction(105, 100)):
        assert chi_square(one_side(scale * wrong), scale) < REJECTED


def test_one_side_of_no_noise_is_zero() -> None:
    assert not laplace_magnitudes(Fraction(0), 3, random_source(0)).any()


def test_the_operating_system_gives_the_same_law() -> None:
    scale = Fraction(7, 2)
    # one run in a million fails by chance: the bytes cannot be seeded
    assert chi_square(discrete_laplace(scale, 100_000, random_source()), scale) > 1e-6


def test_a_zero_that_counts_twice_would_be_rejected() -> None:
    scale = Fraction(10)
    draws = discrete_laplace(scale, DRAWS, random_source(21))
    doubled = np.concatenate([draws, np.zeros(np.count_nonzero(draws == 0), dtype=np.int64)])
    assert chi_square(doubled, scale) < REJECTED


def test_one_sign_too_often_would_be_rejected() -> None:
    scale = Fraction(10)
    draws = discrete_laplace(scale, DRAWS, random_source(22))
    negative = np.count_nonzero(draws < 0)
    assert stats.binomtest(negative, np.count_nonzero(draws)).pvalue > PASSES
    skewed = np.where(random_signs(draws.size), np.abs(draws), draws)
    assert chi_square(skewed, scale) < REJECTED


def random_signs(size: int) -> npt.NDArray[np.bool_]:
    return np.frombuffer(random_source(23)(size), dtype=np.uint8) < 8  # 3 % of the draws


@pytest.mark.parametrize("scale", [Fraction(MAX_TERM), Fraction(MAX_TERM, MAX_TERM - 1)])
def test_nothing_overflows_at_the_largest_terms(scale: Fraction) -> None:
    draws = discrete_laplace(scale, 200_000, random_source(25))
    assert chi_square(draws, scale) > PASSES
    assert np.abs(draws).max() < 40 * scale


@given(numerator=st.integers(1, 2**200), denominator=st.integers(1, 2**200), cap=st.booleans())
def test_a_scale_is_only_ever_rounded_up_and_hardly(
    numerator: int, denominator: int, cap: bool
) -> None:
    scale = Fraction(numerator, denominator)
    scale = min(scale, Fraction(MAX_TERM)) if cap else scale % MAX_TERM or Fraction(1)
    used = representable_scale(scale)
    assert max(used.numerator, used.denominator) <= MAX_TERM
    assert used >= scale
    assert representable_scale(used) == used
    if scale >= Fraction(1, MAX_TERM):
        assert used - scale <= scale / 2**55


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(100, 3)])
def test_the_formulas_agree_with_the_sums(scale: Fraction) -> None:
    z = np.arange(-3000, 3001)
    probability = discrete_laplace_pmf(z, scale)
    assert probability.sum() == pytest.approx(1, abs=1e-12)
    assert (probability * z**2).sum() == pytest.approx(discrete_laplace_variance(scale), rel=1e-9)
    assert np.log(probability[2990:3011]) == pytest.approx(
        discrete_laplace_logpmf(z[2990:3011], scale)
    )
    for k in (-1, 0, 1, 2, 17):
        expected = probability[np.abs(z) >= k].sum()
        assert discrete_laplace_survival(k, scale) == pytest.approx(expected, abs=1e-12)


def test_the_law_of_no_noise_has_all_its_mass_at_zero() -> None:
    assert discrete_laplace_pmf([-1, 0, 1], 0).tolist() == [0, 1, 0]
    assert discrete_laplace_survival([0, 1], 0).tolist() == [1, 0]
    assert discrete_laplace_variance(0) == 0
