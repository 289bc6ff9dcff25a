"""What a delta buys a regression: noise of a product and planned errors, pure against Gaussian.

The first table is the standard deviation of a released sum of products of two numbers, by the
number of columns, in the second of two stages where there are two; it follows from public facts
alone. The second is the error of a coefficient that planning expects. R² is measured by
``benchmarks.accuracy.regression``.

Run ``python -m benchmarks.accuracy.gaussian_regression``; it prints Markdown.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
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


if __name__ == "__main__":
    main()
