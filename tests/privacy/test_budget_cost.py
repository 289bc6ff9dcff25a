from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.privacy import exact
from dpbayes_sklearn.privacy.budget import Cost, round_down, round_up

figures = st.fractions(min_value=0, max_value=1000) | st.just(math.inf)
costs = st.builds(Cost, figures, st.fractions(min_value=0, max_value=1))


@given(costs)
def test_writing_and_parsing_is_exact(cost):
    assert Cost.parsed(*cost.written()) == cost


@given(costs, costs)
def test_two_parallel_releases_cost_no_more_than_two_in_sequence(first, second):
    both = first.plus(second.beyond(first))
    assert both == first.joined(second)
    assert both <= first.plus(second)


@given(costs, costs)
def test_what_is_left_can_be_spent(ceiling, spent):
    left = ceiling.left_by(spent)
    assert (left.plus(spent) <= ceiling) == (spent <= ceiling)


@given(costs, costs)
def test_costs_are_ordered_component_by_component(first, second):
    assert (first <= second) == (first.epsilon <= second.epsilon and first.delta <= second.delta)
    assert (first >= second) == (second <= first)
    assert (first < second) == (first <= second and first != second) == (second > first)


def test_less_epsilon_for_more_delta_is_neither_more_nor_less():
    cheap, dear = Cost(1.0, 1e-6), Cost(2.0, 0.0)
    assert not cheap <= dear
    assert not cheap >= dear
    assert not cheap < dear
    assert not cheap > dear
    assert cheap <= (1.0, 1e-6)
    assert cheap < (1.0, 1e-5)


@given(st.fractions(min_value=0) | st.just(math.inf))
def test_rounding_brackets_the_figure_by_at_most_two_floats(number):
    low, high = round_down(number), round_up(number)
    assert exact(low) <= number <= exact(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


@pytest.mark.parametrize("text", ["0.1", "0.3", "1e-300", "123456.789"])
def test_short_decimals_are_not_moved_by_rounding(text):
    number = Fraction(text)
    assert round_down(number) == round_up(number) == float(text)


def test_rounding_beyond_the_largest_and_smallest_float():
    huge, tiny = Fraction(10**400), Fraction(1, 10**400)
    assert (round_down(huge), round_up(huge)) == (math.nextafter(math.inf, 0), math.inf)
    assert (round_down(tiny), round_up(tiny)) == (0.0, 5e-324)


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 0, "both be 0"),
        (float("1e-400"), 0.0, "both be 0"),
        (1, 1.5, r"delta must be in the range \[0, 1\]"),
        (1, math.inf, r"delta must be in the range \[0, 1\]"),
        (1, -0.1, "delta must not be negative"),
        (Decimal("1e-601"), 0, "fewer digits"),
        (10**601, 0, "fewer digits"),
    ],
)
def test_impossible_costs_are_refused(epsilon, delta, message):
    with pytest.raises(ValueError, match=message):
        Cost.of(epsilon, delta)


@pytest.mark.parametrize("text", ["-1/2", "nan", "", "1/0", "0x1"])
def test_unreadable_figures_are_not_parsed(text):
    with pytest.raises((ValueError, ZeroDivisionError)):
        Cost.parsed(text, "0/1")


def test_costs_are_compared_part_by_part():
    low, wide, deep, high = Cost(1, 0), Cost(2, 0), Cost(1, 0.5), Cost(2, 0.5)
    assert low < wide < high
    assert low < deep < high
    assert high > deep >= low
    assert low <= Cost(1, 0)
    assert low >= Cost(1, 0)
    assert not low < Cost(1, 0)
    assert not low > Cost(1, 0)
    for one, other in ((wide, deep), (deep, wide)):
        assert not any((one < other, one <= other, one > other, one >= other))
        assert one != other
    assert low == (1, 0)
    assert low < (1, 0.5)
