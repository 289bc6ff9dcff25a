"""Linear regression beside a bare product X'X and beside other regressions.

Processor times as ratios to ``dsyrk(X.T)``, measured in turns with them. Extra memory is the peak
of what was allocated while the call ran. Run
``python -m benchmarks.speed.linear_regression [--quick]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge

from benchmarks.speed.clock import beside, diffprivlib, extra_megabytes, one_pass, run, seconds
from dpbayes_sklearn import BayesianLinearRegression

SHAPES = ((100_000, 20), (1_000_000, 20), (1_000_000, 100))


def models() -> dict[str, tuple[Any, bool]]:
    """Return every model, and whether it is measured repeatedly."""
    ours = {
        f"{mechanism}, bounds {bounds}": BayesianLinearRegression(
            mechanism=mechanism, bounds_X=bounds, bounds_y=(-2, 2)
        )
        for mechanism in ("laplace", "fourier", "sampler", "map")
        for bounds in ((-1, 1), (-1, 2))
    }
    ours["no privacy"] = BayesianLinearRegression(float("inf"), bounds_X=(-1, 1), bounds_y=(-2, 2))
    theirs = {
        "Ridge(cholesky)": Ridge(solver="cholesky"),
        "LinearRegression": LinearRegression(),
        "BayesianRidge": BayesianRidge(),
    }
    return {k: (m, True) for k, m in ours.items()} | {k: (m, False) for k, m in theirs.items()}


def table(rows: int, features: int, repeats: int) -> None:
    """Print all regressions on data of one shape."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, features))
    y = X[:, : min(5, features)].sum(axis=1) / 5 + rng.normal(size=rows) * 0.1

    def product() -> object:
        return dsyrk(1.0, X.T)

    floors = [min(seconds(call) for _ in range(3)) for call in (product, one_pass(X))]
    print(f"\n{rows:,} x {features}: one pass is {floors[1] / floors[0]:.2f}x dsyrk")
    print(f"{'':<26}{'fit':>20}{'predict':>31}")
    for name, (model, again) in models().items():
        model.fit(X[:1000], y[:1000])  # what is computed once from public facts is not counted
        cells = []
        for call in (lambda m=model: m.fit(X, y), lambda m=model: m.predict(X)):
            text = str(beside(call, product, repeats if again else 1))
            cells.append(text + f" {extra_megabytes(call):>6,.0f} MB")
        print(f"{name:<26}" + "  ".join(cells), flush=True)
    peer = diffprivlib("LinearRegression", rows, features)
    if peer is not None:
        fit, predict = (ratio * floors[1] / floors[0] for ratio in peer)
        print(f"{'diffprivlib':<26}{fit:>19.1f}x{predict:>30.1f}x")


if __name__ == "__main__":
    run(__doc__.splitlines()[0], SHAPES, table)
