"""Domains: every value has a place, bad declarations are refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.schema import Categories, Interval


class Hostile:
    """A value that refuses everything that can be asked of it."""

    def __float__(self) -> float:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError


ODD_VALUES: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    -5e-324,
    1e308,
    -1e308,
    2**63,
    -(2**63),
    10**400,
    -(10**400),
    10**5000,  # has no text: longer than Python's limit
    Fraction(10**400, 3),
    Fraction(1, 3),
    Decimal("sNaN"),
    Decimal("1e999"),
    None,
    "",
    "a",
    "nan",
    "3",
    b"3",
    True,
    np.bool_(False),
    np.longdouble("1e4000"),
    np.complex128(1 + 2j),
    np.complex64(1),
    2j,
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    np.array([1.0]),
    [1],
    {},
    (1, [2]),
    object(),
    Hostile(),
]
VALUES = st.one_of(
    st.integers(0, len(ODD_VALUES) - 1).map(ODD_VALUES.__getitem__),
    st.floats(),
    st.integers(),
    st.text(),
    st.booleans(),
    st.binary(),
)
BOUND = st.floats(-1e307, 1e307)


def column(values: list[Any]) -> npt.NDArray[Any]:
    """An object column of exactly these values, whatever they are."""
    made = np.empty(len(values), object)
    for i, value in enumerate(values):
        made[i] = value
    return made


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted(draw(st.tuples(BOUND, BOUND)))
    if not high - low >= 1e-290:
        high = low + max(1.0, abs(low))
    return Interval(low, high, bins=draw(st.integers(2, 300)))


CATEGORIES = st.lists(
    st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.none()),
    min_size=1,
    max_size=6,
    unique=True,
).map(Categories)


@given(domain=intervals() | CATEGORIES, values=st.lists(VALUES, max_size=20))
def test_every_value_whatever_it_is_has_a_code(domain: Any, values: list[Any]) -> None:
    codes = domain.encode(column(values))
    assert codes.shape == (len(values),)
    assert ((codes >= 0) & (codes < domain.n_values)).all()


@given(domain=intervals() | CATEGORIES, values=st.lists(st.floats(), max_size=20))
def test_every_float_has_a_code(domain: Any, values: list[float]) -> None:
    codes = domain.encode(np.array(values))
    assert ((codes >= 0) & (codes < domain.n_values)).all()
    assert (codes == domain.encode(column(values))).all()


def test_all_odd_values_have_a_code_and_raise_no_warning() -> None:
    # warnings are errors here: whether one is given must not depend on a record
    for domain in (Interval(-1, 1, bins=3), Categories(["a", "b"]), Categories([0, 1.5, None])):
        codes = domain.encode(column(ODD_VALUES))
        assert ((codes >= 0) & (codes < domain.n_values)).all()


def test_the_documented_places() -> None:
    domain = Interval(0, 10, bins=5)
    odd = [-math.inf, -3, -0.0, 10, 11, math.inf, math.nan, None, "x", 10**400, -(10**400), "7", 2j]
    assert domain.encode(column(odd)).tolist() == [0, 0, 0, 4, 4, 4, 2, 2, 2, 4, 0, 3, 2]
    assert domain.clip(column(odd)).tolist() == [0, 0, 0, 10, 10, 10, 5, 5, 5, 10, 0, 7, 5]


def test_texts_and_numbers_match_each_other_both_ways() -> None:
    numbers, texts = [0, 1, 1.0, True, "2"], ["0", "1", "1.0", "True", 2]
    assert Categories([5, 0, 1, 2]).encode(column(texts)).tolist() == [1, 2, 2, 0, 3]
    assert Categories(["5", "0", "1", "2"]).encode(column(numbers)).tolist() == [1, 2, 2, 2, 3]
    assert Categories([True, False]).encode(column(["False", "True", "x", "0"])).tolist() == [
        1,
        0,
        0,
        1,
    ]
    large = Categories([0, 2**53, 2**53 + 1])
    assert large.encode(column([str(2**53 + 1), str(2**53)])).tolist() == [2, 1]
    assert large.holds(column(["0", "zero", b"0", "nan"])).tolist() == [True, False, False, False]


@given(domain=intervals(), values=st.lists(st.floats(allow_nan=False), min_size=2))
def test_bins_are_in_order(domain: Interval, values: list[float]) -> None:
    assert (np.diff(domain.encode(np.sort(np.array(values)))) >= 0).all()


@pytest.mark.parametrize("bins", [2, 3, 4, 7, 10, 16, 100, 256, 1000])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (17, 90), (-3.7, 0.1), (1e9, 1e9 + 1)])
def test_an_edge_lies_in_its_bin_or_a_rounding_below(bins: int, low: float, high: float) -> None:
    domain = Interval(low, high, bins=bins)
    edges = np.linspace(low, high, bins + 1)
    step, slack = (high - low) / bins, 4 * np.spacing(max(abs(low), abs(high)))
    codes = domain.encode(edges)
    assert codes[0] == 0
    assert codes[-1] == bins - 1
    inside = np.arange(bins)
    assert (domain.encode(edges[:-1] + slack) == inside).all() or slack > step / 4
    assert (domain.encode(edges[1:] - slack) == inside).all() or slack > step / 4


@pytest.mark.parametrize("size", [2, 3, 5, 17, 32, 256])
@pytest.mark.parametrize("low", [0, -7, 1000])
def test_one_bin_per_integer(low: int, size: int) -> None:
    domain = Interval(low, low + size - 1, bins=size)
    assert domain.n_integers == size
    assert (domain.encode(np.arange(low, low + size)) == np.arange(size)).all()


@given(domain=intervals().map(lambda i: Interval(i.low, i.high, bins=2)))
@settings(max_examples=300)
def test_the_second_bin_begins_where_encode_says(domain: Interval) -> None:
    start = domain.second_bin
    assert domain.encode(np.array([start])) == 1
    assert domain.encode(np.array([np.nextafter(start, -np.inf)])) == 0


@pytest.mark.parametrize("bounds", [(-1, 1), (-2, 2), (0, 1), (-1, 3), (-1e-280, 1e-280)])
def test_the_second_bin_is_found_around_zero_too(bounds: tuple[float, float]) -> None:
    start = Interval(*bounds, bins=2).second_bin
    middle = (bounds[0] + bounds[1]) / 2
    assert abs(start - middle) <= 1e-15 * (bounds[1] - bounds[0])


def test_text_categories_are_compared_by_text() -> None:
    domain = Categories(["1", "2", "True", "2.5", "x"], unseen="x")
    values = column([1, 2.0, True, 2.5, None, math.nan, "1", np.float32(2), 10**5000, [1]])
    assert domain.encode(values).tolist() == [0, 1, 2, 3, 4, 4, 0, 1, 4, 4]
    assert domain.encode(np.array([1, 2, 3])).tolist() == [0, 1, 4]


def test_numbers_match_across_types() -> None:
    domain = Categories([3, 1, 0], unseen=1)
    for dtype in (np.int8, np.uint64, np.float16, np.float32, object):
        assert domain.encode(np.array([0, 1, 2, 3], dtype)).tolist() == [2, 1, 1, 0]
    assert domain.encode(np.array([True, False])).tolist() == [1, 2]
    assert domain.encode(np.array([np.nan, np.inf])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, 1),
        (2, 1),
        (0, math.inf),
        (-math.inf, 0),
        (math.nan, 1),
        (0, math.nan),
        ("0", 1),
        (None, 1),
        (False, True),
        (0, np.True_),
        (0, 1j),
        (-(10**400), 1),
        (-1.7e308, 1.7e308),
        (0, 1e-300),
    ],
)
def test_bad_bounds(low: Any, high: Any) -> None:
    with pytest.raises(ValueError, match=r"Interval .*(low < high|must be a finite number)"):
        Interval(low, high)


@pytest.mark.parametrize("bins", [1, 0, -3, 2.0, True, "2", math.nan, np.float64(3)])
def test_bad_bins_are_refused(bins: Any) -> None:
    with pytest.raises(ValueError, match="bins must be an int >= 2"):
        Interval(0, 1, bins=bins)


def test_an_interval_without_bins_does_not_encode() -> None:
    with pytest.raises(ValueError, match="no bins"):
        Interval(0, 1).encode(np.zeros(1))


@pytest.mark.parametrize(
    ("values", "unseen", "message"),
    [
        ([], None, "at least one"),
        (["a", "a"], None, "all different"),
        ([1, 1.0], None, "all different"),
        (np.array([2, 2]), None, "all different"),
        (["a"], "b", "unseen must be one of"),
    ],
)
def test_bad_categories_are_refused(values: Any, unseen: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Categories(values, unseen=unseen)


def test_domains_are_values() -> None:
    assert Interval(0, 1) == Interval(0.0, np.float32(1))
    assert Interval(0, 1) != Interval(0, 1, bins=2)
    assert Categories(np.array([1, 2])) == Categories([1, 2])
    assert hash(Categories(["a"])) == hash(Categories(["a"]))
    with pytest.raises(AttributeError):
        Interval(0, 1).low = 2  # type: ignore[misc]


@pytest.mark.parametrize("dtype", [bool, object])
def test_booleans_are_the_texts_true_and_false(dtype: Any) -> None:
    flags = np.array([True, False, True], dtype)
    assert Categories(["False", "True"]).encode(flags).tolist() == [1, 0, 1]
    assert Categories(["yes", "True"], unseen="yes").encode(flags).tolist() == [1, 0, 1]
    assert Categories(["0", "1"]).encode(flags).tolist() == [1, 0, 1]
    assert Categories(["False", "True", "1"]).encode(np.array([1, 1.0])).tolist() == [2, 2]


def test_nan_is_no_category() -> None:
    with pytest.raises(ValueError, match="must not hold NaN"):
        Categories([1.0, float("nan")])


@pytest.mark.parametrize("first", [-(2**63), -(2**62) - 2, -2, 2**62 - 2, 2**63 - 4])
def test_integers_far_from_the_categories_are_unseen(first: int) -> None:
    """A difference of integers may overflow, and seem to be small."""
    ends = np.array([-(2**63), -(2**62), -1, 0, 2**62, 2**63 - 1])
    near = np.array([*range(max(first - 2, -(2**63)), min(first + 5, 2**63 - 1) + 1)])
    values = [first, first + 1, first + 2]
    domain = Categories(values, unseen=first + 1)
    for column in (ends, near):
        expected = [values.index(v) if v in values else 1 for v in column.tolist()]
        assert domain.encode(column).tolist() == expected
