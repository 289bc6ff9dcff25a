"""InterpretML's DP-EBM on the tables with two classes: accuracy / log loss at delta = 1e-6.

It runs in an environment of its own, on the splits of ``benchmarks.accuracy.defaults``, with the
same public domains: categories as text, numbers with their bounds. DP-EBM refuses more than two
classes. ``make bench-dp-ebm`` makes the environment and prints Markdown.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.metrics import log_loss

from benchmarks.data.tables import table_split
from dpbayes_sklearn import Interval

TABLES = ("adult", "mushroom", "spambase", "german", "chess", "twonorm", "ring")
EPSILONS = (0.1, 1.0)
DELTA = 1e-6


def scores(name: str, epsilon: float, seed: int) -> tuple[float, float]:
    X, y, test_X, test_y, declared = table_split(name, seed)
    columns = declared["schema"].columns
    numbers = [isinstance(domain, Interval) for domain in columns.values()]
    bounds = {j: (d.low, d.high) for j, d in enumerate(columns.values()) if numbers[j]}
    labels = np.unique([*declared["schema"].classes.values])
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=DELTA,
        feature_types=["continuous" if number else "nominal" for number in numbers],
        privacy_bounds=bounds,
        random_state=seed,
    )
    frames = [_as_declared(frame, columns, numbers) for frame in (X, test_X)]
    model.fit(frames[0], np.searchsorted(labels, np.asarray(y).astype(str)))
    probabilities = np.clip(model.predict_proba(frames[1]), 1e-15, 1.0)
    true = np.searchsorted(labels, np.asarray(test_y).astype(str))
    right = probabilities.argmax(axis=1) == true
    return float(right.mean()), float(log_loss(true, probabilities, labels=[0, 1]))


def _as_declared(X, columns, numbers):
    """Return numbers as numbers and everything else as text."""
    by_name = hasattr(X, "columns")
    values = [X[name] if by_name else X[:, j] for j, name in enumerate(columns)]
    pairs = zip(values, numbers, strict=True)
    cells = [np.asarray(v, float if number else str).astype(object) for v, number in pairs]
    return np.stack(cells, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--tables", default=",".join(TABLES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for name in arguments.tables.split(","):
        cells = []
        for epsilon in EPSILONS:
            found = [scores(name, epsilon, seed) for seed in range(arguments.repeats)]
            cells.append("{:.3f} / {:.3f}".format(*np.mean(found, axis=0)))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
