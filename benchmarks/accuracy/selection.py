"""Columns chosen privately: naive Bayes on all columns beside some of them, and private trees.

Total epsilon is 1. A share of it chooses columns (or a tree), the rest fits the model. Accuracy and
log loss, means over splits; seven tenths of the records train. A tree is compared with the star of
naive Bayes and with a tree from 5,000 records that count as public.

Run ``python -m benchmarks.accuracy.selection [--repeats 10]``; ``make bench-data`` installs the
tables. It prints Markdown.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.accuracy.networks import Problem, census, simulated
from benchmarks.data.networks import CLASS_OF
from benchmarks.data.tables import table_split
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    Schema,
    tree_augmented,
)
from dpbayes_sklearn.feature_selection import PrivateSelectKBest

CHOICES: dict[str, tuple[int | str, ...]] = {
    "splice": ("auto", 5, 8, 10),
    "mushroom": ("auto", 1, 3, 5),
    "spambase": ("auto", 10, 20, 30),
    "adult": ("auto", 4, 6, 8),
}
SHARE, TREE_SHARES = 0.2, (0.1, 0.2)


def scores(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return accuracy and log loss of a fitted model."""
    chances = model.predict_proba(X)
    hits = model.classes_[chances.argmax(axis=1)] == np.asarray(y)
    return float(hits.mean()), float(log_loss(y, chances, labels=model.classes_))


def selected(name: str, k: int | str | None, seed: int) -> tuple[float, float]:
    """Return accuracy and log loss with k columns, or with all if k is None."""
    X, y, X_test, y_test, public = table_split(name, seed)
    schema, epsilon = public["schema"], 1.0
    if k is not None:
        select = PrivateSelectKBest(k, epsilon=SHARE, schema=schema).fit(X, y)
        kept = select.get_feature_names_out()
        schema = Schema({column: schema.columns[column] for column in kept}, schema.target)
        X, X_test, epsilon = X[kept], X_test[kept], 1.0 - SHARE
    return scores(BayesianNaiveBayes(epsilon, schema=schema).fit(X, y), X_test, y_test)


def selection_rows(names: Sequence[str], repeats: int) -> Iterator[list[str]]:
    """Yield a line for every table."""
    for name in names:
        cells = []
        for k in (None, *CHOICES[name]):
            found = np.mean([selected(name, k, seed) for seed in range(repeats)], axis=0)
            label = "all" if k is None else str(k)
            cells.append(f"{label}: {found[0]:.3f} / {found[1]:.2f}")
        yield [name, *cells]


def private_tree(X: Any, y: Any, schema: Schema, share: float) -> dict[str, list[str]]:
    """Return a tree for a model with the rest of epsilon = 1."""
    return tree_augmented(X, y, schema, epsilon=share, model_epsilon=1.0 - share)


def tree_row(problem: Problem, repeats: int) -> list[str]:
    """Return accuracies and log losses of star, public tree and private trees."""
    X, y, n_public = problem.X, problem.y, problem.n_public
    public = tree_augmented(X[:n_public], y[:n_public], problem.schema)
    found = []
    for seed in range(repeats):
        train_X, test_X, train_y, test_y = train_test_split(
            X[n_public:], y[n_public:], test_size=0.3, random_state=seed
        )
        trees = [(None, 1.0), (public, 1.0)] + [
            (private_tree(train_X, train_y, problem.schema, share), 1.0 - share)
            for share in TREE_SHARES
        ]
        models = (
            BayesianNaiveBayes(epsilon, schema=problem.schema)
            if parents is None
            else BayesianNetworkClassifier(epsilon, parents=parents, schema=problem.schema)
            for parents, epsilon in trees
        )
        found.append([scores(m.fit(train_X, train_y), test_X, test_y) for m in models])
    return [problem.name, *(f"{hits:.3f} / {loss:.2f}" for hits, loss in np.mean(found, axis=0))]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=[*CHOICES], help="tables of columns")
    parser.add_argument("--networks", nargs="*", default=["census", *CLASS_OF])
    options = parser.parse_args()
    repeats = options.repeats
    logging.getLogger("dpbayes_sklearn").disabled = True
    print(
        f"| table | columns: accuracy / log loss, {SHARE:g} ε for the choice |||||\n|" + "---|" * 6
    )
    for row in selection_rows(options.sets, repeats):
        print("| " + " | ".join(row) + " |", flush=True)
    heads = ["network", "star", "public tree", *(f"private tree, {s:g} ε" for s in TREE_SHARES)]
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name in options.networks:
        problem = census() if name == "census" else simulated(name)
        print("| " + " | ".join(tree_row(problem, repeats)) + " |", flush=True)


if __name__ == "__main__":
    main()
