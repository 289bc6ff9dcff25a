"""Linear regression beside a bare product X'X and beside Ridge: 1,000,000 x 100.

Times are processor times, as ratios to ``dsyrk(X.T)`` measured in the same process. Extra memory
is the peak of what was allocated while the call ran. Run ``python benchmarks/bench_linear.py
[--rows 1000000] [--features 100]``.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.linear_model import Ridge

from dpbayes_sklearn import BayesianLinearRegression

Call = Callable[[], object]


def seconds(call: Call, repeats: int) -> float:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (options.rows, options.features))
    y = X[:, : min(5, options.features)].sum(axis=1) / 5 + rng.normal(size=options.rows) * 0.1
    floor = seconds(lambda: dsyrk(1.0, X.T), options.repeats)
    one_pass = seconds(lambda: X.sum(), options.repeats)
    print(f"dsyrk {1e3 * floor:,.0f} ms; one pass over memory {1e3 * one_pass:,.0f} ms")
    models = {
        f"{mechanism}, {what}": BayesianLinearRegression(
            mechanism=mechanism, bounds_X=bounds, bounds_y=(-2, 2)
        )
        for mechanism in ("laplace", "fourier", "sampler", "map")
        for what, bounds in (("bounds (-1, 1)", (-1, 1)), ("bounds (-1, 2)", (-1, 2)))
    }
    exact = BayesianLinearRegression(float("inf"), bounds_X=(-1, 1), bounds_y=(-2, 2))
    models["no privacy"] = exact
    models["Ridge(cholesky)"] = Ridge(solver="cholesky")
    print(f"{'':<26}{'fit':>22}{'':>12}{'predict':>22}")
    for name, model in models.items():
        model.fit(X[:1000], y[:1000])  # what is computed once from public facts is not counted
        cells = []
        for call in (lambda m=model: m.fit(X, y), lambda m=model: m.predict(X)):
            taken = seconds(call, options.repeats)
            megabytes = extra_megabytes(call)
            cells.append(f"{1e3 * taken:>9,.0f} ms {taken / floor:>6.2f}x {megabytes:>7,.1f} MB")
        print(f"{name:<26}" + "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
