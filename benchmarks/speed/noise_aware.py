"""Time of noise-aware inference on simulated releases, over records, tables and budgets.

Every figure is processor time of the inference step alone, in milliseconds per table and as a
multiple of drawing the noise of the same release, in the same process. ``step`` is the distance
of the lattice points that stand for counts: 1 is exact.

Run ``python -m benchmarks.speed.noise_aware``; it takes about a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.counts.noise_aware import StarInference, infer_star
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal, discrete_laplace
from dpbayes_sklearn.noise.integers import random_source

IntArray = npt.NDArray[np.int64]


def release(
    n: int, n_classes: int, n_values: int, n_features: int, epsilon: Fraction
) -> tuple[list[IntArray], list[IntArray], Fraction]:
    """Return the exact tables of a random star, noise for them, and the scale of the noise."""
    rng = np.random.default_rng([n, n_classes, n_values])
    classes = rng.multinomial(n, rng.dirichlet(np.ones(n_classes)))
    rows = rng.dirichlet(np.ones(n_values), size=(n_features, n_classes))
    counts = [rng.multinomial(classes, probabilities) for probabilities in rows]
    scale = 2 * (n_features + 1) / epsilon
    tables = [classes, *counts]
    noise = [discrete_laplace(scale, t.shape, random_source(i)) for i, t in enumerate(tables)]
    return tables, noise, scale


def infer(tables: list[IntArray], n: int, scale: Fraction) -> StarInference:
    """Run both passes of the inference."""
    classes, *features = tables
    noise = LaplaceMarginal(float(scale))
    inference = infer_star(
        classes,
        features,
        n,
        class_noise=noise,
        table_noises=[noise] * len(features),
        class_alpha=np.ones(len(classes)),
        table_alphas=[np.ones(table.shape[1]) for table in features],
    )
    assert inference.table_means
    return inference


def seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def row(n: int, n_classes: int, n_values: int, n_features: int, epsilon: Fraction) -> str:
    """Time one problem."""
    exact, noise, scale = release(n, n_classes, n_values, n_features, epsilon)
    noisy = [a + b for a, b in zip(exact, noise, strict=True)]
    source = random_source(0)
    drawing = seconds(lambda: [discrete_laplace(scale, t.shape, source) for t in exact])
    inference = infer(noisy, n, scale)
    took = seconds(lambda: infer(noisy, n, scale))
    step = max(star.lattice.step for star in inference._stars)
    return (
        f"| {n:.0e} | {n_classes} | {n_values} | {n_features} | {float(epsilon):g} | {step:.0f} "
        f"| {1e3 * took:.1f} | {1e3 * took / len(exact):.2f} | {took / drawing:.0f} |"
    )


def main() -> None:
    """Print both tables."""
    header = "| n | C | K | features | ε | step | all tables, ms | one table, ms | noise draws |\n"
    header += "|---|---|---|---|---|---|---|---|---|"
    print("Number of records\n\n" + header)
    for epsilon in (Fraction(1), Fraction(1, 100)):
        for exponent in range(3, 9):
            print(row(10**exponent, 2, 2, 16, epsilon), flush=True)
    print("\nSize of the tables, and extreme budgets\n\n" + header)
    for n_classes, n_values, n_features in ((2, 2, 100), (10, 10, 20), (2, 64, 10), (50, 64, 1)):
        print(row(10**6, n_classes, n_values, n_features, Fraction(1)), flush=True)
    for epsilon in (Fraction(1, 1000), Fraction(1, 30), Fraction(30), Fraction(1000)):
        print(row(10**6, 5, 8, 16, epsilon), flush=True)


if __name__ == "__main__":
    main()
