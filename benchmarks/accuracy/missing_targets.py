"""Records without a target: counted as by default, or left out because the schema declares them.

A fifth of the targets is taken away, those of large values (or of the last class) twice as often as
others. ``python -m benchmarks.accuracy.missing_targets`` prints the table of
``docs/user_guide/answers.md``; ``make bench-data`` installs its data.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
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
    """Return the score without and with the declaration: of all targets, then of four fifths."""
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
    found = []
    for known in (target, gaps):
        for declared in (False, True):
            model: Any = kind(epsilon, schema=replace(schema, missing_target=declared))
            model.fit(X.iloc[train], known)
            found.append(float(score(np.asarray(y)[test], model.predict(X.iloc[test]))))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    heads = ("table", "ε", "all known, default", "declared", "a fifth missing, default", "declared")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in (*CLASSES, *NUMBERS):
        for epsilon in (0.1, 1.0):
            each = np.median([scores(name, epsilon, seed) for seed in range(repeats)], axis=0)
            row = [f"{'accuracy' if name in CLASSES else 'R²'}, {name}", f"{epsilon:g}"]
            print(f"| {' | '.join([*row, *(f'{value:.3f}' for value in each)])} |", flush=True)


if __name__ == "__main__":
    main()
