"""How time grows with records, columns and categories.

Time of the processor, of all threads together. A slope of 1 in log-log is linear, one of 2
quadratic. Each cell of naive Bayes is one byte. Run ``python -m benchmarks.speed.growth
[--quick]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.speed.clock import measure
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, Categories, Schema

REPEATS = 3


def naive_bayes(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any, Any]:
    model = BayesianNaiveBayes(inference="plug_in", classes=[0, 1], bounds=(0, 1), n_bins=2)
    return model, rng.integers(0, 2, (n, d), dtype=np.uint8), rng.integers(0, 2, n)


def categories(rng: np.random.Generator, n: int, k: int) -> tuple[Any, Any, Any]:
    schema = Schema({"code": Categories(range(k))}, target=Categories([0, 1]))
    model = BayesianNaiveBayes(schema=schema)
    return model, rng.integers(0, k, (n, 1)), rng.integers(0, 2, n)


def regression(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any, Any]:
    model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))
    X = rng.random((n, d))
    return model, X, X[:, 0].copy()


def grow(make: Any, sizes: Iterable[tuple[int, int]], over: str) -> None:
    """Print the time of a fit and of predictions at every size, and how fast both grow."""
    print(f"\n{make.__name__}, by {over}")
    points = []
    for n, d in sizes:
        model, X, y = make(np.random.default_rng(0), n, d)
        model.fit(X[:100], y[:100])
        fit = min(measure(partial(model.fit, X, y)).processor for _ in range(REPEATS))
        predict = min(measure(partial(model.predict, X)).processor for _ in range(REPEATS))
        cells = n * d
        print(
            f"{n:>12,} x {d:>5,}: fit {1e3 * fit:>9,.1f} ms {1e9 * fit / cells:>8.2f} ns a cell, "
            f"predict {1e3 * predict:>9,.1f} ms {1e9 * predict / cells:>8.2f} ns a cell",
            flush=True,
        )
        points.append((np.log(n if over == "records" else d), np.log(fit), np.log(predict)))
    size, fits, predicts = np.array(points[-3:]).T  # where fixed costs no longer count
    slopes = (np.polyfit(size, times, 1)[0] for times in (fits, predicts))
    print("slope of the last three: fit {:.2f}, predict {:.2f}".format(*slopes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    part = 10 if parser.parse_args().quick else 1
    rows = [10**power // part for power in (4, 5, 6, 7)]
    for make, n in ((naive_bayes, 100_000), (regression, 20_000)):
        grow(make, [(m, 10) for m in rows], "records")
        grow(make, [(n // part, d) for d in (10, 50, 200, 600, 2000)], "columns")
    grow(categories, [(3000, k) for k in (50, 500, 1500, 5000)], "categories")


if __name__ == "__main__":
    main()
