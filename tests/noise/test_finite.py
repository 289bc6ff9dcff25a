"""Finite laws: exact draws, and integer weights that keep the published rounding loss."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbayes_sklearn.noise.finite import (
    MAX_POINTS,
    finite_draw,
    integer_weights,
    rounding_loss,
)
from dpbayes_sklearn.noise.integers import random_source
from tests.releasing import law_loss

Weights = npt.NDArray[np.uint64]
LOG_WEIGHT = st.floats(-120, 120) | st.floats(-1e9, 1e9) | st.just(0.0)


def weights_of(*values: int) -> Weights:
    return np.array(values, dtype=np.uint64)


# ------------------------------------------------------------------ finite_draw


@pytest.mark.parametrize(
    "weights", [(64, 128, 64), (1, 2, 3), (0, 5, 0, 2), (7,), (1, 0, 0, 0, 9), (2**40, 2**39, 0)]
)
def test_evenly_spaced_words_reproduce_the_law_exactly(weights: tuple[int, ...]) -> None:
    total = sum(weights) // math.gcd(*weights)
    rounds = 100
    count = total * rounds
    words = [(2 * i + 1) * 2**63 // count for i in range(count)]  # the middle of each of the cells
    rows = np.broadcast_to(weights_of(*weights), (count, len(weights)))
    drawn = finite_draw(rows, lambda size: np.array(words, dtype=np.uint64).tobytes())
    expected = [rounds * weight * total // sum(weights) for weight in weights]
    assert np.bincount(drawn, minlength=len(weights)).tolist() == expected


LAWS = {
    "small": weights_of(5, 3, 0, 2, 10),
    "long": np.arange(1, 41, dtype=np.uint64) ** 2,
    "huge": weights_of(2**62, 2**61, 2**60, 2**59),
}


def chi_square(weights: Weights, claimed: npt.NDArray[np.float64]) -> float:
    """P value of 10**6 draws from some weights under a law proportional to others."""
    counts = np.zeros(weights.size, dtype=np.int64)
    source = random_source(5)
    for _ in range(10):
        rows = np.broadcast_to(weights, (100_000, weights.size))
        counts += np.bincount(finite_draw(rows, source), minlength=weights.size)
    support = claimed > 0
    assert not counts[~support].any()
    law = claimed[support] / claimed.sum()
    return float(stats.chisquare(counts[support], counts.sum() * law).pvalue)


@pytest.mark.parametrize("law", LAWS)
def test_the_law_passes_and_one_weight_four_percent_off_is_rejected(law: str) -> None:
    weights = LAWS[law]
    assert chi_square(weights, weights.astype(np.float64)) > 1e-3
    for factor in (0.96, 1.04):
        claimed = weights.astype(np.float64)
        claimed[weights.argmax()] *= factor
        assert chi_square(weights, claimed) < 1e-6


def test_every_row_has_its_own_law() -> None:
    rows = np.zeros((3, 4, 5), dtype=np.uint64)
    support = np.arange(12).reshape(3, 4) % 5
    np.put_along_axis(rows, support[..., None], np.uint64(3), axis=-1)
    drawn = finite_draw(rows, random_source())
    assert drawn.dtype == np.intp
    assert (drawn == support).all()
    assert finite_draw(rows[:0], random_source()).shape == (0, 4)
    assert finite_draw(weights_of(0, 1), random_source()).shape == ()


def test_the_shape_does_not_change_the_draws() -> None:
    rows = np.broadcast_to(LAWS["small"], (6, 5))
    flat = finite_draw(rows, random_source(6))
    assert (finite_draw(rows.reshape(2, 3, 5), random_source(6)).ravel() == flat).all()


@pytest.mark.parametrize("weights", [(0, 0), (2**63, 0), (2**63, 2**63), (2**64 - 1, 2)])
def test_rows_without_weight_or_with_too_much_are_refused(weights: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must sum to a number"):
        finite_draw(weights_of(*weights), random_source())


@pytest.mark.parametrize(
    "weights", [np.array([0.5, 0.5]), np.array([1, 2]), np.uint64(3), np.zeros((2, 0), np.uint64)]
)
def test_only_rows_of_uint64_are_weights(weights: npt.NDArray[np.uint64]) -> None:
    with pytest.raises(TypeError, match="uint64"):
        finite_draw(weights, random_source())


# ------------------------------------------------- integer_weights and its loss


def log_law(log_weights: npt.ArrayLike) -> list[Decimal]:
    """The ideal law of the given floats, to 60 digits."""
    with localcontext(prec=60):
        exact = [Decimal(float(w)) for w in np.asarray(log_weights)]
        top = max(exact)
        normaliser = top + sum(((w - top).exp() for w in exact), Decimal(0)).ln()
        return [w - normaliser for w in exact]


def ideal_loss(a: npt.ArrayLike, b: npt.ArrayLike) -> Decimal:
    return max(abs(x - y) for x, y in zip(log_law(a), log_law(b), strict=True))


def exact_loss(a: Weights, b: Weights) -> Decimal:
    """The loss between two integer laws, to 60 digits."""
    with localcontext(prec=60):
        ratios = [
            Fraction(int(x), int(y)) * Fraction(int(b.sum()), int(a.sum()))
            for x, y in zip(a, b, strict=True)
        ]
        return max(abs((Decimal(r.numerator) / Decimal(r.denominator)).ln()) for r in ratios)


rows_and_neighbours = st.integers(1, 12).flatmap(
    lambda points: st.tuples(
        st.lists(LOG_WEIGHT, min_size=points, max_size=points),
        st.lists(st.floats(-3, 3), min_size=points, max_size=points),
    )
)


@settings(max_examples=300, deadline=None)
@given(rows_and_neighbours)
def test_rounding_adds_no_more_than_published_to_the_loss(
    rows: tuple[list[float], list[float]],
) -> None:
    ideal = np.array(rows[0])
    neighbour = ideal + np.array(rows[1])
    a, b = integer_weights(ideal), integer_weights(neighbour)
    allowed = ideal_loss(ideal, neighbour) + Decimal(rounding_loss(ideal.size))
    assert exact_loss(a, b) <= allowed
    assert exact_loss(a, b) <= Decimal(law_loss(a, b)) <= exact_loss(a, b) + Decimal("1e-13")


@settings(max_examples=100, deadline=None)
@given(st.lists(LOG_WEIGHT, min_size=1, max_size=40))
def test_each_weight_is_its_probability_or_the_floor(row: list[float]) -> None:
    weights = integer_weights(row)
    floor = Decimal(2) ** -(31 + math.ceil(math.log2(len(row)) / 2))
    with localcontext(prec=60):
        for weight, log_probability in zip(weights, log_law(row), strict=True):
            ideal = max(floor, log_probability.exp()) * 2**62
            assert abs(Decimal(int(weight)) / ideal - 1) < Decimal(2) ** -23
    assert int(weights.astype(object).sum()) < 2**63


def test_without_the_floor_the_claim_would_be_false() -> None:
    ideal, neighbour = np.array([0.0, -43.3]), np.array([0.0, -43.8])

    def no_floor(row: npt.NDArray[np.float64]) -> Weights:
        return np.asarray(np.rint(2.0**62 * np.exp(row) / np.exp(row).sum()), dtype=np.uint64)

    allowed = float(ideal_loss(ideal, neighbour)) + rounding_loss(2)
    assert law_loss(no_floor(ideal), no_floor(neighbour)) > allowed + 1e-3
    assert law_loss(integer_weights(ideal), integer_weights(neighbour)) <= allowed


def posterior_rows(n: int, temper: float, points: int) -> npt.NDArray[np.float64]:
    """Log posteriors of all counts k of n on a grid, as a posterior sampler draws from them."""
    theta = np.linspace(0.05, 0.95, points)
    k = np.arange(n + 1)[:, None]
    return np.asarray(temper * (k * np.log(theta) + (n - k) * np.log1p(-theta)), np.float64)


def largest_difference(log_rows: npt.NDArray[np.float64]) -> float:
    """Loss between neighbouring rows, in floats."""
    shifted = log_rows - log_rows.max(axis=1, keepdims=True)
    log_laws = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(np.abs(np.diff(log_laws, axis=0)).max())


@pytest.mark.parametrize("temper", [1.0, 0.1, 0.001])
def test_all_neighbouring_posteriors_on_a_grid(temper: float) -> None:
    rows = posterior_rows(n=300, temper=temper, points=257)
    weights = integer_weights(rows)
    loss = law_loss(weights[1:], weights[:-1])
    allowed = rounding_loss(257, magnitude=300 * math.log(20))
    assert loss <= largest_difference(rows) + allowed

    shifted = rows - rows.max(axis=1, keepdims=True)
    law = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    floored = largest_difference(np.log(np.maximum(law, 2.0**-36)))
    assert loss == pytest.approx(floored, abs=allowed)


def test_the_floor_can_only_save_loss() -> None:
    saved = []
    for temper in (1.0, 0.001):  # with and without far tails
        rows = posterior_rows(n=300, temper=temper, points=257)
        weights = integer_weights(rows)
        saved.append(1 - law_loss(weights[1:], weights[:-1]) / largest_difference(rows))
    assert saved[0] > 0.5
    assert abs(saved[1]) < 1e-4


def test_large_counts_lose_digits_and_the_magnitude_pays_for_it() -> None:
    n, step = 10**8, math.log(3.0)
    exact_row = [Decimal(-n) * Decimal(step) + Decimal(j) / 7 for j in range(9)]
    floats = np.array([-n * step + j / 7 for j in range(9)])
    error = max(abs(x - Decimal(float(y))) for x, y in zip(exact_row, floats, strict=True))
    assert 0 < error <= Decimal(n * step * 2.0**-50)
    assert rounding_loss(9, n * step) > rounding_loss(9) + 3 * float(error)


def test_the_published_constant_covers_the_largest_rows() -> None:
    assert rounding_loss(MAX_POINTS, 2**25) < 1e-6
    flat = integer_weights(np.zeros(MAX_POINTS))
    peaked = integer_weights(np.where(np.arange(MAX_POINTS) == 7, 0.0, -1e5))
    for weights in (flat, peaked):
        assert int(weights.astype(object).sum()) < 2**63
        assert weights.min() >= 2**22
    with pytest.raises(ValueError, match="1 to 2"):
        integer_weights(np.zeros(MAX_POINTS + 1))
    with pytest.raises(ValueError, match="1 to 2"):
        rounding_loss(MAX_POINTS + 1)


def test_points_outside_the_support_keep_weight_zero() -> None:
    rows = np.array([[0.0, -np.inf, -2e308 / 3], [-np.inf, 1e308, -1e308]])
    weights = integer_weights(rows)
    assert ((weights == 0) == np.isneginf(rows)).all()
    assert law_loss(weights[0], weights[1]) == math.inf
    assert law_loss(weights[0], weights[0]) < 1e-15


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_rows_that_are_no_law(row: list[float]) -> None:
    with pytest.raises(ValueError, match="finite maximum"):
        integer_weights(row)
