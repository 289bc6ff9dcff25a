"""Records without a target: a fifth of the targets missing, none, or such records deleted before.

Those of large values (or of the last class) are taken away twice as often as others. Deleting the
records reveals how many there are. Beside the score stands the mean prediction for the records that
have a target over the mean of their targets.
``python -m benchmarks.accuracy.missing_targets`` prints the table of
``docs/user_guide/answers.md``; ``make bench-data`` installs its data.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.data import regression
from benchmarks.data.tables import TABLES
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes

CLASSES, NUMBERS = ("adult", "contraceptive"), ("k401", "meps", "labsup")
MOST = 15_000  # records of a table


def scores(name: str, epsilon: float, seed: int) -> list[float]:
    """Return the score with all targets; score and bias with gaps, and without these records."""
    X, y, schema = (TABLES[name] if name in CLASSES else getattr(regression, name))()
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y))[:MOST], [min(len(y), MOST) * 7 // 10])
    target = pd.Series(np.asarray(y)[train], dtype=object if name in CLASSES else float)
    high = target == target.max() if name in CLASSES else target > target.median()
    gaps = target.where(rng.random(len(train)) > np.where(high, 2, 1) * 0.2 / (1 + high.mean()))
    kind, score = (
        (BayesianNaiveBayes, accuracy_score) if name in CLASSES
        else (BayesianLinearRegression, r2_score)
    )  # fmt: skip
    found, there = [], gaps.notna().to_numpy()
    mean = _mean_target(gaps[there], target.max())
    for rows, known in ((train, target), (train, gaps), (train[there], gaps[there])):
        model: Any = kind(epsilon, schema=schema).fit(X.iloc[rows], known.to_numpy())
        found.append(float(score(np.asarray(y)[test], model.predict(X.iloc[test]))))
        found.append(_mean_prediction(model, X.iloc[train[there]]) / mean - 1)
    return [found[0], *found[2:]]


def _mean_prediction(model: Any, X: Any) -> float:
    """Return the mean prediction, or the mean probability of the last class."""
    if isinstance(model, BayesianLinearRegression):
        return float(model.predict(X).mean())
    return float(model.predict_proba(X)[:, -1].mean())


def _mean_target(known: Any, last: Any) -> float:
    """Return the mean of the known targets, or the share of the last class among them."""
    return float(((known == last) if known.dtype == object else known).mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    heads = ("table", "ε", "all known", "a fifth missing", "bias", "deleted before", "bias")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in (*CLASSES, *NUMBERS):
        for epsilon in (0.1, 1.0):
            each = np.median([scores(name, epsilon, seed) for seed in range(repeats)], axis=0)
            row = [f"{'accuracy' if name in CLASSES else 'R²'}, {name}", f"{epsilon:g}"]
            row += [
                f"{v:+.1%}".replace("%", " %") if i in (2, 4) else f"{v:.3f}"
                for i, v in enumerate(each)
            ]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
