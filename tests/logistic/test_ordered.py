"""Ordered classes: the law of the mode beside the claim, its price, and what is made of it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import kstest
from sklearn.metrics import log_loss

from benchmarks.audit.tools.ratios import halved
from benchmarks.audit.tools.steps import OrderedMode, weighed_records
from dpbayes_sklearn import BayesianLogisticRegression, PrivacyUnit, Schema, from_json
from dpbayes_sklearn.convex.perturbed import PerturbedLoss
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic.blocks import Blocks, even_nodes
from dpbayes_sklearn.logistic.ordered import OrderedLoss, even_cuts, plan_ordered, with_cuts
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.metrics import private_score
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.planning import expected_error, recommend
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.schema import Categories, Interval

ONE = Blocks((Categories(range(2)),))
MIXED = Blocks((Interval(0, 1), Categories(range(3))))
ADDED = PrivacyUnit(neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3, by_construction=True)
SMALLEST_P = 1e-4


def plan_for(epsilon, n, n_classes=3, blocks=ONE, unit=RECORD, prior=None):
    both = with_cuts(blocks, n_classes)
    return plan_ordered(both, n, Fraction(epsilon), unit, 100.0, prior)


def loss_of(X, y, n_classes=3, blocks=ONE):
    table = Table(np.asarray(X, float).reshape(len(y), -1))
    records = LocalRecords([(table, np.asarray(y, int))])
    labelled = LabelledRecords(blocks, Categories(range(n_classes)), records)
    mapped = labelled.read().mapped(even_nodes(len(blocks.numbers)))
    return OrderedLoss(mapped, with_cuts(blocks, n_classes))


def step(X, y, plan, n_classes=3, blocks=ONE):
    loss = loss_of(X, y, n_classes, blocks)
    own = PerturbedLoss(loss, plan)
    return OrderedMode(weighed_records(loss.records), plan, own, loss.blocks)


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("prior", [None, 1e-6, 50.0])
def test_the_parts_of_a_plan_add_up_to_its_budget(n_classes, unit, prior):
    blocks = Blocks((Interval(0, 1), Categories(range(5)), Categories(range(2))))
    both = with_cuts(blocks, n_classes)
    for epsilon, n in product((Fraction(1, 100), Fraction(3), Fraction(10**6)), (1, 10**6)):
        plan = plan_for(epsilon, n, n_classes, blocks, unit, prior)
        law = plan.gradient_noise
        lattice = round(math.sqrt(law.variance(len(both.sizes)) / plan.body.variance[0]))
        moved = unit.n_changed * lattice + 2 * max(both.sizes) - 1
        spread = np.linalg.norm(both.basis / np.sqrt(plan.ridge), axis=1) ** 2
        starts = np.add.reduceat(spread, both.starts[:-1]) / np.array(both.sizes)
        length, cuts = spread[0] + starts.sum(), n_classes - 1
        volume = unit.max_records * cuts * math.log1p(length / 4 / cuts)
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
        w = 4 * rng.standard_t(2, size=(300, len(plan.ridge)))
        logs = np.array([each.log_density(w) for each in steps])
        worst = max(worst, float(np.ptp(logs, axis=0).max()))
        stated = max(stated, *(a.loss(b) for a, b in combinations(steps, 2)))
    return worst, stated


@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_density_of_neighbours_stays_within_the_budget(n_classes):
    plan = plan_for(1, 3, n_classes)
    search = float(2 / plan.jitter.scale)
    worst, stated = worst_of(plan, n_classes)
    assert 0.7 < worst + search <= stated * (1 + 1e-9)
    assert 0.95 < stated <= 1 + 1e-9
    half = replace(plan, body=plan.body._replace(law=halved(plan.gradient_noise)))
    for wrong in (half, replace(plan, ridge=plan.ridge / 30)):
        found, seen = worst_of(wrong, n_classes)
        assert found > 1
        assert seen > 1


def test_it_has_the_density_of_the_proof():
    """Where one released parameter lies, at all values of the others by importance sampling."""
    X, y = [0.0, 1.0, 1.0, 0.0], [0, 1, 2, 1]
    plan = plan_for(30, 4, prior=3.0)
    noise, own = Noise.of(0), PerturbedLoss(loss_of(X, y), plan)
    found = np.array([noise.minimum(own) for _ in range(300)])
    rng = np.random.default_rng(1)
    centre, spread = found.mean(axis=0), 1.5 * found.std(axis=0)
    w = centre + spread * rng.standard_t(5, size=(20_000, 3))
    proposal = -3 * np.log1p(((w - centre) / spread) ** 2 / 5).sum(axis=1)
    shifted = replace(plan, centre=plan.centre + 0.3)
    for law, right in (
        (plan, True),
        (replace(plan, ridge=plan.ridge * 3), False),
        (shifted, False),
    ):
        log = step(X, y, law).log_density(w) - proposal
        weights = np.exp(log - logsumexp(log))
        p_values = []
        for j in range(3):
            order = np.argsort(w[:, j])
            cdf = np.cumsum(weights[order])
            p_values.append(kstest(np.interp(found[:, j], w[order, j], cdf), "uniform").pvalue)
        assert (min(p_values) > SMALLEST_P) == right


@pytest.mark.parametrize("n_classes", [3, 6])
def test_what_was_found_is_as_near_as_the_plan_says(n_classes):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(300), rng.integers(0, 3, 300)])
    y = rng.integers(0, n_classes, 300)
    plan = plan_for(2, 300, n_classes, MIXED)
    own, law = PerturbedLoss(loss_of(X, y, n_classes, MIXED), plan), plan.gradient_noise
    drawn = Noise.of(1).add([np.zeros(k, np.int64) for k in law.sizes], law)
    w, mode = own.minimum(*drawn), step(X, y, plan, n_classes, MIXED)
    assert mode.left(w, np.concatenate(drawn)) <= 2 * plan.error
    moved = np.concatenate(drawn) + np.eye(1, law.size, 0, dtype=np.int64)[0] * 2**40
    assert mode.left(w, moved) > plan.error
    near, shift = own.loss.at(w), np.eye(len(w)) * 1e-5  # derivatives are those of the loss
    slopes = [(own.loss.gradient(near + d) - own.loss.gradient(near - d)) / 2e-5 for d in shift]
    assert np.allclose(slopes, own.loss.curvature(near), atol=1e-3)
    order = rng.permutation(300)  # the order of records changes no sum
    other = loss_of(X[order], y[order], n_classes, MIXED)
    assert np.array_equal(own.loss.gradient(w), other.gradient(w))


def test_a_strong_pull_to_a_centre_of_many_cuts_is_found():
    """Where the ridge is huge, rounding of parameters that are not 0 counts most."""
    for n_classes, prior in product((3, 128), (1e12, None)):
        y = np.arange(200) % n_classes
        plan = plan_for(1, 200, n_classes, ONE, RECORD, prior)
        own, law = PerturbedLoss(loss_of(y % 2, y, n_classes), plan), plan.gradient_noise
        drawn = Noise.of(1).add([np.zeros(k, np.int64) for k in law.sizes], law)
        mode = step(y % 2, y, plan, n_classes)
        assert mode.left(own.minimum(*drawn), np.concatenate(drawn)) <= 2 * plan.error


SCHEMA = Schema(
    {"a": Interval(-3, 3), "b": Categories(["x", "y", "z"])}, Categories(["no", "some", "full"])
)
LABELS = np.array(["no", "some", "full"])  # an order that is not that of the alphabet


def table(n, seed=0, cuts=(-1.0, 1.0)):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-3, 3, n), rng.integers(0, 3, n)
    z = 0.8 * a + 0.7 * (b == 1) + rng.logistic(size=n)
    return np.column_stack([a.astype(object), np.array([*"xyz"])[b]]), LABELS[np.digitize(z, cuts)]


def test_without_privacy_it_minimises_the_mean_over_the_cuts():
    X, y = table(800)
    model = BayesianLogisticRegression(
        math.inf, effects="linear", prior_precision=2.0, schema=SCHEMA, ordered=True
    ).fit(X, y)
    blocks, code = model._blocks(model.schema_), [*LABELS].index
    basis, y = blocks.basis, np.array([code(own) for own in y])
    x = blocks.weights(model._codes(X), blocks.tables(model.posterior_.nodes)) / 2**14 @ basis
    even = even_cuts(2)

    def objective(w):
        z = x[:, :, None] * w[:-1, None]  # the cuts have one free contrast
        z = z.sum(axis=1) + even + w[-1] * np.array([1, -1]) / math.sqrt(2)
        above = y[:, None] > np.arange(2)
        loss = -np.where(above, log_expit(z), log_expit(-z)).mean(axis=1).sum()
        return loss + (w**2).sum()

    other = minimize(objective, np.zeros(blocks.parameters + 1), method="BFGS", tol=1e-10)
    assert np.allclose(model.posterior_.parameters, other.x[:-1], atol=1e-4)
    cut = other.x[-1] * np.array([1, -1]) / math.sqrt(2)
    assert np.allclose(model.posterior_.cuts, even + cut, atol=1e-4)


@pytest.mark.parametrize("unit", ["record", ADDED, PERSON], ids=str)
def test_it_predicts_what_it_was_fitted_to(unit):
    X, y = table(6000)
    groups = None if unit is not PERSON else np.arange(6000) // 3
    given = {"effects": "linear", "schema": SCHEMA, "ordered": True}
    model = BayesianLogisticRegression(3.0, privacy_unit=unit, random_state=0, **given)
    exact = BayesianLogisticRegression(math.inf, **given).fit(X, y)
    model.fit(X, y, groups)
    assert [*model.classes_] == sorted(LABELS)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)]).all()
    assert np.allclose(np.log(p), model.predict_log_proba(X))
    assert model.decision_function(X).shape == (6000, 3)
    assert np.array_equal(from_json(model.to_json()).predict_proba(X), p)
    assert log_loss(y, p) < 1  # scikit-learn takes columns for those of sorted labels
    truth = model.classes_.searchsorted(y)
    brier = np.square(p - np.eye(3)[truth]).sum(axis=1).mean()
    told = private_score(model, X, y, epsilon=1e4, scoring="brier_score", random_state=0)
    assert told.scores["brier_score"].value == pytest.approx(brier, abs=0.01)
    assert model.coef_.shape == (1, 4)
    p = p[:, model.classes_.searchsorted(LABELS)]
    z = X[:, 0].astype(float) * model.coef_[0, 0]
    z += model.coef_[0, 1:][np.array([*map("xyz".index, X[:, 1])])]
    assert np.allclose(p[:, 0], expit(model.theta_[0] - z), atol=1e-3)
    assert np.allclose(p[:, 2], expit(model.intercept_[1] + z), atol=1e-3)
    rows = {row.name: row.estimate for row in model.coefficients().rows}
    assert {*rows} == {"above no", "above some", "a", "b=y", "b=z"}
    q = model.predict_proba(np.array([[0.0, "x"], [1.0, "y"]], object))
    q = q[:, model.classes_.searchsorted(LABELS)]
    assert np.log(1 / q[0, 0] - 1) == pytest.approx(rows["above no"], abs=1e-3)
    assert -np.log(1 / q[1, 2] - 1) == pytest.approx(
        rows["above some"] + rows["a"] + rows["b=y"], abs=1e-3
    )
    assert not model.coefficients()["a"].identified
    assert np.isnan(model.summary().covariance).all()
    assert model.contributions(X[:20]).values.shape == (20, 2)
    assert np.ptp(model.effect("a").value) > 1
    drawn = model.sample_targets(X[:50], 40, random_state=0)
    assert np.mean(drawn == y[:50]) > 0.4
    assert model.plan(n=6000).cost.epsilon == model.guarantee_.epsilon == 3
    assert "BayesianLogisticRegression" in model.card()


def test_probabilities_of_classes_of_no_width_and_far_out_are_none_not_wrong():
    X, y = table(500)
    model = BayesianLogisticRegression(0.5, schema=SCHEMA, ordered=True, random_state=0).fit(X, y)
    for cuts in ([0.3, 0.3], [800.0, -800.0], [1e-300, 0.0]):
        model.posterior_ = replace(model.posterior_, cuts=np.array(cuts))
        p = model.predict_proba(X)
        assert np.allclose(p.sum(axis=1), 1)
        assert not np.isnan(model.predict_log_proba(X)).any()


def test_cuts_that_noise_turned_around_are_sorted():
    X, y = table(40)
    found = [
        BayesianLogisticRegression(0.05, schema=SCHEMA, ordered=True, random_state=seed).fit(X, y)
        for seed in range(30)
    ]
    assert all((np.diff(model.theta_) >= 0).all() for model in found)
    text = found[0].to_json()
    cuts = found[0].posterior_.cuts
    with pytest.raises(ValueError, match="not one parameter for each contrast"):
        from_json(text.replace(repr(float(cuts[0])), repr(float(cuts[1]) - 1)))
    with pytest.raises(ValueError, match="not one parameter for each contrast"):
        from_json(text.replace('"ordered": true', '"ordered": false'))


def test_two_ordered_classes_are_those_of_the_plain_model():
    X, y = table(2000)
    given = {"bounds": (-3, 3), "classes": [1, 0], "intervals": True, "random_state": 0}
    plain, ordered = (
        BayesianLogisticRegression(ordered=ordered, **given).fit(X[:, :1], y == "no")
        for ordered in (False, True)
    )
    assert np.array_equal(plain.predict_proba(X[:, :1]), ordered.predict_proba(X[:, :1]))
    assert str(plain.coefficients()) == str(ordered.coefficients())
    assert plain.guarantee_ == ordered.guarantee_


def test_what_is_not_offered_is_refused_before_anything_is_charged():
    X, y = table(100)
    for options, why in (
        ({"mechanism": "sampler"}, "needs two classes"),
        ({"intervals": True}, "needs two classes"),
        ({"fit_intercept": False}, "cut points are constants"),
    ):
        model = BayesianLogisticRegression(schema=SCHEMA, ordered=True, **options)
        with pytest.raises(ValueError, match=why):
            model.fit(X, y)
    spent = BayesianLogisticRegression(delta=1e-6, schema=SCHEMA, ordered=True).plan(n=1000)
    assert spent.cost.delta == 0  # no Gaussian noise is proven


def test_records_without_a_class_and_weights_count_as_they_should():
    X, y = table(2000)
    missing = np.array([None if i % 4 == 0 else own for i, own in enumerate(y)], object)
    given = {"random_state": 0, "prior_precision": 1.0, "schema": SCHEMA, "ordered": True}
    some = BayesianLogisticRegression(1e6, **given).fit(X, missing)
    kept = np.arange(2000) % 4 > 0
    weighted = BayesianLogisticRegression(1e6, max_weight=1, **given)
    weighted.fit(X, y, sample_weight=kept.astype(int))
    other = BayesianLogisticRegression(1e6, **given).fit(X[kept], y[kept])
    for model in (some, weighted):
        assert np.allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-2)


def test_planning_knows_ordered_classes():
    model = BayesianLogisticRegression(bounds=([0] * 5, [1] * 5), classes=[0, 1, 2], ordered=True)
    few, many = (recommend(model, n, epsilon=1.0) for n in (1800, 2200))  # 17 parameters
    assert (few.model, many.model) == ("BayesianNaiveBayes", "BayesianLogisticRegression")
    large, small = (expected_error(model, n, 1.0) for n in (1000, 20_000))
    assert large.of == "log odds"
    assert small.mean < large.mean / 2
