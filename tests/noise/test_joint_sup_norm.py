from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from dpbayes_sklearn.noise import SupNorm
from dpbayes_sklearn.noise import joint as box
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.joint import (
    discrete_boxes,
)

SMALLEST_P = 1e-4


def pmf(sides, scale, reach):
    """Probabilities of all integer vectors, from the definition."""
    points = list(product(*[range(-reach, reach + 1)] * len(sides)))
    norm = [max(-(-abs(z) // c) for z, c in zip(p, sides, strict=True)) for p in points]
    weight = np.exp(-np.array(norm) / float(scale))
    return points, weight / weight.sum()


def test_fine_lattices_accept_nearly_always_and_have_the_stated_variance():
    sides, scale = np.array([1, 2] * 10), Fraction(10**6)
    law = SupNorm(scale, tuple(sides.tolist()))
    assert law.acceptance > 0.9999
    draws = discrete_boxes(sides, scale, 1500, random_source(0))
    ratio = (draws**2).mean(axis=0) / law.variances
    assert np.all(np.abs(ratio - 1) < 0.2)


def test_one_entry_is_uniform_given_the_radius():
    """With many entries the radius hardly varies, so an entry is close to uniform."""
    m, scale, source = 2000, Fraction(10**5), random_source(2)
    (draws,) = discrete_boxes(np.ones(m, np.int64), scale, 1, source)
    assert kstest(draws / np.abs(draws).max(), "uniform", args=(-1, 2)).pvalue > SMALLEST_P


def test_many_at_a_time_follow_the_same_law_and_wrong_scales_are_noticed():
    sides, scale, draws = [2, 1], Fraction(3, 2), 20_000

    def pvalue(drawn_scale):
        noise = discrete_boxes(np.array(sides), drawn_scale, draws, random_source(3))
        points, p = pmf(sides, scale, 30)
        common = np.flatnonzero(draws * p >= 8)
        seen = Counter(map(tuple, noise.tolist()))
        observed = np.array([seen[points[i]] for i in common])
        expected = np.append(p[common], 1 - p[common].sum())
        return chisquare(np.append(observed, draws - observed.sum()), draws * expected).pvalue

    assert pvalue(scale) > SMALLEST_P
    assert pvalue(scale * Fraction(5, 6)) < SMALLEST_P
    assert pvalue(scale * Fraction(6, 5)) < SMALLEST_P


def test_many_at_a_time_are_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(box, "_DRAWN_CELLS", 30)
    noise = discrete_boxes(np.ones(4, np.int64), Fraction(10**6), 50, random_source(0))
    assert noise.shape == (50, 4)
    assert len(np.unique(noise[:, 0])) == 50
    assert discrete_boxes(np.ones(4, np.int64), Fraction(9), 0, random_source(0)).shape == (0, 4)
    with pytest.raises(OverflowError, match="coarser"):
        discrete_boxes(np.full(300, 2**40), Fraction(2**50), 1, random_source(0))
