"""Dice with any number of sides and choices of numbers: exact, by going through all draws."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from scipy.stats import chisquare

from dpbayes_sklearn.noise import integers as integers
from dpbayes_sklearn.noise.integers import any_below, random_source, random_subset


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 200, 256])
def test_a_die_of_one_byte_has_equal_sides(bound: int) -> None:
    """Every byte that is not drawn again: all sides have the same number of them."""
    sides: Counter[int] = Counter()
    for byte in range(256):
        bits = (bound - 1).bit_length()
        again = [bytes([byte]), b"\0"]  # what is too large is followed by a zero
        side = any_below(bound, lambda n, again=again: again.pop(0)[:n])
        if len(again) == 1:
            sides[side] += 1
        else:
            assert byte >> (8 - bits) >= bound
    assert sorted(sides) == list(range(bound))
    assert len(set(sides.values())) == 1


@pytest.mark.parametrize("bound", [2**64 + 1, 3 * 10**40, 10**300])
def test_bounds_beyond_a_machine_word(bound: int) -> None:
    source, runs, parts = random_source(0), 6000, 12
    drawn = [any_below(bound, source) for _ in range(runs)]
    assert 0 <= min(drawn) < max(drawn) < bound
    seen = Counter(parts * z // bound for z in drawn)
    assert chisquare([seen[k] for k in range(parts)]).pvalue > 1e-4
    lowest = Counter(z % 7 for z in drawn)
    assert chisquare([lowest[k] for k in range(7)]).pvalue > 1e-4


@pytest.mark.parametrize(("n", "k"), [(0, 0), (3, 0), (4, 4), (5, 1), (5, 2), (6, 3)])
def test_all_choices_are_alike(monkeypatch: pytest.MonkeyPatch, n: int, k: int, exact_law) -> None:
    def drawn(die):
        monkeypatch.setattr(integers, "any_below", die)
        return tuple(random_subset(n, k, None))

    law = exact_law(drawn)
    assert sorted(law) == [*combinations(range(1, n + 1), k)]
    assert set(law.values()) == {Fraction(1, len(law))}


def test_a_broken_source_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="repeating itself"):
        any_below(5, lambda n: b"\xff" * n)
