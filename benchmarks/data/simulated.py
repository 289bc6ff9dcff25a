"""Simulated data, drawn here or read from the KEEL repository."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.data.classification import Classification, TrainTestSplit, equal_columns, letters
from dpbayes_sklearn import Categories, Interval, Schema

N_RARE_ITEMS = 200
LARGER_CLASS = 0.64


def twonorm() -> Classification:
    """Two normal distributions in twenty dimensions, centres 2 apart (Breiman 1996)."""
    return equal_columns("twonorm", 20, Interval(-6, 6, bins=8), "01")


def ring() -> Classification:
    """One normal distribution inside a wider one in twenty dimensions (Breiman 1996).

    The file counts in thousandths.
    """
    return equal_columns("ring", 20, Interval(-6000, 6000, bins=8), "01")


def rare_items(seed: int = 0, n: int = 8000) -> Classification:
    """Return baskets of 200 rare items; 64 % of them belong to the class that buys more.

    An item's share in the smaller class is Beta(0.6, 5); in the larger class it is multiplied by
    a log-normal factor (mean and standard deviation of its logarithm 0.35). None exceeds 0.7.
    """
    rng = np.random.default_rng(seed)
    base = rng.beta(0.6, 5, N_RARE_ITEMS)
    factor = rng.lognormal(0.35, 0.35, N_RARE_ITEMS)
    shares = np.minimum(np.stack([base, base * factor]), 0.7)
    y = (rng.random(n) < LARGER_CLASS).astype(int)
    X = (rng.random((n, N_RARE_ITEMS)) < shares[y]).astype(int)
    names = [f"item{i}" for i in range(N_RARE_ITEMS)]
    schema = Schema(dict.fromkeys(names, letters("01")), Categories(["0", "1"]))
    frame = pd.DataFrame(X, columns=names).astype(str)
    return Classification(frame, pd.Series(y).astype(str), schema)


def simulated_split(n: int, seed: int, d: int = 16, n_test: int = 1000) -> TrainTestSplit:
    """Return n records of the model of Zhang, Rubinstein and Dimitrakakis (2016), and others.

    Boolean features; the share of the classes and all probabilities are uniform.
    """
    rng = np.random.default_rng([n, seed])
    share, probabilities = rng.random(), rng.random((2, d))
    y = (rng.random(n + n_test) < share).astype(int)
    X = (rng.random((n + n_test, d)) < probabilities[y]).astype(int)
    public = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return TrainTestSplit(X[:n], y[:n], X[n:], y[n:], public)
