import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpbayes_sklearn.posteriors.coefficient_draws import (
    ReleasedDraws,
    even_squares,
    posterior_of_draws,
)
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moments import WHOLE, Window, Windows

DESIGN = Design((Interval(-1, 1), Categories("ab"), Categories("wxyz")))
DRAWS = np.arange(14.0).reshape(2, 7) / 10


def posterior(inference, weight=1.0, n=1000, window=WHOLE, design=DESIGN, draws=DRAWS):
    prior = GaussianPrior(design, inference=inference, coef_bound=10.0)
    windows = Windows.whole(design.width)
    precisions = prior.precisions(WHOLE, windows)
    law = ReleasedDraws(draws, precisions, weight, n, window, windows, 0.05)
    return posterior_of_draws(law, prior)


def test_taken_as_they_are_the_mean_is_their_average():
    belief = posterior("plug_in")
    assert_allclose(belief.mean(), DRAWS.mean(axis=0))
    assert belief.noise_variance == 0.05


def test_the_window_is_undone():
    belief = posterior("plug_in", window=Window(-0.5, 0.1, -0.3))
    assert_allclose(belief.mean(), DRAWS.mean(axis=0) * 0.4 - np.eye(7)[0] * 0.3)
    assert_allclose(belief.draws, DRAWS * 0.4 - np.eye(7)[0] * 0.3)


@pytest.mark.parametrize(("weight", "kept"), [(1e-6, 0.01), (1e6, 0.999)])
def test_draws_count_for_as_much_as_they_know(weight, kept):
    ratio = posterior("noise_aware", weight).mean() / DRAWS.mean(axis=0)
    assert np.all(ratio < kept) if kept < 0.5 else np.all(ratio > kept)


def test_samples_are_the_draws_themselves():
    sample = posterior("noise_aware").sample(np.random.default_rng(0), 50)
    assert {tuple(row) for row in sample} == {tuple(row) for row in DRAWS}


def test_no_constant_without_an_intercept():
    design = Design((Interval(-1, 1),), intercept=False)
    belief = posterior("noise_aware", design=design, draws=np.array([[0.0, 0.4]]))
    assert belief.mean()[0] == 0
    assert belief.covariance[0, 0] == 0


def test_even_squares():
    assert_allclose(even_squares(DESIGN), [1, 1 / 3, 1, 1 / 4, 1 / 4, 1 / 4, 1 / 4])
