"""Exact statistics: the bits of a plain loop, however the records are stored, cut and spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpbayes_sklearn.convex import design, record_sums
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.losses import HuberLoss, Turned, on_lattice
from dpbayes_sklearn.convex.record_sums import (
    Coordinates,
    Residuals,
    Target,
    count_evenly,
    count_tails,
    sum_products,
    sum_scores,
)
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.convex.tails import EDGES
from dpbayes_sklearn.counts import tables
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data import records as records_module
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.regression import moments as moments_module
from dpbayes_sklearn.regression.moments import gram
from dpbayes_sklearn.schema import Categories, Interval

DTYPES = [bool, np.uint8, np.int8, np.int64, np.uint64, np.float16, np.float32, np.float64, object]
ODD = [math.nan, math.inf, -math.inf, -0.0, 1e300, -3.0]
CLASSES = Categories([0, 1, 2], unseen=1)

Layout = Callable[[Any], Any]
LAYOUTS: dict[str, Layout] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "pandas": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
    "pandas columns": lambda X: pd.DataFrame({f"x{j}": X[:, j].copy() for j in range(X.shape[1])}),
    "polars": lambda X: pl.DataFrame({f"x{j}": X[:, j].tolist() for j in range(X.shape[1])}),
    "sparse": lambda X: sparse.csr_array(X),
}


@st.composite
def data(draw: Any) -> tuple[Any, Any]:
    """A table of any type, with values inside and outside of all domains, and labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(1, 90)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from(DTYPES))
    values: Any = rng.integers(-2, 9, (n, d)) + rng.choice([0, 0.25], (n, d))
    if dtype in (float, object, np.float16, np.float32, np.float64):
        odd = rng.random((n, d)) < 0.1
        values = np.where(odd, rng.choice(ODD, (n, d)), values)
    with np.errstate(all="ignore"):
        X = np.abs(values).astype(dtype) if np.dtype(dtype).kind in "bu" else values.astype(dtype)
    return X, rng.integers(-1, 4, n)


def interval(seed: int) -> Interval:
    rng = np.random.default_rng(seed)
    low = float(rng.integers(-2, 2))
    return Interval(low, low + float(rng.choice([1.0, 5.0, 0.1, 7.0])), int(rng.integers(2, 21)))


def naive_counts(network: Network, domains: Any, X: Any, y: Any) -> list[Any]:
    tables = [np.zeros(shape, np.int64) for shape in network.shapes]
    for row, label in zip(X, y, strict=True):
        cells = np.array([row], dtype=X.dtype)
        codes = [int(d.encode(cells[:, j])[0]) for j, d in enumerate(domains)]
        if label not in CLASSES.values:
            continue
        codes.append(int(label))
        for counts, family in zip(tables, network.families, strict=True):
            counts[tuple(codes[u] for u in family)] += 1
    return tables


def spread(X: Any, y: Any, cuts: list[int]) -> list[Any]:
    """Return all the records here, in shards, and on a (local) cluster."""
    ends = [0, *sorted({c for c in cuts if c < len(y)}), len(y)]
    shards = list(pairwise(ends))
    here = Table(X)
    ways: list[Any] = [
        LocalRecords([(here, y)]),
        LocalRecords([(here.rows(slice(a, b)), y[a:b]) for a, b in shards]),
    ]
    if isinstance(X, np.ndarray):
        sizes = tuple(b - a for a, b in shards)
        cut = da.from_array(X, chunks=(sizes, X.shape[1]))
        ways.append(PartitionedRecords.read(PartitionedTable(cut), da.from_array(y, chunks=7)))
    return ways


def storable(layout: str, X: Any) -> bool:
    if layout == "sparse":
        return X.dtype not in (object, np.float16)
    return layout != "polars" or X.dtype != object


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=20)
@example(
    (np.zeros((5, 3)), np.arange(5)), 3, [2], 10**6, True
)  # nothing for a sparse matrix to store
@example((np.arange(20.0).reshape(10, 2), np.arange(10)), 4, [3, 3], 1, False)
@given(
    data(),
    st.integers(0, 2**32),
    st.lists(st.integers(1, 80), max_size=3),
    st.sampled_from([17, 64, 10**6]),
    st.booleans(),
)
def test_counts(
    layout: str, given_: Any, seed: int, cuts: list[int], cells: int, star: bool
) -> None:
    X, y = given_
    if not storable(layout, X):
        return
    d = X.shape[1]
    domains = [interval(seed if seed % 3 else seed + j) for j in range(d)]
    sizes = [domain.n_values for domain in domains]
    network = Network.star(sizes, 3)
    if not star:  # a chain that ends in the class
        network = Network((*sizes, 3), (*((j + 1,) for j in range(d)), ()))
    expected = naive_counts(network, domains, X, y)
    count = partial(CountTables.of_shard, network, Encoder(domains), CLASSES, True)
    order = np.random.default_rng(seed).permutation(len(y))
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(records_module, "CHUNK_CELLS", cells)
        patch.setattr(tables, "_JOINT_CELLS", cells)
        patch.setattr(tables, "_STORED_AT_A_TIME", cells)
        for X_, y_ in ((X, y), (X[order], y[order])):
            for way in spread(LAYOUTS[layout](X_), y_, cuts):
                got = way.total(count)
                assert got.n == len(y)
                pairs = zip(got.tables, expected, strict=True)
                assert all(a.dtype == np.int64 and a.tolist() == b.tolist() for a, b in pairs)


def naive_moments(domains: Any, X: Any, y: Any, grid: int) -> list[list[int]]:
    def step(value: float) -> int:
        mapped = 0.0 if math.isnan(value) else min(max(value, -float(grid)), float(grid))
        return round(mapped)

    rows = []
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        if math.isnan(target):
            continue
        z = [grid]
        for value, domain in zip(row, domains, strict=True):
            half = (domain.high - domain.low) / 2
            z.append(step(float(value) * (grid * (1 / half)) - grid * (domain.middle / half)))
        z.append(round(grid * min(max(target / 2.0, -1.0), 1.0)))
        rows.append(z)
    width = len(domains) + 2
    return [[sum(z[i] * z[j] for z in rows) for j in range(width)] for i in range(width)]


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "sparse"])
@settings(max_examples=12)
@given(
    data(),
    st.integers(0, 2**32),
    st.lists(st.integers(1, 80), max_size=3),
    st.sampled_from([17, 64, 10**6]),
    st.sampled_from([2**15, 2**10, 3]),
)
def test_moments(
    layout: str, given_: Any, seed: int, cuts: list[int], cells: int, grid: int
) -> None:
    X, labels = given_
    if not storable(layout, X):
        return
    y = np.where(labels < 0, np.nan, labels / 3)
    domains = tuple(interval(seed if seed % 3 else seed + j) for j in range(X.shape[1]))
    expected = naive_moments(domains, X, y, grid)
    order = np.random.default_rng(seed).permutation(len(y))
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(design, "_CHUNK_CELLS", cells)
        patch.setattr(design, "_PRODUCT_ROWS", max(1, cells // 9))
        patch.setattr(record_sums, "_ROWS", max(1, cells // 7))
        patch.setattr(moments_module, "_DOUBLE", 40 * grid**2)  # several partial sums
        answers: list[Any] = []
        for X_, y_ in ((X, y), (X[order], y[order])):
            for way in spread(LAYOUTS[layout](X_), y_, cuts):
                records = LinearRecords(Design(domains), Scale(0.0, 2.0), way)
                assert gram(records, grid).tolist() == expected
                answers.append([each.tolist() for each in turned_sums(records, seed)])
        assert answers == answers[:1] * len(answers)


def turned_sums(records: LinearRecords, seed: int) -> list[Any]:
    """Return all that a release in turned coordinates may ask."""
    rng, width = np.random.default_rng(seed), records.design.width
    matrix, w = rng.normal(size=(width + 1, width + 1)), on_lattice(rng.normal(size=width + 1))
    target = Target(0.1, 0.7)
    given: dict[str, Any] = {"design": records.design, "scale": records.scale}
    left = Residuals.of(matrix, w, target)
    loss = HuberLoss(records, Turned(Coordinates.of(matrix), target, 2.0, 1.3, 1.5), width + 1)
    return [
        records.total(partial(count_evenly, **given)),
        records.total(partial(count_tails, residuals=left, edges=EDGES, **given)),
        records.total(partial(sum_scores, residuals=left, limit=1.7, **given)),
        records.total(partial(sum_products, residuals=left, limit=1.7, **given)),
        records.total(partial(sum_products, residuals=left, limit=1.7, weighted=True, **given)),
        loss.gradient(w),
        loss.products(),
        loss.sum_residuals(w, 1.1),
    ]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbayes_sklearn.data.records._CELLS_A_THREAD", 10)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 2, (1001, 4)), rng.integers(0, 3, 1001)
    domains = [interval(j) for j in range(4)]
    network = Network.star([d.n_values for d in domains], 3)
    asked = []

    def count(shard: Any) -> CountTables:
        asked.append(shard.table.n_rows)
        return CountTables.of_shard(network, Encoder(domains), CLASSES, True, shard)

    with joblib.parallel_config("threading", n_jobs=threads):
        got = LocalRecords([(Table(X), y)]).total(count)
        records = LinearRecords(
            Design(tuple(domains)), Scale(0.0, 2.0), LocalRecords([(Table(X), y.astype(float))])
        )
        products, turned = gram(records, 2**15), turned_sums(records, 0)
    assert len(asked) == threads
    assert sum(asked) == 1001
    pairs = zip(got.tables, naive_counts(network, domains, X, y), strict=True)
    assert all((a == b).all() for a, b in pairs)
    assert products.tolist() == naive_moments(domains, X, y.astype(float), 2**15)
    with joblib.parallel_config("threading", n_jobs=1):
        alone = turned_sums(records, 0)
    assert all(np.array_equal(a, b) for a, b in zip(turned, alone, strict=True))


def test_memory_maps_change_no_bit(tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((500, 3))
    y = np.arange(500) % 3
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    domains = [Interval(0, 1, bins=4)] * 3
    network = Network.star([4] * 3, 3)
    count = partial(CountTables.of_shard, network, Encoder(domains), CLASSES, True)
    pairs = zip(
        LocalRecords([(Table(mapped), y)]).total(count).tables,
        naive_counts(network, domains, X, y),
        strict=True,
    )
    assert all((a == b).all() for a, b in pairs)


def test_a_count_that_wraps_around_would_be_seen() -> None:
    """More rows of one state than a byte can count, at both sides of every block."""
    for n in (254, 255, 256, 510, 511):
        X, y = np.ones((n, 2), np.uint8), np.zeros(n, np.int64)
        network = Network.star([2, 2], 3)
        count = partial(
            CountTables.of_shard, network, Encoder([Interval(0, 1, bins=2)] * 2), CLASSES, True
        )
        assert LocalRecords([(Table(X), y)]).total(count).tables[0][0].tolist() == [0, n]


@example(20, 5)
@given(st.integers(1, 60), st.integers(1, 40))
def test_many_bins_and_states(n: int, bins: int) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.integers(0, bins + 1, (n, 3), dtype=np.uint16), rng.integers(0, 3, n)
    domains = [Interval(0, bins, bins=bins + 1)] * 3
    network = Network.star([bins + 1] * 3, 3)
    count = partial(CountTables.of_shard, network, Encoder(domains), CLASSES, True)
    pairs = zip(
        LocalRecords([(Table(X), y)]).total(count).tables,
        naive_counts(network, domains, X, y),
        strict=True,
    )
    assert all((a == b).all() for a, b in pairs)
