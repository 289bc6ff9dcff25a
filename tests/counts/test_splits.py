"""Trees of splits: shape, characters and their inverse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.counts.splits import (
    depths,
    haar,
    inverse_haar,
    leaf_levels,
    leaf_probabilities,
    signs,
    split_tree,
    sums_left_and_right,
)

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 31, 64, 100, 300]


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_separates_all_values_within_its_depth(size: int) -> None:
    tree = split_tree(size)
    assert len(tree) == size - 1
    assert all(s.start < s.middle < s.stop for s in tree)
    assert depths(size).max() == math.ceil(math.log2(size))
    assert depths(size).min() >= math.floor(math.log2(size))
    assert len({tuple(row) for row in signs(size)}) == size


@pytest.mark.parametrize("size", SIZES)
def test_the_inverse_is_exact(size: int) -> None:
    back = inverse_haar(size)
    # entries are signed powers of two, so exact fractions can check the identity
    exact = [[Fraction(x) for x in row] for row in back.tolist()]
    h = haar(size).tolist()
    for v in range(size):
        for w in range(size):
            product = sum(e * c for e, c in zip(exact[v], h[w], strict=True) if e)
            assert product == (v == w)
        if size > 64:
            break  # one row of the large ones is enough in fractions
    assert (back @ haar(size).T == np.eye(size)).all()
    mantissas = np.frexp(back[back != 0])[0]
    assert set(np.abs(mantissas)) == {0.5}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_a_node_sends_half_of_its_count_and_coefficient_each_way(size: int) -> None:
    counts = np.random.default_rng(1).integers(0, 100, size)
    coefficients = counts @ haar(size)
    assert coefficients[0] == counts.sum()
    assert (inverse_haar(size) @ coefficients == counts).all()


def test_two_values_have_the_parity_basis() -> None:
    assert haar(2).tolist() == [[1, 1], [1, -1]]


@pytest.mark.parametrize("shape", [(2,), (3, 2), (5, 3, 4), (1, 6)])
def test_leaf_levels_share_the_total_out(shape: tuple[int, ...]) -> None:
    levels = leaf_levels(shape)
    assert levels.shape == shape
    assert (0.5**levels).sum() == 1  # all of the constant coefficient arrives
    index = tuple(k - 1 for k in shape)
    assert levels[index] == sum(int(depths(k)[-1]) for k in shape)
    assert (inverse_haar(shape[0])[:, 0] == 0.5 ** depths(shape[0])).all()


def test_sums_and_products_along_a_tree() -> None:
    rng = np.random.default_rng(2)
    for size in (2, 3, 6, 9):
        table = rng.integers(0, 50, (4, size))
        left, right = sums_left_and_right(table)
        for s, split in enumerate(split_tree(size)):
            assert (left[:, s] == table[:, split.start : split.middle].sum(axis=1)).all()
            assert (right[:, s] == table[:, split.middle : split.stop].sum(axis=1)).all()
        # the turns that counts suggest give back their shares
        shares = table + 1.0
        left, right = sums_left_and_right(shares)
        expected = shares / shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(leaf_probabilities(left / (left + right)), expected, rtol=1e-12)


def test_shared_tables_cannot_be_changed() -> None:
    for table in (signs(3), haar(3), inverse_haar(3)):
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = 7
