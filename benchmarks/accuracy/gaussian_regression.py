"""What a delta buys a regression: noise of a product and R², pure against Gaussian.

The first table is the standard deviation of a released sum of products of two numbers, by the
number of columns, in the second of two stages where there are two; it follows from public facts
alone. The second is the error of a coefficient that planning expects. The third is R² on records
left out, for the default model with ``mechanism="laplace"`` and ``mechanism="gaussian"``: eight
public tables (the public constants of the library were chosen on the first four) and simulated
ones of 40 normal columns, whose best possible R² is 0.5.

Run ``python -m benchmarks.accuracy.gaussian_regression [--repeats 20] [--tables labsup,injury]``;
it prints Markdown.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy.regression import score
from benchmarks.data.regression import CHOSEN_ON, REPORTED_ON, Regression
from dpbayes_sklearn import BayesianLinearRegression, Interval
from dpbayes_sklearn.mechanisms import Auto, Gaussian, Laplace
from dpbayes_sklearn.planning import Spread, expected_error
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression import plans
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.posterior import GaussianPrior
from dpbayes_sklearn.regression.release import Stages
from dpbayes_sklearn.release import Facts

DELTA = 1e-6
EPSILONS = (0.1, 0.3, 1.0)
COLUMNS = (1, 2, 3, 5, 10, 20, 40, 100)
PLANNED = (1, 2, 5, 20)
SIMULATED = (20_000, 40)


def noise_cell(columns: int, epsilon: float, n: int = 20_000) -> str:
    """Return the pure and the Gaussian deviation of a product, bold the one that "auto" takes."""
    design = Design((Interval(-1, 1),) * columns)
    prior = GaussianPrior(design, inference="noise_aware")
    budget = Budget(Fraction(str(epsilon)), Fraction(str(DELTA)))
    grid, found = 2**10, []
    for mechanism in (Laplace(), Gaussian()):
        made = plans.plan(mechanism, prior, Facts(n), budget)
        assert isinstance(made, plans.NoisyProducts)
        if made.stages is Stages.MODE:
            found.append("mode")
            continue
        block = made.products()
        law = block.law(made.share_of_products, grid)
        products = (block.rows > 0) & (block.columns <= columns) & (block.rows != block.columns)
        squares = (block.rows == 1) & (block.columns == 1)  # the only one of a single column
        which = products if products.any() else squares
        found.append(f"{math.sqrt(float(law.variances[which].mean())) / grid**2:.3g}")
    taken = plans.plan(Auto(), prior, Facts(n), budget).mechanism == "gaussian"
    found[taken] = f"**{found[taken]}**"
    return " / ".join(found)


def planned_errors(columns: int) -> str:
    """Return the expected errors of a coefficient that planning computes, pure and Gaussian."""
    public = {"bounds_X": ([0] * columns, [1] * columns), "bounds_y": (0, 1), "delta": DELTA}
    guess = Spread(0.2, target=0.2)
    models = [BayesianLinearRegression(1.0, mechanism=m, **public) for m in ("laplace", "gaussian")]
    return " | ".join(f"{expected_error(model, n=4000, spread=guess).mean:.3f}" for model in models)


def simulated(seed: int, epsilon: float, mechanism: str) -> float:
    """Return R² for normal columns, half of whose target is noise."""
    (n, d), rng = SIMULATED, np.random.default_rng(seed)
    X = rng.normal(size=(n + 5000, d))
    signal = X @ rng.normal(size=d)
    y = signal + signal.std() * rng.normal(size=len(X))
    model = BayesianLinearRegression(
        epsilon,
        delta=DELTA,
        mechanism=mechanism,
        bounds_X=(-5, 5),
        bounds_y=(-50, 50),
        random_state=seed,
    )
    return float(model.fit(X[:n], y[:n]).score(X[n:], y[n:]))


def on_table(data: Regression, seed: int, epsilon: float, mechanism: str) -> float:
    """Return R² on three tenths of a table that were left out."""
    return score(data, {"epsilon": epsilon, "delta": DELTA, "mechanism": mechanism}, seed)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", default=",".join([*CHOSEN_ON, *REPORTED_ON, "simulated"]))
    options = parser.parse_args()
    print("Standard deviation of a sum of products, δ = 1e-6: pure / Gaussian\n")
    print("| columns | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("|---" * (len(EPSILONS) + 1) + "|")
    for columns in COLUMNS:
        cells = [noise_cell(columns, e) for e in EPSILONS]
        print(f"| {columns} | {' | '.join(cells)} |")
    print("\nExpected error of a coefficient, 4,000 records, ε = 1\n")
    print("| columns | pure | Gaussian |\n|---|---|---|")
    for columns in PLANNED:
        print(f"| {columns} | {planned_errors(columns)} |", flush=True)
    print(
        "\n| R² | " + " | ".join(f"{m}, ε = {e:g}" for e in EPSILONS for m in ("pure", "Gaussian"))
    )
    print("|---" * (2 * len(EPSILONS) + 1) + "|")
    for name in options.tables.split(","):
        if name != "simulated":
            data = {**CHOSEN_ON, **REPORTED_ON}[name]()
        cells = []
        for epsilon in EPSILONS:
            for mechanism in ("laplace", "gaussian"):
                found = Parallel(options.jobs)(
                    delayed(simulated)(seed, epsilon, mechanism)
                    if name == "simulated"
                    else delayed(on_table)(data, seed, epsilon, mechanism)
                    for seed in range(options.repeats)
                )
                cells.append(f"{np.mean(found):.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
