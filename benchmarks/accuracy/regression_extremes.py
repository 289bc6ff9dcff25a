"""Private regression at the edges: the worst of many releases, and many columns.

``worst``: R² of single releases of 2,000 records at nε = 1,000, of simulated tables and of real
ones, of which 2,000 records are drawn for every release; R² is that on fresh records, or on the
other ones. ``columns``: forty normal columns that explain half of the target's variance.
``bounds``: 22 correlated columns, too many to be located, with bounds of [-1, 1] for all.
``levels``: hours worked in a quarter of the table adult, by 11 columns with 58 levels, most of them
rare; half of the hours are 40.

Run ``python -m benchmarks.accuracy.regression_extremes worst|columns|bounds|levels [--repeats
100]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.accuracy.coefficient_coverage import FAMILIES
from benchmarks.data.people import adult
from benchmarks.data.regression import CHOSEN_ON, REPORTED_ON, Regression
from dpbayes_sklearn import BayesianLinearRegression, Interval, Schema

RECORDS = 2000
SIMULATED = ("wide bounds (hospital)", "correlation 0.9", "six realistic features")
REAL = ("injury", "fertil2")


def r2(model: BayesianLinearRegression, X: pd.DataFrame, y: np.ndarray) -> float:
    """Return R² without a warning about private scores."""
    return 1 - float(np.mean((y - model.predict(X)) ** 2) / np.var(y))


def exact_and_private(
    X: pd.DataFrame, y: np.ndarray, n: int, schema: Schema, seed: int
) -> list[float]:
    """Return R² on the records after the first n, without privacy and with epsilon = 1."""
    models = [
        BayesianLinearRegression(epsilon, schema=schema, random_state=seed).fit(X[:n], y[:n])
        for epsilon in (float("inf"), 1.0)
    ]
    return [r2(model, X[n:], y[n:]) for model in models]


def simulated(family: str, epsilon: float) -> Callable[[int], float]:
    """Return the R² of a release by its seed."""

    def release(seed: int) -> float:
        rng = np.random.default_rng([seed, 2])
        train, test = (FAMILIES[family](n, rng) for n in (RECORDS, 5000))
        model = BayesianLinearRegression(epsilon, schema=train.schema, random_state=seed)
        return r2(model.fit(train.X, train.y), test.X, np.asarray(test.y))

    return release


def real(name: str, epsilon: float) -> Callable[[int], float]:
    """Return the R² of a release by its seed."""
    data = {**CHOSEN_ON, **REPORTED_ON}[name]()

    def release(seed: int) -> float:
        order = np.random.default_rng([seed, 3]).permutation(len(data.y))
        train, test = order[:RECORDS], order[RECORDS:]
        model = BayesianLinearRegression(epsilon, schema=data.schema, random_state=seed)
        model.fit(data.X.iloc[train], data.y[train])
        return r2(model, data.X.iloc[test], data.y[test])

    return release


def worst(repeats: int) -> None:
    """Print how low the R² of a release gets."""
    epsilon = 1000 / RECORDS
    cases = {name: simulated(name, epsilon) for name in SIMULATED}
    cases |= {name: real(name, epsilon) for name in REAL}
    print("| table | mean | 1 % | worst | below -0.1 |\n|---|---|---|---|---|")
    for name, release in cases.items():
        found = np.array([release(seed) for seed in range(repeats)])
        low = f"{np.quantile(found, 0.01):.2f} | {found.min():.2f} | {np.mean(found < -0.1):.1%}"
        print(f"| {name} | {found.mean():.2f} | {low} |", flush=True)


def columns(repeats: int, width: int = 40) -> None:
    """Print the R² for many columns, beside that of exact Bayes."""
    print("| n | no privacy | ε = 1 | worst |\n|---|---|---|---|")
    names = [f"x{i}" for i in range(width)]
    schema = Schema(dict.fromkeys(names, Interval(-4, 4)), target=Interval(-6, 6))
    for n in (20_000, 50_000):
        found = []
        for seed in range(repeats):
            rng = np.random.default_rng([seed, n])
            X = pd.DataFrame(rng.normal(size=(n + 10_000, width)), columns=names)
            w = rng.normal(size=width)
            y = X.to_numpy() @ (w / np.sqrt(w @ w)) + rng.normal(size=len(X))
            found.append(exact_and_private(X, y, n, schema, seed))
        exact, private = np.array(found).T
        print(f"| {n:,} | {exact.mean():.3f} | {private.mean():.3f} | {private.min():.3f} |")


def bounds(repeats: int, width: int = 22, n: int = 3300) -> None:
    """Print the R² where columns fill their bounds, or a small part of them."""
    names, free = [f"x{i}" for i in range(width)], np.random.default_rng(1)
    schema = Schema(dict.fromkeys(names, Interval(-1, 1)), target=Interval(-1, 1))
    spreads = np.exp(free.uniform(np.log(0.01), np.log(0.2), width))
    cases = {
        "fill the bounds (sd 0.3)": (0.3, 0.0),
        "sd 0.05": (0.05, 0.0),
        "sd 0.05, means between -0.3 and 0.3": (0.05, free.uniform(-0.3, 0.3, width)),
        "sd between 0.01 and 0.2": (spreads, 0.0),
    }
    print("| columns | no privacy | ε = 1 | worst |\n|---|---|---|---|")
    for name, (spread, centre) in cases.items():
        found = []
        for seed in range(repeats):
            rng = np.random.default_rng([seed, 4])
            factors, loads = rng.normal(size=(n + 5000, 5)), rng.normal(size=(5, width))
            x = 0.8 * factors @ loads / np.sqrt(5) + 0.6 * rng.normal(size=(n + 5000, width))
            y = x[:, :4] @ [1.0, 0.7, -0.5, 0.3] + factors[:, 0]
            y += 0.25 * y.std() * rng.normal(size=len(y))
            X, t = pd.DataFrame(centre + spread * x, columns=names), 0.05 * y / y.std()
            found.append(exact_and_private(X, t, n, schema, seed))
        exact, private = np.array(found).T
        print(f"| {name} | {exact.mean():.2f} | {private.mean():.2f} | {private.min():.2f} |")


def hours() -> Regression:
    """Return the hours worked of the table adult, and all that is known besides."""
    data = adult()
    columns = dict(data.schema.columns)
    target, name = columns.pop("hours-per-week"), "earns"
    assert isinstance(target, Interval)
    schema = Schema({**columns, name: data.schema.target}, target=Interval(target.low, target.high))
    X = data.X[[*columns]].assign(**{name: np.asarray(data.y)})
    return Regression(X, data.X["hours-per-week"].to_numpy(float), schema)


def levels(repeats: int) -> None:
    """Print the R² of a regression on many levels, most of them rare."""
    data = hours()
    print("| ε | R² | worst |\n|---|---|---|")
    for epsilon in (0.03, 0.1, 0.3, 1.0, 3.0, float("inf")):
        found = []
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(len(data.y))
            train, test = np.split(order, [len(order) // 4])
            model = BayesianLinearRegression(epsilon, schema=data.schema, random_state=seed)
            model.fit(data.X.iloc[train], data.y[train])
            found.append(r2(model, data.X.iloc[test], data.y[test]))
        print(f"| {epsilon:g} | {np.mean(found):.3f} | {min(found):.2f} |", flush=True)


def main() -> None:
    """Run one of the four."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["worst", "columns", "bounds", "levels"])
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    what = {"worst": worst, "columns": columns, "bounds": bounds, "levels": levels}[options.what]
    what(options.repeats)


if __name__ == "__main__":
    main()
