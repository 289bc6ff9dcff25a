"""The curvature of a logistic loss: its coordinates, its limit, and what is supposed about it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from dpbayes_sklearn import BayesianLogisticRegression, PrivacyUnit, Schema
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic import curvature as module
from dpbayes_sklearn.logistic.blocks import BINS, WEIGHT_STEPS, Blocks, even_nodes
from dpbayes_sklearn.logistic.curvature import (
    CurvaturePlan,
    coordinates,
    half_way,
    on_the_way,
    supposed_curvature,
    told,
    widest_norm,
)
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.noise import MatrixNoise, Noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.schema import Categories, Interval

BLOCKS = Blocks((Interval(0, 1), Categories(range(3)), Interval(0, 1, missing="indicator")))
RARE = np.array([0.6, 0.39, 0.01])
EVEN = np.full(BINS, 1 / BINS)
SHARES = [EVEN, RARE, np.append(0.9 * EVEN, 0.1)]


def mapped(X, blocks=BLOCKS):
    records = LocalRecords([(Table(X), np.zeros(len(X), int))])
    read = LabelledRecords(blocks, Categories([0, 1]), records).read()
    return read.mapped(even_nodes(len(blocks.numbers)))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n), rng.choice(3, n, p=RARE), rng.random(n)])
    X[rng.random(n) < 0.1, 2] = np.nan
    return X


def known(blocks=BLOCKS, shares=SHARES, error=0.0):
    tables = blocks.tables(even_nodes(len(blocks.numbers)))
    return coordinates(blocks, tables, shares, [error] * len(shares))


def test_coordinates_are_uncorrelated_and_have_the_variances_that_shares_suggest():
    found, X = known(), rows(200_000)
    weights = BLOCKS.weights(BLOCKS.encode(Table(X)), BLOCKS.tables(even_nodes(2))) / WEIGHT_STEPS
    own = weights @ BLOCKS.basis @ found.axes.T
    assert np.allclose(own, weights @ found.centred @ found.turn.T)
    assert np.allclose(own.mean(axis=0), np.eye(len(own.T))[0], atol=0.01)
    assert np.allclose(np.cov(own.T), np.diag(found.moments[0]), atol=0.005)
    assert np.allclose(np.abs(own).mean(axis=0)[1:], found.sizes[1:], atol=0.01)
    # what a rare level has is one coordinate
    assert found.moments[0, BLOCKS.block_of == 1].min() < 0.02
    w = np.random.default_rng(1).normal(size=BLOCKS.parameters)
    assert np.allclose(own @ found.of_parameters(w), weights @ BLOCKS.basis @ w)


def test_without_an_intercept_nothing_is_centred():
    blocks = Blocks(BLOCKS.domains, intercept=False)
    assert np.array_equal(known(blocks).centred, blocks.basis)


def test_no_level_is_scaled_down_and_no_record_exceeds_the_widest_norm():
    found = known()
    weights = BLOCKS.weights(BLOCKS.encode(Table(rows(5000))), BLOCKS.tables(even_nodes(2)))
    own = weights / WEIGHT_STEPS @ found.centred
    own[:, 0] /= 4
    norms = (own**2).sum(axis=1)
    assert norms.max() <= widest_norm(BLOCKS)
    assert np.mean(norms > found.limit) < 0.1
    levels = Blocks((Categories(range(3)),))
    assert known(levels, [RARE]).limit > 1 / 16 + (1 - 0.01) ** 2


def test_values_in_the_middle_of_their_window_have_a_curvature():
    blocks = Blocks((Interval(0, 1),), "linear", None, False)
    nodes = np.clip((np.arange(BINS + 1) - 6) / 3, 0, 1)[None]
    limit = coordinates(blocks, blocks.tables(nodes), [np.eye(BINS)[7]], [0.0]).limit
    assert 0 < limit < widest_norm(blocks) / 10
    CurvaturePlan.of(blocks, 20_000, Fraction(1, 4), RECORD, limit)


@pytest.mark.parametrize("shares", [SHARES, [EVEN, np.array([0, 0, 1.0]), SHARES[2]]])
def test_a_record_changes_the_sum_by_no_more_than_the_law_hides(shares):
    # the sensitivity does not depend on where columns are centred, nor on the point
    found = known(shares=shares)
    plan = CurvaturePlan.of(BLOCKS, 10, Fraction(1), RECORD, found.limit)
    weights = np.array([float(each) for each in plan.law.weights])
    rng, worst = np.random.default_rng(2), 0.0
    for seed in range(100):
        at = BLOCKS.basis @ rng.normal(size=BLOCKS.parameters) * 10 ** rng.uniform(-3, 1)
        moved = mapped(rows(1, seed)).products(at, found.centred, weights, found.limit, plan.grid)
        worst = max(worst, plan.law.privacy_loss(moved))
    assert 0.2 < worst <= 0.5  # one of two records


def test_what_is_supposed_is_the_curvature_of_normal_coordinates():
    variances, w, n = np.array([0.0, 0.5, 0.2, 0.1]), np.array([0.4, 2.0, -3.0, 0.5]), 400_000
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 3)) * np.sqrt(variances[1:])])
    q = expit(x @ w)
    exact = (x * (q * (1 - q))[:, None]).T @ x
    moments = np.array([variances, np.zeros(4)])
    assert np.allclose(supposed_curvature(moments, n, w), exact, atol=0.005 * n)
    places = w - 1 + 2 * ((np.arange(50) + 0.5) / 50)[:, None]
    mean = np.mean([supposed_curvature(moments, n, place) for place in places], axis=0)
    assert np.allclose(on_the_way(moments, n, w - 1, np.full(4, 2.0)), mean, atol=2e-3 * n)


@pytest.mark.parametrize("effect", [-4.0, 0.0, 3.0])
def test_what_is_supposed_of_a_rare_level_is_the_curvature_where_it_is(effect):
    levels, n = Blocks((Categories(range(2)),)), 10_000
    found = known(levels, [np.array([0.99, 0.01])])
    w = np.array([0.2, effect / np.sqrt(2)])  # from the first level to the second, or back
    supposed = supposed_curvature(found.moments, n, found.of_parameters(w))
    q = expit(levels.weights(np.array([[0], [1]], np.uint16), levels.tables(np.zeros((0, 17)))) @
              levels.basis @ w / WEIGHT_STEPS)  # fmt: skip
    exact = n * 0.01 * 2 * q[1] * (1 - q[1])
    assert 0.7 < supposed[1, 1] / exact < 1.4


def test_the_point_is_between_the_mode_and_where_a_ridge_came_from():
    found, mode, n = known(), np.ones(BLOCKS.parameters), 2000
    start = found.of_parameters(mode)
    weak, strong = (half_way(found, n, mode, np.full(len(mode), by)) for by in (1e-6, 5.0))
    pulled = BLOCKS.block_of == 0
    assert np.allclose((found.axes.T @ (weak - start))[pulled], 0, atol=0.02)
    way = found.axes.T @ (strong - start)
    assert (way[pulled] > 0.02).all()


def test_an_entry_of_mere_noise_is_what_is_supposed():
    found, n, p = known(), 2000, BLOCKS.parameters
    point, released = np.zeros(p), np.diag(np.full(p, 1e6))
    about = supposed_curvature(found.moments, n, point)
    answer = told(found, n, point, released, np.full((p, p), 1e16))
    assert np.allclose(answer.curvature, about, rtol=0.01, atol=1.0)
    assert np.allclose(answer.curvature_noise, found.doubt(about) ** 2, rtol=1e-3)
    exact = told(found, n, point, released, np.zeros((p, p)))
    assert np.allclose(exact.curvature, found.turn @ released @ found.turn.T)
    assert np.array_equal(exact.curvature_noise, np.zeros((p, p)))


def test_noise_in_the_shares_adds_to_the_doubt():
    shares = [np.array([0.995, 0.005])]
    levels, errors = Blocks((Categories(range(2)),)), (0.0, 0.02)
    about = supposed_curvature(known(levels, shares).moments, 2000, np.zeros(2))
    sure, unsure = (known(levels, shares, error).doubt(about) for error in errors)
    assert (unsure[1] > 2 * sure[1]).all()
    assert sure[1, 1] == pytest.approx(about[1, 1] / 2)


@pytest.mark.slow
def test_noise_has_the_law_that_is_stated():
    levels = Blocks((Categories(range(3)),))
    found, records = known(levels, [RARE]), mapped(np.zeros((1, 1)), levels)
    plan = CurvaturePlan.of(levels, 1, Fraction(1), RECORD, found.limit)
    noise = Noise(random_source(0))
    exact = [plan.ask(records, np.zeros(3), found.centred)]
    answers = [plan.read(*noise.add(exact, plan.law)) for _ in range(2000)]
    drawn, stated = np.array([matrix for matrix, _ in answers]), answers[0][1]
    turned = found.turn @ drawn @ found.turn.T
    assert np.allclose(turned.var(axis=0), stated, rtol=0.25)
    assert isinstance(plan.law, MatrixNoise)


def test_strong_effects_are_inside_their_intervals():
    rng, truth, inside = np.random.default_rng(4), np.array([3.0, 2.0, 0.5]), []
    schema = Schema({name: Interval(-5, 5) for name in "abc"}, target=Categories([0, 1]))
    for seed in range(40):
        X = rng.normal(size=(3000, 3))
        y = (rng.random(3000) < expit(0.3 + X @ truth)).astype(int)
        model = BayesianLogisticRegression(
            4.0, effects="linear", intervals=True, schema=schema, random_state=seed
        )
        table = model.fit(X, y).coefficients()
        ends = np.array([(row.low, row.high) for row in table.rows[1:]])
        inside.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert np.mean(inside, axis=0).min() >= 0.85


def test_a_curvature_that_noise_happens_to_make_large_identifies_nothing():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < expit(X @ [3.0, -2.0])).astype(int)
    schema = Schema({name: Interval(-5, 5) for name in "ab"}, target=Categories([0, 1]))
    fit = partial(BayesianLogisticRegression, intervals=True, effects="linear", schema=schema)
    few, many = (fit(epsilon, random_state=0).fit(X, y).posterior_ for epsilon in (0.5, 8.0))
    lucky = replace(
        few, curvature=few.curvature + 10 * np.diag(few.curvature_noise.diagonal() ** 0.5)
    )
    slopes = np.eye(3)[1:]
    assert lucky._equation.effects(slopes @ lucky.axes.T, 1.96).identified.all()
    assert not lucky.effects(slopes, 1.96).identified.any()
    assert many.effects(slopes, 1.96).identified.all()


@pytest.mark.slow
def test_what_noise_hides_has_no_estimate():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=20_000), rng.random(20_000) < 0.001])
    y = (rng.random(20_000) < expit(X[:, 0])).astype(int)
    schema = Schema({"x": Interval(-5, 5), "rare": Categories([0, 1])}, target=Categories([0, 1]))
    fit = partial(BayesianLogisticRegression, intervals=True, effects="linear", schema=schema)
    model = fit(1.0, random_state=0).fit(X, y)
    summary, table = model.summary(), model.coefficients()
    rare, x = table["rare=1"], table["x"]
    assert (x.identified, rare.identified) == (True, False)
    assert np.isnan([rare.estimate, rare.z, rare.p, rare.odds_ratio]).all()
    assert (rare.low, rare.high, rare.odds_ratio_low) == (-np.inf, np.inf, 0)
    assert "Not identified, because of the noise: rare=1." in repr(table)
    assert "Not identified" in table._repr_html_()
    assert "Not identified" in str(model.card())
    assert "Logistic regression" in repr(summary)
    assert (abs(x.z) > 1.96) == (x.low > 0 or x.high < 0)
    assert summary.to_frame().loc["x", "p"] == x.p
    assert summary.covariance[1, 1] == pytest.approx(x.sd**2)
    assert np.isinf(summary.covariance[2, 2])
    assert not np.isfinite(model.effect("rare").low).any()
    assert np.isfinite(model.effect("x").low).any()


def test_units_have_the_noise_of_all_records_of_a_person():
    one, three = (
        CurvaturePlan.of(BLOCKS, 100, Fraction(1), unit, 1.0).law.scale
        for unit in (PrivacyUnit("record"), PrivacyUnit("person", max_records=3))
    )
    assert three == 3 * one
    assert module.widest_norm(BLOCKS) == 1 / 16 + 6
