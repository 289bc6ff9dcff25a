"""Naive Bayes beside one pass over memory and beside BernoulliNB: 1,000,000 x 100.

Times are processor times, as ratios to a floor measured in the same process: the sum of all cells
of a float64 array, the bitwise or of all words of a uint8 array. Extra memory is the peak of what
was allocated while the call ran. Run ``python benchmarks/bench_naive_bayes.py [--rows 1000000]
[--features 100]``.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.naive_bayes import BernoulliNB

from dpbayes_sklearn import BayesianNaiveBayes

REPEATS = 5
Call = Callable[[], object]


def seconds(call: Call, repeats: int = REPEATS) -> float:
    """Return the best of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def extra_megabytes(call: Call) -> float:
    """Return the peak of memory allocated during the call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def one_pass(X: npt.NDArray[np.generic]) -> Call:
    """Return the cheapest call that reads every byte."""
    if X.dtype == np.float64:
        return lambda: X.sum()
    words = X.reshape(-1).view(np.uint64)
    return lambda: np.bitwise_or.reduce(words)


def print_row(name: str, fit: Call, predict: Call, floor: float, repeats: int = REPEATS) -> None:
    cells = []
    for call in (fit, predict):
        taken = seconds(call, repeats)
        cells.append(
            f"{1e3 * taken:>9,.0f} ms {taken / floor:>7.1f}x {extra_megabytes(call):>7,.0f} MB"
        )
    print(f"{name:<34}" + "  ".join(cells), flush=True)


def table(X: npt.NDArray[np.generic], y: npt.NDArray[np.int64], classes: int) -> None:
    """Print fit and predict of both classifiers on one array."""
    floor = min(seconds(one_pass(X)) for _ in range(2))
    size = f"{X.nbytes / 1e6:,.0f} MB"
    print(f"\n{X.dtype}, {classes} classes: one pass over {size} is {1e3 * floor:.1f} ms")
    print(f"{'':<34}{'fit':>32}{'predict':>34}")
    for label, n_bins in (("two bins", 2), ("8 bins", 8)):
        high = 1 if X.dtype == np.float64 else n_bins - 1
        model = BayesianNaiveBayes(
            inference="plug_in", classes=range(classes), bounds=(0, high), n_bins=n_bins
        )
        model.fit(X[:1000], y[:1000])
        print_row(
            f"BayesianNaiveBayes, {label}",
            lambda model=model: model.fit(X, y),
            lambda model=model: model.predict(X),
            floor,
        )
    theirs = BernoulliNB(binarize=0.5).fit(X[:1000], y[:1000])
    print_row("BernoulliNB", lambda: theirs.fit(X, y), lambda: theirs.predict(X), floor, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = options.rows, options.features
    for classes in (2, 10):
        y = rng.integers(0, classes, options.rows)
        table(rng.random(shape), y, classes)
        table(rng.integers(0, 2, shape, dtype=np.uint8), y, classes)


if __name__ == "__main__":
    main()
