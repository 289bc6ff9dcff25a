"""Regression's releases: what is spent, what one record can do, and the laws of the noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dpbayes_sklearn.regression.location import located
from dpbayes_sklearn.regression.release import Products, noisy_moments, scaled_by_residuals
from dpbayes_sklearn.regression.slopes import Slopes
from dpbayes_sklearn.regression.step_noise import Shares, add_noise, grid_for, widening
from scipy.stats import kstest

from dpbayes_sklearn import BayesianLinearRegression, PrivacyUnit
from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Scale, Windows
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression import ball_draws as draws_module
from dpbayes_sklearn.regression import mode as mode_module
from dpbayes_sklearn.regression import step_noise as release_module
from dpbayes_sklearn.regression.moments import (
    Block,
    Moments,
    second_block,
    whole_block,
)
from dpbayes_sklearn.regression.plans import moment_increment
from dpbayes_sklearn.schema import Categories, Interval
from tests.releasing import carried_out, plan_for

DESIGN = Design((Interval(-1, 1),) * 2 + (Categories([*"ab"]), Categories([*"xyz"])))
MECHANISMS = [Laplace(), Fourier(), Sampler(n_samples=3), MAP()]


def moments(X, y, design=DESIGN):
    return Moments(design, Scale(0.0, 1.0), LocalRecords([(Table(X), np.asarray(y, float))]))


def records(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    X[:, 2], X[:, 3] = rng.choice(list("ab"), n), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1, 1, n)


class Tape:
    """Watches every draw of noise; can play what was released before instead of drawing."""

    def __init__(self, monkeypatch, replay=()):
        self.spent, self.sums, self.released, self.replay = [], [], [], list(replay)
        real = release_module.add_noise

        def watched(sums, block, grid, epsilon, noise):
            self.spent.append(epsilon)
            self.sums.append((sums / grid**2, block, grid))
            answer = self.replay.pop(0) if self.replay else real(sums, block, grid, epsilon, noise)
            self.released.append(answer)
            return answer

        monkeypatch.setattr(release_module, "add_noise", watched)


class Balls(Noise):
    """Notes the laws of draws in a ball, and draws zeros."""

    def __init__(self, laws, seed):
        super().__init__(random_source(seed))
        self.laws = laws

    def ball(self, precision, linear, radius, n_draws):
        self.laws.append((precision, linear, n_draws))
        return np.zeros((n_draws, len(linear)))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(1000)])
@pytest.mark.parametrize("mechanism", [Laplace(), Fourier()], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_parts_add_up_to_epsilon_exactly(mechanism, epsilon, intercept, monkeypatch):
    tape = Tape(monkeypatch)
    design = Design(DESIGN.domains, intercept)
    statistics = moments(*records(), design)
    carried_out(mechanism, statistics, GaussianPrior(design), Budget(epsilon), Noise.of(0))
    assert sum(tape.spent) == epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(100)])  # numbers are located at 100
@pytest.mark.parametrize("mechanism", [Laplace(), Fourier()], ids=str)
def test_what_was_released_decides_everything_and_a_neighbour_costs_at_most_epsilon(
    mechanism, epsilon, monkeypatch
):
    """Replay: on a neighbour the same answers give the same posterior, and the loss is bounded."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for trial in range(60):
        X, y = records(seed=trial)
        first = Tape(monkeypatch)
        before = carried_out(
            mechanism, moments(X, y), GaussianPrior(DESIGN), Budget(epsilon), Noise.of(trial)
        )
        extreme = trial % 2 == 0
        X[0] = [1.0, 1.0, "a", "x"] if extreme else [np.nan, -np.inf, "?", None]
        y[0] = rng.choice([-1.0, 1.0, np.inf, np.nan])
        second = Tape(monkeypatch, first.released)
        after = carried_out(
            mechanism, moments(X, y), GaussianPrior(DESIGN), Budget(epsilon), Noise.of(0)
        )
        monkeypatch.undo()
        assert np.array_equal(before.posterior.mean(), after.posterior.mean())
        assert np.array_equal(before.posterior.covariance, after.posterior.covariance)
        loss = 0.0
        for (a, block, grid), (b, _, _), share in zip(
            first.sums, second.sums, first.spent, strict=True
        ):
            shift = np.rint((a - b) * grid**2).astype(np.int64)
            loss += float(block.law(share, grid).privacy_loss(shift))
        worst = max(worst, loss)
    assert 0.2 * float(epsilon) < worst <= float(epsilon)


def sample_noise(block, epsilon, draws, seed=0):
    noise, zeros = Noise.of(seed), np.zeros(len(block), np.int64)
    return np.array([add_noise(zeros, block, 2**10, epsilon, noise)[0] for _ in range(draws)])


def test_few_moves_get_independent_noise_and_many_get_the_sup_norm():
    epsilon = Fraction(1, 2)
    few = Block(np.arange(3), np.arange(3), Fraction(2), np.full(3, 2))
    noise = sample_noise(few, epsilon, 1500)
    assert kstest(noise[:, 0], "laplace", args=(0, 4)).pvalue > 1e-3
    assert kstest(noise[:, 0], "laplace", args=(0, 6)).pvalue < 1e-6
    many = Block(np.arange(30), np.arange(30), Fraction(60), np.full(30, 2))
    noise = sample_noise(many, epsilon, 800)
    largest = np.abs(noise).max(axis=1) / 2
    assert kstest(largest, "gamma", args=(30, 0, 2)).pvalue > 1e-3  # sup norm: Gamma(m, 1/epsilon)
    assert kstest(largest, "gamma", args=(30, 0, 1.8)).pvalue < 1e-6
    stated = add_noise(np.zeros(30, np.int64), many, 2**10, epsilon, Noise.of(0))[1]
    assert np.allclose(noise.var(axis=0), stated, rtol=0.2)


def test_an_enormous_epsilon_leaves_no_noise_and_does_not_hang():
    noise = sample_noise(second_block(Design((Interval(-1, 1),) * 20)), Fraction(10**12), 1)
    assert not noise.any()


def test_the_grid_gets_coarser_before_noise_overflows():
    assert grid_for(DESIGN, 1000, Fraction(1)) == 2**15
    assert grid_for(DESIGN, 1000, Fraction(1, 10**6)) < 2**12
    with pytest.raises(ValueError, match="larger epsilon"):
        grid_for(DESIGN, 1000, Fraction(1, 10**15))


@pytest.mark.parametrize("n", [1, 100, 777, 10**6])
@pytest.mark.parametrize("residuals", [True, False])
@pytest.mark.parametrize("numbers", [0, 1, 30])
def test_shares_add_up_and_shrink_with_data(n, numbers, residuals):
    shares = Shares.of(Budget(Fraction(1, 3)), n, numbers, residuals=residuals)
    assert shares.epsilon == Fraction(1, 3)
    least = Fraction(2, 5) if n >= 300 else Fraction(1, 10)  # few records: the mean comes first
    assert shares.model >= Fraction(1, 3) * least
    assert bool(shares.residuals) == residuals
    assert bool(shares.columns) == (0 < 1000 * numbers <= n / 3)


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_residuals_correct_a_variance_that_is_off(factor):
    rng = np.random.default_rng(0)
    design = Design((Interval(-1, 1),) * 2)
    X = rng.uniform(-1, 1, (60_000, 2))
    y = X @ [0.3, -0.2] + rng.normal(size=60_000) * 0.1
    statistics = moments(X, y, design)
    covariance = 0.002 * np.eye(3)
    w = np.array([0.0, 0.3, -0.2])
    slopes = Slopes.of(w, covariance, design)
    said = GaussianPosterior(w, covariance, 0.01, slopes, Windows.whole(2)).scaled(factor)
    shares = Shares.of(Budget(Fraction(1)), 60_000, 2, residuals=True)
    found = scaled_by_residuals(said, statistics, shares, Noise.of(0))
    mean, variance = found.predictive(X)
    assert np.mean((y - mean) ** 2 / variance) == pytest.approx(1, abs=0.25)
    nothing = shares._replace(residuals=Fraction(0))
    assert scaled_by_residuals(said, statistics, nothing, Noise.of(0)) is said


def test_windows_widen_with_data_and_do_not_shift_without_an_intercept():
    rng = np.random.default_rng(0)
    X = rng.normal(0.4, 0.05, (3000, 1))
    y = X[:, 0] - 0.1
    found = {}
    for intercept in (True, False):
        for epsilon in (1, 100):
            statistics = moments(X, y, Design((Interval(-1, 1),), intercept))
            shares = Shares.of(Budget(Fraction(epsilon)), 3000, 1, residuals=True)
            reach = widening(3000 * epsilon)
            found[intercept, epsilon] = located(statistics, shares, Noise.of(0), reach)
    few, many = found[True, 1], found[True, 100]
    assert many.target.centre[0] == pytest.approx(0.3, abs=0.01)
    assert few.window.half < many.window.half < 0.5
    assert few.numbers is not None
    assert 0.1 < many.numbers.half[0] < 0.5
    for epsilon in (1, 100):
        assert found[False, epsilon].window.centre == 0
        assert found[False, epsilon].window.half > 0.5
        assert found[False, epsilon].numbers.centre.tolist() == [0.0]


def test_moments_are_semidefinite_with_the_asked_probability():
    """stealth=0.9 over 120 releases: at least 0.8; without the increment, never."""
    design = Design((Interval(-1, 1),) * 6)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 6))
    statistics = moments(X, X.mean(axis=1), design)
    products = Products(lambda _: whole_block(design), 1.0)
    shares, smallest = Shares.of(Budget(Fraction(1)), 400, 6, residuals=True), []
    for seed in range(120):
        noisy, places = noisy_moments(statistics, shares, products, Noise.of(seed))
        increment = moment_increment(design, 0.9) / float(shares.model)
        smallest.append(
            np.linalg.eigvalsh(noisy.released(places.window, increment=increment).gram)[0]
        )
        if seed < 20:
            assert np.linalg.eigvalsh(noisy.released(places.window).gram)[0] < 0
    assert np.mean(np.array(smallest) >= 0) > 0.8


@pytest.mark.parametrize("mechanism", [Sampler(n_samples=3), MAP()], ids=str)
@pytest.mark.parametrize("noise_variance", [None, 0.05])
def test_the_law_of_the_draws_moves_by_at_most_epsilon(mechanism, noise_variance, monkeypatch):
    """The score moves by at most epsilon/2 anywhere in the ball, target's part included."""
    epsilon = Fraction(2)
    prior = GaussianPrior(DESIGN, noise_variance=noise_variance, coef_bound=0.7)
    worst = 0.0
    for trial in range(40):
        X, y = records(seed=trial)
        tape, laws = Tape(monkeypatch), []
        noise = Balls(laws, trial)
        carried_out(mechanism, moments(X, y), prior, Budget(epsilon), noise)
        X[0], y[0] = [1.0, -1.0, "b", "z"], 1.0 if y[0] < 0 else -1.0
        released = tape.released
        Tape(monkeypatch, released)
        carried_out(mechanism, moments(X, y), prior, Budget(epsilon), noise)
        (a, b, n_draws), (a2, b2, _) = laws
        w = np.random.default_rng(trial).normal(size=(4000, len(b)))
        w *= 0.7 / np.linalg.norm(w, axis=1, keepdims=True)
        score = -0.5 * np.einsum("ij,jk,ik->i", w, a2 - a, w) + w @ (b2 - b)
        spent_on_target = sum(tape.spent)
        spread = n_draws * np.ptp(np.append(score, 0.0))  # density and normalisation together
        worst = max(worst, float(spent_on_target) + spread)
    assert worst <= float(epsilon)
    assert worst > 0.1 * float(epsilon)


def test_the_sampler_never_sharpens_the_posterior_and_the_map_does():
    X, y = records(500)
    laws = []
    for mechanism in (Sampler(), MAP()):
        prior = GaussianPrior(DESIGN, noise_variance=0.1, coef_bound=0.375)
        carried_out(mechanism, moments(X, y), prior, Budget(Fraction(10**7)), Balls(laws, 0))
    weights = [precision[0, 0] / 500 for precision, _, _ in laws]
    assert 1 < weights[0] <= 40  # 1/0.1, times the square of half the window, which is below 2
    assert weights[1] > 1000


@pytest.mark.parametrize("coef_bound", [None, 0.5])
def test_guarantees_of_draws_name_what_they_rest_on(coef_bound):
    X, y = records()
    prior = GaussianPrior(DESIGN, coef_bound=coef_bound)
    for mechanism in MECHANISMS:
        release = carried_out(mechanism, moments(X, y), prior, Budget(Fraction(1)), Noise.of(0))
        in_a_ball = isinstance(mechanism, (Sampler, MAP) if coef_bound else Sampler)
        assert bool(release.guarantee.conditions) == in_a_ball


@pytest.mark.parametrize("mechanism", [Sampler(n_samples=3), MAP()], ids=str)
@pytest.mark.parametrize("noise_variance", [None, 0.05])
def test_mode_and_draws_have_what_the_other_steps_leave(mechanism, noise_variance, monkeypatch):
    """All of epsilon: noisy sums, the mode as its own plan says, and the range of the score."""
    epsilon, spent, ranges, laws = Fraction(2), [], [], []
    prior = GaussianPrior(DESIGN, noise_variance=noise_variance)
    statistics = moments(*records())
    made = plan_for(mechanism, statistics, prior, Budget(epsilon))
    tape = Tape(monkeypatch)
    real_plan, real_range = mode_module.plan_mode, draws_module.score_range

    def planned(design, n, precisions, share, *rest):
        spent.append(share)
        return real_plan(design, n, precisions, share, *rest)

    def ranged(limit, reach):
        ranges.append(real_range(limit, reach))
        return ranges[-1]

    monkeypatch.setattr(mode_module, "plan_mode", planned)
    monkeypatch.setattr(draws_module, "score_range", ranged)
    made.release(statistics, Balls(laws, 0))
    weights = [precision[0, 0] / 60 for precision, _, _ in laws]
    left = epsilon - sum(tape.spent) - sum(spent)
    if isinstance(mechanism, MAP):
        assert left == 0
        assert not ranges
    else:
        assert sum(spent) == left
        assert 3 * 2 * weights[0] * ranges[0] <= float(left)
        assert 3 * 2 * weights[0] * ranges[0] == pytest.approx(float(left), rel=1e-6)


def test_exact_moments_leave_with_infinite_epsilon_only():
    X, y = records()
    statistics = moments(X, y)
    exact = statistics.gram(2**15, WHOLE_WINDOW)[1, 1] / 2**30
    for mechanism in MECHANISMS:
        posterior = carried_out(
            mechanism, statistics, GaussianPrior(DESIGN), Budget(float("inf")), Noise.of(0)
        ).posterior
        assert posterior.noise_variance > 0
        assert exact not in np.concatenate([posterior.mean(), posterior.covariance.ravel()])


@pytest.mark.parametrize("mechanism", ["laplace", "map", "sampler", "gaussian"])
@pytest.mark.parametrize("unit", ["record", PrivacyUnit("record", neighbours="add_remove")])
def test_many_columns_in_a_small_part_of_wide_bounds(mechanism, unit):
    rng = np.random.default_rng(0)
    X = 0.05 * (rng.normal(size=(4200, 1)) + 0.7 * rng.normal(size=(4200, 20)))
    y = X[:, :10].mean(axis=1) + 0.01 * rng.normal(size=4200)
    model = BayesianLinearRegression(
        delta=1e-6 if mechanism == "gaussian" else 0.0,
        mechanism=mechanism,
        bounds_X=(-1, 1),
        bounds_y=(-1, 1),
        privacy_unit=unit,
        random_state=0,
    )
    assert model.fit(X, y).score(X, y) > 0.5


def test_intervals_allow_for_numbers_outside_of_a_common_window():
    """Without this, several of these 16 intervals lie above the slope, which is 1."""
    rng = np.random.default_rng(0)
    X = 0.05 * rng.normal(size=(6000, 20))
    y = X[:, 0] + 0.01 * rng.normal(size=6000)
    model = BayesianLinearRegression(
        0.6, delta=1e-5, mechanism="gaussian", bounds_X=(-1, 1), bounds_y=(-1, 1)
    )
    for seed in range(16):
        slope = model.set_params(random_state=seed).fit(X, y).coefficients()["x0"]
        assert model.posterior_.windows.halves[0] < 0.2  # a common one
        assert slope.low < 1 < slope.high
