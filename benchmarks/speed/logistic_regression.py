"""Processor time of a private logistic regression beside scikit-learn's (lbfgs), 200,000 records.

20 numbers, correlated and of different scales as they come from files; and a frame of 5 numbers and
5 columns of text. scikit-learn's model standardises numbers and one-hot encodes text first, as its
guide advises; it runs on the numbers as they are, too. Run ``python -m
benchmarks.speed.logistic_regression``, best with one thread of BLAS.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpbayes_sklearn import BayesianLogisticRegression, Categories, Interval, Schema

N = 200_000


def seconds(fit: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least processor time of some calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        fit()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print one line for each table and model."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(N, 20)) @ (np.eye(20) + 0.3 * rng.normal(size=(20, 20)))
    X = mixed / mixed.std(axis=0)
    z = X @ rng.normal(0, 0.4, 20)
    y = (rng.random(N) < 1 / (1 + np.exp(-z))).astype(int)
    raw = X * 10.0 ** rng.integers(-1, 3, 20)
    ends = 5 * raw.std(axis=0)
    texts = {f"t{j}": rng.choice([f"level {k}" for k in range(6)], N) for j in range(5)}
    frame = pd.DataFrame({**{f"x{j}": raw[:, j] for j in range(5)}, **texts})
    domains = {f"x{j}": Interval(-ends[j], ends[j]) for j in range(5)}
    domains |= {f"t{j}": Categories([f"level {k}" for k in range(6)]) for j in range(5)}
    schema = Schema(domains)
    encode = make_column_transformer(
        (StandardScaler(), [f"x{j}" for j in range(5)]), (OneHotEncoder(), [*texts])
    )
    private = {"classes": [0, 1]}
    runs: dict[str, Callable[[], Any]] = {
        "numbers, lbfgs as they are": lambda: LogisticRegression().fit(raw, y),
        "numbers, lbfgs standardised": lambda: make_pipeline(
            StandardScaler(), LogisticRegression()
        ).fit(raw, y),
        "numbers, private, smooth": lambda: BayesianLogisticRegression(
            bounds=(-ends, ends), **private
        ).fit(raw, y),
        "numbers, private, linear": lambda: BayesianLogisticRegression(
            effects="linear", intervals=False, bounds=(-ends, ends), **private
        ).fit(raw, y),
        "numbers, private, linear, intervals": lambda: BayesianLogisticRegression(
            effects="linear", intervals=True, bounds=(-ends, ends), **private
        ).fit(raw, y),
        "frame, lbfgs": lambda: make_pipeline(encode, LogisticRegression()).fit(frame, y),
        "frame, private, smooth": lambda: BayesianLogisticRegression(
            schema=schema, intervals=False, **private
        ).fit(frame, y),
    }
    for name, fit in runs.items():
        measured(name, fit)
    for times in (5, 10):  # codes of the last are too many to be kept between passes
        many, labels = np.tile(raw, (times, 1)), np.tile(y, times)
        large = BayesianLogisticRegression(bounds=(-ends, ends), intervals=False, **private)
        measured(f"{times * N:,} records, private, smooth", partial(large.fit, many, labels))


def measured(name: str, fit: Callable[[], Any]) -> None:
    """Print time and memory of a fit."""
    tracemalloc.start()
    fit()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"| {name} | {seconds(fit):.2f} s | {peak:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
