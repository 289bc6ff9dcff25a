"""Shares of the budget of a regression: within bounds for which noise can be drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dpbayes_sklearn.regression.release import by_levels
from dpbayes_sklearn.regression.step_noise import Shares

from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.noise.discrete_gaussian import representable_variance
from dpbayes_sklearn.noise.law import representable_scale
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression.moments import location_block
from dpbayes_sklearn.schema import Categories, Interval


def designs():
    for numbers, signs in ((0, 1), (3, 1), (0, 2), (1, 30)):
        yield Design((Interval(0, 1),) * numbers + (Categories([*"ab"]),) * signs)


def shares(design, n, epsilon, rho=None):
    counts = int(design.numbers.sum()), int(design.signs.sum())
    budget = Budget(epsilon)
    if rho is None:
        return Shares.of(budget, n, *counts, residuals=True)
    return Shares.of_rho(rho, budget, n, *counts, residuals=True)


@pytest.mark.parametrize("n", [10**3, 20_000, 54_875, 10**6, 10**9])
@pytest.mark.parametrize("rho", [None, Fraction(1, 50), Fraction(1)])
def test_the_noise_of_signs_can_be_drawn_for_any_number_of_records(n, rho):
    for design in designs():
        parts = shares(design, n, Fraction(1), rho)
        assert parts.total == (1 if rho is None else rho)
        if not parts.signs:
            continue
        law = parts.step(location_block(design.signs)).law(parts.signs, parts.grid(design, n))
        for parameter in law.parameters if rho else law.scales if hasattr(law, "scales") else ():
            (representable_variance if rho else representable_scale)(parameter)


def test_no_signs_no_share():
    design = Design((Interval(0, 1),) * 2)
    for rho in (None, Fraction(1, 50)):
        assert not shares(design, 10**6, Fraction(1), rho).signs


def test_model_keeps_most_of_a_large_budget():
    for design in designs():
        for rho in (None, Fraction(1, 50)):
            parts = shares(design, 10**9, Fraction(1), rho)
            assert parts.model / parts.total > 0.8
            assert np.isclose(float(parts.signs / parts.total), 1e-4)


@pytest.mark.parametrize("rho", [None, Fraction(1, 50)])
def test_numbers_too_many_to_be_located_one_by_one_have_a_common_scale(rho):
    design, kinds = Design((Interval(0, 1),) * 20), []
    for n in (20, 1000, 4000, 10**5):
        parts = shares(design, n, Fraction(1), rho)
        assert parts.total == (1 if rho is None else rho)
        assert parts.columns < parts.total / 4
        kinds.append((parts.common, parts.columns > 0))
    assert kinds == [(False, False), (False, False), (True, True), (False, True)]
    assert not shares(Design((Categories([*"ab"]),)), 4000, Fraction(1), rho).common


@pytest.mark.parametrize("n", [100, 2000, 20_000, 10**8])
@pytest.mark.parametrize("mean", [False, True])
def test_shares_of_two_stages_add_up_to_rho(n, mean):
    budget = Budget(Fraction(1), Fraction(1, 10**6))
    one = Shares.of_rho(Fraction(1, 32), budget, n, 1, mean=mean, residuals=True, weighted=2)
    two = one.in_two_stages(n, 3)
    assert two.total == one.total == Fraction(1, 32)
    assert min(two.first, two.spread, two.model) > 0
    assert (two.mean > 0) == mean
    assert (two.target, two.columns, two.residuals, two.uneven) == (
        one.target, one.columns, one.residuals, one.uneven
    )  # fmt: skip


def test_the_first_stage_of_many_columns_has_more():
    one = Shares.of(Budget(Fraction(1)), 100_000, 3, residuals=True)
    parts = [one.in_two_stages(100_000, columns) for columns in (1, 5, 8, 11, 100)]
    assert all(each.total == 1 for each in parts)
    assert [6 * each.first / one.model for each in parts] == [2, 2, 3, 4, 4]


def test_many_levels_need_more_records_for_two_stages():
    few = Design((Categories([*"abc"]),) * 5)
    many = Design((Categories(range(16)),) * 5)
    assert by_levels(few) == 1
    assert by_levels(many) == pytest.approx(75**1.5 / 50)
