"""The perturbed mode: the law of what is released, its price, and a search that always ends."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest

from benchmarks.audit.tools.ratios import audit_ratios, halved
from benchmarks.audit.tools.steps import LogisticMode, weighed_records
from dpbayes_sklearn import BayesianLogisticRegression, BudgetAccountant, from_json
from dpbayes_sklearn.convex import perturbed
from dpbayes_sklearn.convex.perturbed import PerturbedLoss, Search
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic import mode as module
from dpbayes_sklearn.logistic.blocks import Blocks, even_nodes
from dpbayes_sklearn.logistic.mode import LogisticLoss, plan_mode
from dpbayes_sklearn.logistic.record_sums import LabelledRecords, MappedRecords, on_lattice
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.gradient import gaussian_noise
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema

ONE = Blocks((Categories(range(2)),))
LINE = Blocks((Interval(0, 1),), "linear")
CLASSES = Categories([0, 1])
SMALLEST_P = 1e-4  # chance of failing the right law; planted faults must fall far below it


def mapped(X, y, blocks=ONE):
    X = np.asarray(X, float).reshape(len(y), -1)
    records = LocalRecords([(Table(X), np.asarray(y))])
    return LabelledRecords(blocks, CLASSES, records).read().mapped(even_nodes(len(blocks.numbers)))


def plan_for(epsilon, n, blocks=ONE, unit=RECORD, prior=None, rho=100.0):
    return plan_mode(blocks, n, Fraction(epsilon), unit, rho, prior)


def loss_of(records, plan):
    return PerturbedLoss(LogisticLoss(records, records.reader.blocks), plan)


def step(records, plan):
    own = loss_of(records, plan)
    return LogisticMode(weighed_records(records), plan, own, own.loss.blocks)


def with_noise(plan, law):
    return replace(plan, body=plan.body._replace(law=law))


def lattice_of(plan):
    """Return the steps of the noise in a unit of the gradient."""
    law = plan.gradient_noise
    return round(math.sqrt(law.variance(len(law.sizes) - 1) / plan.body.variance[0]))


def draws(records, plan, runs, seed=0):
    noise = Noise.of(seed)
    return np.array([noise.minimum(loss_of(records, plan)) for _ in range(runs)])


@pytest.mark.parametrize(
    "unit", [RECORD, PrivacyUnit("person", max_records=3, neighbours="add_remove")]
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(22, 7), Fraction(1e6)])
@pytest.mark.parametrize("prior", [None, 1e-6, 50.0])
def test_the_parts_of_a_plan_add_up_to_its_budget(epsilon, unit, prior):
    blocks = Blocks((Interval(0, 1), Categories(range(5)), Categories(range(2))))
    for n in (1, 1000, 10**7):
        plan = plan_for(epsilon, n, blocks, unit, prior)
        assert plan.gradient_noise.n_classes == 1
        assert plan.gradient_noise.values == blocks.sizes
        cells = 2 * (max(blocks.sizes) - Fraction(1, 2))
        for_gradient = (unit.n_changed * lattice_of(plan) + cells) / plan.gradient_noise.scale
        sizes = np.array(blocks.sizes)
        by_block = plan.ridge[[1, 4, 8]]
        c = (1 / plan.ridge[0] + ((1 - 1 / sizes) / by_block).sum()) / 4
        volume = unit.max_records * math.log1p(c)
        searched = 2 / plan.jitter.scale
        total = float(for_gradient + searched) + volume
        assert total <= float(epsilon) * (1 + 1e-12)
        assert total > 0.98 * float(epsilon)
        assert plan.error / plan.ridge.min() <= plan.step


def test_with_little_noise_it_is_the_minimum():
    rng = np.random.default_rng(0)
    blocks = Blocks((Interval(0, 1), Categories(range(3))))
    for intercept in (True, False):
        blocks = replace(blocks, intercept=intercept)
        X = np.column_stack([rng.random(400), rng.integers(0, 3, 400)])
        y = (rng.random(400) < 0.3 + 0.4 * X[:, 0]).astype(int)
        records, plan = mapped(X, y, blocks), plan_for(10**7, 400, blocks, prior=2.0)
        (found,) = draws(records, plan, 1)
        x = weighed_records(records)[:, :-2] @ blocks.basis

        def objective(w, x=x, y=y, plan=plan):
            z = x @ w
            return (np.logaddexp(0, z) - y * z).sum() + plan.ridge @ w**2 / 2

        best = minimize(objective, np.zeros(x.shape[1]), tol=1e-12).x
        assert np.abs(found - best).max() < 1e-4


RECORDS = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 1])


def quantiles(records, plan, found):
    """Where released contrasts lie in their marginal law, by adding up the density of the mode."""
    axes = [np.linspace(-12, 12, 401)] * 2
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log = step(records, plan).log_density(grid).reshape(401, 401)
    marginal = np.exp(log - log.max()).sum(axis=0)
    cdf = np.cumsum(marginal)
    return np.interp(found[:, 1], axes[1], (cdf - marginal / 2) / cdf[-1])


@pytest.mark.slow
def test_it_has_the_density_of_the_proof():
    records, plan = mapped(*RECORDS), plan_for(4, 4, prior=1.0)
    found = draws(records, plan, 800)
    assert kstest(quantiles(records, plan, found), "uniform").pvalue > SMALLEST_P
    for wrong in (
        replace(plan, ridge=plan.ridge * 3),
        with_noise(plan, replace(plan.gradient_noise, scale=plan.gradient_noise.scale * 2 / 3)),
    ):
        assert kstest(quantiles(records, wrong, found), "uniform").pvalue < SMALLEST_P / 10


@pytest.mark.parametrize("blocks", [ONE, LINE, Blocks((Categories(range(3)),))])
def test_the_exact_density_of_neighbours_stays_within_the_budget(blocks):
    """All pairs of a small world, at many parameters: below epsilon, and most of it is reached."""
    epsilon, p = Fraction(2), blocks.parameters
    plan = plan_for(epsilon, 2, blocks)
    axes = [np.linspace(-9, 9, 81 if p < 3 else 25)] * p
    w = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, p)
    values = range(blocks.sizes[0]) if not blocks.numbers else (0.0, 0.25, 1.0)
    worst, bound = 0.0, 0.0
    for shared in product(values, (0, 1)):
        steps = [
            step(mapped([shared[0], x], [shared[1], y], blocks), plan)
            for x, y in product(values, (0, 1))
        ]
        logs = [each.log_density(w) for each in steps]
        for i, j in combinations_with_replacement(range(len(steps)), 2):
            worst = max(worst, np.abs(logs[i] - logs[j]).max())
            bound = max(bound, steps[i].loss(steps[j]))
    assert worst + float(2 / plan.jitter.scale) <= bound * (1 + 1e-9)
    assert bound <= float(epsilon) * (1 + 1e-9)
    assert bound > 0.97 * float(epsilon)
    assert worst > 0.85 * float(epsilon)


def test_exact_deltas_with_gaussian_noise_stay_within_the_claim(monkeypatch):
    """All records of a small world beside others that hold the mode; too little noise is seen.

    With labels of 0 and 1 no two records change the gradient as far as the claim allows for.
    """
    monkeypatch.setattr(module, "least_gradient_noise", gaussian_noise)
    epsilon, delta = Fraction(1), Fraction(1, 100)
    plan = plan_mode(ONE, 61, epsilon, RECORD, 100.0, None, delta)
    left = float(epsilon) - float(2 / plan.jitter.scale)
    w = np.stack(np.meshgrid(*[np.linspace(-6, 6, 241)] * 2, indexing="ij"), -1).reshape(-1, 2)
    apart = ([0.0] * 30 + [1.0] * 30, [0] * 30 + [1] * 30)

    def largest(plan):
        laws = []
        for x, label in product((0.0, 1.0), (0, 1)):
            log = step(mapped([*apart[0], x], [*apart[1], label]), plan).log_density(w)
            laws.append(np.exp(log - log.max()) / np.exp(log - log.max()).sum())
        pairs = product(laws, laws)
        return max(np.clip(p - math.exp(left) * q, 0, None).sum() for p, q in pairs)

    assert plan.gradient_noise.independent
    assert largest(plan) <= float(delta)
    quarter = halved(halved(plan.gradient_noise))
    assert largest(with_noise(plan, quarter)) > 2 * float(delta)


def test_a_delta_is_planned_and_charged_where_it_is_used():
    for d, spent in ((4, 0), (40, Fraction(1, 10**6))):
        schema = Schema({f"x{j}": Categories(range(4)) for j in range(d)}, CLASSES)
        ledger = BudgetAccountant(delta=1e-5)
        model = BayesianLogisticRegression(delta=1e-6, schema=schema, accountant=ledger)
        planned = model.plan(n=500)
        assert (planned.cost.epsilon, planned.cost.delta) == (1, spent)
        rng = np.random.default_rng(0)
        fitted = model.fit(rng.integers(0, 4, (500, d)), rng.integers(0, 2, 500))
        assert [(e.cost.epsilon, e.cost.delta) for e in ledger] == [(1, spent)]
        assert fitted.guarantee_.delta == float(spent)
        again = from_json(fitted.to_json())
        assert again.guarantee_ == fitted.guarantee_


def test_forgetting_the_determinant_or_the_hull_exceeds_the_budget():
    """The enumeration would see a ridge of nothing, and noise in a smaller body."""
    plan = plan_for(2, 2)
    w = np.stack(np.meshgrid(*[np.linspace(-9, 9, 161)] * 2, indexing="ij"), -1).reshape(-1, 2)

    def worst(plan):
        logs = [
            step(mapped([0, x], [0, y]), plan).log_density(w) for x, y in product((0, 1), (0, 1))
        ]
        return max(np.abs(a - b).max() for a in logs for b in logs)

    assert worst(plan) <= 2
    assert worst(replace(plan, ridge=plan.ridge / 30)) > 2
    half = replace(plan.gradient_noise, scale=plan.gradient_noise.scale / 2)
    assert worst(with_noise(plan, half)) > 2


def worst_sides(plan, others=30):
    """Two neighbours with residuals of -1 and 1, where others hold the mode most of the time."""
    apart = [0.0] * others + [1.0] * others, [0] * others + [1] * others
    sides = [mapped([*apart[0], x], [*apart[1], y]) for x, y in ((0.0, 1), (1.0, 0))]
    return [step(s, plan) for s in sides]


@pytest.mark.slow
def test_audit_sees_half_the_noise():
    sides = worst_sides(plan_for(2, 61, prior=1e-6))
    assert sides[0].loss(sides[1]) > 1.99
    assert audit_ratios([sides[0]], [sides[1]], 2000).epsilon <= 2
    assert audit_ratios([sides[0]], [sides[1]], 2000, sharper=True).epsilon > 2


def test_what_floats_round_is_within_its_bound():
    """Gradient and parameters beside the same in longer floats, for blocks small and large."""
    rng, shares = np.random.default_rng(0), []
    for sizes in ((2,), (3, 2, 40), (300, 2), (2,) * 60):
        blocks = Blocks(tuple(Categories(range(k)) for k in sizes))
        X = np.column_stack([rng.integers(0, k, 500) for k in sizes])
        records, plan = mapped(X, rng.integers(0, 2, 500), blocks), plan_for(1, 500, blocks)
        law = plan.gradient_noise
        drawn = Noise.of(1).add([np.zeros(k, np.int64) for k in law.sizes], law)
        tilt, loss = plan.body.gradient(*drawn), LogisticLoss(records, blocks)
        search = Search(loss, plan.ridge, np.zeros(blocks.parameters), tilt, 0.0)
        here = search._point(loss, search.minimum(plan.error))
        coefficients = on_lattice(blocks.basis @ here.w)
        long = np.longdouble(blocks.basis)
        w = np.longdouble(coefficients) @ long
        means = np.add.reduceat(np.longdouble(coefficients), blocks.starts[:-1])
        w[0] += (means / np.array(blocks.sizes)).sum()
        sums = np.longdouble(records.gradient(coefficients)[0])
        noise = np.concatenate([drawn[-1], *drawn[:-1]])
        tilted = np.longdouble(noise) @ long / lattice_of(plan)
        exact = -(sums @ long + plan.ridge * w + tilted)
        off = np.linalg.norm(np.float64(exact - here.descent))
        off += np.linalg.norm(np.float64(plan.ridge * (w - here.w)))
        farthest = plan.body.farthest / math.sqrt(1 + len(sizes))
        assert max(np.abs(each).sum() for each in drawn) < farthest * lattice_of(plan)
        shares.append(off / module._rounding(blocks, 500 + farthest))
    assert max(shares) <= 1
    assert max(shares) > 1e-4  # the bound counts the worst of all orders, and noise never seen


def test_noise_beyond_all_reason_is_refused():
    plan = plan_for(1, 4)
    far = [np.array([2**60, 0]), np.array([2**60])]
    with pytest.raises(RuntimeError, match="random bytes"):
        loss_of(mapped(*RECORDS), plan).minimum(*far)


def test_the_search_ends_near_the_minimum_whatever_the_data(monkeypatch):
    rng, real, passes = np.random.default_rng(0), MappedRecords.gradient, []

    def counted(self, coefficients):
        passes[-1] += 1
        assert passes[-1] < 200
        return real(self, coefficients)

    monkeypatch.setattr(MappedRecords, "gradient", counted)
    for trial in range(60):
        n, d = int(rng.choice([1, 2, 10, 300])), int(rng.choice([1, 3, 8]))
        X = [
            rng.random((n, d)),
            np.repeat(rng.choice([0.0, 0.5, 1.0], (n, 1)), d, axis=1),
            rng.choice([0.0, 2**-15, 1.0], (n, d)),
        ][trial % 3]
        y = (X[:, 0] > 0.4).astype(int) if trial % 2 else rng.integers(0, 2, n)  # separable
        passes.append(0)
        blocks = Blocks((Interval(0, 1),) * d, "linear" if trial % 5 else "smooth")
        plan = plan_for(Fraction(float(10 ** rng.uniform(-2, 7))), n, blocks)
        records = mapped(X, y, blocks)
        tilt = rng.normal(size=blocks.parameters) * np.sqrt(plan.body.variance)
        loss = LogisticLoss(records, blocks)
        search = Search(loss, plan.ridge, plan.centre, -tilt, plan.slack)
        w = search.minimum(plan.error)
        x = weighed_records(records)
        z = x[:, :-2] @ blocks.basis @ w
        gradient = (1 / (1 + np.exp(-z)) - y) @ (x[:, :-2] @ blocks.basis) + plan.ridge * w + tilt
        assert np.linalg.norm(gradient) <= plan.error
    assert np.median(passes) < 25


def test_a_start_in_a_part_of_the_records_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((3000, 2))
    y = (rng.random(3000) < X[:, 0]).astype(int)
    blocks = Blocks((Interval(0, 1),) * 2)
    plan, records = plan_for(3, 3000, blocks), mapped(X, y, blocks)
    one = draws(records, plan, 1)
    monkeypatch.setattr(perturbed, "_START_RECORDS", 100)
    assert np.abs(draws(records, plan, 1) - one).max() <= 2 * plan.step


def test_what_is_released_lies_on_the_public_lattice():
    plan = plan_for(1, 4)
    found = draws(mapped(*RECORDS), plan, 50) / plan.step * plan.jitter.grid
    assert np.array_equal(found, np.rint(found))
