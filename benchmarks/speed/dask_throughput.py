"""A fit to more records than fit into memory, made lazily on a cluster of two processes.

Prints the throughput of naive Bayes on 100,000,000 x 20 doubles (16 GB), beside the time that
making the partitions and reading them once takes, and beside what as many processes, each with one
partition in memory, could count; and whether a smaller fit is the same as in memory.

Run ``python -m benchmarks.speed.dask_throughput [--rows 100000000]``.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes

FEATURES = 20
PARTITION = 1_000_000
WORKERS = 2
MEMORY = "3GB"  # of each worker


def lazy(rows: int) -> tuple[da.Array, da.Array]:
    """Return records that are made when they are read, and forgotten after."""
    size = min(rows, PARTITION)
    X = da.random.default_rng(0).random((rows, FEATURES), chunks=(size, FEATURES))
    return X, (X[:, 0] + X[:, 1] > 1).astype(np.int8)


def models() -> list[Any]:
    return [
        BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1], random_state=0),
        BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), random_state=0),
    ]


def read_once(X: da.Array, y: da.Array) -> None:
    """Make every partition and add up its numbers: less cannot be done."""
    da.compute(X.map_blocks(np.sum, axis=1, drop_axis=1).sum(), y.sum())


def records_a_second(model: Any, workers: int) -> float:
    """Return what so many processes with one thread each could read of records in their memory."""
    X, y = (part.compute() for part in lazy(PARTITION))
    with parallel_config("threading", n_jobs=1):
        model.fit(X, y)
        start = time.perf_counter()
        model.fit(X, y)
        return workers * PARTITION / (time.perf_counter() - start)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    rows = parser.parse_args().rows
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, memory_limit=MEMORY, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        X, y = lazy(200_000)
        for model in models():
            there = model.fit(X.rechunk((30_000, FEATURES)), y).to_json()
            here = model.fit(X.compute(), y.compute()).to_json()
            print(f"{type(model).__name__}: same as in memory: {there == here}")
        for name, number in (("naive Bayes", 0), ("regression, which reads thrice", 1)):
            size = rows if number == 0 else rows // 10
            X, y = lazy(size)
            model = models()[number]
            taken, reading = seconds(partial(model.fit, X, y)), seconds(partial(read_once, X, y))
            alone = records_a_second(model, WORKERS)
            print(
                f"{name}: {size:,} x {FEATURES} ({X.nbytes / 1e9:.0f} GB) in {taken:.0f} s, "
                f"{size / taken / 1e6:.2f} million records a second, with their making. Making "
                f"and reading them once takes {reading:.0f} s; {WORKERS} processes with records in "
                f"memory could read {alone / 1e6:.1f} million a second",
                flush=True,
            )
        peaks = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
        print("peak memory of the workers: " + ", ".join(f"{p:.1f} GB" for p in peaks.values()))


if __name__ == "__main__":
    main()
