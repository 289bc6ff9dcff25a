"""Dask collections: read without looking, refused by public facts, failing without a value."""

from __future__ import annotations

import subprocess
import sys
import traceback
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable
from dpbayes_sklearn.data.records import is_partitioned

CANARY = "CANARY-7431"
X = np.random.default_rng(0).random((60, 3))
Y = np.arange(60) % 2


def records(X: Any, y: Any) -> PartitionedRecords:
    return PartitionedRecords.read(PartitionedTable(X), y)


def blocks(values: Any, *sizes: int) -> da.Array:
    """Return a dask array with blocks of these sizes, empty ones included."""
    ends = np.cumsum([0, *sizes])
    parts = [dask.delayed(values[a:b]) for a, b in pairwise(ends)]
    shapes = [(size, *values.shape[1:]) for size in sizes]
    pieces = zip(parts, shapes, strict=True)
    return da.concatenate([da.from_delayed(p, s, meta=values[:0]) for p, s in pieces])


@settings(max_examples=30)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=20))
def test_the_total_is_that_of_all_rows(sizes: list[int]) -> None:
    sizes = [*sizes, max(1, 60 - sum(sizes))]
    rows = min(sum(sizes), 60)
    cut = np.minimum(np.cumsum(sizes), rows)
    sizes = np.diff(cut, prepend=0).tolist()
    parts = records(blocks(X[:rows], *sizes), blocks(Y[:rows], *sizes))
    with dask.config.set(scheduler="synchronous"):
        total = parts.total(
            lambda part: np.array(
                [
                    part.table.n_rows,
                    np.concatenate([[0.0], *(c[:, 0] for _, c in part.table.chunks())]).sum(),
                    part.target.sum(),
                    (part.start + np.arange(part.table.n_rows)).sum(),  # every row once
                ]
            )
        )
    expected = [rows, X[:rows, 0].sum(), Y[:rows].sum(), rows * (rows - 1) / 2]
    np.testing.assert_allclose(total, expected)
    assert parts.n == rows


def test_what_is_a_dask_collection() -> None:
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    assert all(map(is_partitioned, [da.from_array(X), frame, frame["a"]]))
    assert not any(map(is_partitioned, [X, pd.DataFrame(X), [1], None, dask.delayed(1)]))


def test_blocks_are_brought_into_line() -> None:
    wide = da.from_array(X, chunks=(25, 2))
    parts = records(wide, da.from_array(Y[:, None], chunks=(7, 1)))
    assert parts.n == 60
    assert parts.total(lambda part: np.array([part.table.n_columns == 3, 1])).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        (da.from_array(X), Y, "y must be a dask collection"),
        (da.from_array(X), da.from_array(X), "1d array"),
        (da.from_array(X), da.from_array(Y[:-1]), "inconsistent numbers of samples"),
        (
            dd.from_pandas(pd.DataFrame(X), npartitions=3),
            dd.from_pandas(pd.Series(Y), npartitions=2),
            "3 partitions and y has 2",
        ),
    ],
)
def test_refused_by_public_facts(X: Any, y: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        records(X, y)


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (da.from_array(X[:, 0]), "2D array"),
        (da.from_array(X.astype(complex)), "Complex"),
    ],
)
def test_columns_are_checked_without_looking(X: Any, text: str) -> None:
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1])
    with pytest.raises(ValueError, match=text):
        model.fit(X, da.from_array(Y))


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (BayesianNaiveBayes(classes=[0, 1]), "schema or bounds"),
        (BayesianNaiveBayes(bounds=(0, 1)), "classes"),
        (BayesianLinearRegression(bounds_y=(0, 1)), "schema or bounds_X"),
        (BayesianLinearRegression(bounds_X=(0, 1)), "bounds_y"),
    ],
)
def test_domains_are_never_read_from_a_collection(model: Any, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"set {parameter} to public values"):
        model.fit(da.from_array(X), da.from_array(Y))


def test_partitions_of_different_lengths_fail_without_a_value() -> None:
    frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str), npartitions=2)
    labels = dd.concat([frame["0"].partitions[1], frame["0"].partitions[0].head(9, compute=False)])
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1])
    with pytest.raises(ValueError, match="different numbers of records"):
        model.fit(frame, labels)


def test_partitions_hold_as_many_records_as_they_say() -> None:
    """Otherwise n, by which sums are known to fit into 64 bits, would be wrong."""
    more = da.from_delayed(dask.delayed(X), (20, 3), meta=X[:0])
    labels = da.from_delayed(dask.delayed(Y), (20,), meta=Y[:0])
    with pytest.raises(ValueError, match="another number of records"):
        BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).fit(more, labels)


def test_an_error_on_a_worker_has_no_value_in_it() -> None:
    def fails(part: Any) -> Any:
        raise ValueError(f"{CANARY} {part.target[0]}")

    with pytest.raises(ValueError, match="ValueError on a worker") as raised:
        records(da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=20)).total(fails)
    assert CANARY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("known", [True, False])
def test_an_error_of_the_data_themselves_has_no_value_in_it(known: bool) -> None:
    """As that of a text in a column of numbers of a file."""
    text = da.from_array(np.array([["0.5"], [CANARY]]), chunks=(1, 1))
    labels = da.from_array(np.array(["0", CANARY]), chunks=1).astype(float)
    if not known:
        labels = labels[labels >= 0]
    with pytest.raises(ValueError, match="could not be read: ValueError") as raised:
        BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2).fit(text, labels)
    assert CANARY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("odd", [np.nan, np.inf, CANARY, None, 10**400, b"?"])
def test_no_value_makes_a_declared_fit_fail(odd: Any) -> None:
    cells = X.astype(object)
    cells[3, 1] = odd
    labels = Y.astype(object)
    labels[5] = odd
    wild = da.from_array(cells, chunks=(20, 3)), da.from_array(labels, chunks=20)
    BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1]).fit(*wild)
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).fit(*wild)


def test_dask_is_not_imported_without_need() -> None:
    code = (
        "import sys, numpy as np; from dpbayes_sklearn import BayesianNaiveBayes as NB;"
        "NB(bounds=(0, 1), classes=[0, 1]).fit(np.zeros((9, 1)), np.zeros(9)).predict([[1]]);"
        "sys.exit('dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
