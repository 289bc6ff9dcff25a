"""Gaussian noise on counts: calibrated to (epsilon, delta), never too small or much too large."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

from benchmarks.audit.tools import enumerate_delta
from benchmarks.audit.tools.deltas import gaussian_shift_delta
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    DirichletMultinomial,
    PrivacyLeakWarning,
    from_json,
)
from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.plans import plan
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.conjugate import certify
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import tables_plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Gaussian
from dpbayes_sklearn.noise import DiscreteGaussian, Noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit, exact
from dpbayes_sklearn.release import Facts
from tests.releasing import carried_out

DELTA = Fraction(1, 10**6)
NETWORKS = [
    Network.star([2] * 4, 2),
    Network.star([3, 7, 1], 3),
    Network((2, 3, 2), ((), (0,), (0, 1))),
]


def counts_of(network: Network, n: int = 500) -> CountTables:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    return CountTables.count(network, [(codes[:, :-1].astype(np.uint16), codes[:, -1])])


def prior_of(network: Network) -> DirichletPrior:
    return DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))


def released(
    network: Network, epsilon: Any, unit: PrivacyUnit = RECORD, seed: int | None = None
) -> Any:
    budget = Budget(exact(epsilon), DELTA, unit)
    return carried_out(Gaussian(), counts_of(network), prior_of(network), budget, Noise.of(seed))


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma of continuous Gaussian noise for sensitivity 1 (Balle and Wang 2018)."""

    def excess(sigma: float) -> float:
        a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        return float(ndtr(a) - math.exp(epsilon) * ndtr(b)) - delta

    return float(brentq(excess, 0.01, 1e5))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("epsilon", [0.1, 1, Fraction(1, 3), 4.5])
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_the_noise_is_within_three_percent_of_the_analytic_one(
    network: Network, epsilon: Any, unit: PrivacyUnit
) -> None:
    release = released(network, epsilon, unit)
    (law,) = release.posterior.released.laws
    weights = counts_of(network).table_weights(unit)
    shifts = counts_of(network).shifts(unit)
    norm = sum(cells * weight for (_, weight), cells in shifts.items())
    sigma = math.sqrt(norm) * analytic_sigma(float(epsilon), float(DELTA))
    assert type(law) is DiscreteGaussian
    assert law.numbers == tuple(math.prod(shape) for shape in network.shapes)
    (variance,) = {s * w for s, w in zip(law.parameters, weights, strict=True) if w}
    assert math.sqrt(variance) < 1.03 * sigma
    pattern = tuple((float(variance / w), 1, cells) for (_, w), cells in shifts.items())
    exact_delta = gaussian_shift_delta(pattern, float(epsilon))
    assert 0.9 * DELTA < exact_delta <= DELTA
    assert release.guarantee.delta == 1e-6
    assert release.guarantee.epsilon >= float(epsilon)
    assert release.guarantee.rho == pytest.approx(float(norm / (2 * variance)))
    assert release.guarantee.mechanism == "gaussian"
    assert release.guarantee.unit == unit.name
    for table, shape in zip(release.posterior.released.tables, network.shapes, strict=True):
        assert table.dtype == np.int64  # every released number is an integer
        assert table.shape == shape


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@pytest.mark.parametrize(
    ("structure", "n"),
    [
        (Network.star([2, 2], 2), 3),
        (Network.star([3, 1], 2), 3),
        (Network.star([2, 5], 2), 2),
        (Network((2, 2, 2), ((2,), (0,), ())), 2),
        (3, 4),
        (2, 5),
    ],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.25, 1e-4)])
def test_no_neighbours_need_more_than_delta_and_some_need_nearly_all(
    structure: Any, n: int, unit: PrivacyUnit, epsilon: float, delta: float
) -> None:
    if isinstance(structure, int) and unit == FEATURE:
        pytest.skip("a single variable has no label")
    found = enumerate_delta("gaussian", structure, n, epsilon=epsilon, delta=delta, unit=unit)
    assert 0.9 * delta < found.delta <= delta
    assert found.within


class TooLittle(Gaussian):
    """Noise whose standard deviation is five percent too small."""


@tables_plan.register(TooLittle)
def _(mechanism: TooLittle, *public: Any) -> Any:
    plan = tables_plan(Gaussian(), *public)
    variances = tuple(s * Fraction(9025, 10000) for s in plan.law.parameters)
    return replace(plan, law=DiscreteGaussian(variances, plan.law.sizes))


def test_noise_that_is_five_percent_too_small_is_seen_by_the_enumeration() -> None:
    found = enumerate_delta(TooLittle(), Network.star([2, 2], 2), 2)
    assert found.delta > 1.5e-6
    assert not found.within


def pvalue(noise: Any, sigma: float) -> float:
    edge = int(4 * sigma)
    z = np.arange(-12 * edge, 12 * edge + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    inside = mass[np.abs(z) <= edge]
    law = np.array([(1 - inside.sum()) / 2, *inside, (1 - inside.sum()) / 2])
    seen = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=len(law))
    return float(stats.chisquare(seen, noise.size * law).pvalue)


def test_the_noise_follows_its_law_and_a_scale_five_percent_off_is_rejected() -> None:
    network = Network.star([300] * 20, 20)
    release = released(network, 6, seed=1).posterior.released
    pairs = zip(release.tables, counts_of(network).tables, strict=True)
    *features, _ = [(t - e).ravel() for t, e in pairs]  # the class table has a variance of its own
    noise = np.concatenate(features)
    sigma = math.sqrt(release.laws[0].parameters[0])
    assert pvalue(noise, sigma) > 1e-3
    assert pvalue(noise, 0.95 * sigma) < 1e-6
    assert pvalue(noise, 1.05 * sigma) < 1e-6
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.02


def test_a_table_of_one_cell_is_public_and_what_no_record_changes_gets_no_noise() -> None:
    posterior = released(Network.star([3], 1), 0.01).posterior
    assert posterior.released.tables[1].tolist() == [500]
    assert posterior.released.laws[0].parameters[1] == 0
    alone = released(Network.star([1, 1], 2), 1, FEATURE)
    assert alone.guarantee.rho == 0
    assert set(alone.posterior.released.laws[0].parameters) == {0}


def test_one_of_two_counts_is_enough() -> None:
    budget, prior = Budget(Fraction(1), DELTA), SimplexPrior(Dirichlet(np.ones(2)), "plug_in")
    planned = plan(Gaussian(), prior, Facts(7), budget)
    law = planned.law
    assert law.sizes == (1,)
    assert math.sqrt(law.variance()) == pytest.approx(analytic_sigma(1, 1e-6), rel=0.01)
    both = planned.release(SimplexCounts(np.array([3, 4])), Noise.of(0))
    assert both.concentration.sum() == 9


# ------------------------------------------------------------------ estimators


def data(n: int = 400, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    return (rng.random((n, d)) < 0.3 + 0.4 * y[:, None]).astype(int), y


def model_of(**options: Any) -> BayesianNaiveBayes:
    declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, "delta": 1e-6}
    return BayesianNaiveBayes(**{"mechanism": "gaussian", **declared, **options})


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware", "adaptive"])
@pytest.mark.parametrize("parents", [None, {0: ["class"], 1: ["class", 0], 2: [1]}])
def test_every_inference_reads_gaussian_noise(inference: str, parents: Any) -> None:
    X, y = data(4000)
    options = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, "inference": inference}
    private = BayesianNetworkClassifier(
        2.0, delta=1e-6, mechanism="gaussian", parents=parents, random_state=0, **options
    ).fit(X, y)
    exact_model = BayesianNetworkClassifier(math.inf, parents=parents, **options).fit(X, y)
    for got, want in zip(private.posterior_.mean(), exact_model.posterior_.mean(), strict=True):
        np.testing.assert_allclose(got, want, atol=0.08)
    np.testing.assert_array_equal(
        from_json(private.to_json()).predict_proba(X[:20]), private.predict_proba(X[:20])
    )


def test_a_learned_temperature_is_paid_from_epsilon_and_the_guarantee_has_both() -> None:
    X, y = data(4000)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    model = model_of(accountant=accountant).fit(X, y)
    (law,) = model.posterior_.released.laws
    share = Fraction(1, 10)  # of 4000 records at epsilon 1
    *_, feature, label = law.parameters
    assert 3 * feature == 2 * label  # the weights are 3 and 2
    p = 1 / (1 + math.exp(-share))
    pattern = ((float(feature), 1, 8), (float(label), 1, 2))
    deltas = [gaussian_shift_delta(pattern, 1 + s * 0.1) for s in (-1, 1)]
    assert 0.9e-6 < p * deltas[0] + (1 - p) * deltas[1] <= 1e-6
    rho = 8 / (2 * feature) + 2 / (2 * label) + share**2 / 2
    (entry,) = accountant
    assert (entry.epsilon, entry.delta) == (1.0, 1e-6)
    assert entry.spend.rho == rho
    assert model.guarantee_.rho == pytest.approx(float(rho))
    assert "epsilon = 1, delta = 1e-06 (rho = 0.0" in str(model.guarantee_)
    assert from_json(model.to_json()).guarantee_ == model.guarantee_


@pytest.mark.parametrize("estimator", [BayesianNaiveBayes, BayesianNetworkClassifier])
def test_no_delta_is_refused_before_anything_is_charged(estimator: Any) -> None:
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    model = estimator(mechanism="gaussian", accountant=accountant, classes=[0, 1], bounds=(0, 1))
    with pytest.raises(InvalidParameterError, match=r"'delta' parameter of .* in the range \(0"):
        model.fit(*data())
    assert len(accountant) == 0
    X, y = data()
    without = estimator(math.inf, mechanism="gaussian", classes=[0, 1], bounds=(0, 1)).fit(X, y)
    assert (without.guarantee_.delta, without.guarantee_.rho) == (0, None)


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "map"])
def test_purely_private_mechanisms_spend_no_delta(mechanism: str) -> None:
    accountant = BudgetAccountant(epsilon=1.0)
    model = model_of(mechanism=mechanism, accountant=accountant).fit(*data())
    assert (model.guarantee_.delta, model.guarantee_.rho) == (0.0, None)
    assert accountant.total() == (1.0, 0.0)


def test_the_ceiling_counts_delta_and_zcdp_lets_many_small_fits_through() -> None:
    X, y = data(100)
    strict = BudgetAccountant(epsilon=0.1, delta=1e-7)
    with pytest.raises(BudgetError, match="would cross the ceiling"):
        model_of(epsilon=0.1, accountant=strict).fit(X, y)
    assert len(strict) == 0
    accountant = BudgetAccountant(epsilon=0.5, delta=1e-5, composition="zcdp")
    small = model_of(epsilon=0.1, accountant=accountant)
    with suppress(BudgetError):
        for _ in range(41):
            small.fit(X, y)
    assert 10 < len(accountant) < 40  # five by adding up


@pytest.mark.parametrize("delta", [-1e-9, 1.0, Fraction(3, 2), float("nan"), "small"])
def test_delta_is_between_zero_and_one(delta: Any) -> None:
    with pytest.raises(ValueError, match="'delta' parameter of BayesianNaiveBayes must be"):
        model_of(delta=delta).fit(*data())


def test_a_delta_above_one_over_n_is_warned_of() -> None:
    X, y = data(400)
    with pytest.warns(PrivacyLeakWarning, match="is not below 1/n for n=400 records"):
        model_of(delta=0.01).fit(X, y)
    model_of(delta=Fraction(1, 401)).fit(X, y)


def test_a_delta_that_the_mechanism_does_not_spend_is_not_warned_of() -> None:
    model_of(delta=0.5, mechanism="laplace").fit(*data())


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_one_variable(inference: str) -> None:
    x = [0] * 500 + [1] * 300 + [2] * 200
    options = {"delta": 1e-6, "mechanism": "gaussian", "inference": inference, "random_state": 0}
    model = DirichletMultinomial(1.0, categories=3, **options).fit(x)
    np.testing.assert_allclose(model.posterior_.mean(), [0.5, 0.3, 0.2], atol=0.04)
    assert model.guarantee_.rho == pytest.approx(0.028, abs=0.001)
    beta = BetaBinomial(1.0, **options).fit([1] * 300 + [0] * 700)
    assert beta.posterior_.mean() == pytest.approx(0.3, abs=0.03)
    assert beta.guarantee_.delta == 1e-6


@pytest.mark.parametrize("k", [2, 4])
def test_the_certificate_says_what_was_asked(k: int) -> None:
    found = certify("gaussian", 50, [1.0] * k, epsilon=1.0, delta=1e-6)
    assert 0.98 < found.epsilon <= 1.0
    assert found.pure_epsilon == math.inf


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", [BayesianNaiveBayes, BetaBinomial])
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(kind, neighbours):
    y, ledger = np.array([0, 1] * 20), BudgetAccountant(1, 1e-6)
    unit = PrivacyUnit("record", neighbours=neighbours)
    model = kind(1e-12, delta=1e-100, mechanism="gaussian", privacy_unit=unit, accountant=ledger)
    declared = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1]}
    model.set_params(**declared if kind is BayesianNaiveBayes else {})
    with pytest.raises(ValueError, match="too small for any noise"):
        model.fit(*((y[:, None], y) if kind is BayesianNaiveBayes else (y,)))
    assert len(ledger) == 0


def test_a_rho_that_no_float_holds_is_infinite():
    y, unit = np.array([0, 1] * 20), PrivacyUnit("record", neighbours="add_remove")
    model = BayesianNaiveBayes(
        1e200, delta=1e-6, mechanism="gaussian", privacy_unit=unit, bounds=(0, 1), n_bins=2,
        classes=[0, 1],
    )  # fmt: skip
    guarantee = model.fit(y[:, None], y).guarantee_
    assert (guarantee.epsilon, guarantee.rho) == (1e200, math.inf)
