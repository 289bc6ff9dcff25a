"""A fit to more records than fit into memory, made lazily on a cluster of two processes.

Prints the throughput of naive Bayes on 100,000,000 x 20 doubles (16 GB), and whether a smaller fit
is the same as in memory. Run ``python -m benchmarks.speed.dask_throughput [--rows 100000000]``.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes

FEATURES = 20
PARTITION = 1_000_000
MEMORY = "3GB"  # of each of the two workers


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    rows = parser.parse_args().rows
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=MEMORY, dashboard_address=None
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
            start = time.perf_counter()
            models()[number].fit(X, y)
            taken = time.perf_counter() - start
            print(
                f"{name}: {size:,} x {FEATURES} ({X.nbytes / 1e9:.0f} GB) in {taken:.0f} s, "
                f"{size / taken / 1e6:.2f} million records a second, with their making",
                flush=True,
            )
        peaks = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
        print("peak memory of the workers: " + ", ".join(f"{p:.1f} GB" for p in peaks.values()))


if __name__ == "__main__":
    main()
