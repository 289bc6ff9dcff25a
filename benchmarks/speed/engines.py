"""Naive Bayes on a Parquet file through DuckDB, beside what DuckDB needs to scan and to count it.

Eight numbers, six integers and six texts (2 to 40 values), and a class. The scan adds up every
column; the counts are the tables of naive Bayes, made by one GROUP BY for each column, which an
engine would have to run if domains were pushed down to it. Run
``python -m benchmarks.speed.engines --records 10000000``. Where Spark and Java are installed, the
same fit on the same file read by Spark follows, beside Spark's own scan and a query that only sends
all records to Python, in wall-clock time: the work is done by other processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Interval, Schema

INTEGERS, TEXTS = (2, 3, 5, 8, 12, 16), (2, 3, 5, 9, 17, 40)
NUMBERS = [f"x{j}" for j in range(8)]
SCHEMA = Schema(
    {
        **{name: Interval(-2, 3, bins=8) for name in NUMBERS},
        **{f"k{j}": Interval(0, k - 1, bins=k) for j, k in enumerate(INTEGERS)},
        **{f"t{j}": Categories([f"level {i}" for i in range(k)]) for j, k in enumerate(TEXTS)},
    },
    target=Categories([0, 1]),
)


def write(file: str, records: int) -> None:
    """Write random records."""
    columns = [f"random() * 4 - 2 + (i % 7) / 10 AS {name}" for name in NUMBERS]
    columns += [f"(hash(31 * i + {j}) % {k})::INTEGER AS k{j}" for j, k in enumerate(INTEGERS)]
    columns += [f"'level ' || hash(17 * i + {j}) % {k} AS t{j}" for j, k in enumerate(TEXTS)]
    select = f"SELECT {', '.join(columns)}, (random() < 0.3)::INTEGER AS ill"
    duckdb.sql(f"COPY ({select} FROM range({records}) AS r(i)) TO '{file}' (FORMAT parquet)")


def code(name: str) -> str:
    """Return a code of a column in SQL, the same as ours but for odd values."""
    domain = SCHEMA.columns[name]
    if isinstance(domain, Categories):
        cases = " ".join(f"WHEN '{value}' THEN {i}" for i, value in enumerate(domain.values))
        return f"(CASE {name} {cases} ELSE 0 END)"
    scale = (domain.n_values if name in NUMBERS else domain.n_values - 1) / (
        domain.high - domain.low
    )
    place = f"floor(({name} - ({domain.low})) * {scale})"
    return f"least(greatest({place}, 0), {domain.n_values - 1})::INTEGER"


def timed(
    name: str,
    call: Callable[[], Any],
    scan: tuple[float, float] | None = None,
    *,
    processor: bool = True,
) -> tuple[float, float]:
    """Print the wall-clock and processor time of a call, and their ratios to the scan."""
    start = time.perf_counter(), time.process_time()
    call()
    took = time.perf_counter() - start[0], time.process_time() - start[1]
    pairs = list(zip(took, scan or took, strict=True))[: 2 if processor else 1]
    print("|", name, *(f"| {a:.1f} | {a / b:.1f}" for a, b in pairs), "|" if processor else "| | |")
    return took


def sent(batches: Iterator[Any]) -> Iterator[Any]:
    """Count the records that Spark sends to Python, which is all that is done with them."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"records": [sum(batch.num_rows for batch in batches)]})


def spark_rows(file: str, sums: list[str]) -> None:
    """Print the times of Spark on this machine; of its scan the second, when Java is warm."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return print("\nno Spark: pip install pyspark pyarrow")
    if shutil.which("java") is None:
        return print("\nno Spark: it needs Java")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.config("spark.driver.memory", "4g")
    spark = builder.config("spark.sql.files.maxPartitionBytes", "16m").getOrCreate()
    frame = spark.read.parquet(file)
    frame.selectExpr(*sums).collect()
    scan = timed("Spark: scan", lambda: frame.selectExpr(*sums).collect(), processor=False)
    sizes = frame.mapInArrow(sent, "records long")
    model = BayesianNaiveBayes(schema=SCHEMA).fit(frame.limit(1000), target="ill")  # warm, too
    timed("Spark: records sent to Python", sizes.collect, scan, processor=False)
    timed(
        "Spark: fit, three queries", lambda: model.fit(frame, target="ill"), scan, processor=False
    )
    spark.stop()


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10**7)
    records = parser.parse_args().records
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "people.parquet")
        write(file, records)
        texts = [name for name in SCHEMA.columns if name[0] == "t"]
        sums = [
            f"sum(length({c}))" if c in texts else f"sum({c})" for c in (*SCHEMA.columns, "ill")
        ]
        counts = " UNION ALL ".join(
            f"SELECT {j}, {code(name)} * 2 + ill AS cell, count(*) FROM '{file}' GROUP BY ALL"
            for j, name in enumerate(SCHEMA.columns)
        )
        print("| | seconds | / scan | processor | / scan |\n|---|---|---|---|---|")
        scan = timed(
            "scan", lambda: duckdb.sql(f"SELECT {', '.join(sums)} FROM '{file}'").fetchall()
        )
        timed("counts by the engine", lambda: duckdb.sql(counts).fetchall(), scan)
        for name, temperature in (("fit, temperature 1", 1.0), ("fit", "auto")):
            model = BayesianNaiveBayes(schema=SCHEMA, temperature=temperature)
            timed(name, lambda m=model: m.fit(duckdb.read_parquet(file), target="ill"), scan)
        timed("predict", lambda: model.predict(duckdb.read_parquet(file)), scan)
        spark_rows(file, sums)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"\n{records:,} records; at most {peak:,} MB, mapped files included")


if __name__ == "__main__":
    main()
