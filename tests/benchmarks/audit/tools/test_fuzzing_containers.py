"""Containers of the audit: the same values in each, and none that mixes up large integers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.audit.tools.fuzzing import CONTAINERS, FRAMES, column_in, framed, table_in
from dpbayes_sklearn.data.records import Table, is_partitioned, one_column

LARGE = [2**53 + 1, None, 2**53 + 3]


def here(values):
    return values.compute() if is_partitioned(values) else values


def plain(cells):
    return [None if type(cell).__name__ == "NAType" or cell != cell else cell for cell in cells]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_column_keeps_what_it_was_given(container):
    assert plain(one_column(here(column_in(container, LARGE))).tolist()) == LARGE


@pytest.mark.parametrize("container", [name for name in CONTAINERS if name != "list"])
def test_a_table_keeps_what_it_was_given(container):
    table = Table(here(table_in(container, [(v, 0) for v in LARGE])))
    assert table.n_columns == 2
    assert plain(table.column(0).tolist()) == LARGE


@pytest.mark.parametrize("container", FRAMES)
def test_frames_of_numbers(container):
    values = np.array([[0.5, np.nan], [np.inf, -0.0]])
    table = Table(here(framed(container, values)))
    assert plain(np.asarray(table.column(0), float).tolist()) == [0.5, np.inf]
    assert len(here(framed(container, values[:, 0]))) == 2
