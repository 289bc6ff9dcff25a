"""Several classes in one release: its law beside the claim, its price, and what is made of it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest
from sklearn.linear_model import LogisticRegression

from benchmarks.audit.tools.ratios import halved
from benchmarks.audit.tools.steps import SoftmaxMode, weighed_records
from dpbayes_sklearn import BayesianLogisticRegression, PrivacyUnit, Schema, from_json
from dpbayes_sklearn.convex.perturbed import PerturbedLoss
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic.blocks import Blocks, even_nodes
from dpbayes_sklearn.logistic.posterior import class_contrasts
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.logistic.softmax import Lift, SoftmaxLoss, plan_classes
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.schema import Categories, Interval

ONE = Blocks((Categories(range(2)),))
ADDED = PrivacyUnit(neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3, by_construction=True)
SMALLEST_P = 1e-4


def mapped(X, y, blocks=ONE, n_classes=3):
    table = Table(np.asarray(X, float).reshape(len(y), -1))
    records = LocalRecords([(table, np.asarray(y, int))])
    labelled = LabelledRecords(blocks, Categories(range(n_classes)), records)
    return labelled.read().mapped(even_nodes(len(blocks.numbers)))


def plan_for(epsilon, n, n_classes=3, blocks=ONE, unit=RECORD, prior=None):
    return plan_classes(blocks, n_classes, n, Fraction(epsilon), unit, 100.0, prior)


def loss_of(X, y, plan, blocks=ONE, n_classes=3):
    records = mapped(X, y, blocks, n_classes)
    return PerturbedLoss(SoftmaxLoss(records, blocks, n_classes), plan)


def step(X, y, plan, n_classes=3):
    own = loss_of(X, y, plan, ONE, n_classes)
    return SoftmaxMode(weighed_records(own.loss.records), plan, own, ONE)


@pytest.mark.parametrize("n_classes", [3, 4, 10])
def test_noises_reach_as_far_as_a_record_moves_them(n_classes):
    lift, rng = Lift.of(n_classes), np.random.default_rng(0)
    contrasts = lift.contrasts @ lift.contrasts.T
    assert np.allclose(contrasts, lift.variance * np.eye(n_classes - 1))
    # variances of a contrast, for noise of a scale of h: two classes have 2, of one contrast
    assert lift.variance * lift.reach**2 == min(n_classes, 4)
    for shares in rng.dirichlet(np.full(n_classes, 0.3), 200):
        residual = shares - np.eye(n_classes)[rng.integers(n_classes)]
        found = minimize_moves(lift.groups, residual)
        assert found <= lift.reach * (1 + 1e-9)


def minimize_moves(groups, residual):
    """Return the least sum of moves of the noises that makes a residual."""
    from scipy.optimize import linprog

    both = np.hstack([groups, -groups])
    return linprog(np.ones(both.shape[1]), A_eq=both, b_eq=residual).fun


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("prior", [None, 1e-6, 50.0])
def test_the_parts_of_a_plan_add_up_to_its_budget(n_classes, unit, prior):
    blocks = Blocks((Interval(0, 1), Categories(range(5)), Categories(range(2))))
    for epsilon, n in product((Fraction(1, 100), Fraction(3), Fraction(10**6)), (1, 10**6)):
        plan, lift = plan_for(epsilon, n, n_classes, blocks, unit, prior), Lift.of(n_classes)
        law, (classes, noises) = plan.gradient_noise, lift.groups.shape
        one = law.variance(3) * lift.variance
        lattice = round(math.sqrt(one / plan.body.variance[0]))
        cells = 2 * noises * (max(blocks.sizes) - Fraction(1, 2))
        moved = unit.n_changed * lift.reach * lattice + cells
        ridge = plan.ridge.reshape(classes - 1, -1)
        assert (ridge == ridge[0]).all()
        spread = np.linalg.norm(blocks.basis / np.sqrt(ridge[0]), axis=1) ** 2
        starts = np.add.reduceat(spread, blocks.starts[:-1]) / np.array(blocks.sizes)
        length = spread[0] + starts.sum()  # at corners, which are all alike
        volume = unit.max_records * (classes - 1) * math.log1p(length / classes)
        total = float(moved / law.scale) + volume + float(2 / plan.jitter.scale)
        assert 0.98 * float(epsilon) < total <= float(epsilon) * (1 + 1e-12)
        assert plan.error / plan.ridge.min() <= plan.step


def worst_of(plan, n_classes, sizes=(1, 2, 3)):
    """Return the largest loss between neighbours of a small world, and the largest one stated."""
    rng, worst, stated = np.random.default_rng(0), 0.0, 0.0
    own = [*product((0, 1), range(n_classes))]
    for n in sizes:
        others = [own[i] for i in rng.integers(len(own), size=n - 1)]
        steps = [step(*zip(*others, record, strict=True), plan, n_classes) for record in own]
        w = 4 * rng.standard_t(2, size=(60, len(plan.ridge)))
        logs = np.array([each.log_density(w) for each in steps])
        worst = max(worst, float(np.ptp(logs, axis=0).max()))
        stated = max(stated, *(a.loss(b) for a, b in combinations(steps, 2)))
    return worst, stated


@pytest.mark.parametrize("n_classes", [3, 4])
def test_the_density_of_neighbours_stays_within_the_budget(n_classes):
    plan = plan_for(1, 3, n_classes)
    search = float(2 / plan.jitter.scale)
    worst, stated = worst_of(plan, n_classes)
    assert 0.7 < worst + search <= stated * (1 + 1e-9)
    assert 0.95 < stated <= 1 + 1e-9
    half = replace(plan, body=plan.body._replace(law=halved(plan.gradient_noise)))
    for wrong in (half, replace(plan, ridge=plan.ridge / 20)):
        found, seen = worst_of(wrong, n_classes)
        assert found > 1
        assert seen > 1


def test_it_has_the_density_of_the_proof():
    """Where one released contrast of classes lies, at all values of the others on a grid."""
    X, y = [0.0, 1.0, 1.0, 0.0], [0, 1, 2, 1]
    plan = plan_for(30, 4, prior=3.0)
    noise, own = Noise.of(0), loss_of(X, y, plan)
    found = np.array([noise.minimum(own) for _ in range(300)])
    rng = np.random.default_rng(1)  # importance sampling by a wide normal law
    centre, spread = found.mean(axis=0), 1.5 * found.std(axis=0)
    w = centre + spread * rng.standard_t(5, size=(4_000, 4))
    proposal = -3 * np.log1p(((w - centre) / spread) ** 2 / 5).sum(axis=1)
    for law, right in ((plan, True), (replace(plan, ridge=plan.ridge * 3), False)):
        log = step(X, y, law).log_density(w) - proposal
        weights = np.exp(log - logsumexp(log))
        p_values = []
        for j in range(4):
            order = np.argsort(w[:, j])
            cdf = np.cumsum(weights[order])
            p_values.append(kstest(np.interp(found[:, j], w[order, j], cdf), "uniform").pvalue)
        assert (min(p_values) > SMALLEST_P) == right


@pytest.mark.slow
def test_what_was_found_is_as_near_as_the_plan_says():
    rng = np.random.default_rng(0)
    for n_classes, intercept in product((3, 5), (True, False)):
        blocks = Blocks((Interval(0, 1), Categories(range(3))), intercept=intercept)
        X = np.column_stack([rng.random(300), rng.integers(0, 3, 300)])
        y = rng.integers(0, n_classes, 300)
        plan = plan_for(2, 300, n_classes, blocks)
        own, law = loss_of(X, y, plan, blocks, n_classes), plan.gradient_noise
        drawn = Noise.of(1).add([np.zeros(k, np.int64) for k in law.sizes], law)
        w = own.minimum(*drawn)
        mode = SoftmaxMode(weighed_records(own.loss.records), plan, own, blocks)
        assert mode.left(w, np.concatenate(drawn)) <= 2 * plan.error
        moved = np.concatenate(drawn) + np.eye(1, law.size, 0, dtype=np.int64)[0] * 2**40
        assert mode.left(w, moved) > plan.error
        near, shift = own.loss.at(w), np.eye(len(w)) * 1e-5  # derivatives are those of the loss
        slopes = [(own.loss.gradient(near + d) - own.loss.gradient(near - d)) / 2e-5 for d in shift]
        assert np.allclose(slopes, own.loss.curvature(near), atol=1e-3)


def test_the_order_of_records_changes_no_sum():
    rng = np.random.default_rng(0)
    blocks = Blocks((Interval(0, 1), Categories(range(3))))
    X = np.column_stack([rng.random(999), rng.integers(0, 3, 999)])
    y, order = rng.integers(0, 4, 999), rng.permutation(999)
    w = 3 * rng.normal(size=3 * blocks.parameters)
    sums = [
        SoftmaxLoss(mapped(*own, blocks, 4), blocks, 4).gradient(w)
        for own in ((X, y), (X[order], y[order]))
    ]
    assert np.array_equal(*sums)


SCHEMA = Schema({"a": Interval(-3, 3), "b": Categories(["x", "y", "z"])}, Categories([*"rst"]))


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-3, 3, n), rng.integers(0, 3, n)
    z = np.stack([0.8 * a, 0.5 * (b == 1), -0.8 * a], axis=1)
    y = np.array([*"rst"])[(z + rng.gumbel(size=z.shape)).argmax(axis=1)]
    return np.column_stack([a.astype(object), np.array([*"xyz"])[b]]), y


def test_without_privacy_it_is_that_of_scikit_learn():
    X, y = table(800)
    model = BayesianLogisticRegression(
        math.inf, effects="linear", n_bins=None, prior_precision=2.0, schema=SCHEMA
    ).fit(X, y)
    blocks = model._blocks(model.schema_)
    weights = blocks.weights(model._codes(X), blocks.tables(model.posterior_.nodes)) / 2**14
    basis = blocks.basis
    other = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000)
    other.fit(weights @ basis, y)
    assert np.allclose(model.predict_proba(X), other.predict_proba(weights @ basis), atol=1e-5)
    assert model.coef_.shape == (3, 4)
    assert np.allclose(model.coef_.sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("unit", ["record", ADDED, PERSON], ids=str)
def test_it_predicts_what_it_was_fitted_to(unit):
    X, y = table(6000)
    groups = None if unit is not PERSON else np.arange(6000) // 3
    model = BayesianLogisticRegression(2.0, schema=SCHEMA, privacy_unit=unit, random_state=0)
    exact = BayesianLogisticRegression(math.inf, schema=SCHEMA).fit(X, y)
    model.fit(X, y, groups)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)]).all()
    assert np.allclose(np.log(p), model.predict_log_proba(X))
    assert model.decision_function(X).shape == (6000, 3)
    again = from_json(model.to_json())
    assert np.array_equal(again.predict_proba(X), p)
    found = model.contributions(X[:20]).total
    assert np.allclose(found - found.mean(axis=1, keepdims=True), center(np.log(p[:20])))
    effect = model.effect("a")
    assert effect.value.shape == effect.low.shape == (3, len(effect.places))
    drawn = model.sample_targets(X[:50], 40, random_state=0)
    assert np.mean(drawn == y[:50]) > 0.4
    assert model.plan(n=6000).cost.epsilon == model.guarantee_.epsilon == 2
    assert "epsilon = 2" in repr(model.guarantee_) or "2" in model.card()


def center(values):
    return values - values.mean(axis=1, keepdims=True)


def test_odds_are_against_a_reference_and_have_no_intervals():
    X, y = table(6000)
    model = BayesianLogisticRegression(5.0, effects="linear", schema=SCHEMA, random_state=0).fit(
        X, y
    )
    rows = {row.name: row for row in model.coefficients(reference="s").rows}
    assert {*rows} == {f"{c}: {e}" for c in "rt" for e in ("intercept", "a", "b=y", "b=z")}
    forward, back = rows["r: a"], model.coefficients(reference="r")["s: a"]
    assert forward.estimate == pytest.approx(-back.estimate)
    assert not forward.identified
    p = model.predict_proba(np.array([[0.0, "x"], [1.0, "x"]], object))
    ratio = np.log(p[:, 0] / p[:, 1])
    assert forward.estimate == pytest.approx(ratio[1] - ratio[0], rel=1e-3)
    assert "against s" in str(model.coefficients(reference="s"))
    assert np.isnan(model.summary().covariance).all()
    with pytest.raises(ValueError, match="reference must be one of"):
        model.coefficients(reference="u")


def test_what_needs_two_classes_is_refused_before_anything_is_charged():
    X, y = table(100)
    for options in ({"mechanism": "sampler"}, {"intervals": True}):
        model = BayesianLogisticRegression(schema=SCHEMA, **options)
        with pytest.raises(ValueError, match="needs two classes"):
            model.fit(X, y)
    many = Schema(dict(SCHEMA.columns), Categories(range(129)))
    with pytest.raises(ValueError, match="At most 128 classes"):
        BayesianLogisticRegression(schema=many).plan(n=1000)


def test_records_without_a_class_and_weights_count_as_they_should():
    X, y = table(2000)
    missing = np.array([None if i % 4 == 0 else own for i, own in enumerate(y)], object)
    given = {"random_state": 0, "prior_precision": 1.0}
    some = BayesianLogisticRegression(1e6, schema=SCHEMA, **given).fit(X, missing)
    kept = np.arange(2000) % 4 > 0
    weighted = BayesianLogisticRegression(1e6, schema=SCHEMA, max_weight=1, **given)
    weighted.fit(X, y, sample_weight=kept.astype(int))
    other = BayesianLogisticRegression(1e6, schema=SCHEMA, **given).fit(X[kept], y[kept])
    for model in (some, weighted):
        assert np.allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-2)


def test_contrasts_of_classes_are_orthonormal():
    for n_classes in (2, 3, 7):
        contrasts = class_contrasts(n_classes)
        assert np.allclose(contrasts.T @ contrasts, np.eye(n_classes - 1))
        assert np.allclose(contrasts.sum(axis=0), 0)
