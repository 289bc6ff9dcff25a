"""Naive Bayes beside one pass over memory and beside other naive Bayes classifiers.

Processor times as ratios to a floor that is measured in turns with them: the sum of all cells of
a float64 array, the bitwise or of all words of a uint8 array. Extra memory is the peak of what was
allocated while the call ran. Run ``python -m benchmarks.speed.naive_bayes [--quick]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

from benchmarks.speed.clock import beside, diffprivlib, extra_megabytes, one_pass, run
from dpbayes_sklearn import BayesianNaiveBayes

SHAPES = ((100_000, 20), (1_000_000, 20), (1_000_000, 100))
Array = Any


def row(name: str, model: Any, X: Array, y: Array, repeats: int, memory: bool = True) -> None:
    """Print fit and predict of one classifier."""
    model.fit(X[:1000], y[:1000])  # what is computed once from public facts is not counted
    cells = []
    for call in (lambda: model.fit(X, y), lambda: model.predict(X)):
        text = str(beside(call, one_pass(X), repeats))
        cells.append(text + (f" {extra_megabytes(call):>6,.0f} MB" if memory else ""))
    print(f"{name:<44}" + "  ".join(cells), flush=True)


def ours(X: Array, y: Array, n_classes: int, n_bins: int, repeats: int) -> None:
    high = 1 if X.dtype == np.float64 else n_bins - 1
    model = BayesianNaiveBayes(
        inference="plug_in", classes=range(n_classes), bounds=(0, high), n_bins=n_bins
    )
    name = f"BayesianNaiveBayes, {X.dtype}, k={n_classes}, K={n_bins}"
    row(name, model, X, y, repeats)


def table(rows: int, features: int, repeats: int) -> None:
    """Print all classifiers on data of one shape."""
    rng = np.random.default_rng(0)
    labels = {k: rng.integers(0, k, rows) for k in (2, 10)}
    print(f"\n{rows:,} x {features}")
    print(f"{'':<44}{'fit':>20}{'predict':>31}")
    X: Array = rng.random((rows, features))
    for k, y in labels.items():
        for n_bins in (2, 8, 32):
            ours(X, y, k, n_bins, repeats)
    row("BernoulliNB, float64, k=2", BernoulliNB(binarize=0.5), X, labels[2], 1, memory=False)
    row("GaussianNB, float64, k=2", GaussianNB(), X, labels[2], 1, memory=False)
    for k, y in labels.items():
        for n_bins in (2, 8, 32):
            ours(rng.integers(0, n_bins, X.shape, dtype=np.uint8), y, k, n_bins, repeats)
    codes = rng.integers(0, 8, X.shape, dtype=np.uint8)
    row("BernoulliNB, uint8, k=2", BernoulliNB(binarize=0.5), codes, labels[2], 1, memory=False)
    categorical = CategoricalNB(min_categories=8)
    row("CategoricalNB, uint8, k=2, K=8", categorical, codes, labels[2], 1, memory=False)
    peer = diffprivlib("GaussianNB", rows, features)
    if peer is not None:
        name = "diffprivlib GaussianNB, float64, k=2"
        print(f"{name:<44}{peer[0]:>19.1f}x{peer[1]:>30.1f}x")


if __name__ == "__main__":
    run(__doc__.splitlines()[0], SHAPES, table)
