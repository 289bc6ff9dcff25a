"""The same table in Spark, DuckDB, polars and memory: the same statistics and seeded models.

Spark is a cluster of two executors, each a process of its own, and a server of Spark Connect.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import dpbayes_sklearn
from dpbayes_sklearn import (
    BayesianCountRegression,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyUnit,
    PrivateMoments,
    Schema,
)
from dpbayes_sklearn.data.reading import read_table
from dpbayes_sklearn.data.spark import SparkFrame, SparkSource, SparkTable
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler

pyspark = pytest.importorskip("pyspark", reason="make test-spark installs pyspark")
pytestmark = [
    pytest.mark.slow,
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


OPTIONS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": str(Path(dpbayes_sklearn.__path__[0]).parent),
}


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@contextmanager
def executors(folder: Path) -> Iterator[str]:
    """Start a cluster of Spark: a master and two workers with one executor each."""
    home = Path(pyspark.__path__[0])
    address = ["--host", "127.0.0.1", "--webui-port", "0"]
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    kinds = [
        ["master.Master", "--port", port],
        *(
            [
                "worker.Worker",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(folder / w),
                master,
            ]
            for w in "ab"
        ),
    ]
    with ExitStack() as started:
        for (kind, *options), log in zip(kinds, "mab", strict=True):
            command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}"]
            output = started.enter_context((folder / f"{log}.log").open("w"))
            process = subprocess.Popen(
                [*command, *address, *options],
                env={**os.environ, "SPARK_HOME": str(home)},
                stderr=output,
            )
            started.callback(process.wait)
            started.callback(process.terminate)
        yield master


@pytest.fixture(scope="module", params=["cluster", "Connect"])
def spark(request: Any, tmp_path_factory: Any) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need this environment, too
    with ExitStack() as started:
        if request.param == "Connect":
            pytest.importorskip(
                "pyspark.sql.connect.session",
                reason="Spark Connect needs pyspark[connect]",
                exc_type=ImportError,
            )
            builder, options = SparkSession.builder.remote("local[2]"), {}
        else:
            folder = tmp_path_factory.mktemp("spark")
            builder = SparkSession.builder.master(started.enter_context(executors(folder)))
            options = {
                "spark.ui.enabled": "false",
                "spark.driver.host": "127.0.0.1",
                "spark.executor.memory": "512m",
            }
        for name, value in (OPTIONS | options).items():
            builder = builder.config(name, value)
        session = started.enter_context(closing_session(builder.getOrCreate()))
        kind = "connect" if request.param == "Connect" else "classic"
        assert kind in type(session.range(1)).__module__
        yield session


@contextmanager
def closing_session(session: Any) -> Iterator[Any]:
    try:
        yield session
    finally:
        session.stop()


ON_CLUSTER = pytest.mark.parametrize("spark", ["cluster"], indirect=True)


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


ENGINES = [lambda table: duckdb.from_arrow(table), lambda table: pl.from_arrow(table).lazy()]


@pytest.mark.parametrize("case", CASES)
def test_engines_give_what_memory_gives(spark: Any, case: str) -> None:
    columns, fitted = CASES[case]
    records = table().select(columns)
    if case == "one variable":
        records = records.filter(records["smokes"].is_valid())
    expected = fitted(in_memory(records))
    for engine in (spark.createDataFrame, *ENGINES):
        assert fitted(engine(records)) == expected


def test_predictions_are_those_of_memory(spark: Any) -> None:
    records = table()
    model = BayesianNaiveBayes(schema=SCHEMA, random_state=0).fit(records, target="ill")
    features = records.select([*SCHEMA.columns])
    expected = model.predict(in_memory(features)).tolist()
    for engine in (spark.createDataFrame, *ENGINES):
        assert model.predict(engine(features)).tolist() == expected


def released(model: Any, *, target: Any) -> Callable[[Any], str]:
    """Return a function of a frame that fits the model to it."""
    named = {"target": target} if isinstance(target, str) else {}
    return lambda frame: clone(model).set_params(random_state=0).fit(frame, **named).to_json()


TO_COST = Schema({c: SCHEMA.columns[c] for c in ("age", "job")}, target=Interval(-10, 30))
ESTIMATORS: dict[str, tuple[list[str], Callable[[Any], str]]] = {
    "network": (
        [*SCHEMA.columns, "ill"],
        released(BayesianNetworkClassifier(schema=SCHEMA), target="ill"),
    ),
    "logistic regression": (
        [*SCHEMA.columns, "ill"],
        released(BayesianLogisticRegression(schema=SCHEMA), target="ill"),
    ),
    "counts": (
        ["age", "job", "visits"],
        released(
            BayesianCountRegression(schema=Schema(TO_COST.columns, target=Interval(0, 20))),
            target="visits",
        ),
    ),
    "weights": (
        ["age", "job", "cost", "person"],
        lambda frame: (
            BayesianLinearRegression(schema=TO_COST, max_weight=4, random_state=0)
            .fit(frame, target="cost", sample_weight="person")
            .to_json()
        ),
    ),
    "moments": (["age", "cost"], released(PrivateMoments(bounds=(0, 100)), target=None)),
    "best columns": (
        [*SCHEMA.columns, "ill"],
        released(PrivateSelectKBest(2, schema=SCHEMA), target="ill"),
    ),
    "scaler": (["age", "cost"], released(PrivateMinMaxScaler(), target=None)),
}


@ON_CLUSTER
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_counts_on_the_executors(spark: Any, name: str) -> None:
    columns, fitted = ESTIMATORS[name]
    records = table(600).select(columns)
    before = tasks_of_executors(spark)
    assert fitted(spark.createDataFrame(records)) == fitted(in_memory(records))
    assert all(after > then for after, then in zip(tasks_of_executors(spark), before, strict=True))


CANARY = "CANARY-7431"


def tasks_of_executors(spark: Any) -> list[int]:
    """Return how many tasks each executor has run; the driver, which is none, comes first."""
    found = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    each = {(one := found.apply(i)).id(): one.totalTasks() for i in range(found.size())}
    assert each.pop("driver") == 0
    return [*each.values()]


@ON_CLUSTER
def test_no_query_of_a_fit_brings_records_to_the_driver(spark: Any) -> None:
    queries = spark._jsparkSession.sharedState().statusStore()
    before = queries.executionsCount()
    regression(spark.createDataFrame(table(600).select([*SCHEMA.columns, "cost"])))
    found = queries.executionsList()
    plans = [found.apply(i).physicalPlanDescription() for i in range(before, found.size())]
    read = [plan for plan in plans if "Arguments: <empty>" not in plan]
    assert len(read) > 3
    assert [plan for plan in read if "MapInArrow" not in plan] == []


@ON_CLUSTER
def test_answers_of_many_partitions_are_added_up_on_the_executors(spark: Any) -> None:
    source = SparkSource(spark.range(0, 90, 1, 18))
    assert len(source.survey) == 18
    assert len(source.answers(lambda partition, tables: 1, sums=True)) == 2
    records = SparkTable(SparkFrame(source)).records()
    assert records.total(attrgetter("table.n_rows")) == 90
    empty = SparkSource(spark.range(0, 3, 1, 2).filter("id = 1"), ["id"])
    assert empty.columns_here.column("id").to_pylist() == [1]
    rows = records.at(np.array([0, 7, 88])).total(lambda shard: shard.table.column(0).tolist())
    assert rows == [0, 7, 88]


def changing(frame: Any, folder: Path, runs: int, change: Callable[[Any], Any]) -> Any:
    """Return the frame; its first partition is changed when it is computed for the last time."""

    def batches(given: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        read = [*given]
        if TaskContext.get().partitionId() == 0:
            times = len([*folder.iterdir()])
            (folder / str(times)).touch()
            read = change(read) if times == runs else read
        yield from read

    return frame.mapInArrow(batches, frame.schema)


def kill(batches: list[Any]) -> list[Any]:
    """End the executor: the parent of the process that starts those of Python."""
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1]
    os.kill(int(daemon), signal.SIGKILL)
    return batches


@ON_CLUSTER
@pytest.mark.parametrize("runs", [1, 2])
def test_an_executor_that_is_lost_changes_nothing(spark: Any, runs: int, tmp_path: Path) -> None:
    """When the records are counted, and after the charge, when the temperature is chosen."""
    records, ledger = table(600).select([*SCHEMA.columns, "ill"]), BudgetAccountant()
    model = BayesianNaiveBayes(schema=SCHEMA, random_state=0)
    frame = changing(spark.createDataFrame(records), tmp_path, runs, kill)
    fitted = clone(model).set_params(accountant=ledger).fit(frame, target="ill")
    assert len([*tmp_path.iterdir()]) == 4  # three queries, one of them twice
    assert fitted.to_json() == model.fit(in_memory(records), target="ill").to_json()
    assert (len(ledger), ledger.total().epsilon) == (1, 1)
    assert b"pyspark" not in pickle.dumps(fitted)


CHANGES: dict[str, tuple[Callable[[Any], Any], bool, str]] = {
    "another order, where persons count": (
        lambda batches: [batch.take([*range(len(batch))][::-1]) for batch in batches],
        True,
        "labels or weights",
    ),
    "records are gone": (lambda batches: batches[1:], False, "another number of records"),
}


@ON_CLUSTER
@pytest.mark.parametrize("change", CHANGES)
def test_other_records_in_a_later_query_are_noticed(
    spark: Any, change: str, tmp_path: Path
) -> None:
    changed, by_person, text = CHANGES[change]
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(schema=SCHEMA, accountant=ledger)
    named = {"groups": "person"} if by_person else {}
    frame = spark.createDataFrame(table(600).select([*SCHEMA.columns, "ill", "person"]))
    with pytest.raises(ValueError, match=text):
        model.set_params(privacy_unit=UNIT if by_person else "record").fit(
            changing(frame, tmp_path, 1, changed), target="ill", **named
        )
    assert len(ledger) == 0


@ON_CLUSTER
def test_another_order_is_as_good_where_nothing_belongs_to_positions(
    spark: Any, tmp_path: Path
) -> None:
    records = table(600).select([*SCHEMA.columns, "ill"])
    reversed_order = CHANGES["another order, where persons count"][0]
    frame = changing(spark.createDataFrame(records), tmp_path, 1, reversed_order)
    assert exact_counts(frame) == exact_counts(in_memory(records))


@ON_CLUSTER
def test_an_answer_that_comes_twice_is_refused(spark: Any) -> None:
    source = SparkSource(spark.range(10))
    once = source.frame.mapInArrow
    twice = lambda *ask: SimpleNamespace(collect=lambda: 2 * once(*ask).collect())  # noqa: E731
    source.frame = SimpleNamespace(mapInArrow=twice)
    with pytest.raises(ValueError, match="answers of"):
        _ = source.survey


@ON_CLUSTER
def test_an_error_on_an_executor_has_no_value_in_it(spark: Any) -> None:
    frame = spark.createDataFrame(table(60).select(["age", "ill"]))
    read = read_table(PrivateMinMaxScaler(), frame, reset=True, declared=True).records()
    with pytest.raises(ValueError, match="AttributeError on an executor"):
        read.total(attrgetter("nothing"))
    failing = frame.selectExpr(f"CAST(raise_error('{CANARY}') AS DOUBLE) AS age", "ill")
    with pytest.raises(ValueError, match="could not be read") as raised:
        read_table(PrivateMinMaxScaler(), failing, reset=True, declared=True).records()
    assert CANARY not in "".join(traceback.format_exception(raised.value))


@ON_CLUSTER
def test_what_has_no_order_and_what_is_not_declared_is_refused(spark: Any) -> None:
    records = table(60)
    frame = spark.createDataFrame(records.select([*SCHEMA.columns, "ill"]))
    model = BayesianNaiveBayes(schema=SCHEMA)
    for given in ({"y": records["ill"]}, {"target": "ill", "groups": records["person"]}):
        with pytest.raises(TypeError, match="no order of their own"):
            model.fit(frame, **given)
    with pytest.raises(ValueError, match="Domains are not read"):
        BayesianNaiveBayes().fit(frame, target="ill")
    with pytest.raises(ValueError, match="different names"):
        model.fit(frame.select("age", "age", "ill"), target="ill")
