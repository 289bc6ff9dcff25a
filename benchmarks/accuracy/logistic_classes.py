"""Three classes and more in one release, beside naive Bayes and one regression for each class.

scikit-learn's ``OneVsRestClassifier`` fits and charges once per class, so each has epsilon divided
by their number. Targets of regressions are cut at public values. Accuracy / log loss, means over
random splits, four fifths for training.
The ridge and the scale of predictions are those of two classes; nothing was chosen on these tables.
Run ``python -m benchmarks.accuracy.logistic_classes [--repeats 5]``.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.accuracy.logistic import Binary
from benchmarks.data import regression
from benchmarks.data.tables import TABLES
from dpbayes_sklearn import BayesianLogisticRegression, BayesianNaiveBayes, Schema
from dpbayes_sklearn.logistic.mode import n_parameters

EPSILONS = (0.3, 1.0, 3.0)
CUTS = {
    "labsup": (0.5, 12.0),
    "k401": (25.0, 50.0),
    "census2000": (6.2, 6.9),
    "meps": (6.0, 7.3),
    "fertil2": (0.5, 3.5),
}
TABLE_NAMES = (*CUTS, "contraceptive", "marketing", "splice", "penbased", "satimage", "optdigits")
ORDERED = (*CUTS, "marketing")  # Tables whose classes have an order.
_MANY = 60  # Tables with more parameters a class have two splits.


def load(name: str) -> Binary:
    """Return features, labels 0, 1, 2, ... and the public domains."""
    if name in CUTS:
        X, y, schema = getattr(regression, name)()
        return Binary(X, np.digitize(y, CUTS[name]), Schema(dict(schema.columns)))
    X, y, schema = TABLES[name]()
    codes = pd.Series(y).astype(str).astype("category").cat.codes.to_numpy().astype(int)
    return Binary(X, codes, Schema(dict(schema.columns)))


def models(schema: Schema, epsilon: float, classes: list[int], all_of: bool) -> Iterator[Any]:
    """Yield the regression, also with an order; if private, naive Bayes and one against all."""
    yield BayesianLogisticRegression(epsilon, schema=schema, classes=classes)
    yield BayesianLogisticRegression(epsilon, schema=schema, classes=classes, ordered=True)
    if np.isfinite(epsilon):
        yield BayesianNaiveBayes(epsilon, schema=schema, classes=classes)
        share = epsilon / len(classes)
        each = BayesianLogisticRegression(share, schema=schema, classes=[0, 1], intervals=False)
        if all_of:
            yield OneVsRestClassifier(each)


def scores(
    table: Binary, epsilon: float, seed: int, all_of: bool = True
) -> list[tuple[float, float]]:
    """Return accuracy and log loss of all models on one split."""
    X, y, schema = table
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) * 8 // 10])
    found, classes = [], [*range(int(y.max()) + 1)]
    for model in models(schema, epsilon, classes, all_of):
        p = np.clip(model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test]), 1e-6, 1)
        p = p / p.sum(axis=1, keepdims=True)
        right = float((p.argmax(axis=1) == y[test]).mean())
        found.append((right, float(log_loss(y[test], p, labels=classes))))
    return found


def cell(scores: Any) -> str:
    """Return accuracy and log loss as text."""
    return f"{scores[0]:.3f} / {scores[1]:.3f}"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="random splits")
    parser.add_argument("--tables", nargs="*", default=TABLE_NAMES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for name in given.tables:
        table = load(name)
        classes = int(table.y.max()) + 1
        model = BayesianLogisticRegression(schema=table.schema, classes=[*range(classes)])
        blocks = model._blocks(model._declared_schema(len(table.y), None))
        p = n_parameters(blocks, classes)
        repeats = given.repeats if blocks.parameters <= _MANY else 2
        exact, _ = np.mean([scores(table, np.inf, seed) for seed in range(repeats)], axis=0)
        for epsilon in EPSILONS:
            runs = np.array([scores(table, epsilon, seed) for seed in range(repeats)])
            rho = 0.8 * len(table.y) * epsilon / p
            error = runs[:, [0, 2], 0].std(axis=0, ddof=1).max() / np.sqrt(repeats)
            softmax, ordered, bayes, rest = (cell(mean) for mean in runs.mean(axis=0))
            about = f"{name} ({len(table.y)}, {classes}, {blocks.parameters})"
            cells = [about, f"{epsilon:g}", f"{rho:.0f}", bayes, rest, softmax]
            cells += [ordered if name in ORDERED else "", cell(exact)]
            print("| " + " | ".join([*cells, f"{error:.3f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
