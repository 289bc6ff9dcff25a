"""Coverage and width of rate ratios of clipped counts, and how much deviance is explained.

Simulated records with an exposure: the truth is the exact model of 300,000 records. The ridge is
that of the logistic regression; how the variance of the score is found was chosen on the families
with a star (other records). Run ``python -m benchmarks.accuracy.rates [--repeats 60]``; a few
minutes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianCountRegression, Categories, Interval, Schema

SIZES, EPSILONS = (3_000, 20_000), (0.3, 1.0, 3.0)
MANY = 300_000
Draw = Callable[[np.random.Generator, np.ndarray, pd.DataFrame], np.ndarray]
FAMILIES: dict[str, tuple[int, float, Draw]] = {
    "overdispersed*": (
        12,
        0.0,
        lambda rng, mean, _: rng.poisson(mean * rng.gamma(2, 0.5, len(mean))),
    ),
    "Poisson": (10, 0.0, lambda rng, mean, _: rng.poisson(mean)),
    "40 % extra zeros": (
        12,
        0.5,
        lambda rng, mean, _: rng.poisson(mean) * (rng.random(len(mean)) < 0.6),
    ),
    "rare": (3, -1.5, lambda rng, mean, _: rng.poisson(mean)),
    "uneven": (
        12,
        0.0,
        lambda rng, mean, _: rng.poisson(
            mean * np.where(mean > 2, rng.gamma(0.3, 1 / 0.3, len(mean)), 1.0)
        ),
    ),
    "group c uneven*": (
        12,
        0.0,
        lambda rng, mean, X: rng.poisson(
            mean * np.where(X["group"] == "c", rng.gamma(0.2, 5, len(mean)), 1.0)
        ),
    ),
    "uneven by the slope": (
        30,
        0.0,
        lambda rng, mean, X: rng.poisson(mean * rng.gamma(k := np.exp(1 - 3 * X["slope"]), 1 / k)),
    ),
    "bursts*": (
        100,
        -0.5,
        lambda rng, mean, _: np.where(
            rng.random(len(mean)) < 0.01 * mean,
            rng.integers(60, 100, len(mean)),
            rng.poisson(0.3 * mean),
        ),
    ),
}
"""Cap, log rate of an average record, and the law of counts given their mean."""


def records(rng: np.random.Generator, n: int, family: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns and counts."""
    _, level, draw = FAMILIES[family]
    X = pd.DataFrame(
        {
            "slope": rng.uniform(0, 1, n),
            "null": rng.normal(0.5, 0.15, n),
            "group": rng.choice([*"abc"], n, p=[0.6, 0.3, 0.1]),
            "years": rng.uniform(0.2, 3, n),
        }
    )
    effect = 0.3 * (X["group"] == "b") + 0.6 * (X["group"] == "c")
    return X, draw(rng, X["years"] * np.exp(level - 0.5 + X["slope"] + effect), X)


def model(family: str, epsilon: float, seed: int = 0) -> BayesianCountRegression:
    """Return an estimator."""
    columns = {
        "slope": Interval(0, 1),
        "null": Interval(0, 1),
        "group": Categories([*"abc"]),
        "years": Interval(0.1, 4),
    }
    schema = Schema(columns, Interval(0, FAMILIES[family][0]))
    return BayesianCountRegression(
        epsilon, schema=schema, exposure="years", intervals=True, random_state=seed
    )


def cell(family: str, n: int, epsilon: float, repeats: int) -> str:
    """Return coverage of all and of single coefficients, width, part identified, and deviance."""
    truth = model(family, math.inf).fit(*records(np.random.default_rng(7), MANY, family))
    exact = truth.coefficients().rows
    held, known, width, scores = [], [], [], []
    for seed in range(repeats):
        data = records(np.random.default_rng([seed, n]), n, family)
        fitted = model(family, epsilon, seed).fit(*data)
        rows = fitted.coefficients().rows
        pairs = [*zip(rows, exact, strict=True)]
        held.append([row.low <= own.estimate <= row.high for row, own in pairs])
        known.append([row.identified for row in rows])
        width += [row.sd / own.sd * math.sqrt(n / MANY) for row, own in pairs if row.identified]
        scores.append(fitted.score(*data) / truth.score(*data))
    each, median = np.mean(held, axis=0), np.median(width) if width else math.nan
    return (
        f"{each.mean():.3f} ({each.min():.2f} to {each.max():.2f}), {median:.2f}, "
        f"{np.mean(known):.0%}, {np.mean(scores):.2f}"
    )


def main() -> None:
    parser: Any = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--families", nargs="*", default=[*FAMILIES])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    asked = parser.parse_args()
    print("Coverage (single coefficients), width over that without noise, part identified, and")
    print("explained deviance, as a part of what the exact model explains")
    print("| counts | n | " + " | ".join(f"ε = {e:g}" for e in asked.epsilons) + " |")
    print("|---" * (2 + len(asked.epsilons)) + "|")
    for family in asked.families:
        for n in asked.sizes:
            cells = [cell(family, n, epsilon, asked.repeats) for epsilon in asked.epsilons]
            print(f"| {family} | {n:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
