"""Fits on a real cluster of processes: the same noise, one charge, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    Schema,
)

RNG = np.random.default_rng(0)
N = 3000
X = RNG.random((N, 4))
Y = (X[:, 0] + RNG.random(N) > 1).astype(int)
TARGET = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=N) / 10
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(job=np.where(X[:, 1] > 0.5, "nurse", "clerk"))
SCHEMA = Schema(
    {**{c: Interval(0, 1, bins=4) for c in "abcd"}, "job": Categories(["clerk", "nurse"])},
    Categories([0, 1]),
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def classifier(**options: Any) -> BayesianNaiveBayes:
    return BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], random_state=0, **options)


def regression(**options: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(-2, 2), random_state=0, **options)


def tables(model: Any) -> list[list[Any]]:
    return [table.tolist() for table in model.posterior_.sample(np.random.default_rng(0), 1)]


def array(values: Any, rows: int) -> da.Array:
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


@pytest.mark.parametrize(("rows", "mechanism"), [(N, "laplace"), (701, "fourier"), (250, "map")])
def test_naive_bayes_on_a_cluster_is_that_of_one_machine(
    client: Client, rows: int, mechanism: str
) -> None:
    ledger = BudgetAccountant()
    local = classifier(mechanism=mechanism).fit(X, Y)
    remote = classifier(mechanism=mechanism, accountant=ledger).fit(array(X, rows), array(Y, 1000))
    assert tables(remote) == tables(local)
    assert remote.guarantee_ == local.guarantee_
    assert remote.schema_ == local.schema_  # also the bins, which depend on n
    assert (ledger.total().epsilon, len(ledger)) == (1, 1)
    lazy = remote.predict(array(X, rows))
    assert isinstance(lazy, da.Array)
    assert (lazy.compute() == local.predict(X)).all()
    assert (remote.predict_proba(array(X, rows)).compute() == local.predict_proba(X)).all()


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler", "map"])
def test_regression_on_a_cluster_is_that_of_one_machine(client: Client, mechanism: str) -> None:
    ledger = BudgetAccountant()
    local = regression(mechanism=mechanism).fit(X, TARGET)
    remote = regression(mechanism=mechanism, accountant=ledger)
    remote.fit(array(X, 701), array(TARGET, 701))
    assert (remote.coef_ == local.coef_).all()
    assert (remote.posterior_.covariance == local.posterior_.covariance).all()
    assert (ledger.total().epsilon, len(ledger)) == (1, 1)
    mean, std = remote.predict(array(X, 701), return_std=True)
    expected = local.predict(X, return_std=True)
    np.testing.assert_allclose(mean.compute(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(std.compute(), expected[1], rtol=1e-12)


def test_data_frames_with_text(client: Client) -> None:
    frame = dd.from_pandas(FRAME, npartitions=5)
    labels = dd.from_pandas(pd.Series(Y), npartitions=5)
    options = {"schema": SCHEMA, "parents": {"job": ["class", "a"]}, "random_state": 0}
    local = BayesianNetworkClassifier(**options).fit(FRAME, Y)
    remote = BayesianNetworkClassifier(**options).fit(frame, labels)
    assert tables(remote) == tables(local)
    assert remote.feature_names_in_.tolist() == [*"abcd", "job"]
    assert (remote.predict(frame).compute() == local.predict(FRAME)).all()
    assert remote.score(frame, labels) == local.score(FRAME, Y)


def test_parquet_files_give_the_same_model(client: Client, tmp_path: Path) -> None:
    dd.from_pandas(FRAME.assign(label=Y), npartitions=7).to_parquet(tmp_path)
    stored = dd.read_parquet(tmp_path)
    model = BayesianNaiveBayes(schema=SCHEMA, random_state=0)
    local = tables(model.fit(FRAME, Y))
    # dask would read several files at once where few columns are wanted
    for labels in (stored["label"], dd.read_parquet(tmp_path, columns=["label"])["label"]):
        assert tables(model.fit(stored[[*"abcd", "job"]], labels)) == local


def killing(blocks: da.Array, folder: Path, run: int) -> da.Array:
    """Return the array; the worker that makes its first block for the given time dies of it."""

    def block(values: Any, block_info: Any = None) -> Any:
        if block_info and block_info[None]["chunk-location"][0] == 0:
            times = len(list(folder.iterdir()))
            if times <= run:
                (folder / str(times)).touch()
            if times == run:
                os.kill(os.getpid(), signal.SIGKILL)
        return values

    return blocks.map_blocks(block, dtype=blocks.dtype, meta=blocks._meta)


def test_a_worker_that_dies_while_it_counts_loses_nothing(client: Client, tmp_path: Path) -> None:
    ledger = BudgetAccountant()
    mortal = killing(array(X, 701), tmp_path, 0)
    remote = classifier(accountant=ledger).fit(mortal, array(Y, 701))
    assert len(list(tmp_path.iterdir())) == 1  # it did die
    assert tables(remote) == tables(classifier().fit(X, Y))
    assert (ledger.total().epsilon, len(ledger)) == (1, 1)


def test_a_worker_that_dies_after_the_charge_costs_nothing_more(
    client: Client, tmp_path: Path
) -> None:
    ledger = BudgetAccountant()
    mortal = killing(array(X, 701), tmp_path, 1)  # in the second pass: the products
    remote = regression(accountant=ledger).fit(mortal, array(TARGET, 701))
    assert len(list(tmp_path.iterdir())) == 2
    assert (remote.coef_ == regression().fit(X, TARGET).coef_).all()
    assert (ledger.total().epsilon, len(ledger)) == (1, 1)


def test_a_fit_that_the_ledger_refuses_asks_nothing(tmp_path: Path) -> None:
    ledger = BudgetAccountant(0.5)
    touched = killing(array(X, 701), tmp_path, 10)
    with pytest.raises(BudgetError):
        classifier(accountant=ledger).fit(touched, array(Y, 701))
    assert not list(tmp_path.iterdir())
