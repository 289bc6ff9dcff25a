"""Linear regression beside AdaSSP on public tables: R² on held-out records.

AdaSSP (Wang 2018, "Revisiting differentially private linear regression", Algorithm 2) releases the
least eigenvalue, the Gram matrix and the products with the target with a third of the budget each,
and adds a ridge as large as the noise needs. Written anew here from the paper. It gets the same
public bounds, as coordinates in [-1, 1] with a constant, and the bound of their norm that follows
from them. It needs a delta, and its epsilon is for a record that is added or removed; that of this
library is for one that is replaced, with a delta of 0: the harder promise.

Most constants of this library were chosen on the first four tables, those of the two stages on all
eight.

Run ``python -m benchmarks.peers.published [--repeats 5] [--epsilon 1]``.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.regression import score, split
from benchmarks.data.regression import CHOSEN_ON, REPORTED_ON, Regression
from dpbayes_sklearn import Interval
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.regression.design import Design

FloatArray = npt.NDArray[np.float64]
DELTA = 1e-5


def adassp(
    X: FloatArray, y: FloatArray, norm: float, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Return the coefficients for rows of at most this norm and targets in [-1, 1]."""
    d, third = X.shape[1], epsilon / 3
    width = math.sqrt(math.log(6 / DELTA)) / third
    gram = X.T @ X
    least = np.linalg.eigvalsh(gram)[0] + norm**2 * width * rng.normal()
    least = max(least - norm**2 * math.log(6 / DELTA) / third, 0.0)
    needed = norm**2 * width * math.sqrt(d * math.log(2 * d**2 / 0.05))
    noise = np.triu(rng.normal(size=(d, d)))
    gram = gram + norm**2 * width * (noise + np.triu(noise, 1).T)
    cross = X.T @ y + norm * width * rng.normal(size=d)
    ridge = max(needed - least, 0.0)
    return np.linalg.solve(gram + ridge * np.eye(d), cross)


def coordinates(data: Regression) -> tuple[FloatArray, FloatArray, float]:
    """Return rows with a constant, targets, and the largest norm that a row may have."""
    design = Design(tuple(data.schema.columns.values()))
    rows = np.concatenate([x.copy() for _, x in design.chunks(Table(data.X))])
    target = data.schema.target
    assert isinstance(target, Interval)
    y = (data.y - target.middle) / ((target.high - target.low) / 2)
    X = np.column_stack([np.ones(len(rows)), rows])
    return X, y, math.sqrt(1 + len(design.features))


def adassp_score(data: Regression, epsilon: float, seed: int) -> float:
    """Return R² on the records left out."""
    X, y, norm = coordinates(data)
    train, test = split(len(y), seed)
    w = adassp(X[train], y[train], norm, epsilon, np.random.default_rng(seed))
    return 1 - float(np.mean((y[test] - X[test] @ w) ** 2) / np.var(y[test]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    ours: dict[str, dict[str, object]] = {
        "no privacy": {"epsilon": math.inf},
        "default": {"epsilon": options.epsilon},
        "map": {"epsilon": options.epsilon, "mechanism": "map"},
        f"gaussian, δ = {DELTA:g}": {
            "epsilon": options.epsilon,
            "mechanism": "gaussian",
            "delta": DELTA,
        },
    }
    print(f"| table | {' | '.join(ours)} | AdaSSP, δ = {DELTA:g} |")
    print("|---" * (2 + len(ours)) + "|")
    for name, load in {**CHOSEN_ON, **REPORTED_ON}.items():
        data, seeds = load(), range(options.repeats)
        found = [np.mean([score(data, how, s)[0] for s in seeds]) for how in ours.values()]
        found.append(np.mean([adassp_score(data, options.epsilon, s) for s in seeds]))
        cells = " | ".join(f"{r2:.3f}" for r2 in found)
        print(f"| {name} ({int(0.7 * len(data.y)):,}) | {cells} |", flush=True)


if __name__ == "__main__":
    main()
