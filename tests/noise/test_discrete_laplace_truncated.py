"""Noise within a reach: calibrated to delta, and its sampler follows the law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks.audit.tools.deltas import enumerate_texts
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace, truncated_laplace
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def weights(law: TruncatedLaplace) -> np.ndarray:
    z = np.arange(-law.reach, law.reach + 1)
    w = np.exp(-np.abs(z) / float(law.scale))
    return w / w.sum()


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(40), Fraction(10**6)])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize("step", [1, 3])
def test_the_reach_is_the_least_that_delta_allows(scale, delta, step):
    if delta * scale * step < 1e-4:  # an array of all weights would be too long
        delta = 1e-3
    law = TruncatedLaplace.calibrated(scale, Fraction(delta), step)
    assert float(law.beyond(step)) == pytest.approx(weights(law)[-step:].sum(), rel=1e-6)
    assert law.beyond(step) <= delta
    if law.reach > step:
        assert TruncatedLaplace(scale, law.reach - 1).beyond(step) > delta


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**301)])
def test_no_delta_is_refused_at_once(delta):
    with pytest.raises(ValueError, match="delta"):
        TruncatedLaplace.calibrated(Fraction(2), delta)


def test_noise_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match="epsilon is too small"):
        TruncatedLaplace.calibrated(Fraction(2**56), Fraction(1, 10**60))


@pytest.mark.parametrize(
    ("scale", "reach"), [(Fraction(2), 5), (Fraction(3, 2), 2), (Fraction(7), 3), (Fraction(50), 4)]
)
def test_draws_follow_the_law_and_no_other(scale, reach):
    law = TruncatedLaplace(scale, reach)
    drawn = truncated_laplace(law, 40_000, random_source(1))
    observed = np.bincount(drawn + reach, minlength=2 * reach + 1)
    assert stats.chisquare(observed, weights(law) * len(drawn)).pvalue > 1e-4
    if reach > scale / 10:
        for factor in (0.8, 1.25):
            wrong = weights(TruncatedLaplace(scale * Fraction(factor), reach))
            assert stats.chisquare(observed, wrong * len(drawn)).pvalue < 1e-4


def test_very_wide_noise_is_drawn_at_once():
    law = TruncatedLaplace.calibrated(Fraction(10**10), Fraction(1, 20))
    assert law.reach < 20
    assert math.isclose(
        np.abs(truncated_laplace(law, 20_000, random_source(0))).mean(), 5, rel_tol=0.1
    )


@pytest.mark.parametrize(
    "unit",
    [
        PrivacyUnit("record", neighbours="add_remove"),
        PrivacyUnit("person", max_records=2),
        PrivacyUnit("person", max_records=2, neighbours="add_remove"),
    ],
    ids=str,
)
def test_texts_keep_to_delta_for_every_unit(unit):
    for epsilon, delta in ((4.0, 0.03), (2.0, 0.3)):
        found = enumerate_texts(("a", "b"), 6, epsilon=epsilon, delta=delta, unit=unit)
        assert 0 < found.delta <= delta
