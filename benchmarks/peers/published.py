"""Linear regression beside AdaSSP on public tables: R² on held-out records.

AdaSSP (Wang 2018, "Revisiting differentially private linear regression", Algorithm 2) releases the
least eigenvalue, the Gram matrix and the products with the target with a third of the budget each,
and adds a ridge as large as the noise needs. Written anew here from the paper. It gets the same
public bounds, as coordinates in [-1, 1] with a constant, and the bound of their norm that follows
from them. It needs a delta, and its epsilon is for a record that is added or removed; that of this
library is for one that is replaced, with a delta of 0: the harder promise.

Constants of this library were chosen on the first four tables.

``--intervals`` compares widths of the intervals of coefficients with those of least squares, in two
simulations of others: the example of BinAgg (Lin, Slavković and Bhoomireddy, AISTATS 2026), whose
documentation has the parameters, and wages of as many persons as dp-statsmodels' paper uses, drawn
from the moments and coefficients that it prints (its file is not part of this project).

``--boosting`` prints the area under the curve of the default classifier on adult, at the small
epsilons of which S-BDT (Peinemann et al., arXiv 2309.12041) publishes its own.

Run ``python -m benchmarks.peers.published [--repeats 5] [--epsilon 1] [--intervals] [--boosting]``.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.accuracy.logistic import CHOSEN_ON as BINARY
from benchmarks.accuracy.regression import score, split
from benchmarks.data.families import Data, Make
from benchmarks.data.regression import CHOSEN_ON, REPORTED_ON, Regression
from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianLinearRegression,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
)
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.data.records import Table

FloatArray = npt.NDArray[np.float64]
DELTA = 1e-5
UNIFORM = {"a": 1.5, "b": -2.0, "c": 0.5}
WAGES = {"education": 0.091, "experience": 0.0426, "experience2": -0.00066, "female=1": -0.341}


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


def uniform_columns(n: int, rng: np.random.Generator) -> Data:
    """Return three uniform columns and normal residuals: BinAgg's example."""
    X = pd.DataFrame(rng.uniform(0, 10, (n, 3)), columns=[*UNIFORM])
    y = X.to_numpy() @ [*UNIFORM.values()] + rng.normal(size=n)
    schema = Schema(dict.fromkeys("abc", Interval(0, 10)), target=Interval(-30, 30))
    return Data(X, y, schema)


def wages(n: int, rng: np.random.Generator) -> Data:
    """Return logarithms of wages with the means, deviations and coefficients of a CPS extract."""
    education = np.clip(np.rint(rng.normal(14.3, 2.8, n)), 0, 20)
    age = np.clip(rng.normal(44.2, 13.0, n), 18, 70)
    experience = np.clip(age - education - 6, 0, 50)
    X = pd.DataFrame(
        {
            "education": education,
            "experience": experience,
            "experience2": experience**2,
            "female": (rng.random(n) < 0.461).astype(int),
        }
    )
    y = 8.7 + X.to_numpy() @ [*WAGES.values()] + rng.normal(0, 0.8, n)
    ends = {"education": 20, "experience": 50, "experience2": 2500}
    domains = {name: Interval(0, end) for name, end in ends.items()}
    schema = Schema({**domains, "female": Categories([0, 1])}, target=Interval(0, 15))
    return Data(X, y, schema)


def widths(
    make: Make, truth: dict[str, float], n: int, repeats: int, **options: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return root mean squared errors, coverage and widths, all but coverage over least squares."""
    found = []
    for seed in range(repeats):
        data = make(n, np.random.default_rng([seed, n]))
        x = np.column_stack([np.ones(n), data.X.to_numpy(float)])
        inverse = np.linalg.inv(x.T @ x)
        w = inverse @ (x.T @ data.y)
        exact = np.sqrt(np.diag(inverse)[1:] * np.sum((data.y - x @ w) ** 2) / (n - len(w)))
        model = BayesianLinearRegression(schema=data.schema, random_state=seed, **options)
        table = model.fit(data.X, data.y).coefficients()
        for (name, value), sd in zip(truth.items(), exact, strict=True):
            row = table[name]
            inside = row.low < value < row.high
            found.append(((row.estimate - value) / sd, inside, (row.high - row.low) / (3.92 * sd)))
    errors, inside, width = np.array(found).T.reshape(3, repeats, -1)
    return np.sqrt((errors**2).mean(axis=0)), inside.mean(axis=0), np.median(width, axis=0)


def print_widths(repeats: int) -> None:
    """Print the comparison with least squares."""
    settings: list[tuple[str, Make, dict[str, float], int, float]] = [
        *(("BinAgg's example", uniform_columns, UNIFORM, n, e) for n, e in _UNIFORM),
        *(("wages", wages, WAGES, 54_875, e) for e in (0.1, 1.0, 10.0)),
    ]
    print("| data | n | ε | mechanism | coefficient | error | coverage | width |")
    print("|---" * 8 + "|")
    for name, make, truth, n, epsilon in settings:
        for options in ({}, {"mechanism": "gaussian", "delta": DELTA}):
            how = options.get("mechanism", "default")
            found = widths(make, truth, n, repeats, epsilon=epsilon, **options)
            for each, error, inside, width in zip(truth, *found, strict=True):
                known = f"{inside:.2f} | {width:.2f}"
                if not math.isfinite(width):
                    known = " | ".join(["none" if math.isnan(width) else "not identified"] * 2)
                cells = f"{each} | {error:.2f} | {known}"
                print(f"| {name} | {n:,} | {epsilon:g} | {how} | {cells} |", flush=True)


def print_boosting(repeats: int) -> None:
    """Print AUC on adult by epsilon, for both kinds of neighbours, beside boosting with a delta."""
    X, y, schema = BINARY["adult"]()
    public = Schema(dict(schema.columns), Categories([0, 1]))
    print(f"| ε | {' | '.join(map(str, _BOOSTING))} |")
    print("|---" * (1 + len(_BOOSTING)) + "|")
    print("| S-BDT |", " | ".join(f"{auc:.3f}" for auc in _BOOSTING.values()), "|")
    for neighbours, how in _HOW.items():
        unit, means = PrivacyUnit("record", neighbours=neighbours), []
        for epsilon in _BOOSTING:
            found = []
            for seed in range(repeats):
                train, test = np.split(
                    np.random.default_rng(seed).permutation(len(y)), [len(y) * 9 // 10]
                )
                model = BayesianClassifier(epsilon, schema=public, privacy_unit=unit)
                model.fit(X.iloc[train], y[train])
                risk = model.predict_proba(X.iloc[test])[:, 1]
                found.append(roc_auc_score(y[test], risk))
            means.append(np.mean(found))
        print(f"| a record {how} |", " | ".join(f"{auc:.3f}" for auc in means), "|", flush=True)


_HOW = {"add_remove": "added or removed", "replace": "replaced"}
_BOOSTING = {0.01: 0.787, 0.02: 0.831, 0.03: 0.849, 0.1: 0.876, 0.5: 0.893}  # As published.
_UNIFORM = [(500, 1.0), (2000, 1.0), (10_000, 1.0), (10_000, 3.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--boosting", action="store_true")
    options = parser.parse_args()
    if options.intervals:
        return print_widths(options.repeats)
    if options.boosting:
        return print_boosting(options.repeats)
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
