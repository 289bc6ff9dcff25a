"""A rare class: what a threshold at its share does for balanced accuracy.

Tables of two classes keep only so many records of their second class that it has a share of 5.5 %.
The default naive Bayes predicts the more probable class; or, by ``FixedThresholdClassifier``, the
rare one wherever its probability exceeds the share of the class that was released with the model.
Nothing more is spent for that. AUC does not depend on the threshold.

Run ``python -m benchmarks.accuracy.rare_class [--repeats 20]``; it prints Markdown. ``make
bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier

from benchmarks.data.tables import table_split
from dpbayes_sklearn import BayesianNaiveBayes

TABLES = ("adult", "spambase", "chess", "ring")
EPSILONS = (0.1, 1.0, 3.0, np.inf)
SHARE = 0.055


def thinned(y: npt.NDArray[np.str_], rare: str, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return rows of which a share of ``SHARE`` is of the rare class."""
    others, members = np.flatnonzero(y != rare), np.flatnonzero(y == rare)
    kept = rng.permutation(members)[: round(len(others) * SHARE / (1 - SHARE))]
    return np.sort(np.concatenate([others, kept]))


def scores(name: str, epsilon: float, seed: int) -> tuple[float, float, float, int]:
    """Return balanced accuracy without and with the threshold, AUC, and the number of records."""
    X, y, test_X, test_y, public = table_split(name, seed)
    rare = public["schema"].classes.values[1]
    rng = np.random.default_rng(seed)
    y, test_y = (np.asarray(labels).astype(str) for labels in (y, test_y))
    rows, test_rows = thinned(y, rare, rng), thinned(test_y, rare, rng)
    model = BayesianNaiveBayes(epsilon, **public).fit(X.iloc[rows], y[rows])
    (column,) = np.flatnonzero(model.classes_ == rare)
    at_share = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=model.class_prior_[column], pos_label=rare
    ).fit(X.iloc[rows], y[rows])
    test_X, test_y = test_X.iloc[test_rows], test_y[test_rows]
    return (
        balanced_accuracy_score(test_y, model.predict(test_X)),
        balanced_accuracy_score(test_y, at_share.predict(test_X)),
        roc_auc_score(test_y == rare, model.predict_proba(test_X)[:, column]),
        len(rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="random splits")
    options = parser.parse_args()
    heads = "| table | records | ε | more probable class | threshold at the share | AUC |"
    print(heads + "\n" + "|---" * 6 + "|")
    for name in TABLES:
        for epsilon in EPSILONS:
            found = [scores(name, epsilon, seed) for seed in range(options.repeats)]
            before, after, auc, n = np.mean(found, axis=0)
            row = (name, f"{n:,.0f}", f"{epsilon:g}", f"{before:.2f}", f"{after:.2f}", f"{auc:.2f}")
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
