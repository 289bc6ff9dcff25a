"""The fast encoder gives the codes of the domains, whatever holds the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from dpbayes_sklearn.data import records as records_module
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.schema.domains import Domain

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS = [np.bool_, *INTEGERS, np.float16, np.float32, np.float64, np.longdouble]

DOMAINS: dict[str, list[Domain]] = {
    "booleans": [Interval(0, 1, bins=2)] * 3,
    "two bins": [Interval(-1, 1, bins=2), Interval(0.1, 0.7, bins=2), Interval(3, 9, bins=2)],
    "integers": [Interval(0, 9, bins=10), Interval(0, 1, bins=2), Interval(0, 255, bins=256)],
    "signed": [Interval(-3, 4, bins=8), Interval(5, 9, bins=5), Interval(-300, 300, bins=601)],
    "beyond": [Interval(300, 305, bins=6), Interval(-200, -190, bins=11), Interval(0, 3, bins=4)],
    "huge": [
        Interval(2.0**53, 2.0**53 + 8, bins=9),
        Interval(1e19, 1e19 + 4096, bins=4097),
        Interval(-(2.0**63), -(2.0**63) + 4096, bins=4097),
    ],
    "mixed bins": [Interval(0, 1, bins=2), Interval(-2, 7.5, bins=7), Interval(0, 1e6, bins=300)],
    "missing": [
        Interval(0, 1, bins=2, missing=0.0),
        Interval(-2, 7.5, bins=7, missing=3),
        Interval(0, 9, bins=10, missing=9),
    ],
    "marked": [
        Interval(0, 1, bins=2, missing="indicator"),
        Interval(-2, 7.5, bins=7),
        Interval(0, 9, bins=10, missing="indicator"),
    ],
    "categories": [Categories([0, 1, 5]), Interval(0, 9, bins=4), Categories(["0", "7", "x"])],
}


def by_domain(domains: list[Domain], X: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    return np.stack([d.encode(X[:, j]) for j, d in enumerate(domains)], axis=1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [*NUMBERS, object], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("name", DOMAINS)
def test_codes_are_those_of_the_domains(name: str, dtype: Any, order: Any) -> None:
    domains, rng = DOMAINS[name], np.random.default_rng(3)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        X = rng.integers(info.min, info.max, (60, 3), dtype, endpoint=True)
        X[:40] = rng.integers(0, 12, (40, 3))
        X[40], X[41] = info.min, info.max
    else:
        X = rng.uniform(-12, 12, (60, 3)).astype(dtype)
        if dtype is not np.bool_:
            X[:6] = np.array([[math.nan], [math.inf], [-math.inf], [-0.0], [1.0], [6e4]])
    codes = Encoder(domains).encode(Table(np.asarray(X, order=order)))
    assert codes.dtype == (np.uint8 if max(d.n_values for d in domains) <= 256 else np.uint16)
    assert (codes == by_domain(domains, X)).all()
    assert (codes < [d.n_values for d in domains]).all()


@given(
    X=hnp.arrays(np.float64, (6, 2), elements=st.floats(width=64)),
    bounds=st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)),
    bins=st.tuples(st.integers(2, 5), st.integers(2, 400)),
)
@settings(max_examples=300)
def test_any_floats(X: Any, bounds: tuple[float, float], bins: tuple[int, int]) -> None:
    for two in (bins, (2, 2)):
        domains: list[Domain] = [Interval(bounds[0], bounds[0] + bounds[1], bins=k) for k in two]
        assert (Encoder(domains).encode(Table(X)) == by_domain(domains, X)).all()


@given(low=st.integers(-300, 300), size=st.integers(2, 300), data=st.data())
def test_any_integers(low: int, size: int, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    X = data.draw(hnp.arrays(dtype, (8, 1)))
    domains: list[Domain] = [Interval(low, low + size - 1, bins=size)]
    expected = [min(max(int(x), low), low + size - 1) - low for x in X[:, 0]]
    assert Encoder(domains).encode(Table(X))[:, 0].tolist() == expected
    assert by_domain(domains, X)[:, 0].tolist() == expected


@pytest.mark.parametrize("name", DOMAINS)
def test_the_same_data_in_every_type_have_the_same_codes(name: str) -> None:
    encoder = Encoder(DOMAINS[name])
    X = np.random.default_rng(4).integers(0, 10, (50, 3))
    first = encoder.encode(Table(X))
    for dtype in [*INTEGERS, np.float16, np.float32, np.float64, object]:
        assert (encoder.encode(Table(X.astype(dtype))) == first).all()
    ones = X > 4
    for dtype in NUMBERS:
        assert (encoder.encode(Table(ones)) == encoder.encode(Table(ones.astype(dtype)))).all()
    for frame in (pd.DataFrame(X), pd.DataFrame(X).astype("Int64"), pl.DataFrame(X)):
        assert (encoder.encode(Table(frame)) == first).all()


FRAME_DOMAINS: list[Domain] = [
    Interval(0, 10, bins=5),
    Categories(["a", "b", "c"], unseen="c"),
    Categories(["x", "y"]),
    Interval(0, 3, bins=4),
    Categories([False, True]),
    Interval(0, 1, bins=2),
]
FRAME_CODES = [[0, 0, 0, 3, 1, 1], [2, 1, 1, 2, 0, 0], [4, 2, 0, 1, 0, 1], [2, 2, 0, 3, 1, 1]]


def frames() -> dict[str, Any]:
    numbers, text, category = [0.5, math.nan, 99, 5], ["a", "b", None, "?"], ["x", "y", None, "z"]
    whole, flags, bits = [3, None, 1, 7], [True, None, False, True], [1, 0, 1, 1]
    return {
        "pandas": pd.DataFrame(
            {
                "n": numbers,
                "t": pd.array(text, dtype="string"),
                "c": pd.Categorical(category),
                "w": pd.array(whole, dtype="Int64"),
                "f": pd.array(flags, dtype="boolean"),
                "b": np.array(bits, np.int8),
            },
            index=[0.5, 0.5, 7.0, -1.0],  # labels that repeat and are no positions
        ),
        "pandas objects": pd.DataFrame(
            dict(zip("ntcwfb", [numbers, text, category, whole, flags, bits], strict=True)),
            dtype=object,
        ),
        "polars": pl.DataFrame(
            dict(zip("ntcwfb", [numbers, text, category, whole, flags, bits], strict=True)),
            schema_overrides={"c": pl.Categorical, "w": pl.Int16, "b": pl.UInt8},
        ),
    }


@pytest.mark.parametrize("kind", frames())
def test_frames(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Table(frames()[kind])
    assert frame.names == list("ntcwfb")
    assert Encoder(FRAME_DOMAINS).encode(frame).tolist() == FRAME_CODES
    monkeypatch.setattr(records_module, "CHUNK_CELLS", 6)  # one row at a time
    assert len(list(frame.chunks())) == 4
    assert Encoder(FRAME_DOMAINS).encode(frame).tolist() == FRAME_CODES


def test_columns_of_one_name_stay_apart() -> None:
    frame = pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"])
    assert Encoder([Interval(0, 1, bins=2)] * 2).encode(Table(frame)).tolist() == [[0, 1], [1, 0]]


def test_kinds_are_read_from_the_types() -> None:
    kinds = {
        "pandas": ["numbers", "text", "text", "integers", "booleans", "integers"],
        "pandas objects": ["objects"] * 6,
        "polars": ["numbers", "text", "text", "integers", "booleans", "integers"],
    }
    for name, frame in frames().items():
        assert [Table(frame).kind(j) for j in range(6)] == kinds[name]
        changed = frame[:1]  # other values, same types
        assert [Table(changed).kind(j) for j in range(6)] == kinds[name]
    assert Table(np.zeros((1, 1), complex)).kind(0) == "anything"
    assert Table(np.zeros((1, 1), "U3")).kind(0) == "anything"  # all columns share one type


@pytest.mark.parametrize("cells", [1, 7, 1000])
def test_chunks_cover_all_rows_once(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(5).uniform(-2, 2, (41, 3))
    encoder = Encoder([Interval(-1, 1, bins=k) for k in (2, 3, 300)])
    whole = encoder.encode(Table(X))
    monkeypatch.setattr(records_module, "CHUNK_CELLS", cells)
    parts = [(rows, codes.copy()) for rows, codes in encoder.chunks(Table(X))]
    assert [i for rows, _ in parts for i in range(41)[rows]] == list(range(41))
    assert (np.concatenate([codes for _, codes in parts]) == whole).all()


@pytest.mark.parametrize("top", [1, 2, 255])
def test_bytes_that_are_codes_are_not_copied(top: int) -> None:
    X = np.random.default_rng(6).integers(0, 2, (50, 4), dtype=np.uint8)
    X[30, 2] = top
    before = X.copy()
    ((_, codes),) = Encoder([Interval(0, 3, bins=4)] * 2 + [Interval(0, 1, bins=2)] * 2).chunks(
        Table(X)
    )
    assert np.shares_memory(codes, X) == (top == 1)
    assert np.array_equal(codes, np.minimum(X, [3, 3, 1, 1]))
    assert np.array_equal(X, before)


def test_more_values_than_codes_are_refused() -> None:
    Encoder([Interval(0, 1, bins=2**16)])
    for domain in (Interval(0, 1, bins=2**16, missing="indicator"), Categories(range(2**16 + 1))):
        with pytest.raises(ValueError, match="at most 65536"):
            Encoder([domain])


@pytest.mark.parametrize("many", [257, 300])
def test_two_bins_beside_a_column_of_sixteen_bits(many: int) -> None:
    """A code that is too large would be counted in another column, or make the count fail."""
    domains = [Categories(range(many)), Interval(0, 1, bins=2), Interval(0, 9, bins=3)]
    cells = np.array([[256.0, 0.2, 1], [3, 0.9, 5], [0, np.nan, 9], [1, -np.inf, 3]])
    expected = [[256, 0, 0], [3, 1, 1], [0, 1, 2], [1, 0, 1]]
    frame = pd.DataFrame(cells.astype(object)).astype({1: np.float32})
    for X in (cells, np.asfortranarray(cells), cells.astype(object), frame, csr_array(cells)):
        assert Encoder(domains).encode(Table(X)).tolist() == expected


TEXTS = ["b", "a", "", "nan", "None", "ä", "a\x00", "1", "unseen", None]
CONTAINERS = {
    "object": lambda cells: pd.Series(cells, dtype=object),
    "str": lambda cells: pd.Series(cells, dtype="str"),
    "arrow": lambda cells: pd.Series(cells, dtype="string[pyarrow]"),
    "category": lambda cells: pd.Series(cells, dtype="category"),
    "wide category": lambda cells: pd.Series(
        pd.Categorical(cells, [*TEXTS[:-1], *map(str, range(2, 500))])
    ),
    "dictionary": lambda cells: pd.Series(
        pa.array(cells, pa.string()).dictionary_encode(),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ),
    "polars": lambda cells: pl.Series(cells, dtype=pl.String),
    "polars categorical": lambda cells: pl.Series(cells, dtype=pl.Categorical),
    "enum": lambda cells: pl.Series(cells, dtype=pl.Enum(TEXTS[:-1])),
}


@settings(deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=30), st.sampled_from([*CONTAINERS]))
def test_distinct_texts_are_read_as_single_cells_are(cells: list[Any], container: str) -> None:
    domain = Categories(["a", "b", "nan", "None", "", "ä"], unseen="b")
    series = CONTAINERS[container](cells)
    frame = series.to_frame("x")
    expected = [domain.encode([cell])[0] for cell in cells]
    assert Encoder([domain]).encode(Table(frame))[:, 0].tolist() == expected


@pytest.mark.parametrize("dtype", ["category", object])
def test_categories_of_numbers_and_dates(dtype: Any) -> None:
    cells: list[list[Any]] = [
        [2**53 + 1, 2**53, None, 7],
        [1.5, None, math.inf, -0.0],
        [True, False, None, True],
        [pd.Timestamp("2020-01-01"), None, pd.Timestamp("1999-12-31 23:59"), pd.NaT],
    ]
    domains = [
        Categories([2**53, 2**53 + 1, 7, 0], unseen=0),
        Interval(-1, 3, bins=4, missing="indicator"),
        Categories(["no", "True"]),
        Interval(
            pd.Timestamp("1999-01-01"), pd.Timestamp("2021-01-01"), bins=22, missing="indicator"
        ),
    ]
    for domain, column in zip(domains, cells, strict=True):
        frame = pd.Series(column, dtype=object).astype(dtype).to_frame("x")
        expected = [domain.encode([cell])[0] for cell in column]
        assert Encoder([domain]).encode(Table(frame))[:, 0].tolist() == expected


def test_a_missing_text_is_no_category() -> None:
    """A missing value of pandas has a text of its own, which somebody may have declared."""
    domain = Categories(["x", "nan", "<NA>", "NaT", "None"], unseen="x")
    assert domain.encode(np.array([math.nan, pd.NA, pd.NaT, None, "nan"], object)).tolist() == [
        0
    ] * 4 + [1]


def test_cells_without_a_hash_do_not_change_others() -> None:
    domain = Categories(["a", "b"], unseen="b")
    cells = np.empty(3, object)
    cells[:] = ["a", ["a"], "a"]
    assert domain.encode(cells).tolist() == [0, 1, 0]
