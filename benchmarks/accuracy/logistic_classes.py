"""Three classes: one logistic regression for each, at a third of epsilon, beside naive Bayes.

scikit-learn's ``OneVsRestClassifier`` fits and charges once per class. Targets of regressions are
cut at two public values. Accuracy / log loss, means over random splits, four fifths for training.
Run ``python -m benchmarks.accuracy.logistic_classes [--repeats 10]``.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.accuracy.logistic import Binary
from benchmarks.data import regression
from benchmarks.data.tables import TABLES
from dpbayes_sklearn import BayesianLogisticRegression, BayesianNaiveBayes, Schema

EPSILONS = (0.3, 1.0, 3.0)
CUTS = {
    "labsup": (0.5, 12.0),
    "k401": (25.0, 50.0),
    "census2000": (6.2, 6.9),
    "meps": (6.0, 7.3),
}
CLASSES = [0, 1, 2]


def load(name: str) -> Binary:
    """Return features, labels 0, 1 and 2, and the public domains."""
    if name in CUTS:
        X, y, schema = getattr(regression, name)()
        return Binary(X, np.digitize(y, CUTS[name]), Schema(dict(schema.columns)))
    X, y, schema = TABLES[name]()
    codes = pd.Series(y).astype(str).astype("category").cat.codes.to_numpy().astype(int)
    return Binary(X, codes, Schema(dict(schema.columns)))


def models(schema: Schema, epsilon: float) -> list[Any]:
    """Return naive Bayes and one against the rest; without privacy, only the latter."""
    share = epsilon / len(CLASSES)
    each = BayesianLogisticRegression(share, schema=schema, classes=[0, 1], intervals=False)
    bayes = BayesianNaiveBayes(epsilon, schema=schema, classes=CLASSES)
    return [*([bayes] if np.isfinite(epsilon) else []), OneVsRestClassifier(each)]


def scores(table: Binary, epsilon: float, seed: int) -> list[tuple[float, float]]:
    """Return accuracy and log loss of all models on one split."""
    X, y, schema = table
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) * 8 // 10])
    found = []
    for model in models(schema, epsilon):
        p = np.clip(model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test]), 1e-6, 1)
        p = p / p.sum(axis=1, keepdims=True)
        right = float((p.argmax(axis=1) == y[test]).mean())
        found.append((right, float(log_loss(y[test], p, labels=CLASSES))))
    return found


def cell(scores: Any) -> str:
    """Return accuracy and log loss as text."""
    return f"{scores[0]:.3f} / {scores[1]:.3f}"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="random splits")
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for name in (*CUTS, "contraceptive"):
        table = load(name)
        model = BayesianLogisticRegression(schema=table.schema, classes=[0, 1])
        p = model._blocks(model._declared_schema(len(table.y), None)).parameters
        (exact,) = np.mean([scores(table, np.inf, seed) for seed in range(repeats)], axis=0)
        for epsilon in EPSILONS:
            runs = np.array([scores(table, epsilon, seed) for seed in range(repeats)])
            rho = 0.8 * len(table.y) * epsilon / (3 * p)
            error = runs[:, :, 0].std(axis=0, ddof=1).max() / np.sqrt(repeats)
            each = [cell(mean) for mean in (*runs.mean(axis=0), exact)]
            cells = [name, f"{epsilon:g}", f"{rho:.0f}", *each, f"{error:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
