"""Tables and streams of Arrow give the same statistics as cells that are read one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    Interval,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.frames import framed, named_columns
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.metrics import private_cross_validate
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.values import cells_of

CONTAINERS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(i, 1) for i in range(len(table))]),
    "reader": lambda table: table.to_reader(2),
    "LazyFrame": lambda table: pl.from_arrow(table).lazy(),
    "DuckDB": lambda table: duckdb.from_arrow(table),
    "ibis": lambda table: pytest.importorskip("ibis", reason="needs ibis").memtable(table),
}

CELLS: list[tuple[pa.DataType, list[Any], Domain]] = [
    (
        pa.float64(),
        [0.0, -0.0, 5e-324, math.nan, math.inf, -math.inf, 1e308, 0.5, None],
        Interval(0, 1, bins=3),
    ),
    (pa.float64(), [1.0, math.nan, None, 0.25], Interval(0, 1, bins=2, missing="indicator")),
    (pa.float32(), [0.1, 0.5, None, math.nan], Interval(0, 1, bins=10)),
    (
        pa.int64(),
        [2**53 + 1, 2**53, -(2**63), 2**63 - 1, None, 0],
        Categories([2**53 + 1, 2**53, 0], unseen=0),
    ),
    (
        pa.int64(),
        [2**53 + 1, 2**53, 7, None],
        Interval(2.0**53, 2.0**53 + 8, bins=9, missing="indicator"),
    ),
    (pa.uint64(), [2**64 - 1, 0, None, 3], Interval(0, 3, bins=4)),
    (pa.int8(), [-128, 127, None, 2], Interval(0, 3, bins=4)),
    (pa.bool_(), [True, False, None], Categories(["no", "True"])),
    (pa.bool_(), [True, False, None], Interval(0, 1, bins=2, missing="indicator")),
    (
        pa.string(),
        ["a", "a ", "A", "", "ä", "a\x00", "nan", None],
        Categories(["a", "a ", "ä", "nan", ""], unseen="a"),
    ),
    (pa.string(), ["1", "1.0", "x", None], Categories([1, 2], unseen=2)),
    (
        pa.date32(),
        [date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), None],
        Interval(date(2019, 1, 1), date(2021, 1, 1), bins=24, missing="indicator"),
    ),
    (
        pa.timestamp("us", tz="Europe/Berlin"),
        [datetime(2020, 6, 1, 23, 30, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC), None],
        Interval(date(2020, 1, 1), date(2021, 1, 1), bins=366),
    ),
    (
        pa.decimal128(20, 3),
        [Decimal("0.125"), Decimal("99999999999999999.999"), None],
        Interval(0, 1, bins=8, missing="indicator"),
    ),
]


@pytest.mark.parametrize("container", CONTAINERS)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_codes_are_those_of_single_cells(container: str, data: st.DataObject) -> None:
    kind, values, domain = data.draw(st.sampled_from(CELLS))
    cells = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=7))
    query = CONTAINERS[container](pa.table({"x": pa.array(cells, kind)}))
    declared, coded = data.draw(
        st.sampled_from([({}, []), ({"x": domain}, []), ({"x": domain}, ["x"])])
    )
    frame = framed(query, declared, coded)
    expected = [
        int(domain.encode(cells_of([cell]))[0]) for cell in pa.array(cells, kind).to_pylist()
    ]
    assert Encoder([domain]).encode(Table(frame))[:, 0].tolist() == expected


def test_what_only_codes_are_used_of_is_written_as_codes() -> None:
    table = pa.table({"x": [0.2, None, 7.0, -1.0], "job": ["a", "z", None, "b"]})
    declared = {"x": Interval(0, 1, bins=2, missing="indicator"), "job": Categories(["a", "b"])}
    for container in ("reader", "LazyFrame", "DuckDB"):
        native = framed(CONTAINERS[container](table), declared, declared).native
        assert [str(column.type.index_type) for column in native.columns] == ["uint8", "uint8"]
        assert native.column("x").combine_chunks().indices.to_pylist() == [0, 2, 1, 0]
        assert native.column("job").combine_chunks().indices.to_pylist() == [0, 0, 0, 1]


def test_a_column_is_not_taken_for_an_attribute() -> None:
    table = pa.table({"dtype": [1.0, 2.0], "iloc": [3, 4], "to_pylist": ["a", "b"]})
    assert framed(CONTAINERS["ibis"](table)).native.to_pylist() == table.to_pylist()


def test_texts_are_enumerations_of_engines_by_their_bytes() -> None:
    connection = duckdb.connect()
    connection.sql('CREATE TABLE people ("a ""job" VARCHAR COLLATE NOCASE, n INTEGER)')
    connection.sql("INSERT INTO people VALUES ('A', 1), ('it''s', 2), ('a', 3), (NULL, 4)")
    domain = Categories(["it's", "a"])
    frame = framed(connection.table("people"), {'a "job': domain, "n": Interval(0, 4, bins=5)})
    assert "dictionary" in str(frame.native.schema.field('a "job').type)
    assert frame['a "job'].to_pylist() == [None, "it's", "a", None]
    assert str(frame["n"].type) == "int32"


def test_persons_are_not_read_as_declared_texts() -> None:
    table = pa.table({"job": [*"abab"], "ill": [*"nyny"]})
    schema = Schema({"job": Categories(["a"])}, target=Categories(["n"]))
    read = named_columns(
        duckdb.from_arrow(table), None, "ill", "job", schema=schema, only_codes=True
    )
    X, y, (groups,) = read
    assert (X.columns, y.to_pylist(), groups.to_pylist()) == ([], ["n", None, "n", None], [*"abab"])


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_missing_cell_changes_no_other(dictionary: bool) -> None:
    domain = Categories([2**53 + 1, 2**53, 5], unseen=5)
    for cells in ([2**53 + 1, 2**53, 2**53 + 1], [2**53 + 1, 2**53, None]):
        array = pa.array(cells, pa.int64())
        table = pa.table({"x": array.dictionary_encode() if dictionary else array})
        codes = Encoder([domain]).encode(Table(framed(table)))[:, 0].tolist()
        assert codes[:2] == [0, 1]


SCHEMA = Schema(
    {
        "age": Interval(0, 100, bins=8),
        "job": Categories(["a", "b", "c"]),
        "k": Interval(0, 8, bins=9),
    },
    target=Categories(["no", "yes"]),
)


def records(n: int = 3000) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    age, job, k = rng.normal(50, 20, n), rng.choice([*"abc"], n), rng.integers(0, 9, n)
    return pa.table({"age": age, "job": job, "k": k}), age


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "unit", ["record", PrivacyUnit("person", max_records=2, neighbours="add_remove")]
)
def test_a_seeded_classifier_is_the_same(container: str, unit: Any) -> None:
    table, age = records()
    y, groups = np.where(age > 50, "yes", "no"), np.arange(len(age)) // 3
    given = {"groups": groups} if unit != "record" else {}
    make = CONTAINERS[container]

    def fitted(X: Any) -> BayesianNaiveBayes:
        return BayesianNaiveBayes(schema=SCHEMA, privacy_unit=unit, random_state=0).fit(
            X, y, **given
        )

    model, expected = fitted(make(table)), fitted(table.to_pandas())
    assert model.to_json() == expected.to_json()
    assert [*model.feature_names_in_] == ["age", "job", "k"]
    assert (model.predict_proba(make(table)) == expected.predict_proba(table.to_pandas())).all()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("mechanism", ["laplace", "map"])
def test_a_seeded_regression_is_the_same(container: str, mechanism: str) -> None:
    table, age = records()
    schema = Schema(dict(SCHEMA.columns), target=Interval(0, 120))

    def fitted(X: Any) -> BayesianLinearRegression:
        model = BayesianLinearRegression(schema=schema, mechanism=mechanism, random_state=0)
        return model.fit(X, age)

    assert fitted(CONTAINERS[container](table)).to_json() == fitted(table.to_pandas()).to_json()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "map"])
@pytest.mark.parametrize("unit", ["record", PrivacyUnit("person", max_records=2)], ids=str)
def test_a_record_without_a_target_fails_no_regression(
    container: str, mechanism: str, unit: Any
) -> None:
    table, age = records(300)
    age[7] = np.nan
    table = table.append_column("target", pa.array(age, from_pandas=True))
    persons = {"groups": np.arange(len(age)) // 3} if unit != "record" else {}
    schema = Schema(dict(SCHEMA.columns), target=Interval(0, 120))
    options = {"mechanism": mechanism, "privacy_unit": unit, "random_state": 0}

    def fitted(X: Any) -> BayesianLinearRegression:
        model = BayesianLinearRegression(delta=1e-6, schema=schema, **options)
        return model.fit(X, target="target", **persons)

    assert fitted(CONTAINERS[container](table)).to_json() == fitted(table.to_pandas()).to_json()


@pytest.mark.parametrize("container", CONTAINERS)
def test_one_variable_is_the_same(container: str) -> None:
    table = pa.table({"ill": [0, 1, 1] * 50})
    one, other = (
        BetaBinomial(random_state=0).fit(X) for X in (CONTAINERS[container](table), [0, 1, 1] * 50)
    )
    assert one.to_json() == other.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_learned_schema_is_the_same(container: str) -> None:
    table, _ = records(20_000)
    learned = [
        Schema.learn(X, epsilon=1.0, delta=1e-6, random_state=0)
        for X in (CONTAINERS[container](table), table.to_pandas())
    ]
    assert learned[0].columns == learned[1].columns


def test_what_an_engine_trips_over_is_not_shown() -> None:
    relation = duckdb.sql("select cast(x as int) as age from (values ('1'), ('HIV+')) t(x)")
    with pytest.raises(ValueError, match="could not be read") as caught:
        BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1]).fit(relation, [0, 1])
    assert "HIV" not in str(caught.value) + repr(caught.value.__cause__) + repr(
        caught.value.__context__
    )


def test_targets_of_another_query_are_refused() -> None:
    table, _ = records(10)
    lazy = pl.from_arrow(table).lazy()
    with pytest.raises(TypeError, match="another order"):
        BayesianNaiveBayes(schema=SCHEMA).fit(lazy, lazy.select("job"))
    with pytest.raises(TypeError, match="another order"):
        BayesianNaiveBayes(schema=SCHEMA, privacy_unit=PrivacyUnit("person", max_records=2)).fit(
            lazy, ["no"] * 10, groups=lazy.select("k")
        )


@pytest.mark.parametrize("container", [*CONTAINERS, "pandas", "polars"])
def test_columns_by_name(container: str) -> None:
    table, age = records()
    named = table.append_column("ill", pa.array(np.where(age > 50, "yes", "no")))
    named = named.append_column("person", pa.array(np.arange(len(age)) // 3))
    frames = {"pandas": lambda t: t.to_pandas(), "polars": pl.from_arrow}
    frame = {**CONTAINERS, **frames}[container](named)
    model = BayesianNaiveBayes(
        schema=SCHEMA, privacy_unit=PrivacyUnit("person", max_records=2), random_state=0
    )
    one = model.fit(frame, target="ill", groups="person").to_json()
    other = model.fit(table.to_pandas(), named["ill"].to_pylist(), groups=np.arange(len(age)) // 3)
    assert one == other.to_json()


@pytest.mark.parametrize("container", CONTAINERS)
def test_predictions_are_those_of_memory(container: str) -> None:
    table, age = records(500)
    odd = pa.table({"age": [math.nan, math.inf, None], "job": ["z", None, "c"], "k": [99, None, 3]})
    rows = pa.concat_tables([odd.cast(table.schema), table])
    model = BayesianNaiveBayes(schema=SCHEMA).fit(table, np.where(age > 50, "yes", "no"))
    expected = model.predict_proba(rows.to_pandas())
    assert (model.predict_proba(CONTAINERS[container](rows)) == expected).all()
    parts = [model.predict_proba(batch) for batch in rows.to_batches(max_chunksize=100)]
    assert (np.concatenate(parts) == expected).all()


def test_names_that_no_column_has_are_refused() -> None:
    table, age = records(10)
    model = BayesianNaiveBayes(schema=SCHEMA)
    with pytest.raises(ValueError, match="one column 'ill': it has 0"):
        model.fit(table, target="ill")
    with pytest.raises(ValueError, match="not both"):
        model.fit(table, age, target="job")
    with pytest.raises(ValueError, match="it has 0"):
        model.fit(np.zeros((3, 2)), target="ill")


@pytest.mark.parametrize("container", ["table", "reader", "LazyFrame", "DuckDB"])
def test_streams_without_rows_have_columns(container: str) -> None:
    table, _ = records(10)
    assert framed(CONTAINERS[container](table.slice(0, 0))).columns == ["age", "job", "k"]


def test_a_null_where_the_type_says_there_are_none_is_a_missing_value() -> None:
    schema = pa.schema([pa.field("age", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([31, None])], schema=schema)
    reader = pa.RecordBatchReader.from_batches(schema, [batch])
    assert framed(reader).native.column("age").to_pylist() == [31, None]


@pytest.mark.parametrize("container", ["table", "reader"])
def test_searches_and_evaluations_take_arrow(container: str) -> None:
    table, age = records(600)
    y, frame = np.where(age > 50, "yes", "no"), CONTAINERS[container]
    model = BayesianNaiveBayes(schema=SCHEMA)
    found = private_cross_validate(model, frame(table), y, scoring="accuracy", epsilon=1.0, cv=2)
    assert found.guarantee.epsilon == 2
    search = PrivateSearchCV(model, {"temperature": [1.0, 0.5]}).fit(frame(table), y)
    assert search.best_params_["temperature"] in (1.0, 0.5)


@pytest.mark.parametrize("column", ["a", "y", "w", "beside"])
@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}], ids=["plain", "weights"])
def test_a_dictionary_that_small_indices_cannot_number_fails_no_fit(
    column: str, options: dict[str, Any]
) -> None:
    # one value more of one record, and the dictionaries of all batches have no common one
    batches = []
    for k in range(2):
        values = pa.array([f"{k} {i}" for i in range(100)])
        cells = {"a": ["x", "y", "x"], "y": ["n", "p", "n"], "w": [1.0, 2.0, 0.5]}
        cells[column] = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), values)
        batches.append(pa.record_batch(cells))
    table = pa.Table.from_batches(batches)
    schema = Schema({"a": Categories(["x", "y"])}, Categories(["n", "p"]))
    for X in (table, table.to_reader()):
        BayesianNaiveBayes(schema=schema, max_weight=3).fit(X, target="y", **options)
