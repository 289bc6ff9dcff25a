"""Frames with text: naive Bayes beside a pipeline of scikit-learn, in processor time.

124,000 records of twelve texts (3 to 52 levels) and eight numbers. The pipeline is OrdinalEncoder
and KBinsDiscretizer in front of CategoricalNB. Run ``python -m benchmarks.speed.frames``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Interval, Schema

RECORDS = 124_000
LEVELS = (3, 5, 8, 12, 16, 24, 40, 3, 5, 9, 17, 52)
NUMBERS = [f"n{j}" for j in range(8)]


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


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    values = {f"t{j}": [f"level {i} of {j}" for i in range(k)] for j, k in enumerate(LEVELS)}
    columns = {c: rng.choice(v, RECORDS) for c, v in values.items()}
    X = pd.DataFrame({**columns, **{c: rng.normal(size=RECORDS) for c in NUMBERS}})
    y = pd.Series(np.where(rng.random(RECORDS) < 0.3, "yes", "no"))
    domains = {c: Categories(v) for c, v in values.items()}
    schema = Schema(
        {**domains, **{c: Interval(-3, 3, bins=8) for c in NUMBERS}},
        target=Categories(["no", "yes"]),
    )
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    bins = KBinsDiscretizer(8, encode="ordinal", strategy="uniform")
    prepare = make_column_transformer((OrdinalEncoder(**unknown), [*values]), (bins, NUMBERS))
    theirs = make_pipeline(prepare, CategoricalNB())
    ours = BayesianNaiveBayes(1.0, schema=schema)
    fit = processor_time(lambda: theirs.fit(X, y))
    predict = processor_time(lambda: theirs.predict(X))
    print(f"scikit-learn: fit {1e3 * fit:.0f} ms, predict {1e3 * predict:.0f} ms\n")
    print("| texts | fit / scikit-learn | predict / scikit-learn |\n|---|---|---|")
    for name, frame in frames(X, [*values]).items():
        ratio = processor_time(lambda f=frame: ours.fit(f, y)) / fit
        again = processor_time(lambda f=frame: ours.predict(f)) / predict
        print(f"| {name} | {ratio:.2f} | {again:.2f} |")


if __name__ == "__main__":
    main()
