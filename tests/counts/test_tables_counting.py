"""Counts by state, whichever way they are taken: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts.tables import Space, count_by_state


@pytest.mark.parametrize("rows", [0, 1, 254, 255, 256, 2000])
@pytest.mark.parametrize("n_values", [2, 3, 16, 17])
@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 9])
def test_all_ways_count_the_same(rows: int, n_values: int, n_states: int) -> None:
    rng = np.random.default_rng([rows, n_values, n_states])
    space = Space()
    for share in (0.5, 0.02, 0.98):  # of the first state: rare, or nearly all there is
        others = (1 - share) / max(1, n_states - 1)
        law = np.array([share] + [others] * (n_states - 1)) if n_states > 1 else np.ones(1)
        states = rng.choice(n_states, rows, p=law)
        codes = rng.integers(0, n_values, (rows, 5), dtype=np.uint8)
        expected = np.zeros((n_states, 5, n_values), np.int64)
        np.add.at(expected, (states[:, None], np.arange(5), codes), 1)
        counts = count_by_state(states, n_states, codes, [n_values] * 5, space)
        assert counts.dtype == np.int64
        assert counts.tolist() == expected.tolist()


def test_no_column_has_no_counts() -> None:
    codes = np.empty((7, 0), np.uint8)
    assert count_by_state(np.zeros(7, np.intp), 2, codes, [2], Space()).shape == (2, 0, 2)
