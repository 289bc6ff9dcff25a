"""Texts that dask makes of a partition are what its collection declares; no other cell moves."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.audit._converted import DECLARED, EXTENSIONS, read_by_dask
from dpbayes_sklearn.data.dask import as_declared, reader_of

DAY = np.dtype("datetime64[ns]")


@pytest.mark.parametrize(
    ("name", "arrays"),
    [(n, a) for n in DECLARED for a in (False, True) if not (a and n in EXTENSIONS)],
)
def test_one_missing_value_changes_no_other(name, arrays):
    plain, odd = (read_by_dask(name, missing, arrays) for missing in (False, True))
    for role, cells in odd.items():
        assert all(a == b for a, b in zip(plain[role][:-1], cells[:-1], strict=True)), role
        assert cells[-1] is None or pd.isna(cells[-1])


@pytest.mark.parametrize(
    ("dtype", "text", "cell"),
    [
        (np.dtype(bool), "True", True),
        (np.dtype(bool), "False", False),
        (np.dtype(int), "9007199254740993", 2**53 + 1),
        (np.dtype(int), "1.0", 1),
        (np.dtype(int), "True", 1),
        (np.dtype("float32"), "0.1", np.float32(0.1)),
        (np.dtype(float), "True", 1.0),
        (pd.ArrowDtype(pa.decimal128(5, 2)), "0.10", Decimal("0.1")),
        (pd.CategoricalDtype([1, 2]), "1", 1),
        (DAY, "2020-06-01", np.datetime64("2020-06-01")),
        (DAY, "9999-06-01 00:00:00", np.datetime64("9999-06-01")),
        (DAY, "2020-06-01 02:00:00+02:00", np.datetime64("2020-06-01")),
        (np.dtype("timedelta64[s]"), "1 days 00:00:01", np.timedelta64(86401, "s")),
        (
            pd.DatetimeTZDtype(tz="UTC"),
            "2020-06-01 00:00:00Z",
            pd.Timestamp("2020-06-01", tz="UTC"),
        ),
    ],
)
def test_a_text_is_what_is_declared(dtype, text, cell):
    (read,) = as_declared(np.array([text], object), [reader_of(dtype)])
    assert read == cell


@pytest.mark.parametrize("dtype", [np.dtype(int), np.dtype(float), np.dtype(bool), DAY])
@pytest.mark.parametrize("text", ["", "x", "now", "today", "<NA>", "None", "2020-13-01", "NaT"])
def test_any_other_text_is_missing(dtype, text):
    (read,) = as_declared(np.array([text], object), [reader_of(dtype)])
    assert read is None


def test_texts_stay_where_texts_are_declared():
    texts = pd.Series(["1", "True", None], dtype="string")
    for dtype in (texts.dtype, np.dtype(object), np.dtype("U3"), pd.CategoricalDtype(["1"])):
        assert as_declared(texts, [reader_of(dtype)]) is texts


def test_the_partition_of_the_caller_stays_as_it_is():
    frame = pd.DataFrame({"x": ["1", None], "y": [1, 2]}, dtype=object)
    read = as_declared(frame, [reader_of(np.dtype(int)), None])
    assert frame["x"].tolist() == ["1", None]
    assert read["x"].tolist() == [1, None]
    assert as_declared(frame[["y"]].astype(int), [reader_of(np.dtype(int))])["y"].dtype == int
