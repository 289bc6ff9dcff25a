"""Ranges that nobody declared: models with learned ranges beside hand-declared and wide ones.

Every row has a total epsilon of 1. *declared*: domains from codebooks, all of epsilon for the
model. *wide*: numbers between bounds that are safe to declare without any knowledge. *learned*: a
share of epsilon learns bins (classifiers) or ranges (regressions, target included), the rest is
for the model; with ``--equal-width`` classifiers learn ranges too, and cut them into bins of
equal width by themselves. Categories are declared in all of them. Accuracy of naive Bayes, or R²
of the linear regression, means over splits; seven tenths of the records train.

The public constants of quantiles were chosen on simulated columns and after a look at `SEEN`;
nothing was chosen on `HELD_OUT`.

Run ``python -m benchmarks.accuracy.unknown_ranges [--repeats 10]``; ``make bench-data`` installs
the tables. It prints Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.data.classification import Classification
from benchmarks.data.images import penbased, satimage
from benchmarks.data.people import adult, contraceptive, german
from benchmarks.data.regression import (
    Regression,
    airfare,
    fertil2,
    injury,
    k401,
    labsup,
    meps,
    twoyear,
)
from benchmarks.data.simulated import ring
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler

SHARES = (0.1, 0.2, 0.3)
WIDE = 100.0  # how many times wider than what was declared


class Problem(NamedTuple):
    """Records, their hand-declared domains, and bounds that are safe for anybody."""

    X: pd.DataFrame
    y: Any
    declared: Schema
    wide: Schema


def _widened(schema: Schema, factor: float = WIDE) -> Schema:
    def wider(domain: Any) -> Any:
        if isinstance(domain, Categories):
            return domain
        reach = factor * max(abs(domain.low), abs(domain.high))
        return Interval(0.0 if domain.low >= 0 else -reach, reach)

    columns = {name: wider(domain) for name, domain in schema.columns.items()}
    return Schema(columns, wider(schema.target))


def _simulated(columns: dict[str, Any], y: Any, domains: dict[str, Any]) -> Problem:
    declared = Schema(domains, Categories([0, 1]))
    return Problem(pd.DataFrame(columns), np.asarray(y), declared, _widened(declared))


def log_normal(n: int = 20_000) -> Problem:
    """Five log-normal columns, whose logarithms differ between two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    columns = {f"x{j}": np.exp(rng.normal(5 + 0.7 * y, 1.0, n)) for j in range(5)}
    return _simulated(columns, y, {name: Interval(0, 5000, bins=10) for name in columns})


def outliers(n: int = 20_000) -> Problem:
    """Five normal columns in which 1 % of the values are a million."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    columns = {
        f"x{j}": np.where(rng.random(n) < 0.01, 1e6, rng.normal(50 + 7 * y, 10, n))
        for j in range(5)
    }
    return _simulated(columns, y, {name: Interval(0, 100, bins=10) for name in columns})


def poisson(n: int = 20_000) -> Problem:
    """Five columns of counts."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, n)
    columns = {f"x{j}": rng.poisson(4 + 1.5 * y, n) for j in range(5)}
    return _simulated(columns, y, {name: Interval(0, 15, bins=16) for name in columns})


def _public(load: Callable[[], Classification | Regression]) -> Callable[[], Problem]:
    """Return the problem of a table, whose wide bounds are ten times as far out."""

    def make() -> Problem:
        X, y, schema = load()
        return Problem(X, y, schema, _widened(schema, 10.0))

    make.__doc__ = load.__doc__
    return make


def income_above(n_dollars: float = 10.0) -> Problem:
    """Labsup as classes: who earns more than ten thousand dollars."""
    X, y, schema = labsup()
    declared = Schema(schema.columns, Categories([0, 1]))
    return Problem(X, (y > n_dollars).astype(int), declared, _widened(declared, 10.0))


CLASSIFIED: dict[str, Callable[[], Problem]] = {
    "adult": _public(adult),
    "labsup, classes": income_above,
    "log-normal": log_normal,
    "1 % outliers": outliers,
    "counts": poisson,
    **{load.__name__: _public(load) for load in (contraceptive, german, penbased, ring, satimage)},
}
REGRESSED: dict[str, Callable[[], Problem]] = {
    f"{load.__name__} (R²)": _public(load)
    for load in (labsup, twoyear, fertil2, airfare, injury, k401, meps)
}
SEEN = [*CLASSIFIED][:5] + [*REGRESSED][:3]
HELD_OUT = [*CLASSIFIED][5:] + [*REGRESSED][3:]


def halves(n: int, seed: int) -> tuple[Any, Any]:
    """Return the positions of training and test records."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: n * 7 // 10], order[n * 7 // 10 :]


def learn(X: Any, epsilon: float, **options: Any) -> Schema | None:
    """Return learned domains; None where the records are too few and learning is refused."""
    try:
        return Schema.learn(X, epsilon, verbose=False, **options)
    except ValueError as error:
        if "too few" not in str(error):
            raise
        return None


def accuracies(problem: Problem, seed: int, bins: int | None = 8) -> list[float]:
    """Return the accuracies with declared, wide and learned domains; None learns only ranges."""
    X, y = problem.X, np.asarray(problem.y)
    train, test = halves(len(y), seed)
    known = {n: d for n, d in problem.declared.columns.items() if isinstance(d, Categories)}
    tried = [(problem.declared, 1.0), (problem.wide, 1.0)]
    for share in SHARES:
        target = problem.declared.target
        learned = learn(X.iloc[train], share, columns=known, target=target, bins=bins)
        tried.append((learned, 1.0 - share))
    models = (s and BayesianNaiveBayes(e, schema=s).fit(X.iloc[train], y[train]) for s, e in tried)
    return [float(np.mean(m.predict(X.iloc[test]) == y[test])) if m else np.nan for m in models]


def determinations(problem: Problem, seed: int) -> list[float]:
    """Return R² with declared, wide and learned domains."""
    X, y = problem.X, np.asarray(problem.y, float)
    train, test = halves(len(y), seed)
    known = {n: d for n, d in problem.declared.columns.items() if isinstance(d, Categories)}
    tried = [(problem.declared, 1.0), (problem.wide, 1.0)]
    numbers = len(X.columns) - len(known)
    for share in SHARES:
        own = share / (numbers + 1)  # the target is one column more
        scaler = PrivateMinMaxScaler(own).fit(y[train, None])
        target = Interval(float(scaler.data_min_[0]), float(scaler.data_max_[0]))
        learned = learn(X.iloc[train], share - own, columns=known, bins=None, target=target)
        tried.append((learned, 1.0 - share))
    models = (
        s and BayesianLinearRegression(e, schema=s).fit(X.iloc[train], y[train]) for s, e in tried
    )
    return [float(m.score(X.iloc[test], y[test])) if m else np.nan for m in models]


def too_wide(problem: Problem, factor: float, repeats: int) -> str:
    """Return median and least R² with bounds that are so many times as wide, about their middle."""

    def wider(domain: Any) -> Any:
        if isinstance(domain, Categories):
            return domain
        middle, half = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
        return Interval(middle - factor * half, middle + factor * half)

    X, y = problem.X, np.asarray(problem.y, float)
    columns = {name: wider(domain) for name, domain in problem.declared.columns.items()}
    model = BayesianLinearRegression(1.0, schema=Schema(columns, wider(problem.declared.target)))
    found = []
    for train, test in (halves(len(y), seed) for seed in range(repeats)):
        found.append(model.fit(X.iloc[train], y[train]).score(X.iloc[test], y[test]))
    return f"{np.median(found):.2f} ({np.min(found):.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=[*SEEN, *HELD_OUT])
    parser.add_argument("--equal-width", action="store_true", help="no quantile bins")
    parser.add_argument("--too-wide", nargs="*", type=float, help="factors, for regressions")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if factors := options.too_wide:
        print("| table | " + " | ".join(f"{f:g} times" for f in factors) + " |")
        print("|" + "---|" * (len(factors) + 1))
        for name in REGRESSED:
            cells = [too_wide(REGRESSED[name](), f, options.repeats) for f in factors]
            print(f"| {name.removesuffix(' (R²)')} | " + " | ".join(cells) + " |", flush=True)
        return
    heads = ["table", "declared", "wide", *(f"learned, {share:g} ε" for share in SHARES)]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name in options.sets:
        bins = None if options.equal_width else 8
        measure = partial(accuracies, bins=bins) if name in CLASSIFIED else determinations
        problem = (CLASSIFIED | REGRESSED)[name]()
        scores = np.array([measure(problem, seed) for seed in range(options.repeats)])
        shown = ["refused" if np.isnan(v) else f"{v:.3f}" for v in scores.mean(axis=0)]
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
