"""Coverage of the 95 % intervals of a private regression, by the shape of the residuals.

Three features spread evenly over their bounds, fresh data and fresh noise in every repeat. The
mean over all test records, and the lowest and the highest coverage among fifths of the test
records by their predicted mean. With ``--small``, how much single releases vary where the number of
records times epsilon is small, with Gaussian residuals.

Run ``python -m benchmarks.accuracy.coverage [--repeats 100] [--small]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from dpbayes_sklearn import BayesianLinearRegression

FloatArray = npt.NDArray[np.float64]
EPSILONS = (0.3, 1.0, 10.0)
RECORDS = (2000, 20_000)
SMALL = ((1000, 0.1), (1000, 0.3), (1000, 1.0), (2000, 0.75), (2000, 1.0), (2000, 1.5), (2000, 2.0))
COEF = np.array([0.25, -0.15, 0.1])


def gaussian(line: FloatArray, rng: np.random.Generator) -> FloatArray:
    return line + rng.normal(0, 0.2, len(line))


def heavy_tailed(line: FloatArray, rng: np.random.Generator) -> FloatArray:
    return line + 0.12 * rng.standard_t(3, len(line))


def heteroscedastic(line: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Residuals whose spread grows fivefold with the mean."""
    return line + rng.normal(0, 1, len(line)) * (0.08 + 0.32 * (line + 0.5))


def binary(line: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw 1 with a probability from 0.25 to 0.75, otherwise -1."""
    return np.where(rng.random(len(line)) < 0.5 + line / 2, 1.0, -1.0)


def rare(line: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw 1 with a probability from 0 to 0.2, otherwise -1."""
    return np.where(rng.random(len(line)) < 0.1 + line / 5, 1.0, -1.0)


TARGETS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "Gaussian residuals": gaussian,
    "heavy tails (Student, 3)": heavy_tailed,
    "spread grows with the mean": heteroscedastic,
    "two values, even": binary,
    "two values, one rare": rare,
}


def coverage(name: str, n: int, epsilon: float, seed: int) -> FloatArray:
    """Return the coverage of all test records and of each fifth of them."""
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(-1, 1, (n + 5000, 3))
    y = np.clip(TARGETS[name](X @ COEF, rng), -1, 1)
    model = BayesianLinearRegression(
        epsilon, bounds_X=([-1] * 3, [1] * 3), bounds_y=(-1, 1), random_state=seed
    )
    mean, std = model.fit(X[:n], y[:n]).predict(X[n:], return_std=True)
    inside = np.abs(y[n:] - mean) < 1.96 * std
    fifths = np.array_split(inside[np.argsort(X[n:] @ COEF)], 5)
    return np.array([inside.mean(), *(part.mean() for part in fifths)])


def single_releases(repeats: int, jobs: int) -> None:
    """Print mean, twentieth and lowest coverage of single releases."""
    print("| records, ε | nε for each column | mean | one release in twenty below | lowest |")
    print("|---" * 5 + "|")
    for n, epsilon in SMALL:
        found = Parallel(n_jobs=jobs)(
            delayed(coverage)("Gaussian residuals", n, epsilon, seed) for seed in range(repeats)
        )
        own = np.array(found)[:, 0]
        numbers = f"{own.mean():.2f} | {np.quantile(own, 0.05):.2f} | {own.min():.2f}"
        print(f"| {n:,}, {epsilon:g} | {n * epsilon / len(COEF):,.0f} | {numbers} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.small:
        return single_releases(options.repeats, options.jobs)
    settings = [(n, epsilon) for n in RECORDS for epsilon in EPSILONS]
    print("Coverage of 95 % intervals: mean (lowest to highest fifth)\n")
    print("| target | " + " | ".join(f"n = {n:,}, ε = {e:g}" for n, e in settings) + " |")
    print("|---" * (1 + len(settings)) + "|")
    for name in TARGETS:
        cells = []
        for n, epsilon in settings:
            found = Parallel(n_jobs=options.jobs)(
                delayed(coverage)(name, n, epsilon, seed) for seed in range(options.repeats)
            )
            mean, *fifths = np.mean(found, axis=0)
            cells.append(f"{mean:.2f} ({min(fifths):.2f} to {max(fifths):.2f})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
