"""Intervals of single coefficients: tests that are inverted."""

import math

import numpy as np
import pytest
from dpbayes_sklearn.regression.equations import centred, noise_of_residual, noise_of_rows
from dpbayes_sklearn.regression.slopes import Slopes, contrasts, slopes
from numpy.testing import assert_allclose

from dpbayes_sklearn.convex.coefficients import coefficient_table
from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Windows
from dpbayes_sklearn.convex.posterior import predictive_belief
from dpbayes_sklearn.regression.moments import ReleasedMoments
from dpbayes_sklearn.schema import Interval, Schema

from .test_inference import DESIGN, PRECISIONS, released

ABOUT, ROWS = contrasts(DESIGN)
TRUTH = np.array([0.3, -0.2, 0.1, 0.1, 0.1, -0.1])  # of numbers, sign (twice its slope), levels
SCHEMA = Schema(dict(zip("abcde", DESIGN.domains, strict=True)), target=Interval(-1, 1))


def table(known, uneven=1.0, level=0.95):
    read = slopes(known, None, ROWS, np.full(DESIGN.width, uneven))
    return coefficient_table(SCHEMA, DESIGN, read, 1.0, 0.0, level).rows[1:]


@pytest.mark.parametrize("noise", [5, 50, 200])
def test_intervals_of_coefficients_cover(noise):
    """95 % intervals of slopes and contrasts, over 40 releases of one model."""
    hits = []
    for seed in range(40):
        rows = table(centred(released(3000, noise, seed, around=0.3), None))
        hits.append([row.low < truth < row.high for row, truth in zip(rows, TRUTH, strict=True)])
    assert np.mean(hits, axis=0).min() >= 0.85
    assert 0.92 <= np.mean(hits) <= 0.99


def test_with_little_noise_it_is_least_squares():
    known = centred(released(20_000, 1e-6), None)
    rows, belief = table(known), predictive_belief(known, PRECISIONS[1:], None)
    sds = np.sqrt(np.einsum("ij,jk,ik->i", ROWS, belief.covariance, ROWS))[1:]
    assert_allclose([row.estimate for row in rows], (ROWS @ belief.mean)[1:], atol=0.3 * sds.max())
    assert_allclose([row.sampling_sd for row in rows], sds, rtol=0.1)
    assert max(row.privacy_sd for row in rows) < 0.1 * sds.min()


def test_uneven_residuals_widen_the_sampling_error_only():
    even, uneven = (table(centred(released(3000, 50), None), times) for times in (1.0, 4.0))
    for one, other in zip(even, uneven, strict=True):
        assert other.sampling_sd == pytest.approx(2 * one.sampling_sd, rel=0.05)
        assert other.privacy_sd == pytest.approx(one.privacy_sd, rel=0.05)
        assert one.sd**2 == pytest.approx(one.sampling_sd**2 + one.privacy_sd**2)


def test_a_column_that_the_noise_hides_is_not_identified():
    rows = table(centred(released(3000, 3000), None))
    assert not any(row.identified for row in rows[:3])
    assert all(math.isinf(row.sd) and math.isnan(row.p) for row in rows[:3])
    assert np.abs([row.estimate for row in rows]).max() < 2  # the weak prior keeps them small


def test_noise_of_rows_is_the_quadratic_form():
    known, rng = centred(released(3000, 100), None), np.random.default_rng(0)
    y, w = rng.normal(size=(2, 5, DESIGN.width))
    found = noise_of_rows(known, known.error, y, w)
    none = np.zeros_like(known.error)
    assert_allclose(
        found,
        [a @ noise_of_residual(known, known.error, b, none) @ a for a, b in zip(y, w, strict=True)],
    )


def one_column(c, g, noise, n=10**9):
    """A number of variance c and covariance g with the target, whose noise has these deviations."""
    design = Design((Interval(-1, 1),), intercept=False)
    gram = n * np.array([[1.0, 0, 0], [0, c, g], [0, g, 1.0]])
    variance = np.zeros((3, 3))
    variance[1, 1], variance[1, 2], variance[2, 1] = (n * noise[0]) ** 2, *[(n * noise[1]) ** 2] * 2
    moments = ReleasedMoments(design, n, gram, variance, WHOLE_WINDOW, Windows.whole(1))
    _, rows = contrasts(design)
    read = slopes(centred(moments, None), None, rows)
    schema = Schema({"x": Interval(-1, 1)}, target=Interval(-1, 1))
    return coefficient_table(schema, design, read, 1.0, 0.0, 0.95)["x"]


@pytest.mark.parametrize("c", [0.5, 0.25])
def test_the_interval_of_one_column_is_fiellers(c):
    """Ratio of two normal numbers g and c: all w with (g - cw)² <= k (v_g + v_c w²)."""
    g, noise, k = 0.1, (0.02, 0.01), 1.959964**2
    row = one_column(c, g, noise)
    ends = np.roots([c**2 - k * noise[0] ** 2, -2 * c * g, g**2 - k * noise[1] ** 2])
    assert_allclose([row.low, row.high], np.sort(ends), atol=2e-3)
    assert row.high - row.estimate > row.estimate - row.low  # a small c makes it large
    assert row.p < 0.05


def test_p_values_agree_with_intervals():
    for seed in range(5):
        for row in table(centred(released(3000, 200, seed), None)):
            assert (row.low < 0 < row.high) == (not row.p < 0.05)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_larger_levels_are_wider(level):
    known = centred(released(3000, 100), None)
    for narrow, wide in zip(
        table(known, level=level - 0.1), table(known, level=level), strict=True
    ):
        assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high
        assert wide.sd == narrow.sd  # of the 95 % interval, whichever is asked for


def correlated(noise, seed, n=2000):
    """Moments of two numbers with correlation 0.9, on which the target depends with both signs."""
    design, rng = Design((Interval(-1, 1),) * 2), np.random.default_rng(seed)
    x = 0.4 * rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], n)
    z = np.column_stack([np.ones(n), x, x @ [0.5, -0.25] + rng.normal(0, 0.3, n)])
    error = np.triu(rng.normal(0, noise, (4, 4)))
    error = error + np.triu(error, 1).T
    error[0, 0] = 0.0
    variance = np.full((4, 4), float(noise) ** 2)
    variance[0, 0] = 0.0
    return ReleasedMoments(design, n, z.T @ z + error, variance, WHOLE_WINDOW, Windows.whole(2))


@pytest.mark.parametrize("noise", [4, 12])
def test_intervals_of_correlated_columns_cover(noise):
    """The noise is a tenth, or a third, of the variance of the difference of the columns."""
    hits, sds, design = [], [], Design((Interval(-1, 1),) * 2)
    schema = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)}, target=Interval(-1, 1))
    for seed in range(40):
        read = slopes(centred(correlated(noise, seed), None), None, contrasts(design)[1])
        rows = coefficient_table(schema, design, read, 1.0, 0.0, 0.95).rows[1:]
        sds.append([row.sd for row in rows])
        hits.append([row.low < w < row.high for row, w in zip(rows, [0.5, -0.25], strict=True)])
    assert np.mean(hits, axis=0).min() >= 0.85
    assert np.median(sds) < 1  # and they are not as wide as if nothing were known


def test_slopes_without_noise_have_no_growth():
    read = Slopes.of(np.zeros(DESIGN.width + 1), np.eye(DESIGN.width + 1), DESIGN)
    assert read.growth.shape == (len(ABOUT), 2)
    assert not read.growth.any()
    assert not read.privacy.any()
