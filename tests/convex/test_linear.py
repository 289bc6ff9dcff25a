"""The releases of a linear regression: what they spend and draw, and that they never fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression, BudgetAccountant, Categories, Interval, Schema
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.draws import DrawsPlan
from dpbayes_sklearn.convex.linear import LinearPlan, least_records
from dpbayes_sklearn.convex.mode import ModePlan
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.mechanisms import MAP, Auto, Sampler
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.regression.plans import plan
from dpbayes_sklearn.release import Facts
from tests.linear_records import LEVELS, NUMBER, SIGN, linear_records

ADDED = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3)
MARKED = Interval(-1, 1, missing="indicator")
KINDS = {
    "numbers": (NUMBER,) * 3,
    "levels": (LEVELS, LEVELS),
    "signs": (SIGN,) * 2,
    "marked": (MARKED, NUMBER),
    "all": (NUMBER, SIGN, LEVELS, MARKED),
    "nothing": (),
}
PLANS = {
    "whole": (Auto(), 10**6, {}),
    "few": (Auto(), 50, {}),
    "map": (MAP(), 10**6, {}),
    "sampler": (Sampler(), 10**6, {}),
    "ball": (MAP(), 10**4, {"coef_bound": 0.5}),
}


def planned(which, kinds="all", epsilon=Fraction(1), unit=RECORD, intercept=True, delta=0, n=None):
    mechanism, usual, options = PLANS[which]
    design = Design(KINDS[kinds], intercept)
    prior = GaussianPrior(design, inference="noise_aware", **options)
    budget = Budget(Fraction(epsilon), Fraction(delta), unit)
    return plan(mechanism, prior, Facts(n or usual), budget)


def records(n, kinds, seed=0):
    rng, columns = np.random.default_rng(seed), []
    for domain in KINDS[kinds]:
        if isinstance(domain, Interval):
            column = rng.uniform(-1.2, 1.2, n)
            column[rng.random(n) < 0.1 * domain.marks_missing] = np.nan
        else:
            column = rng.choice(np.array(domain.values, object), n)
        columns.append(column.astype(object))
    return np.stack(columns, axis=1), rng.uniform(-1.2, 1.2, n)


class Watched(Noise):
    """Notes what noise is asked for, and gives it."""

    def __init__(self, seed):
        super().__init__(random_source(seed))
        self.laws, self.searching = [], False

    def add(self, arrays, law):
        if not self.searching:
            self.laws.append(law)
        assert [len(each) for each in arrays] == list(law.sizes)
        return super().add(arrays, law)

    def minimum(self, objective):
        self.laws.append(objective.gradient_noise)
        self.searching = True
        found = super().minimum(objective)
        self.searching = False
        return found

    def ball(self, *options):
        self.laws.append("ball")
        return super().ball(*options)


# What is spent


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("which", PLANS)
@pytest.mark.parametrize("kinds", ["numbers", "levels", "marked", "all"])
@pytest.mark.parametrize("intercept", [True, False])
def test_steps_cost_epsilon_together_in_exact_fractions(which, kinds, intercept, unit):
    for epsilon in (Fraction(1, 10), Fraction(22, 7), Fraction(1000)):
        made = planned(which, kinds, epsilon, unit, intercept)
        assert sum(Fraction(step.cost.epsilon) for step in made.steps) == epsilon
        assert made.cost.epsilon == epsilon
        assert made.cost.delta == 0
        assert {step.cost.unit for step in made.steps} == {unit}
        assert min(step.cost.epsilon for step in made.steps) > 0


@pytest.mark.parametrize("unit", [RECORD, PERSON], ids=str)
@pytest.mark.parametrize("which", PLANS)
def test_steps_cost_delta_together(which, unit):
    made = planned(which, unit=unit, delta=Fraction(1, 10**6))
    assert sum(Fraction(step.cost.delta) for step in made.steps) == made.cost.delta
    assert made.cost.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("which", PLANS)
def test_what_is_drawn_is_what_is_listed(which, unit):
    made = planned(which, unit=unit, epsilon=2, n=20_000 if which == "whole" else 60)
    noise = Watched(0)
    made.release(linear_records(*records(60, "all"), made.prior.design), noise)
    assert len(noise.laws) == len(made.steps)
    for step, law in zip(made.steps, noise.laws, strict=True):
        if isinstance(step.law, NoiseLaw):
            assert law is step.law


def test_auto_takes_the_whole_recipe_where_records_suffice():
    for kinds in ("numbers", "all"):
        least = int(least_records(Design(KINDS[kinds]))) + 1
        assert isinstance(planned("whole", kinds, n=least), LinearPlan)
        for which, n in (("whole", least - 2), ("map", least), ("few", 50)):
            made = planned(which, kinds, n=n)
            assert isinstance(made, ModePlan)
            assert not isinstance(made, DrawsPlan)
        assert isinstance(planned("sampler", kinds), DrawsPlan)


# What a step asks


def transcripts(made, some):
    """What each step asks, given answers of its own: for one set of records and its neighbours."""
    noise, known, found = Noise.of(0), made.start, []
    for step in made.steps:
        exact = [step.ask(each, known) for each in some]
        found.append((step, exact))
        law = step.law_given(known)
        known = step.read(known, step.draw(exact[0], law, noise))
    return found


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("which", ["whole", "few", "map"])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_neighbour_changes_a_step_by_more_than_it_pays(which, intercept, unit):
    """Extreme records in the place of others, at what a release itself has told."""
    made = planned(which, unit=unit, n=20_000 if which == "whole" else 40, intercept=intercept)
    X, y = records(40, "all")
    extremes = product([1.0, -1.0, np.nan], "a?", "xz", [np.nan, 1.0], [1.0, -1.0, np.nan, np.inf])
    data = [(X, y)]
    for *x, t in [*extremes][::5]:
        if unit is ADDED:
            data.append((np.vstack([X, np.array([x], object)]), np.append(y, t)))
        else:
            other, target = X.copy(), y.copy()
            other[: unit.max_records], target[: unit.max_records] = np.array(x, object), t
            data.append((other, target))
    some = [linear_records(*each, made.prior.design) for each in data]
    worst = {}
    for step, exact in transcripts(made, some):
        if not isinstance(step.law, NoiseLaw):
            continue
        first = np.concatenate(exact[0])
        losses = [float(step.law.privacy_loss(np.concatenate(e) - first)) for e in exact]
        assert max(losses) <= float(step.cost.epsilon) * (1 + 1e-9), step.what
        worst[step.what] = max(losses) / float(step.cost.epsilon)
    assert max(worst.values()) > 0.4


@pytest.mark.parametrize("which", ["whole", "map"])
def test_answers_decide_everything_and_order_nothing(which):
    made = planned(which, n=20_000 if which == "whole" else 200)
    X, y = records(200, "all")
    y[::9] = np.nan
    order = np.random.default_rng(1).permutation(200)
    sides = [
        linear_records(X, y, made.prior.design),
        linear_records(X[order], y[order], made.prior.design),
    ]
    for step, (one, other) in transcripts(made, sides):
        if isinstance(step.law, NoiseLaw):
            assert np.concatenate(one).tolist() == np.concatenate(other).tolist()
    one, other = (made.release(each, Noise.of(3)) for each in sides)
    assert np.array_equal(one.mean(), other.mean())
    assert np.array_equal(one.covariance, other.covariance)
    assert one.n == other.n


# Nothing fails after the charge


def fitted(X, y, schema, epsilon, **options):
    ledger = BudgetAccountant()
    model = BayesianLinearRegression(
        epsilon, schema=schema, random_state=0, accountant=ledger, **options
    ).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()
    assert (deviation > 0).all()
    assert repr(model.coefficients())
    assert repr(model.summary())
    assert ledger.total().epsilon == epsilon
    return model


UNIT = Schema({"x": Interval(0, 1), "z": Interval(0, 1)}, Interval(0, 1))


@pytest.mark.parametrize("mechanism", ["auto", "map", "sampler", "laplace"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_handful_of_records(mechanism, n):
    rng = np.random.default_rng(n)
    for epsilon in (1e-3, 1.0, 1e4, 1e6):
        for intercept in (True, False):
            fitted(
                rng.random((n, 2)), rng.random(n), UNIT, epsilon,
                mechanism=mechanism, fit_intercept=intercept,
            )  # fmt: skip


TARGETS = {
    "constant": lambda x, rng: np.full(len(x), 0.3),
    "at a bound": lambda x, rng: np.ones(len(x)),
    "separable": lambda x, rng: (x[:, 0] > 0.5).astype(float),
    "missing": lambda x, rng: np.full(len(x), np.nan),
    "exact": lambda x, rng: x[:, 0],
    "wild": lambda x, rng: rng.standard_cauchy(len(x)) * 1e300,
}
COLUMNS = {
    "uniform": lambda n, rng: rng.random((n, 2)),
    "all equal": lambda n, rng: np.full((n, 2), 0.7),
    "the same twice": lambda n, rng: np.repeat(rng.random((n, 1)), 2, axis=1),
    "missing": lambda n, rng: np.full((n, 2), np.nan),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("column", COLUMNS)
def test_columns_and_targets_that_tell_nothing(column, target):
    rng = np.random.default_rng(0)
    for n, epsilon in ((300, 0.1), (4000, 1.0), (4000, 1e4), (4000, 1e6)):
        X = COLUMNS[column](n, rng)
        for intercept in (True, False):
            fitted(X, TARGETS[target](X, rng), UNIT, epsilon, fit_intercept=intercept)


@pytest.mark.parametrize("bounds", [(0.0, 1e-200), (-1e300, 1e300), (1e9, 1e9 + 1)])
def test_bounds_of_any_size(bounds):
    rng, (low, high) = np.random.default_rng(0), bounds
    schema = Schema({"x": Interval(low, high)}, Interval(low, high))
    for n in (100, 4000):
        x = rng.random((n, 1)) * 0.5
        X = low + (high / 2 - low / 2) * 2 * x
        fitted(X, X[:, 0], schema, 1.0)


@pytest.mark.parametrize("code", [False, True], ids=["none", "hidden codes"])
def test_hidden_records_at_far_bounds(code):
    """The noise of a count is 33: it hides 30 records that outweigh 4970, and whether they are."""
    rng = np.random.default_rng(0)
    X = rng.normal([40.0, 0.0], [10.0, 1.0], (5000, 2))
    y = X @ [0.05, 0.5] + rng.normal(size=5000)
    X[:30, 0] = np.where(code, 999, X[:30, 0])
    schema = Schema({"age": Interval(0, 999), "z": Interval(-5, 5)}, Interval(-6, 10))
    model = BayesianLinearRegression(1.0, schema=schema, random_state=0).fit(X, y)
    age, z = model.coefficients()["age"], model.coefficients()["z"]
    assert not age.identified
    assert "declare tighter bounds): intercept, age" in model.coefficients().remark
    assert not z.identified or z.low < 0.5 < z.high
    assert np.std(model.posterior_.sample(rng, 200)[:, 1]) > 10
    assert not np.isfinite(model.summary().r2)
    far = model.predict([[999.0, 0.0], [800.0, 0.0]])
    assert far[0] == far[1]
    assert model.score(X, y) > -0.5
    near = Schema({"age": Interval(0, 110), "z": Interval(-5, 5)}, Interval(-6, 10))
    tight = BayesianLinearRegression(1.0, schema=near, random_state=0).fit(X, y)
    assert tight.coefficients()["age"].identified


@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize(
    "domain", [Categories([*"ab"]), Categories([*"abcd"]), Interval(0, 1, missing="indicator")],
    ids=["signs", "levels", "marked"],
)  # fmt: skip
def test_no_numbers_or_missing_ones(domain, n):
    rng = np.random.default_rng(0)
    schema = Schema({"g": domain, "h": domain}, Interval(0, 1))
    values = [0.5, np.nan] if isinstance(domain, Interval) else list(domain.values)[:1]
    X = rng.choice(np.array(values, object), (n, 2))
    for epsilon in (0.01, 1.0, 1e4):
        for intercept in (True, False):
            fitted(X, rng.random(n), schema, epsilon, fit_intercept=intercept)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(60, 1.0), (4000, 1e4)])
def test_two_hundred_columns(n, epsilon):
    rng = np.random.default_rng(0)
    schema = Schema({f"x{j}": Interval(0, 1) for j in range(200)}, Interval(0, 1))
    X = rng.random((n, 200))
    fitted(X, X[:, 0], schema, epsilon)


@pytest.mark.parametrize("unit", ["record", ADDED, PrivacyUnit("person", max_records=2)], ids=str)
def test_units_and_weights(unit):
    rng = np.random.default_rng(0)
    X = rng.random((3000, 2))
    y = X[:, 0]
    persons = {"groups": np.repeat(np.arange(1500), 2)} if str(unit).startswith("all") else {}
    model = BayesianLinearRegression(2.0, schema=UNIT, privacy_unit=unit, random_state=0)
    assert model.fit(X, y, **persons).score(X, y) > 0.3
    weighted = BayesianLinearRegression(2.0, schema=UNIT, max_weight=2, random_state=0)
    doubled = weighted.fit(X, y, sample_weight=rng.integers(0, 3, 3000))
    assert np.isfinite(doubled.predict(X)).all()
