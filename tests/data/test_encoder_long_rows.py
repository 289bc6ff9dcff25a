"""Long rows: every cell once, with the number of its column, whatever the layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.data import encoder as module
from dpbayes_sklearn.data.encoder import PerColumn, long_rows


@given(
    st.integers(0, 40),
    st.integers(1, 7),
    st.sampled_from([None, 1, 8, 1000]),
    st.sampled_from([1, 5, 64]),
    st.sampled_from("CF"),
    st.booleans(),
)
def test_every_cell_meets_the_number_of_its_column(
    n: int, d: int, cells: int | None, long: int, order: str, same: bool
) -> None:
    values = np.asarray(np.arange(n * d, dtype=np.float64).reshape(n, d), order=order)
    each = np.full(d, 3.0) if same else np.arange(d) + 1.0
    out = np.full((n, d), np.nan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NUMBERS_IN_A_CALL", long)
        factor, shift = PerColumn(each), PerColumn(np.full(d, 0.5))
        for x, chunk, rows in long_rows(values, out, shift, factor, cells=cells):
            np.multiply(x, factor.of(rows), out=chunk)
            chunk += shift.of(rows)
    assert (out == values * each + 0.5).all()


def test_integers_are_never_one_number() -> None:
    assert PerColumn(np.array([1, 1], np.uint8)).of(1).tolist() == [1, 1]
    assert PerColumn(np.array([1.0, 1.0])).of(1) == 1.0


def test_numbers_that_a_type_cannot_hold_go_to_its_ends() -> None:
    cast = PerColumn(np.array([-5.0, 3.0, 900.0])).cast(np.dtype(np.uint8), 0, 255)
    assert cast.of(1).tolist() == [0, 3, 255]
