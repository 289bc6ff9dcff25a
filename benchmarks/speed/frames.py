"""Frames with text: naive Bayes and regression beside pipelines of scikit-learn, processor time.

Naive Bayes: 124,000 records of twelve texts (3 to 52 levels) and eight numbers; the pipeline is
OrdinalEncoder and KBinsDiscretizer in front of CategoricalNB. Regression: 155,000 records of ten
texts (63 levels) and nine numbers, 72 coordinates and the constant; the pipeline is OneHotEncoder
in front of Ridge. Run ``python -m benchmarks.speed.frames``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    Schema,
)

RECORDS = 124_000
LEVELS = (3, 5, 8, 12, 16, 24, 40, 3, 5, 9, 17, 52)
NUMBERS = [f"n{j}" for j in range(8)]
REGRESSION_RECORDS = 155_000
REGRESSION_LEVELS = (3, 4, 5, 5, 6, 6, 7, 8, 9, 10)
REGRESSION_NUMBERS = [f"n{j}" for j in range(9)]


def processor_time(call: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least processor time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def frames(X: pd.DataFrame, texts: list[str]) -> dict[str, Any]:
    """Return the same records with texts of several types."""
    types = {"str": "str", "object": object, "category": "category", "Arrow": "string[pyarrow]"}
    found: dict[str, Any] = {n: X.astype(dict.fromkeys(texts, t)) for n, t in types.items()}
    import polars as pl

    return found | {"polars": pl.from_pandas(X)}


def texts(levels: tuple[int, ...], records: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return columns of texts with so many levels each."""
    return {
        f"t{j}": rng.choice([f"level {i} of {j}" for i in range(k)], records)
        for j, k in enumerate(levels)
    }


def domains(levels: tuple[int, ...]) -> dict[str, Any]:
    """Return what is declared about these columns."""
    return {
        f"t{j}": Categories([f"level {i} of {j}" for i in range(k)]) for j, k in enumerate(levels)
    }


def naive_bayes() -> None:
    """Print fits and predictions of naive Bayes for texts of every type."""
    rng = np.random.default_rng(0)
    columns = texts(LEVELS, RECORDS, rng)
    X = pd.DataFrame({**columns, **{c: rng.normal(size=RECORDS) for c in NUMBERS}})
    y = pd.Series(np.where(rng.random(RECORDS) < 0.3, "yes", "no"))
    schema = Schema(
        {**domains(LEVELS), **{c: Interval(-3, 3, bins=8) for c in NUMBERS}},
        target=Categories(["no", "yes"]),
    )
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    bins = KBinsDiscretizer(8, encode="ordinal", strategy="uniform")
    prepare = make_column_transformer((OrdinalEncoder(**unknown), [*columns]), (bins, NUMBERS))
    theirs = make_pipeline(prepare, CategoricalNB())
    ours = BayesianNaiveBayes(1.0, schema=schema)
    fit = processor_time(lambda: theirs.fit(X, y))
    predict = processor_time(lambda: theirs.predict(X))
    print(f"scikit-learn: fit {1e3 * fit:.0f} ms, predict {1e3 * predict:.0f} ms\n")
    print("| texts | fit / scikit-learn | predict / scikit-learn |\n|---|---|---|")
    for name, frame in frames(X, [*columns]).items():
        ratio = processor_time(lambda f=frame: ours.fit(f, y)) / fit
        again = processor_time(lambda f=frame: ours.predict(f)) / predict
        print(f"| {name} | {ratio:.2f} | {again:.2f} |")


def regression() -> None:
    """Print fits and predictions of a regression on levels of texts, by mechanism."""
    rng = np.random.default_rng(0)
    columns = texts(REGRESSION_LEVELS, REGRESSION_RECORDS, rng)
    numbers = {c: rng.normal(size=REGRESSION_RECORDS) for c in REGRESSION_NUMBERS}
    X = pd.DataFrame({**columns, **numbers})
    y = X["n0"] + (X["t0"] == "level 0 of 0") + rng.normal(size=REGRESSION_RECORDS)
    schema = Schema(
        {**domains(REGRESSION_LEVELS), **{c: Interval(-4, 4) for c in REGRESSION_NUMBERS}},
        target=Interval(-8, 8),
    )
    levels = OneHotEncoder(handle_unknown="ignore")
    theirs = make_pipeline(
        make_column_transformer((levels, [*columns]), remainder="passthrough"), Ridge()
    )
    fit = processor_time(lambda: theirs.fit(X, y))
    predict = processor_time(lambda: theirs.predict(X))
    print(f"\nscikit-learn: fit {1e3 * fit:.0f} ms, predict {1e3 * predict:.0f} ms\n")
    print("| mechanism | texts | fit / scikit-learn | predict / scikit-learn |\n|---|---|---|---|")
    for name in ("laplace", "gaussian", "map", "sampler"):
        delta = 1e-6 if name == "gaussian" else 0.0
        ours = BayesianLinearRegression(1.0, delta=delta, mechanism=name, schema=schema)
        for kind, frame in (("str", X), ("category", X.astype(dict.fromkeys(columns, "category")))):
            ratio = processor_time(lambda f=frame, m=ours: m.fit(f, y)) / fit
            again = processor_time(lambda f=frame, m=ours: m.predict(f)) / predict
            print(f"| {name} | {kind} | {ratio:.2f} | {again:.2f} |")


def main() -> None:
    warnings.simplefilter("ignore")
    naive_bayes()
    regression()


if __name__ == "__main__":
    main()
