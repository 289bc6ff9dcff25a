"""Prices of trees: from public facts, in the order of the noise they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.counts.dependence import (
    DEPENDENCE_PER_NOISE,
    DEPENDENCE_STEPS,
    LARGEST_SCORE,
    TreePrices,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.privacy.budget import PrivacyUnit

STAR = Network.star([2, 3, 5], 2)
UNITS = [
    PrivacyUnit(),
    PrivacyUnit("record", neighbours="add_remove"),
    PrivacyUnit("person", max_records=3),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("star", [STAR, Network.star([4] * 12, 3)], ids=["narrow", "wide"])
def test_the_noise_is_that_of_the_models(star, unit):
    *values, n_classes = star.sizes
    d, half = len(values), DEPENDENCE_STEPS * DEPENDENCE_PER_NOISE / 2
    chain = Network(star.sizes, ((d,), *((d, j - 1) for j in range(1, d)), ()))
    found = TreePrices.of(star, unit, 0.75)
    of_star, of_tree = (
        CountTables(network, (), 1000).law("auto", unit, Fraction(3, 4))
        for network in (star, chain)
    )
    noise = [n_classes * k * math.sqrt(of_star.variance(j)) for j, k in enumerate(values)]
    assert found.star == pytest.approx(half * sum(noise) / d, rel=0.01)
    for j in range(1, d):
        cells = n_classes * values[j] * values[j - 1]
        noise = half * cells * math.sqrt(of_tree.variance(j))
        assert found.edges[j, j - 1] == pytest.approx(noise, rel=0.01)
    assert np.array_equal(found.edges, found.edges.T)
    assert found.highest == max(found.edges.max(), found.star)


def test_nothing_has_a_price_where_there_is_no_noise():
    for star, epsilon in ((STAR, math.inf), (Network.star([1, 1], 1), 1.0)):
        assert TreePrices.of(star, PrivacyUnit(), epsilon).highest == 0
    assert TreePrices.of(STAR, PrivacyUnit(), 1e-300).highest < LARGEST_SCORE
