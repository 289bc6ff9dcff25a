"""A release that the prior did not expect may leave a posterior that is wider than the prior."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpbayes_sklearn.categories.counts import ReleasedSimplex
from dpbayes_sklearn.categories.posterior import Beta, SimplexPrior
from dpbayes_sklearn.noise import DiscreteLaplace


def test_a_surprise_makes_the_posterior_wider_than_the_prior():
    prior, law = Beta(10.0, 990.0), DiscreteLaplace.of(Fraction(1000), [2])
    released = ReleasedSimplex(np.array([5_000, 95_000]), 100_000, (law,))
    posterior = SimplexPrior(prior, "noise_aware").update(released)
    assert posterior.alpha + posterior.beta < 900
    assert posterior.mean() > prior.mean()
    assert posterior.variance() > 1.4 * prior.variance()
