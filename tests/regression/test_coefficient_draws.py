import numpy as np
import pytest
from dpbayes_sklearn.regression.mode import DrawLaw, Units, even_squares, posterior_of_draws
from numpy.testing import assert_allclose

from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Window, Windows
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.schema import Categories, Interval

DESIGN = Design((Interval(-1, 1), Categories([*"ab"]), Categories([*"wxyz"])))
DRAWS = np.arange(14.0).reshape(2, 7) / 10


def posterior(
    inference,
    noise=1e-3,
    window=WHOLE_WINDOW,
    design=DESIGN,
    draws=DRAWS,
    centre=0.0,
    gain=1,
    joint=False,
):
    prior = GaussianPrior(design, inference=inference)
    ones = np.ones(design.width + 1)
    law = DrawLaw(centre * ones, gain * ones, noise * ones, 0.05 * ones, joint)
    return posterior_of_draws(
        draws, law, Units(window, Windows.whole(design.width), 0.05, ones), prior, 100
    )


def test_taken_as_they_are_the_mean_is_their_average():
    belief = posterior("plug_in")
    assert_allclose(belief.mean(), DRAWS.mean(axis=0))
    assert belief.noise_variance == 0.05


def test_the_window_is_undone():
    belief = posterior("plug_in", window=Window(-0.5, 0.1, -0.3))
    assert_allclose(belief.mean(), DRAWS.mean(axis=0) * 0.4 - np.eye(7)[0] * 0.3)
    assert_allclose(belief.draws, DRAWS * 0.4 - np.eye(7)[0] * 0.3)


@pytest.mark.parametrize(("noise", "low", "high"), [(1e3, 0, 0.01), (1e-6, 0.999, 1.001)])
@pytest.mark.parametrize("centre", [0.0, 0.3])
def test_draws_count_for_as_much_as_they_know(noise, low, high, centre):
    moved = posterior("noise_aware", noise, centre=centre).mean() - centre
    kept = moved / (DRAWS.mean(axis=0) - centre)
    assert np.all((kept >= low) & (kept < high))


def test_what_a_prior_held_back_is_given_back():
    believed = posterior("noise_aware", 1e-6, gain=0.5).mean()
    assert_allclose(believed, 2 * DRAWS.mean(axis=0), rtol=1e-3)


def test_coefficients_that_depend_on_each_other_count_as_they_are():
    joint = np.append([True, False, False], DESIGN.levels[2:])
    believed = posterior("noise_aware", 1e-6, gain=0.5, joint=joint).mean()
    assert_allclose(believed, np.where(joint, 1, 2) * DRAWS.mean(axis=0), rtol=1e-3)


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
