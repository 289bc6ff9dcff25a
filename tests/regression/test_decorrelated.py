"""Columns that others predict: rests have exact sums, and coefficients are those of columns."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from dpbayes_sklearn.regression.location import predictors
from dpbayes_sklearn.regression.record_sums import Baseline

from dpbayes_sklearn import BayesianLinearRegression, Interval, Schema
from dpbayes_sklearn.convex.design import (
    WHOLE_WINDOW,
    DecorrelatedWindows,
    Design,
    Scale,
    Windows,
)
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.mechanisms import Gaussian, Laplace
from dpbayes_sklearn.noise.discrete_gaussian import representable_variance
from dpbayes_sklearn.noise.law import representable_scale
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression import design as design_module
from dpbayes_sklearn.regression import release
from dpbayes_sklearn.regression.moments import Moments, pairs_block
from dpbayes_sklearn.regression.plans import plan
from dpbayes_sklearn.release import Facts

AXES = np.array([[1.0, 0.0, 0.0], [-3.7, 5.1, 0.0], [0.4, -2.3, 1.9]])
WINDOWS = DecorrelatedWindows(np.array([0.1, -0.2, 0.0]), np.array([0.5, 0.9, 1.0]), AXES)
DESIGN = Design((Interval(-1, 1),) * 3)
GRID = 2**15


def naive(X, y, baseline):
    """Sums of zz' by integers of Python."""
    total = np.zeros((5, 5), object)
    steps = [[round(a * 2**18) for a in row] for row in AXES.tolist()]
    for row, target in zip(X, y, strict=True):
        x = np.rint((row - WINDOWS.centres) / WINDOWS.halves * GRID).clip(-GRID, GRID)
        r = baseline.residuals(x[None], np.array([target]), GRID)
        t = int(np.rint(GRID * WHOLE_WINDOW.map(r))[0])
        sums = [sum(a * int(v) for a, v in zip(axis, x, strict=True)) for axis in steps]
        z = [int(np.clip(np.rint(s / 2**18), -GRID, GRID)) for s in sums]
        record = np.array([GRID, *z, t], object)
        total += np.outer(record, record)
    return total.tolist()


@pytest.mark.parametrize("cells", [9, 100, 10**6])
def test_sums_are_exact_in_any_order(cells, monkeypatch):
    monkeypatch.setattr(design_module, "_CHUNK_CELLS", cells)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (97, 3)), rng.uniform(-1, 1, 97)
    baseline = Baseline.of(np.array([0.1, 0.5, -0.3, 0.2]), WHOLE_WINDOW, WINDOWS)
    order = rng.permutation(97)
    for rows in (np.arange(97), order):
        parts = [(Table(X[some]), y[some]) for some in np.split(rows, [13, 60])]
        asked = Moments(DESIGN, Scale(0.0, 1.0), LocalRecords(parts))
        sums = asked.gram(GRID, WHOLE_WINDOW, WINDOWS, baseline=baseline)
        assert sums.tolist() == naive(X, y, baseline)
        counts = asked.window_counts(WINDOWS, np.array([1, 2]), GRID)
        assert counts.sum(axis=1).tolist() == [97, 97]


def test_models_of_rests_are_models_of_columns():
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=4), rng.uniform(-0.2, 0.2, 3)
    inside = (x - WINDOWS.centres) / WINDOWS.halves
    moved = WINDOWS.to_bounds() @ w
    assert moved[0] + moved[1:] @ x == pytest.approx(w[0] + w[1:] @ (AXES @ inside), abs=1e-4)
    assert WINDOWS.from_bounds(moved[1:]) == pytest.approx(w[1:])
    plain = WINDOWS.to_plain(w)
    assert WINDOWS.plain.to_bounds() @ plain == pytest.approx(moved)
    precisions = np.array([1.0, 2.0, 3.0])
    coefficients = plain[1:]
    assert w[1:] @ WINDOWS.precisions(precisions) @ w[1:] == pytest.approx(
        coefficients**2 @ precisions
    )


def test_only_sure_correlations_predict():
    r = np.array([[1.0, 0.9, 0.45], [0.9, 1.0, 0.7], [0.45, 0.7, 1.0]])
    assert predictors(r, np.zeros((3, 3)))[:, 0].tolist() == [0.0, pytest.approx(0.9), 0.0]
    assert not predictors(r, np.full((3, 3), 0.25)).any()
    total = np.array([[1.0, 0.0, 0.7], [0.0, 1.0, 0.7], [0.7, 0.7, 1.0]])
    assert predictors(total, np.zeros((3, 3)))[2].tolist() == pytest.approx([0.7, 0.7, 0.0])
    same = np.ones((3, 3))  # of columns that are all the same, nothing explodes
    assert np.abs(predictors(same, np.full((3, 3), 0.01))).max() <= 1


def correlated(n, rho, seed=0):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n))
    X = pd.DataFrame({"a": a, "b": rho * a + np.sqrt(1 - rho**2) * b})
    return X, X["a"] - 0.5 * X["b"] + noise


SCHEMA = Schema({"a": Interval(-5, 5), "b": Interval(-5, 5)}, target=Interval(-8, 8))


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian", "delta": 1e-6}])
def test_intervals_of_correlated_columns_are_as_wide_as_those_of_others(options):
    """They were five times as wide as those of least squares, or more."""
    X, y = correlated(20_000, 0.97)
    model = BayesianLinearRegression(1.0, schema=SCHEMA, random_state=0, **options).fit(X, y)
    exact = BayesianLinearRegression(np.inf, schema=SCHEMA).fit(X, y).coefficients()
    for name, truth in (("a", 1.0), ("b", -0.5)):
        row = model.coefficients()[name]
        assert row.sd < 4 * exact[name].sd
        assert abs(row.estimate - truth) < 5 * row.sd
    assert type(model.posterior_.windows) is Windows


def test_columns_that_are_not_correlated_are_left_as_they_are(monkeypatch):
    seen = []

    def watched(*args):
        found, shares = real(*args)
        seen.append((found.decorrelated is None, shares.model == args[2].model))
        return found, shares

    real = release.decorrelated
    monkeypatch.setattr(release, "decorrelated", watched)
    for rho in (0.0, 0.9):
        X, y = correlated(20_000, rho)
        BayesianLinearRegression(1.0, schema=SCHEMA, random_state=0).fit(X, y)
    assert seen == [(True, True), (False, False)]


def test_a_declared_prior_is_that_of_the_columns():
    """With hardly any noise the answer is near the conjugate posterior.

    If rests had independent priors instead, the second slope would be off by 0.11.
    """
    X, y = correlated(20_000, 0.97)
    for precision in (1.0, 1e5):
        found, exact = (
            BayesianLinearRegression(
                epsilon, schema=SCHEMA, prior_precision=precision, random_state=0
            )
            .fit(X, y)
            .coef_
            for epsilon in (3000.0, np.inf)
        )
        assert found == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("n", [3000, 20_000, 10**6, 10**9])
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_noise_of_correlations_can_be_drawn(n, columns, epsilon):
    design = Design((Interval(0, 1),) * columns)
    prior, budget = (
        GaussianPrior(design, inference="noise_aware"),
        Budget(Fraction(epsilon), Fraction(1, 10**6)),
    )
    for mechanism in (Laplace(), Gaussian()):
        made = plan(mechanism, prior, Facts(n), budget)
        shares = made.shares
        gaussian = shares.gaussian
        assert shares.total == (made.cost.rho if gaussian else made.cost.epsilon)
        if not gaussian:
            named = {step.what: step.cost.epsilon for step in made.steps}
            assert named.get("correlations of columns", 0) == shares.pairs
        if not shares.pairs:
            continue
        assert columns > 1
        two = shares.in_two_stages(n, columns)
        assert two.total == shares.total
        assert shares.of_places(n, columns) < two.model / 2
        law = shares.step(pairs_block(design)).law(shares.pairs, shares.grid(design, n))
        for parameter in law.parameters if gaussian else getattr(law, "scales", ()):
            (representable_variance if gaussian else representable_scale)(parameter)
