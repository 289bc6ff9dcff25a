"""From declarations to domains, and the rule of bins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.declared import Bins, declared_domains, intervals_from_bounds

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
    "bounds",
    [3, (0,), (0, 1, 2), ([0, 0, 0], 1), ("a", "b"), (0, None), ([[0], [1]], 1), {}, ([0], [1])],
)
def test_bounds_that_are_no_pair(bounds: Any) -> None:
    with pytest.raises(ValueError, match=r"limits must be a pair|finite number"):
        intervals_from_bounds(bounds, 2, "limits")


@pytest.mark.parametrize("bounds", [[(0, 10), (20, 30)], ((0, 10), (20, 30))])
def test_two_pairs_that_can_be_read_in_two_ways(bounds: Any) -> None:
    with pytest.raises(ValueError, match="two ways"):
        intervals_from_bounds(bounds, 2)


def test_two_pairs_that_can_be_read_in_one_way() -> None:
    """Lists hold one entry per feature; pairs (0, 0) and (1, 2) would be no bounds."""
    assert intervals_from_bounds(([0, 10], [20, 30]), 2) == [Interval(0, 20), Interval(10, 30)]
    assert intervals_from_bounds(((0, 0), (1, 2)), 2) == [A, Interval(0, 2)]
    with pytest.raises(ValueError, match="must be a pair"):
        intervals_from_bounds([(0, 10), (20, 30), (0, 1)], 3)


@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), (0, math.inf), (0, [1, math.nan])])
def test_bounds_in_the_wrong_order(bounds: Any) -> None:
    with pytest.raises(ValueError, match=r"low < high|finite number"):
        intervals_from_bounds(bounds, 2)


# ------------------------------------------------------------------------ bins


def test_declared_bins_and_categories_stay() -> None:
    for n_bins in ("auto", 7, [7, 7]):
        bins = Bins(n_bins, n=1000, d=2, epsilon=1.0)
        assert bins.cut(B, 0, "anything") == B
        assert bins.cut(Interval(0, 1, bins=3), 1, "numbers") == Interval(0, 1, bins=3)


def test_given_numbers_of_bins() -> None:
    assert Bins(7, 100, 2, 1.0).cut(A, 1, "integers") == Interval(0, 1, bins=7)
    for n_bins in ([3, 5], np.array([3, 5]), (np.int8(3), 5)):
        bins = Bins(n_bins, 100, 2, 1.0)
        assert [bins.cut(A, j, "numbers").n_values for j in range(2)] == [3, 5]


@pytest.mark.parametrize("n_bins", [1, 0, True, [3], [3, 5, 7], [3, 1], [3.0, 5.0], ["3", "5"], []])
def test_bad_numbers_of_bins_are_refused(n_bins: Any) -> None:
    with pytest.raises(ValueError, match="one int >= 2 for each of the 2 features"):
        Bins(n_bins, 100, 2, 1.0).check()


@pytest.mark.parametrize(
    ("domain", "kind", "one_each"),
    [
        (Interval(0, 1), "booleans", True),
        (Interval(0, 31), "integers", True),
        (Interval(-5, 5), "integers", True),
        (Interval(0, 32), "integers", False),
        (Interval(0, 1), "numbers", False),
        (Interval(0, 1.5), "integers", False),
        (Interval(0, 5), "anything", False),
    ],
)
def test_few_integers_get_a_bin_each(domain: Interval, kind: Any, one_each: bool) -> None:
    cut = Bins("auto", n=10**9, d=3, epsilon=1.0).cut(domain, 0, kind)
    assert cut.n_values == (domain.n_integers if one_each else 16)


def test_integers_have_a_bin_each_where_records_allow_it():
    ten, few = Interval(0, 9), Interval(0, 3)
    cut = {n: Bins("auto", n, 20, 1.0).cut(ten, 0, "integers").n_values for n in (300, 3000)}
    assert cut == {300: 4, 3000: 10}
    assert Bins("auto", 10, 20, 0.1).cut(few, 0, "integers").n_values == 4


@given(
    n=st.integers(1, 10**9),
    d=st.integers(1, 10**4),
    epsilon=st.floats(1e-9, 1e9) | st.just(math.inf),
)
def test_the_rule_is_the_documented_one(n: int, d: int, epsilon: float) -> None:
    splits = Bins("auto", n, d, epsilon, walks_splits=True).cut(A, 0, "numbers").n_values
    assert splits in {2, 4, 8, 16}
    if 2 < splits < 16:
        wanted = 0.75 * (n / (1 + 2 * (d + 1) / epsilon)) ** (1 / 3)
        assert 2**-0.5001 < splits / wanted < 2**0.5001
    for classes in (2, 10):
        cut = Bins("auto", n, d, epsilon, n_classes=classes).cut(A, 0, "numbers").n_values
        assert cut in range(4, 17, 2)  # even: the middle of the range is an edge
        if 4 < cut < 16:
            assert abs(cut - 1.6 * (n * epsilon / (classes * d)) ** 0.4) <= 1.0001
    more = Bins("auto", 8 * n, d, epsilon).cut(A, 0, "numbers").n_values
    assert more >= Bins("auto", n, d, epsilon).cut(A, 0, "numbers").n_values
