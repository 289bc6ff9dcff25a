"""Coins and dice checked word by word: every possible word is fed once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes_sklearn.noise.integers import (
    RandomSource,
    bernoulli,
    bernoulli_exp,
    geometric,
    random_source,
    uniform_below,
)

ALL_BYTES = bytes(range(256))


def every_byte_once() -> RandomSource:
    """All 256 one-byte words, then zeros for the words that were refused."""
    calls = iter([ALL_BYTES])
    return lambda count: next(calls, bytes(count))


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 85, 127, 128, 129, 255])
def test_uniform_below_gives_every_outcome_the_same_number_of_words(bound: int) -> None:
    outcomes = uniform_below(bound, 256, every_byte_once(), np.uint8)
    share = 255 // bound
    first_draw_kept = outcomes[: share * bound]
    assert np.bincount(first_draw_kept, minlength=bound).tolist() == [share] * bound
    assert not outcomes[share * bound :].any()  # refused words were replaced by word 0


def test_uniform_below_takes_another_bound_at_each_position() -> None:
    bounds = np.repeat(np.arange(1, 256, dtype=np.uint16), 256)
    calls = iter([np.tile(np.arange(256, dtype=np.uint16) * 257, 255).tobytes()])
    outcomes = uniform_below(bounds, bounds.size, lambda n: next(calls, bytes(n)), np.uint16)
    for bound, row in zip(range(1, 256), outcomes.reshape(255, 256), strict=True):
        counts = np.bincount(row, minlength=bound)
        # 256 evenly spaced words fall on each of the equal shares up to one more or less
        assert counts.size == bound
        assert np.abs(counts - 256 / bound).max() < 2


@pytest.mark.parametrize("denominator", [1, 2, 3, 7, 100, 255])
def test_a_coin_succeeds_on_exactly_its_share_of_the_words(denominator: int) -> None:
    share = 255 // denominator
    for numerator in range(denominator + 1):
        coins = bernoulli(numerator, denominator, 256, every_byte_once(), np.uint8)
        assert coins[: share * denominator].sum() == share * numerator


def z_score(successes: int, trials: int, probability: float) -> float:
    return (successes - trials * probability) / math.sqrt(trials * probability * (1 - probability))


@pytest.mark.parametrize("word", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("numerator", [20, 50, 99])
def test_exponential_coins_have_their_probability_and_no_other(
    numerator: int, word: type[np.unsignedinteger]
) -> None:
    size = 400_000
    coins = bernoulli_exp(np.full(size, numerator, dtype=word), 100, random_source(numerator))
    assert abs(z_score(coins.sum(), size, math.exp(-numerator / 100))) < 4
    for wrong in (0.95, 1.05):
        assert abs(z_score(coins.sum(), size, math.exp(-wrong * numerator / 100))) > 5


def test_exponential_coins_at_the_ends() -> None:
    assert bernoulli_exp(np.zeros(1000, dtype=np.uint32), 7, random_source(0)).all()
    ones = np.ones(400_000, dtype=np.uint16)
    skipping = bernoulli_exp(ones, 1, random_source(1), first=2)
    tossing = bernoulli_exp(ones, 1, random_source(2))
    for coins in (skipping, tossing):
        assert abs(z_score(coins.sum(), ones.size, math.exp(-1))) < 4


def test_geometric_draws_follow_their_law() -> None:
    size = 400_000
    runs = geometric(size, random_source(3))
    for at_least in range(1, 6):
        for wrong in (0.9, 1.1):
            assert abs(z_score((runs >= at_least).sum(), size, wrong * math.exp(-at_least))) > 4
        assert abs(z_score((runs >= at_least).sum(), size, math.exp(-at_least))) < 4


@pytest.mark.parametrize("byte", [0, 255])
def test_a_source_that_repeats_itself_is_refused(byte: int) -> None:
    with pytest.raises(RuntimeError, match="keeps repeating itself"):
        geometric(3, lambda count: bytes([byte]) * count)


def test_no_draws_take_no_bytes() -> None:
    assert geometric(0, random_source()).size == 0
    assert bernoulli_exp(np.zeros(0, dtype=np.uint16), 5, random_source()).size == 0
