"""Expected Hellinger error against the number of records.

Figures 4, 5 and 6 of *Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions*, with calibrated mechanisms, median counts and the optimum added. Run
``python -m benchmarks.posterior_release.data_size``; several minutes, most of them for the
calibration of 15,001 candidates.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.posterior_release.curves import (
    BETA,
    CALIBRATED,
    GLOBAL_CALIBRATED,
    HELLINGER,
    LOCAL,
    Curve,
    balanced,
    logarithmic,
    output_folder,
    save,
)
from dpbayes_sklearn.conjugate import expected_distance, optimal_distance

RECORDS = (10, 30, 100, 300, 1000, 3000, 15_000)
SMALL = {3: (6, 12, 24, 48, 96), 4: (4, 8, 16, 32)}
LARGE = (200, 1000, 10_000)
OPTIMUM = {3: (3, 6, 8), 4: (2, 3, 4)}
SHARES = {3: None, 4: np.array([0.1, 0.2, 0.3, 0.4])}
RUNS = 400


def baseline(k: int) -> list[Curve]:
    """Mechanisms that add noise; the paper's first baseline has scale k/epsilon."""
    green, red = "tab:green", "tab:red"
    return [
        Curve("laplace of scale k/ε", "laplace", share=2 / k, colour=green, dashed=True),
        Curve("laplace_improved", "laplace_improved", colour="tab:orange", dashed=True),
        Curve("laplace, median", "laplace", inference="median", colour=green),
        Curve("geometric, median", "geometric", inference="median", colour=red),
    ]


def beta(axes) -> None:
    print("\nBeta(1, 1), balanced data: E[H]")
    print(f"{'':32s}" + "".join(f"{n:>9,}" for n in RECORDS))
    for curve in BETA:
        start = time.perf_counter()
        errors = [curve.error(balanced(n, 2), (1.0, 1.0)) for n in RECORDS]
        seconds = time.perf_counter() - start
        row = "".join(f"{error:9.4f}" for error in errors)
        print(f"{curve.label:32s}{row}   {seconds:.0f} s", flush=True)
        axes.plot(RECORDS, errors, **curve.style)
    logarithmic(axes, "records", "expected Hellinger error", "Beta(1, 1), balanced data")


def counts_of(n: int, k: int) -> tuple[int, ...]:
    if SHARES[k] is None:
        return balanced(n, k)
    counts = np.floor(n * SHARES[k]).astype(int)
    counts[-1] += n - counts.sum()
    return tuple(counts.tolist())


def dirichlet(axes, k: int) -> None:
    prior = (1.0,) * k
    kind = "balanced" if SHARES[k] is None else "unbalanced"
    print(f"\nDirichlet, {k} categories, {kind} data: E[H]")
    print(f"{'':32s}" + "".join(f"{n:>9,}" for n in SMALL[k] + LARGE))
    for curve in (HELLINGER, CALIBRATED, GLOBAL_CALIBRATED, LOCAL):
        errors = [curve.error(counts_of(n, k), prior) for n in SMALL[k]]
        print(f"{curve.label:32s}" + "".join(f"{error:9.4f}" for error in errors), flush=True)
        axes.plot(SMALL[k], errors, **curve.style)
    for curve in baseline(k):
        sizes = SMALL[k] + LARGE
        errors = [curve.simulated(counts_of(n, k), prior, RUNS).mean() for n in sizes]
        print(f"{curve.label:32s}" + "".join(f"{error:9.4f}" for error in errors), flush=True)
        axes.plot(sizes, errors, **curve.style)
    title = f"Dirichlet, {k} categories, {kind} data"
    logarithmic(axes, "records", "expected Hellinger error", title)


def optimum() -> None:
    """Print averages over all data sets, each counted once, beside the linear program."""
    print("\nAverage over all data sets, epsilon 1: linear program, geometric, calibrated")
    for n in (10, 20, 40):
        found = [optimal_distance(n, (1, 1))]
        found += [
            expected_distance(name, n, (1, 1)) for name in ("geometric", "hellinger", "local")
        ]
        print(f"Beta, n={n}: " + ", ".join(f"{error:.4f}" for error in found))
    for k, sizes in OPTIMUM.items():
        for n in sizes:
            prior = (1.0,) * k
            found = [optimal_distance(n, prior), expected_distance("hellinger", n, prior)]
            print(f"Dirichlet, k={k}, n={n}: " + ", ".join(f"{error:.4f}" for error in found))


def main() -> None:
    folder = output_folder(__doc__)
    optimum()
    for name, draw in (
        ("hellinger_beta_size", beta),
        ("hellinger_dirichlet3_size", lambda axes: dirichlet(axes, 3)),
        ("hellinger_dirichlet4_size", lambda axes: dirichlet(axes, 4)),
    ):
        figure, axes = plt.subplots(figsize=(6.5, 4.5))
        draw(axes)
        save(figure, folder, name)


if __name__ == "__main__":
    main()
