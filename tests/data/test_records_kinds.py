"""Columns whose declared type cannot hold a value of their domain: refused, and not charged."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.data.records import column_kind
from dpbayes_sklearn.schema.values import kind_of

X = np.zeros((6, 1))
WORDS = ["no", "yes", "no", "yes", "no", "yes"]
BITS = [0, 1, 0, 1, 0, 1]

TARGETS: dict[str, tuple[Any, Any, str, str]] = {
    "numbers for text": (
        np.array(BITS, float),
        ["no", "yes"],
        "numbers",
        "text",
    ),
    "booleans for text": (
        np.array(BITS, bool),
        ["no", "yes"],
        "booleans",
        "text",
    ),
    "text for integers": (
        np.array(["0", "1"] * 3),
        [0, 1],
        "text",
        "numbers",
    ),
    "text for booleans": (
        np.array(["0", "1"] * 3),
        [False, True],
        "text",
        "booleans",
    ),
    "booleans for integers": (
        np.array(BITS, bool),
        [2, 3],
        "booleans",
        "numbers",
    ),
    "dates for integers": (
        np.array(BITS, "M8[D]"),
        [0, 1],
        "dates",
        "numbers",
    ),
    "objects for integers": (pd.Series(["0", "1"] * 3, dtype=object), [0, 1], "objects", "numbers"),
    "objects for booleans": (pd.Series([True, None] * 3), [False, True], "objects", "booleans"),
    "pandas text": (pd.Series(WORDS), [0, 1], "text", "numbers"),
    "pandas boolean": (
        pd.Series(BITS, dtype="boolean"),
        ["no", "yes"],
        "booleans",
        "text",
    ),
    "pandas categories": (pd.Series(WORDS, dtype="category"), [0, 1], "text", "numbers"),
    "polars text": (pl.Series(WORDS), [0, 1], "text", "numbers"),
    "polars Int8": (
        pl.Series(BITS, dtype=pl.Int8),
        ["no", "yes"],
        "integers",
        "text",
    ),
    "pyarrow": (
        pa.array(BITS, pa.uint8()),
        ["no", "yes"],
        "integers",
        "text",
    ),
    "frame": (
        pd.DataFrame({"y": BITS}),
        ["no", "yes"],
        "integers",
        "text",
    ),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("name", [k for k, t in TARGETS.items() if t[2:] != ("integers", "text")])
def test_labels_of_another_type_are_refused_before_the_charge(name: str) -> None:
    y, classes, given, expected = TARGETS[name]
    message = f"holds {given} by its type, but must hold {expected}, as declared.*Nothing was spent"
    accountant = BudgetAccountant(1.0)
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=classes, accountant=accountant)
    search = PrivateSearchCV(model, {"alpha": [1.0]}, accountant=accountant)
    one = DirichletMultinomial(categories=Categories(classes), accountant=accountant)
    for fit in (
        lambda: model.fit(X, y),
        lambda: model.partial_fit(X, y),
        lambda: clone(model).set_params(temperature=1).exact_statistics(X, y),
        lambda: one.fit(y),
        lambda: search.fit(X, y),
    ):
        with pytest.raises(ValueError, match=message):
            fit()
    assert len(accountant) == 0


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array(BITS, bool), [0, 1]),
        (np.array(BITS), [False, True]),
        (np.array(BITS), ["0", "1"]),
        (np.array(BITS, bool), ["False", "True"]),
        (np.array(BITS, float), [0, 1]),
        (np.array(["0", "1"] * 3, object), [0, 1]),  # which match by their numbers
        (pd.Series(WORDS, dtype=object), ["no", "yes"]),
        (["0", "1"] * 3, [0, 1]),  # a list has no type
        (pd.Series(BITS, dtype="category"), ["no", "yes"]),
        (pd.Series([*WORDS[:-1], 1], dtype="category"), [0, 1]),
        (np.array(["0", "1"] * 3), [0, "1"]),
        (list(BITS), ["no", "yes"]),
    ],
    ids=str,
)
def test_types_that_can_hold_a_class_are_not_refused(y: Any, classes: Any) -> None:
    schema = Schema({"a": Interval(0, 1, bins=2)}, Categories(classes))
    statistics = BayesianNaiveBayes(schema=schema)
    if all(isinstance(c, type(classes[0])) for c in classes):
        statistics.fit(X, y)
    assert schema.target.takes(column_kind(y))  # type: ignore[union-attr]


TEXTS = [
    np.array(WORDS),
    np.array(WORDS, np.dtypes.StringDType()),
    pd.Series(WORDS),
    pd.Series(WORDS, dtype="string"),
    pd.Series(WORDS, dtype="category"),
    pd.Categorical(WORDS),
    pd.Series(WORDS, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    pd.DataFrame({"y": pd.Categorical(WORDS)}),
    pl.Series(WORDS),
    pl.Series(WORDS, dtype=pl.Categorical),
    pl.Series(WORDS, dtype=pl.Enum(["no", "yes"])),
    pa.array(WORDS),
    pa.array(WORDS).dictionary_encode(),
]


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("y", TEXTS, ids=lambda y: str(getattr(y, "dtype", type(y))))
def test_text_is_no_target_of_a_regression(y: Any) -> None:
    accountant = BudgetAccountant(1.0)
    model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), accountant=accountant)
    with pytest.raises(ValueError, match="target y holds text by its type"):
        model.fit(X, y)
    assert len(accountant) == 0


def test_categories_of_dask_that_nobody_has_looked_at_may_be_numbers() -> None:
    lazy = dd.from_pandas(pd.DataFrame({"y": [0.5] * 6}), npartitions=2)["y"].astype("category")
    assert column_kind(lazy) == "anything"
    known = dd.from_pandas(pd.DataFrame({"y": pd.Categorical(WORDS)}), npartitions=2)["y"]
    assert column_kind(known) == "text"


def test_categories_of_text_are_no_column_of_numbers() -> None:
    model = BayesianLinearRegression(schema=Schema({"a": Interval(0, 1)}, Interval(0, 1)))
    with pytest.raises(ValueError, match="column 'a' of X holds text by its type"):
        model.fit(pd.DataFrame({"a": pd.Categorical(WORDS)}), BITS)
    model.fit(pd.DataFrame({"a": pd.Categorical(BITS)}), pd.Series(BITS, dtype="category"))


def test_labels_that_a_meta_estimator_encoded_are_codes() -> None:
    model = VotingClassifier([("a", BayesianNaiveBayes(bounds=(0, 1), classes=["no", "yes"]))])
    assert {*model.fit(X, WORDS).predict(X)} <= {"no", "yes"}


def test_one_column_of_another_type() -> None:
    with pytest.raises(ValueError, match="X holds text by its type"):
        BetaBinomial().fit(np.array(WORDS))


def test_targets_of_dask_are_refused_by_their_type_alone() -> None:
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=["no", "yes"])
    never = da.from_array(np.array(BITS), chunks=3).map_blocks(lambda block: 1 / 0, dtype=float)
    with pytest.raises(ValueError, match="y holds numbers by its type"):
        model.fit(da.from_array(X, chunks=(3, 1)), never)
    half = [bit / 2 for bit in BITS]
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "y": half}), npartitions=2)
    with pytest.raises(ValueError, match="y holds numbers by its type"):
        model.fit(frame[["a"]], frame["y"])


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("booleans", ["bool", "boolean", "bool[pyarrow]"]),
        ("integers", ["int8", "Int64", "uint16[pyarrow]", "UInt8"]),
        ("numbers", ["float16", "float32[pyarrow]", "double[pyarrow]", "Float64", "longdouble"]),
        ("text", ["U3", "string", "str", "string[pyarrow]", "large_string[pyarrow]"]),
        ("dates", ["M8[s]", "datetime64[ns, UTC]", "timestamp[us][pyarrow]", "date32[pyarrow]"]),
        ("durations", ["m8[s]", "duration[us][pyarrow]"]),
        ("objects", ["object"]),
        ("anything", ["S3", "category"]),
    ],
)
def test_kinds_are_read_off_the_names_of_types(kind: str, names: list[str]) -> None:
    for name in names:
        assert kind_of(pd.api.types.pandas_dtype(name)) == kind


def test_kinds_of_polars_and_pyarrow() -> None:
    polars = [pl.Boolean, pl.UInt8, pl.Float32, pl.String, pl.Date, pl.Duration, pl.Categorical]
    arrow = [pa.bool_(), pa.int8(), pa.float16(), pa.large_utf8(), pa.date32(), pa.duration("s")]
    kinds = ["booleans", "integers", "numbers", "text", "dates", "durations", "anything"]
    assert [kind_of(dtype()) for dtype in polars] == kinds
    assert [kind_of(dtype) for dtype in arrow] == kinds[:-1]
    assert kind_of(pl.Decimal(10, 2)) == kind_of(pa.decimal128(10, 2)) == "numbers"
