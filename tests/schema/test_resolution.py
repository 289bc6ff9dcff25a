"""From declarations to domains, and the rule of bins."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.data.undeclared import domain_from_data
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.resolution import Bins, declared_domains, intervals_from_bounds

A, B = Interval(0, 1), Categories(["x", "y"])


def test_declared_domains() -> None:
    schema = Schema({"a": A, "b": B})
    assert declared_domains(None, 2, None, None) == [None, None]
    assert declared_domains(None, 2, schema, None) == [A, B]
    assert declared_domains(["b", "other", "a"], 3, schema, None) == [B, None, A]
    assert declared_domains(["a", "b"], 2, None, (0, 1)) == [A, A]


@pytest.mark.parametrize(
    ("names", "n_features", "bounds", "message"),
    [
        (None, 3, None, "declares 2 columns, but X has 3"),
        (["a", "c"], 2, None, r"lacks the columns \['b'\]"),
        (None, 2, (0, 1), "either schema or bounds"),
    ],
)
def test_declarations_that_do_not_fit(
    names: Any, n_features: int, bounds: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        declared_domains(names, n_features, Schema({"a": A, "b": B}), bounds)


def test_bounds() -> None:
    assert intervals_from_bounds((0, 1), 2) == [A, A]
    assert intervals_from_bounds(([0, -1], 1), 2) == [A, Interval(-1, 1)]
    assert intervals_from_bounds(np.array([[0, 2], [1, 3]]), 2) == [A, Interval(2, 3)]


@pytest.mark.parametrize(
    "bounds", [3, (0,), (0, 1, 2), ([0, 0, 0], 1), ("a", "b"), (0, None), ([[0], [1]], 1), {}]
)
def test_bounds_that_are_no_pair(bounds: Any) -> None:
    with pytest.raises(ValueError, match=r"limits must be a pair|finite number"):
        intervals_from_bounds(bounds, 2, "limits")


@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), (0, math.inf), (0, [1, math.nan])])
def test_bounds_in_the_wrong_order(bounds: Any) -> None:
    with pytest.raises(ValueError, match=r"low < high|finite number"):
        intervals_from_bounds(bounds, 2)


# ------------------------------------------------------------------------ bins


def test_declared_bins_and_categories_stay() -> None:
    for n_bins in ("auto", 7, [7, 7]):
        bins = Bins(n_bins, n=1000, d=2, epsilon=1.0)
        assert bins.cut(B, 0, "O") == B
        assert bins.cut(Interval(0, 1, bins=3), 1, "f") == Interval(0, 1, bins=3)


def test_given_numbers_of_bins() -> None:
    assert Bins(7, 100, 2, 1.0).cut(A, 1, "i") == Interval(0, 1, bins=7)
    for n_bins in ([3, 5], np.array([3, 5]), (np.int8(3), 5)):
        bins = Bins(n_bins, 100, 2, 1.0)
        assert [bins.cut(A, j, "f").n_values for j in range(2)] == [3, 5]


@pytest.mark.parametrize("n_bins", [1, 0, True, [3], [3, 5, 7], [3, 1], [3.0, 5.0], ["3", "5"], []])
def test_bad_numbers_of_bins(n_bins: Any) -> None:
    with pytest.raises(ValueError, match="one int >= 2 for each of the 2 features"):
        Bins(n_bins, 100, 2, 1.0).check()


@pytest.mark.parametrize(
    ("domain", "kind", "one_each"),
    [
        (Interval(0, 1), "b", True),
        (Interval(0, 31), "i", True),
        (Interval(-5, 5), "u", True),
        (Interval(0, 32), "i", False),
        (Interval(0, 1), "f", False),
        (Interval(0, 1.5), "i", False),
        (Interval(0, 5), "O", False),
    ],
)
def test_few_integers_get_a_bin_each(domain: Interval, kind: str, one_each: bool) -> None:
    cut = Bins("auto", n=10**9, d=3, epsilon=1.0).cut(domain, 0, kind)
    assert cut.n_values == (domain.n_integers if one_each else 16)


@given(
    n=st.integers(1, 10**9),
    d=st.integers(1, 10**4),
    epsilon=st.floats(1e-9, 1e9) | st.just(math.inf),
)
def test_the_rule_is_the_documented_one(n: int, d: int, epsilon: float) -> None:
    wanted = 1.5 * (n / (1 + 2 * (d + 1) / epsilon)) ** (1 / 3)
    for walks, factor in ((False, 1.0), (True, 0.5)):
        cut = Bins("auto", n, d, epsilon, walks).cut(A, 0, "f").n_values
        assert cut in {2, 4, 8, 16}
        if 2 < cut < 16:
            assert 2**-0.5001 < cut / (wanted * factor) < 2**0.5001
    more = Bins("auto", 8 * n, d, epsilon).cut(A, 0, "f").n_values
    assert more >= Bins("auto", n, d, epsilon).cut(A, 0, "f").n_values


# --------------------------------------------------- what is read from the data


def test_domains_from_data() -> None:
    frame = pd.DataFrame(
        {"f": [1.5, -2.0], "c": [3, 3], "t": ["b", "a"], "n": np.array([7, "8"], object)}
    )
    found = [domain_from_data(Table(frame), j) for j in range(4)]
    assert found == [Interval(-2, 1.5), Interval(3, 6), Categories(["a", "b"]), Interval(7, 8)]


CANARY = 1.2345678e-300
CANARIES: list[list[Any]] = [
    [CANARY, 2.3456789e-300],
    [-1.2345678e308, 1.2345678e308],
    [1.2345678e308, 1.2345678e308],
    [12345678.0, math.nan],
    [12345678.0, math.inf],
    ["12345678", None],
    ["HIV12345678", 2],
    [["12345678"], 2],
]


@pytest.mark.parametrize("values", CANARIES)
def test_no_value_is_in_a_message(values: list[Any]) -> None:
    column = np.empty((2, 1), object)
    column[:, 0] = values
    if all(isinstance(v, float) for v in values):
        column = column.astype(float)
    with pytest.raises((ValueError, TypeError)) as caught:
        domain_from_data(Table(column), 0)
    text = "".join(traceback.format_exception(caught.value, chain=True))
    messages = [line for line in text.splitlines() if not line.startswith(" ")]
    assert not [m for m in messages if "2345678" in m or "3456789" in m]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
