"""Noise of a perturbed mode: pure noise in the hull of the records beside Gaussian noise.

The first table is the standard deviation of the noise of a gradient and follows from public facts
alone: in the sup norm, in the norm of the hull, and Gaussian. The others are measured: R² of a
linear regression with ``mechanism="map"`` whose target is whether a record is of the most frequent
class, and area under the ROC curve and log loss of a logistic regression, without and with a delta.
Columns of categories are also taken as two-valued columns, of which d are drawn at random.

Run ``python -m benchmarks.accuracy.mode_noise [--repeats 10]``; it prints Markdown.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.data.tables import TABLES
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.noise import SupNorm
from dpbayes_sklearn.noise.gradient import BlockShape, gaussian_noise, hull_noise
from dpbayes_sklearn.privacy.budget import RECORD

DELTA, STEPS = 1e-6, 2**20
COLUMNS, LEVELS = (5, 10, 20, 40, 100, 200), (2, 3, 5, 10)
EPSILONS = (0.1, 0.3, 1.0, 3.0)


def deviations(d: int, k: int, epsilon: float) -> tuple[float, float, float]:
    """Return deviations of a contrast of d columns of k levels: sup norm, hull, Gaussian.

    A column of two levels is a number, whose noise is stated.
    """
    share = Fraction(str(epsilon))
    shape = BlockShape((k,) * d, (Fraction(k),) * d, Fraction(1, 2))
    sides = d * (1 if k == 2 else k) + 1
    sup = float(SupNorm.of((1,) * sides, STEPS, share).variances[0]) / STEPS**2
    hull = hull_noise(shape, share, RECORD)
    gauss = gaussian_noise(shape, share, Fraction(str(DELTA)), RECORD)
    each = [noise.law.contrast_variance(0) / noise.lattice**2 for noise in (hull, gauss)]
    pair = [2 * v if k == 2 else v for v in each]
    return math.sqrt(sup), math.sqrt(pair[0]), math.sqrt(pair[1])


class Labelled(NamedTuple):
    """Columns of categories, and whether a record is of the most frequent class."""

    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    domains: dict[str, Categories]


def categories(name: str) -> Labelled:
    """Return a table whose columns are all categories."""
    data = TABLES[name]()
    domains = {str(c): d for c, d in data.schema.columns.items() if isinstance(d, Categories)}
    labels, counts = np.unique(np.asarray(data.y).astype(str), return_counts=True)
    y = (np.asarray(data.y).astype(str) == labels[counts.argmax()]).astype(np.int64)
    return Labelled(pd.DataFrame(data.X)[[*domains]], y, domains)


def two_valued(name: str, d: int) -> Labelled:
    """Return d of the columns that say whether a column has a level."""
    data, two = categories(name), Categories([0, 1])
    levels = [(c, v) for c, domain in data.domains.items() for v in domain.values]
    order = np.random.default_rng(0).permutation(len(levels))[:d]
    chosen = {
        f"{levels[i][0]}={levels[i][1]}": (data.X[levels[i][0]] == levels[i][1]).astype(np.int64)
        for i in order
    }
    return Labelled(pd.DataFrame(chosen), data.y, dict.fromkeys(chosen, two))


def split(n: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows for training, four fifths, and the others."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: n * 4 // 5], order[n * 4 // 5 :]


def linear(data: Labelled, epsilon: float, delta: float, seed: int) -> tuple[float, ...]:
    """Return R² and the delta that was spent."""
    train, test = split(len(data.y), seed)
    schema = Schema(data.domains, Interval(0, 1))
    model = BayesianLinearRegression(
        epsilon, delta=delta, mechanism="map", schema=schema, random_state=seed
    ).fit(data.X.iloc[train], data.y[train].astype(float))
    y = data.y[test]
    error = float(np.mean((y - model.predict(data.X.iloc[test])) ** 2))
    return 1 - error / float(np.var(y)), model.guarantee_.delta


def logistic(data: Labelled, epsilon: float, delta: float, seed: int) -> tuple[float, ...]:
    """Return area under the curve, log loss and the delta that was spent."""
    train, test = split(len(data.y), seed)
    schema = Schema(data.domains, Categories([0, 1]))
    model = BayesianLogisticRegression(epsilon, delta=delta, schema=schema, random_state=seed)
    q = model.fit(data.X.iloc[train], data.y[train]).predict_proba(data.X.iloc[test])[:, 1]
    y = data.y[test]
    return float(roc_auc_score(y, q)), float(log_loss(y, q)), model.guarantee_.delta


Score = Callable[[Labelled, float, float, int], tuple[float, ...]]


def row(name: str, data: Labelled, score: Score, repeats: int, jobs: int) -> str:
    """Return a line of scores, pure / with a delta where one was spent, for all epsilons."""
    cells = []
    for epsilon in EPSILONS:
        both = []
        for delta in (0.0, DELTA):
            runs = Parallel(jobs)(
                delayed(score)(data, epsilon, delta, seed) for seed in range(repeats)
            )
            *means, spent = np.mean(runs, axis=0)
            both.append(" ".join(f"{mean:.3f}" for mean in means) if delta in (0.0, spent) else "=")
        cells.append(" / ".join(both))
    return f"| {name} | {int(0.8 * len(data.y)):,} | {' | '.join(cells)} |"


def rows(score: Score, names: list[str], repeats: int, jobs: int) -> Iterator[str]:
    """Yield lines of tables as they are, and as two-valued columns."""
    for name in names:
        data = categories(name)
        label = f"{name}, {len(data.domains)} columns"
        yield row(label, data, score, repeats, jobs)
    for name, d in (("splice", 10), ("splice", 40), ("splice", 100), ("splice", 200)):
        yield row(f"{name} as {d} two-valued", two_valued(name, d), score, repeats, jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    for epsilon in (0.1, 1.0, 10.0):
        print(f"| columns, ε = {epsilon:g} |" + "".join(f" K = {k} |" for k in LEVELS))
        print("|---" * (len(LEVELS) + 1) + "|")
        for d in COLUMNS:
            cells = [deviations(d, k, epsilon) for k in LEVELS]
            print(f"| {d} | " + " | ".join(" / ".join(f"{v:.3g}" for v in c) for c in cells) + " |")
    head = "| table | n | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"
    for score in (linear, logistic):
        print(head, "|---" * (len(EPSILONS) + 2) + "|", sep="\n")
        names = ["mushroom", "splice", "spambase", "chess"]
        for line in rows(score, names, options.repeats, options.jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
