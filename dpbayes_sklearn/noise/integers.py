"""Random bytes, and exact Bernoulli and uniform draws from them by comparing integers."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from dpbayes_sklearn._typing import IntArray, Positions

_AHEAD = 2048  # A seeded generator draws this many bytes at a time.

RandomSource = Callable[[int], bytes]
"""A callable that returns the asked number of uniformly random bytes."""


Seed: TypeAlias = int | np.random.RandomState | None
"""What the parameter ``random_state`` of an estimator may be."""

MAX_ROUNDS = 256
"""Rounds after which a loop concludes that its random source is broken, and raises.

With true randomness this has probability below 2**-256 (rejected words, at most half of them a
round), 1/255! (the series of `bernoulli_exp`) or exp(-127) (`geometric`).
"""


def random_source(random_state: Seed = None, stream: int = 0) -> RandomSource:
    """Return the source of noise for one release.

    Without a seed it is the operating system's secure generator, which no call of
    ``numpy.random.seed`` and no fork can repeat. A seed makes the noise reproducible and therefore
    removable: never use one for a real release. Releases that are made with one seed and published
    together need a ``stream`` each: noise that repeats cancels.

    >>> random_source(0)(4) == random_source(0)(4)
    True
    >>> len(random_source()(16))
    16
    """
    if random_state is None:
        return os.urandom
    if isinstance(random_state, np.random.RandomState):
        source: RandomSource = random_state.bytes
        return source
    if stream:
        return _Ahead(np.random.RandomState([random_state, stream]))
    return _Ahead(check_random_state(random_state))


class _Ahead:
    """Bytes of a seeded generator, drawn many at a time, because a call for a few bytes is slow.

    They equal those of single calls of ``RandomState.bytes``, which uses up whole words of four
    bytes, and one word even for a request of no bytes.
    """

    def __init__(self, generator: np.random.RandomState) -> None:
        self._generator, self._drawn, self._next = generator, b"", 0

    def __call__(self, length: int) -> bytes:
        """Return the next bytes."""
        start, size = self._next, max(4, -(-length // 4) * 4)
        if start + size > len(self._drawn):
            self._drawn = self._drawn[start:] + self._generator.bytes(max(size, _AHEAD))
            start = 0
        self._next = start + size
        return self._drawn[start : start + length]


Words: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
"""An array of unsigned machine words."""


def rounds(first: int = 1, last: int = MAX_ROUNDS) -> Iterator[int]:
    """Count the rounds of a loop that ends by chance, and raise an error instead of the last."""
    return chain(range(first, last), map(_give_up, (last,)))


def _give_up(_: int) -> int:
    raise RuntimeError(
        "The source of random bytes keeps repeating itself: it cannot be used for noise."
    )


def _largest(word: npt.DTypeLike) -> int:
    """Return the largest number that a word can hold."""
    return int((1 << 8 * np.dtype(word).itemsize) - 1)


def words_below(limit: int | Words, size: int, source: RandomSource, word: npt.DTypeLike) -> Words:
    """Uniform words in {0, ..., limit-1}: every word at or above the limit is drawn again.

    The limit may differ from one position to the next.
    """
    size_of_word = np.dtype(word).itemsize
    drawn: Words = np.frombuffer(source(size * size_of_word), dtype=word)
    (again,) = (drawn >= limit).nonzero()  # without what flatnonzero costs for few words
    if again.size:
        drawn = drawn.copy()  # what the source returned is read-only
        limits = np.broadcast_to(np.asarray(limit, dtype=word), drawn.shape)
        attempt = rounds()
        while again.size and next(attempt):
            drawn[again] = np.frombuffer(source(again.size * size_of_word), dtype=word)
            again = again[drawn[again] >= limits[again]]
    return drawn


def uniform_below(
    bound: int | Words, size: int, source: RandomSource, word: npt.DTypeLike = np.uint64
) -> Words:
    """Uniform integers in {0, ..., bound-1}, 1 <= bound < 2**bits(word).

    With s = floor((2**bits - 1)/bound) words for each outcome, a word below s*bound
    is uniform, and floor(word/s) takes each of the outcomes with the same s words.

    >>> uniform_below(10, 4, lambda n: bytes([0, 24, 25, 249]), np.uint8).tolist()
    [0, 0, 1, 9]
    """
    share: Any = _largest(word) // bound
    outcomes: Words = words_below(share * bound, size, source, word) // share
    return outcomes


def bernoulli(
    numerators: Words | int, denominator: int, size: int, source: RandomSource, word: npt.DTypeLike
) -> npt.NDArray[np.bool_]:
    """Coins with P(True) = numerator/denominator, 0 <= numerator <= denominator."""
    share = _largest(word) // denominator
    coins: npt.NDArray[np.bool_] = (
        words_below(share * denominator, size, source, word) < numerators * share
    )
    return coins


def bernoulli_exp(
    numerators: Words, denominator: int, source: RandomSource, first: int = 1
) -> npt.NDArray[np.bool_]:
    """Coins with P(True) = exp(-x), x = numerator/denominator in [0, 1].

    Toss coins of probability x/1, x/2, x/3, ... up to the first failure. Failure k comes
    with probability x**(k-1)/(k-1)! - x**k/k!, so it is odd with probability
    1 - x + x**2/2! - ... = exp(-x) (Canonne, Kamath and Steinke 2020, Algorithm 1).
    Where x = 1 the first toss is a sure success: ``first=2`` leaves it out.
    Needs ``denominator * MAX_ROUNDS`` to fit the word type of the numerators.
    """
    odd = np.full(numerators.size, first % 2 == 1)
    active = np.arange(numerators.size)
    toss = rounds(first)
    while active.size:
        k = next(toss)
        coins = bernoulli(numerators, denominator * k, active.size, source, numerators.dtype)
        (success,) = coins.nonzero()  # positions are far faster to follow than a mask
        active, numerators = active[success], numerators[success]
        odd[active] = k % 2 == 0
    return odd


def geometric(size: int, source: RandomSource) -> IntArray:
    """Count successes of probability exp(-1) before the first failure: P(v) ~ exp(-v)."""
    counts = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    ones = np.ones(size, dtype=np.uint16)
    toss = rounds(last=MAX_ROUNDS // 2)
    while active.size:
        next(toss)
        coins = bernoulli_exp(ones[: active.size], 1, source, first=2)
        active = active[coins.nonzero()]
        counts[active] += 1
    return counts


def fill(noise: IntArray, acceptance: float, propose: Callable[[int], IntArray]) -> IntArray:
    """Fill an array, along its first axis, with the accepted of as many proposals as it takes.

    ``propose(count)`` makes so many and returns the accepted ones, about this share of them.
    """
    filled, refill = 0, rounds()
    while filled < len(noise) and next(refill):
        missing = len(noise) - filled
        drawn = propose(int(missing / acceptance + 4 * math.sqrt(missing)) + 8)[:missing]
        noise[filled : filled + len(drawn)] = drawn
        filled += len(drawn)
    return noise


def any_below(bound: int, source: RandomSource) -> int:
    """Return a uniform Python integer from 0 to bound - 1, for bounds beyond a machine word.

    What is too large is drawn again.

    >>> any_below(2**80, lambda n: bytes(n - 1) + bytes([7]))
    7
    """
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    attempt = rounds()
    while next(attempt):
        drawn = int.from_bytes(source(size), "big") >> (8 * size - bits)
        if drawn < bound:
            break
    return drawn


def random_subset(n: int, k: int, source: RandomSource) -> list[int]:
    """Return k different numbers out of 1, ..., n in order, all choices alike (Floyd's method).

    >>> random_subset(5, 5, lambda n: bytes(n))
    [1, 2, 3, 4, 5]
    """
    chosen: set[int] = set()
    for last in range(n - k + 1, n + 1):
        pick = 1 + any_below(last, source)
        chosen.add(last if pick in chosen else pick)
    return sorted(chosen)


def segment_draw(
    masses: Sequence[int], weights: Sequence[int], source: RandomSource
) -> tuple[int, int]:
    """Draw a segment i and an offset below its mass: P(i, offset) = weights[i] / total, exactly.

    All arithmetic is in Python integers, so masses of 2**62 and weights of 2**100 lose nothing.

    >>> segment_draw([2, 3], [10, 1], lambda n: bytes(n))
    (0, 0)
    >>> segment_draw([2, 3], [10, 1], lambda n: bytes([22 << 3]))
    (1, 2)
    """
    ends = [*accumulate(map(mul, masses, weights))]
    drawn = any_below(ends[-1], source)
    segment = bisect_right(ends, drawn)
    start = ends[segment - 1] if segment else 0
    return segment, (drawn - start) // weights[segment]


def random_positions(n: int, size: int, source: RandomSource) -> Positions:
    """Return ``size`` different positions out of 0, ..., n-1 in order, all sets alike.

    Uniform positions are drawn one after the other, repeated ones left out, until there are
    enough: no position is special, so all sets of so many are as probable. As many are drawn at
    once as are missing, hence never one too many. Of more than a half, the others are drawn.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> len(random_positions(1000, 300, random_source()))
    300
    >>> random_positions(4, 4, random_source()).tolist()
    [0, 1, 2, 3]
    """
    if size > n // 2:
        return np.delete(np.arange(n), _few(n, n - size, source))
    return _few(n, size, source)


def _few(n: int, size: int, source: RandomSource) -> Positions:
    chosen, again = np.empty(0, np.intp), rounds()
    while (missing := size - len(chosen)) and next(again):
        drawn = uniform_below(n, missing, source).astype(np.intp)
        drawn.sort()
        chosen = np.append(chosen, drawn)
        chosen.sort(kind="stable")  # quick for what is in order but for one place
        chosen = _without_repeats(chosen)
    return chosen


def _without_repeats(ordered: Positions) -> Positions:
    """Return ordered positions once each: several times faster than ``np.unique``."""
    first: npt.NDArray[np.bool_] = np.append(True, ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])


def random_order(n: int, source: RandomSource) -> Positions:
    """Return a uniformly random permutation of 0, ..., n-1, by sorting distinct random keys."""
    attempt = rounds()
    while next(attempt):
        keys = np.frombuffer(source(8 * n), np.uint64)
        order = np.argsort(keys)
        if (np.diff(keys[order]) > 0).all():  # otherwise positions would decide
            break
    return order
