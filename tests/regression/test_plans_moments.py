"""Releases of moments: what is spent, what one record can do, and the laws of the noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression, PrivacyUnit
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.mechanisms import Fourier, Gaussian, Laplace
from dpbayes_sklearn.noise import DiscreteGaussian, Noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.regression.moments import gram
from dpbayes_sklearn.regression.plans import moment_increment, plan
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval
from tests.linear_records import linear_records

DESIGN = Design((Interval(-1, 1),) * 2 + (Categories([*"ab"]), Categories([*"xyz"])))
MECHANISMS = [Laplace(), Fourier(), Gaussian()]
ADDED = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3)
DELTA = Fraction(1, 10**6)
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name())


def plan_for(mechanism, design=DESIGN, epsilon=Fraction(1), n=60, unit=RECORD):
    delta = DELTA if isinstance(mechanism, Gaussian) else Fraction(0)
    budget = Budget(Fraction(epsilon), delta, unit)
    return plan(mechanism, GaussianPrior(design, inference="noise_aware"), Facts(n), budget)


def records(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    X[:, 2], X[:, 3] = rng.choice(list("ab"), n), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1, 1, n)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(1000)])
@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@each_mechanism
@pytest.mark.parametrize("intercept", [True, False])
def test_the_parts_add_up_to_epsilon_exactly(mechanism, epsilon, intercept, unit):
    made = plan_for(mechanism, Design(DESIGN.domains, intercept), epsilon, unit=unit)
    assert sum(Fraction(step.cost.epsilon) for step in made.steps) == epsilon == made.cost.epsilon
    assert sum(Fraction(step.cost.delta) for step in made.steps) == made.cost.delta
    if isinstance(mechanism, Gaussian):
        pure = [Fraction(s.cost.epsilon) ** 2 / 2 for s in made.steps[:-1]]
        assert made.cost.rho == sum(pure) + made.steps[-1].cost.rho
    assert len(made.steps) == (1 if unit is ADDED else 2)


EXTREMES = [
    (*x, label, level, t)
    for *x, label, level, t in product([-1.0, 1.0, 0.3], [-1.0, 1.0], "ab", "xyz", [-1.0, 0.0, 1.0])
] + [(np.nan, -np.inf, "?", None, np.nan), (0.0, 0.0, "a", "x", np.inf)]


@each_mechanism
@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
def test_no_neighbour_costs_more_than_the_budget_and_some_nearly_as_much(mechanism, unit):
    made, k = plan_for(mechanism, unit=unit), unit.max_records
    step = made.steps[-1]

    def asked(some):
        X, y = np.array([row[:-1] for row in some], object), [row[-1] for row in some]
        return np.concatenate(step.ask(linear_records(X, np.array(y, float), DESIGN), None))

    each, rest = [asked([row]) for row in EXTREMES], asked(EXTREMES[:5])
    np.testing.assert_array_equal(asked(EXTREMES[:6]), rest + each[5])
    others = [np.zeros_like(rest)] if unit is ADDED else each[::7] + each[-2:]
    moved = [k * (a - b) for a in each for b in others]
    if isinstance(step.law, DiscreteGaussian):
        worst = max(step.law.rho(each) for each in moved) / step.cost.rho
    else:
        worst = max(step.law.privacy_loss(each) for each in moved) / step.cost.epsilon
    assert 0.4 < worst <= 1 + 1e-12


def test_missing_targets_move_their_number_by_as_many_as_are_protected():
    for unit, most in ((RECORD, 1), (PERSON, 3)):
        step = plan_for(Laplace(), unit=unit).steps[0]
        assert step.law.privacy_loss(np.array([most])) == step.cost.epsilon
        X, y = records()
        y[:7] = np.nan
        assert step.ask(linear_records(X, y, DESIGN), None)[0].tolist() == [7]


@each_mechanism
def test_answers_decide_everything(mechanism):
    made = plan_for(mechanism)
    answer = [each + 5 for each in made.ask_products(linear_records(*records(), DESIGN), None)]
    one, other = (made.read_products(n, answer) for n in (None, 60))
    assert np.array_equal(one.mean(), other.mean())
    assert np.array_equal(one.covariance, other.covariance)


def test_missing_targets_are_believed_if_they_stand_out_from_the_noise():
    made = plan_for(Laplace(), n=10_000, epsilon=1)
    assert made.read_missing(None, [np.array([60])]) == 10_000  # noise of deviation 71
    assert made.read_missing(None, [np.array([4000])]) == 6000
    assert made.read_missing(None, [np.array([10**6])]) == 1


def test_an_enormous_epsilon_leaves_no_noise_and_does_not_hang():
    design = Design((Interval(-1, 1),) * 20)
    law = plan_for(Laplace(), design, Fraction(10**12)).steps[-1].law
    assert max(float(np.abs(each).max()) for each in Noise.of(0).draw(law, 1)) < 2**10


def test_the_grid_gets_coarser_before_noise_overflows():
    assert plan_for(Laplace(), n=1000).grid == 2**15
    assert plan_for(Laplace(), n=1000, epsilon=Fraction(1, 10**6)).grid < 2**12
    with pytest.raises(ValueError, match="use a larger epsilon"):
        plan_for(Laplace(), n=1000, epsilon=Fraction(1, 10**15))


def test_moments_are_semidefinite_with_the_asked_probability():
    """stealth=0.9 over 120 releases: at least 0.8; without the increment, never."""
    design = Design((Interval(-1, 1),) * 6)
    X = np.random.default_rng(0).uniform(-1, 1, (400, 6))
    made = plan_for(Fourier(), design, n=400)
    exact = gram(linear_records(X, X.mean(axis=1), design), 2**10)
    noise, smallest = Noise.of(0), []
    law = made.block.law(Fraction(made.products.epsilon), 2**10)
    for drawn in noise.draw(law, 120):
        noisy = exact.astype(float)
        noisy[made.block.rows, made.block.columns] += drawn / law.grid
        noisy[made.block.columns, made.block.rows] = noisy[made.block.rows, made.block.columns]
        smallest.append(np.linalg.eigvalsh(noisy / 4**10)[0])
    increment = moment_increment(design, 0.9) / float(made.products.epsilon)
    assert made.increment == pytest.approx(increment)
    assert np.mean(np.array(smallest) + increment >= 0) > 0.8
    assert max(smallest[:20]) < 0


def test_exact_moments_leave_with_infinite_epsilon_only():
    X, y = records()
    statistics = linear_records(X, y, DESIGN)
    exact = gram(statistics, 2**15)[1, 1] / 2**30
    for mechanism in MECHANISMS:
        budget = Budget(float("inf"))
        made = plan(mechanism, GaussianPrior(DESIGN), Facts(60), budget)
        posterior = made.release(statistics, Noise.of(0))
        assert posterior.noise_variance > 0
        assert exact not in np.concatenate([posterior.mean(), posterior.covariance.ravel()])


@pytest.mark.parametrize("mechanism", ["auto", "map"])
@pytest.mark.parametrize("unit", ["record", ADDED], ids=str)
def test_many_columns_in_a_small_part_of_wide_bounds(mechanism, unit):
    rng = np.random.default_rng(0)
    X = 0.05 * (rng.normal(size=(4200, 1)) + 0.7 * rng.normal(size=(4200, 20)))
    y = X[:, :10].mean(axis=1) + 0.01 * rng.normal(size=4200)
    model = BayesianLinearRegression(
        mechanism=mechanism, bounds_X=(-1, 1), bounds_y=(-1, 1), privacy_unit=unit, random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.5
