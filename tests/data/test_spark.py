"""The same table in Spark, DuckDB, polars and memory: the same statistics and seeded models."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
)

pytest.importorskip("pyspark", reason="pyspark is not installed: make test-spark installs it")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore"),  # of pyspark, about the versions of others
]

SCHEMA = Schema(
    {
        "age": Interval(0, 100, bins=8),
        "weight": Interval(40, 120, bins=6, missing="indicator"),
        "job": Categories(["a", "b", "c "], unseen="b"),
        "visits": Interval(0, 8, bins=9),
        "smokes": Categories([False, True]),
        "seen": Interval(np.datetime64("2019-01-01"), np.datetime64("2021-01-01"), bins=5),
    },
    target=Categories(["no", "yes"]),
)


def table(n: int = 3000) -> pa.Table:
    """Return records with missing, infinite, unseen and out-of-range values."""
    rng = np.random.default_rng(0)
    age = rng.normal(50, 30, n)
    age[:6] = [np.nan, np.inf, -np.inf, -0.0, 1e308, 12.5]
    seen = np.datetime64("2018-06-01T00:00:00.000001") + rng.integers(0, 10**14, n)
    return pa.table(
        {
            "age": age,
            "weight": pa.array(rng.normal(80, 20, n), mask=rng.random(n) < 0.1),
            "job": pa.array(
                rng.choice(["a", "b", "c", "c ", "A", ""], n), mask=rng.random(n) < 0.1
            ),
            "visits": pa.array(rng.integers(-2, 12, n), mask=rng.random(n) < 0.1),
            "smokes": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.1),
            "seen": pa.array(seen, pa.timestamp("us", tz="UTC"), mask=rng.random(n) < 0.1),
            "ill": np.where(age > 50, "yes", "no"),
            "cost": rng.normal(10, 5, n),
            "person": rng.integers(0, n // 2, n),
        }
    )


@pytest.fixture(scope="module", params=["classic", "Connect"])
def engines(request: Any) -> Iterator[dict[str, Callable[[pa.Table], Any]]]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need pyarrow, too
    options = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    }
    if request.param == "Connect":
        pytest.importorskip(
            "pyspark.sql.connect.session",
            reason="Spark Connect needs pyspark[connect]",
            exc_type=ImportError,
        )
        builder = SparkSession.builder.remote("local[2]")
    else:
        builder = SparkSession.builder.master("local[2]")
        options |= {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert request.param.lower() in type(spark.range(1)).__module__
    yield {
        f"Spark {request.param}": spark.createDataFrame,
        "DuckDB": lambda table: duckdb.from_arrow(table),
        "polars": lambda table: pl.from_arrow(table).lazy(),
    }
    spark.stop()


UNIT = PrivacyUnit("person", max_records=2)


def classifier(frame: Any) -> str:
    model = BayesianNaiveBayes(schema=SCHEMA, privacy_unit=UNIT, random_state=0)
    return model.fit(frame, target="ill", groups="person").to_json()


def exact_counts(frame: Any) -> list[Any]:
    model = BayesianNaiveBayes(np.inf, schema=SCHEMA, temperature=1.0).fit(frame, target="ill")
    return [counts.tolist() for counts in model.posterior_.released.tables]


def regression(frame: Any) -> str:
    schema = Schema(SCHEMA.columns, target=Interval(-10, 30))
    model = BayesianLinearRegression(schema=schema, random_state=0)
    return model.fit(frame, target="cost").to_json()


CASES: dict[str, tuple[list[str], Callable[[Any], Any]]] = {
    "classifier with a temperature, by person": ([*SCHEMA.columns, "ill", "person"], classifier),
    "exact counts": ([*SCHEMA.columns, "ill"], exact_counts),
    "regression": ([*SCHEMA.columns, "cost"], regression),
    "one variable": (
        ["smokes"],
        lambda frame: str(BetaBinomial(random_state=0).fit(frame).posterior_),
    ),
    "Schema.learn": (
        ["age", "visits"],
        lambda frame: Schema.learn(frame, epsilon=1.0, random_state=0).to_json(),
    ),
}


def in_memory(records: pa.Table) -> pd.DataFrame:
    """Return a frame of pandas, which has objects for booleans with missing values by default."""
    return records.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)


@pytest.mark.parametrize("case", CASES)
def test_engines_give_what_memory_gives(engines: Any, case: str) -> None:
    columns, fitted = CASES[case]
    records = table().select(columns)
    if case == "one variable":
        records = records.filter(records["smokes"].is_valid())
    expected = fitted(in_memory(records))
    for name, engine in engines.items():
        assert fitted(engine(records)) == expected, name


def test_predictions_are_those_of_memory(engines: Any) -> None:
    records = table()
    model = BayesianNaiveBayes(schema=SCHEMA, random_state=0).fit(records, target="ill")
    features = records.select([*SCHEMA.columns])
    expected = model.predict(in_memory(features)).tolist()
    for name, engine in engines.items():
        assert model.predict(engine(features)).tolist() == expected, name
