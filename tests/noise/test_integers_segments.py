"""Points of segments: every unit of mass is drawn as often as its weight says."""

from __future__ import annotations

from collections import Counter

import pytest

from dpbayes_sklearn.noise.integers import segment_draw


def every_outcome(masses: list[int], weights: list[int]) -> Counter[tuple[int, int]]:
    """Return what comes out for every number of one byte that is not drawn again."""
    total = sum(m * w for m, w in zip(masses, weights, strict=True))
    bits = (total - 1).bit_length()
    drawn = (int.to_bytes(k << (8 - bits), 1, "big") for k in range(total))
    return Counter(segment_draw(masses, weights, lambda n, one=one: one) for one in drawn)


@pytest.mark.parametrize(
    ("masses", "weights"), [([3], [1]), ([2, 3], [10, 1]), ([1, 0, 4, 2], [5, 9, 1, 3])]
)
def test_every_unit_of_mass_has_the_weight_of_its_segment(masses, weights):
    found = every_outcome(masses, weights)
    wanted = {(i, o): weights[i] for i, mass in enumerate(masses) for o in range(mass)}
    assert found == wanted


def test_numbers_beyond_a_machine_word_lose_nothing():
    masses, weights = [2**62, 1], [2**100, 1]
    assert segment_draw(masses, weights, lambda n: b"\x80" + bytes(n - 1)) == (1, 0)
    assert segment_draw(masses, weights, lambda n: b"\x7f" + b"\xff" * (n - 1)) == (0, 2**62 - 1)
    assert segment_draw(masses, weights, lambda n: bytes(n)) == (0, 0)
