"""The sampler against its law: the right variance passes, 5 % on either side is rejected."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

import dpbayes_sklearn.noise.discrete_gaussian as module
from dpbayes_sklearn.noise.discrete_gaussian import (
    MAX_VARIANCE,
    MAX_VARIANCE_TERM,
    discrete_gaussian,
    representable_variance,
)
from dpbayes_sklearn.noise.integers import random_source

DRAWS = 500_000
PASSES = 1e-3
REJECTED = 1e-9

VARIANCES = [
    Fraction(1, 3),
    Fraction(9, 10),
    Fraction(1),
    Fraction(5, 2),
    Fraction(20),
    Fraction(10_001, 7),
    Fraction(0.1) * 10**4,  # 55-bit terms, rounded up
    Fraction(2**41 + 1),
    Fraction(2**79 + 1),
]

Draws = npt.NDArray[np.int64]


def weights_below(k: Draws, variance: Fraction) -> npt.NDArray[np.float64]:
    """Return P(Z <= k) from the weights exp(-z²/2 variance), summed one by one where few count."""
    sigma = math.sqrt(variance)
    if sigma > 10_000:  # the lattice changes the law by less than exp(-2 pi² sigma²)
        return np.asarray(stats.norm.cdf((k + 0.5) / sigma))
    z = np.arange(-math.ceil(40 * sigma) - 2, math.ceil(40 * sigma) + 3)
    weights = np.exp(-(z.astype(np.float64) ** 2) / (2 * sigma**2))
    return np.asarray(np.cumsum(weights)[k - z[0]] / weights.sum())


def chi_square(draws: Draws, variance: Fraction) -> float:
    """P value of the draws under the law, over up to sixty cells on both sides of 0."""
    levels = np.concatenate([[1e-4, 1e-3], np.linspace(0, 1, 60)[1:-1], [1 - 1e-3, 1 - 1e-4]])
    edges = np.unique(np.floor(ndtri(levels) * math.sqrt(variance)).astype(np.int64))
    expected = draws.size * np.diff(weights_below(edges, variance), prepend=0.0, append=1.0)
    edges = edges[np.flatnonzero((expected[:-1] > 50) & (expected[1:] > 50))]
    expected = draws.size * np.diff(weights_below(edges, variance), prepend=0.0, append=1.0)
    cells = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    return float(stats.chisquare(cells, expected).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES, ids=lambda v: f"{float(v):.3g}")
def test_the_law_passes_and_five_percent_on_either_side_is_rejected(variance: Fraction) -> None:
    source = random_source(20)
    assert chi_square(discrete_gaussian(variance, DRAWS, source), variance) > PASSES
    for wrong in (variance * 95 / 100, variance * 105 / 100):
        assert chi_square(discrete_gaussian(wrong, DRAWS, source), variance) < REJECTED


def test_the_operating_system_gives_the_same_law() -> None:
    variance = Fraction(41, 2)
    # one run in a million fails by chance: the bytes cannot be seeded
    assert chi_square(discrete_gaussian(variance, 100_000, random_source()), variance) > 1e-6


def test_a_rounded_normal_would_be_rejected() -> None:
    variance = Fraction(1, 2)
    words = np.frombuffer(random_source(21)(8 * DRAWS), dtype=np.uint64)
    rounded = np.rint(ndtri((words + 0.5) / 2.0**64) * math.sqrt(variance)).astype(np.int64)
    assert chi_square(rounded, variance) < REJECTED


def test_draws_in_small_chunks_have_the_same_law() -> None:
    """Chunks end by cutting off what was accepted too much: it must not depend on the values."""
    variance, source = Fraction(20), random_source(22)
    for size in (1, 9):
        chunks = [discrete_gaussian(variance, size, source) for _ in range(1_000)]
        draws = np.concatenate(chunks)
        assert chi_square(draws, variance) > PASSES
    rows = discrete_gaussian(variance, (4_000, 10), source)
    far_last = np.take_along_axis(rows, np.argsort(np.abs(rows) > 6, axis=1), axis=1)
    assert chi_square(far_last[:, :9].ravel(), variance) < REJECTED


def test_chunks_in_any_order_are_alike() -> None:
    """Halves, odd and even positions, and a permutation of chunks cannot be told apart."""
    draws = discrete_gaussian(Fraction(300), DRAWS, random_source(23))
    shuffled = np.split(draws, 50)
    np.random.RandomState(0).shuffle(shuffled)
    permuted = np.concatenate(shuffled)
    for first, second in (
        np.split(permuted, 2),
        (permuted[::2], permuted[1::2]),
    ):
        assert stats.ks_2samp(first, second, method="asymp").pvalue > PASSES
    drifting = draws + (np.arange(DRAWS) > DRAWS // 2)
    assert stats.ks_2samp(*np.split(drifting, 2), method="asymp").pvalue < REJECTED


@pytest.mark.parametrize("share", [0, 1], ids=["all fail", "all succeed"])
def test_the_coins_of_the_tail_are_needed(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "_whole_parts_succeed", lambda distance, *_: np.arange(share * distance.size)
    )
    draws = discrete_gaussian(Fraction(20), DRAWS, random_source(25))
    assert chi_square(draws, Fraction(20)) < REJECTED


def test_nothing_overflows_at_the_largest_terms() -> None:
    for variance in (
        Fraction(MAX_VARIANCE),
        Fraction(MAX_VARIANCE_TERM - 1, MAX_VARIANCE_TERM),
        Fraction(2**70 + 1),
    ):
        draws = discrete_gaussian(variance, 200_000, random_source(25))
        assert chi_square(draws, representable_variance(variance)) > PASSES
        assert np.abs(draws).max() < 8 * math.sqrt(variance) + 2


@given(numerator=st.integers(1, 2**200), denominator=st.integers(1, 2**200), cap=st.booleans())
def test_a_variance_is_only_ever_rounded_up_and_hardly(
    numerator: int, denominator: int, cap: bool
) -> None:
    variance = Fraction(numerator, denominator)
    variance = (
        min(variance, Fraction(MAX_VARIANCE)) if cap else variance % MAX_VARIANCE or Fraction(1)
    )
    used = representable_variance(variance)
    assert max(module._terms(used)[1:]) <= MAX_VARIANCE_TERM
    assert used >= variance
    assert representable_variance(used) == used
    if variance >= Fraction(1, MAX_VARIANCE_TERM):
        assert used - variance <= variance * (math.isqrt(int(variance)) + 1) / 2**52


@given(variance=st.fractions(Fraction(1, 50), 2000, max_denominator=10**6), y=st.integers(0, 2000))
def test_the_coins_multiply_to_the_exponent(variance: Fraction, y: int) -> None:
    """½ab + ½a(s/B) + ½(r/P)b + ½(r/P)(s/B) is the exponent x, in exact fractions."""
    step, P, B = module._terms(variance)
    t = module._proposal_scale(variance)
    assert (t - 1) ** 2 < variance <= t**2 or t == 1
    (a, r), (b, s) = divmod(abs(step * y - P), P), divmod(abs(step * y - P), B)
    split = (a * b + a * Fraction(s, B) + Fraction(r, P) * b + Fraction(r, P) * Fraction(s, B)) / 2
    assert split == (y - variance / t) ** 2 / (2 * variance)
    assert a >= b
