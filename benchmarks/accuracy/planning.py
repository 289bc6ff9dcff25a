"""Planned and measured errors of regression coefficients.

The families are those of ``benchmarks.data.families``. Planning is told the standard deviations
of columns and target, the shares of categories, and the correlation where it is not 0. Measured are
the differences of the rows of ``coefficients()`` from those of exact Bayes.

Run ``python -m benchmarks.accuracy.planning [--repeats 20]``; it prints Markdown.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from benchmarks.data.families import FAMILIES, Data
from dpbayes_sklearn import BayesianLinearRegression, Categories
from dpbayes_sklearn.planning import Spread, expected_error

SETTINGS = ((2000, 1.0), (20_000, 0.1), (20_000, 1.0), (20_000, 10.0))
CORRELATION = {"correlated": 0.9}
PLANNED = (
    "hospital", "tight", "uniform", "correlated", "rare_level", "narrow", "six", "long_tails",
)  # fmt: skip


def guess(data: Data, correlation: float) -> Spread:
    """Return what a user would have to guess."""
    columns = {
        str(name): [float(np.mean(data.X[name] == value)) for value in domain.values]
        if isinstance(domain, Categories)
        else float(data.X[name].std())
        for name, domain in data.schema.columns.items()
    }
    return Spread(columns, float(np.std(data.y)), correlation)


def measured(family: str, n: int, epsilon: float, repeats: int) -> dict[str, float]:
    """Return the mean absolute error of every coefficient."""
    gaps = []
    for seed in range(repeats):
        data = FAMILIES[family].make(n, np.random.default_rng([seed, n, 1]))
        private, exact = (
            BayesianLinearRegression(e, schema=data.schema, random_state=seed)
            .fit(data.X, data.y)
            .coefficients()
            for e in (epsilon, math.inf)
        )
        names = [row.name for row in exact.rows[1:]]
        gaps.append([abs(private[k].estimate - exact[k].estimate) for k in names])
    return dict(zip(names, np.mean(gaps, axis=0), strict=True))


def main() -> None:
    """Print the ratios of measured to planned errors: all coefficients, least and most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print("| family | " + " | ".join(f"n = {n:,}, ε = {e:g}" for n, e in SETTINGS) + " |")
    print("|---" * (1 + len(SETTINGS)) + "|")
    for family in PLANNED:
        cells = []
        for n, epsilon in SETTINGS:
            data = FAMILIES[family].make(n, np.random.default_rng([0, n]))
            model = BayesianLinearRegression(epsilon, schema=data.schema)
            spread = guess(data, CORRELATION.get(family, 0.0))
            planned = expected_error(model, n, spread=spread).coefficients
            found = measured(family, n, epsilon, options.repeats)
            ratios = np.array([error / planned[name] for name, error in found.items()])
            typical = np.exp(np.log(ratios).mean())
            cells.append(f"{typical:.2f} ({ratios.min():.2f} to {ratios.max():.2f})")
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
