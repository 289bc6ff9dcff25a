from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln

from dpbayes_sklearn.categories.counts import ReleasedSimplex
from dpbayes_sklearn.categories.posterior import (
    Beta,
    Dirichlet,
    SimplexPrior,
    completed,
    hellinger,
    onto_simplex,
)
from dpbayes_sklearn.noise import DiscreteLaplace


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (0.7, 0.4), (30.0, 1.0)])
def test_beta_agrees_with_scipy(a: float, b: float) -> None:
    ours, theirs = Beta(a, b), stats.beta(a, b)
    assert ours.mean() == pytest.approx(theirs.mean())
    assert ours.variance() == pytest.approx(theirs.var())
    assert ours.credible_interval(0.9) == pytest.approx(theirs.interval(0.9))
    points = np.array([0.1, 0.5, 0.9])
    assert ours.pdf(points) == pytest.approx(theirs.pdf(points))
    draws = ours.sample(np.random.default_rng(0), 2000)
    assert stats.kstest(draws, theirs.cdf).pvalue > 1e-4
    assert stats.kstest(draws, stats.beta(a * 1.2, b).cdf).pvalue < 1e-4


def test_dirichlet_agrees_with_scipy() -> None:
    c = np.array([2.0, 0.5, 4.0])
    ours, theirs = Dirichlet(c), stats.dirichlet(c)
    assert ours.mean() == pytest.approx(theirs.mean())
    assert ours.variance() == pytest.approx(theirs.var())
    point = [0.2, 0.3, 0.5]
    assert float(ours.pdf(point)) == pytest.approx(theirs.pdf(point))
    for row, (low, high) in enumerate(ours.credible_interval(0.8)):
        marginal = stats.beta(c[row], c.sum() - c[row])
        assert (low, high) == pytest.approx(marginal.interval(0.8))
    assert ours.sample(np.random.default_rng(0), 4).shape == (4, 3)


def test_density_is_zero_off_the_simplex() -> None:
    assert Dirichlet([2, 2, 2]).pdf([[0.5, 0.4, 0.3], [1.2, -0.1, -0.1]]).tolist() == [0, 0]
    assert Beta(2, 2).pdf([-0.1, 1.1]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("a", "b", "mode"),
    [(3, 2, 2 / 3), (1, 3, 0.0), (3, 0.5, 1.0), (1, 1, np.nan), (0.5, 0.5, np.nan)],
)
def test_mode(a: float, b: float, mode: float) -> None:
    assert Beta(a, b).mode() == pytest.approx(mode, nan_ok=True)


def test_log_predictive_is_the_mean() -> None:
    belief = Dirichlet([1.0, 2.0, 5.0])
    assert np.exp(belief.log_predictive(np.array([2, 0]))) == pytest.approx([5 / 8, 1 / 8])


@pytest.mark.parametrize(("p", "q"), [((2.0, 3.0), (4.0, 1.5)), ((0.6, 0.6), (1.0, 8.0))])
def test_hellinger_is_the_integral(p: tuple[float, float], q: tuple[float, float]) -> None:
    f, g = stats.beta(*p).pdf, stats.beta(*q).pdf
    affinity, _ = integrate.quad(lambda t: np.sqrt(f(t) * g(t)), 0, 1)
    assert Beta(*p).hellinger(Beta(*q)) == pytest.approx(np.sqrt(1 - affinity), abs=1e-6)


def test_a_beta_density_needs_the_minus_one_in_its_exponents() -> None:
    """One paper writes theta^a (1-theta)^b / B(a, b), which is no density."""
    a, b = 2.0, 3.0
    assert integrate.quad(lambda t: float(Beta(a, b).pdf(t)), 0, 1)[0] == pytest.approx(1)
    wrong = integrate.quad(lambda t: t**a * (1 - t) ** b / np.exp(betaln(a, b)), 0, 1)[0]
    assert wrong == pytest.approx(0.2)


def test_hellinger_is_a_distance() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.gamma(1.0, 3.0, (3, 200, 4)) + 0.01
    assert (hellinger(a, a) == 0).all()
    assert (hellinger(a, b) == hellinger(b, a)).all()
    assert (hellinger(a, c) <= hellinger(a, b) + hellinger(b, c) + 1e-12).all()
    with pytest.raises(ValueError, match="same number of categories"):
        Beta(1, 1).hellinger(Dirichlet([1, 1, 1]))


@pytest.mark.parametrize("parameters", [[1.0, 0.0], [1.0, -1.0], [np.nan, 1.0], [[1.0, 1.0]]])
def test_parameters_must_be_positive(parameters: list[float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Dirichlet(parameters)


def test_level_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match="level must be"):
        Beta(1, 1).credible_interval(1.0)


def test_projection_is_the_nearest_point() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        noisy = rng.integers(-5, 12, 4)
        found = onto_simplex(noisy, 10)
        assert found.sum() == pytest.approx(10)
        assert (found >= 0).all()
        others = rng.dirichlet(np.ones(4), 200) * 10
        assert np.linalg.norm(found - noisy) <= np.linalg.norm(others - noisy, axis=1).min() + 1e-9


def test_projection_leaves_counts_alone() -> None:
    for counts in ([3, 0, 0], [0, 0, 5], [1, 2, 3]):
        assert onto_simplex(np.array(counts), sum(counts)).tolist() == counts


def test_completed_counts_stay_in_range() -> None:
    assert completed(np.array([-3]), 5).tolist() == [0, 5]
    assert completed(np.array([9]), 5).tolist() == [5, 0]


def test_plug_in_reads_exact_counts_exactly() -> None:
    exact = ReleasedSimplex.exact(np.array([4, 0, 2]))
    for inference in ("plug_in", "noise_aware"):
        prior = SimplexPrior(Dirichlet([1.0, 2.0, 3.0]), inference)
        assert prior.update(exact).concentration.tolist() == [5, 2, 5]


def test_a_beta_stays_a_beta() -> None:
    released = ReleasedSimplex(np.array([-2]), 6, (DiscreteLaplace.of(Fraction(1), [1]),))
    posterior = SimplexPrior(Beta(1.0, 1.0)).update(released)
    assert isinstance(posterior, Beta)
    assert (posterior.alpha, posterior.beta) == (1, 7)
    assert repr(posterior) == "Beta(1, 7)"
