"""NormalMean and GammaExponential as estimators: checks, intervals, refusals and files."""

from __future__ import annotations

import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    check_positive_only_tag_during_fit,
    parametrize_with_checks,
)

from dpbayes_sklearn import (
    BudgetAccountant,
    GammaExponential,
    NormalMean,
    PrivacyLeakWarning,
    PrivacyUnit,
    from_json,
)
from dpbayes_sklearn.audit import audit
from dpbayes_sklearn.mechanisms import Sampler
from tests.contracts import EstimatorContract

CHECKED = [
    NormalMean(),
    NormalMean(mechanism="sampler", bounds=(-5, 5)),
    NormalMean(privacy_unit=PrivacyUnit("person", max_records=2, by_construction=True)),
    GammaExponential(bounds=(0, 5)),
    GammaExponential(data="laplace"),
    GammaExponential(data="normal", mechanism="sampler", bounds=(-5, 5)),
]


@pytest.mark.oldest
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


@pytest.mark.oldest
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@pytest.mark.parametrize("estimator", [NormalMean(), GammaExponential(data="laplace")], ids=repr)
@pytest.mark.parametrize(
    "check", [check_dataframe_column_names_consistency, check_param_validation]
)
def test_more_checks(estimator, check):
    check(type(estimator).__name__, estimator)


def people(rng, n=1000):
    return rng.normal(45, 12, (n, 1))


DRAWS = Sampler(n_points=129)


@pytest.mark.parametrize("mechanism", ["laplace", DRAWS])
def test_intervals_of_means_hold(mechanism):
    rng, held = np.random.default_rng(0), []
    for seed in range(150):
        truth = rng.normal(50, 15)
        X = rng.normal(truth, 10, (300, 1))
        model = NormalMean(
            1.0, mechanism=mechanism, bounds=(0, 100), sigma=10, prior=(50, 15), random_state=seed
        )
        low, high = model.fit(X).posterior_.credible_interval(0.9)[0]
        held.append(low < truth < high)
    assert 0.84 < np.mean(held) < 0.96


@pytest.mark.parametrize("mechanism", ["laplace", DRAWS])
@pytest.mark.parametrize("data", ["exponential", "laplace", "normal"])
def test_intervals_of_rates_hold(mechanism, data):
    """Rates drawn from the prior; bounds that hold all but few of the records."""
    rng, held = np.random.default_rng(1), []
    for seed in range(120):
        rate = rng.gamma(20.0, 1 / 20.0)
        if data == "normal":
            X = rng.normal(0, rate**-0.5, (400, 1))
        elif data == "laplace":
            X = rng.laplace(0, 1 / rate, (400, 1))
        else:
            X = rng.exponential(1 / rate, (400, 1))
        model = GammaExponential(
            2.0,
            mechanism=mechanism,
            data=data,
            bounds=(0, 15) if data == "exponential" else (-12, 12),
            prior=(20.0, 20.0),
            random_state=seed,
        )
        low, high = model.fit(X).posterior_.credible_interval(0.9)[0]
        held.append(low < rate < high)
    assert 0.82 < np.mean(held) < 0.98


def test_intervals_that_forget_the_noise_do_not_hold():
    """The check above can fail: those of exact Bayes on the noisy sum are too narrow."""
    rng, held = np.random.default_rng(0), []
    for seed in range(200):
        truth = rng.normal(50, 15)
        model = NormalMean(0.1, bounds=(0, 100), sigma=10, prior=(50, 15), random_state=seed).fit(
            rng.normal(truth, 10, (300, 1))
        )
        spread = (1 / 15**2 + 300 / 10**2) ** -0.5
        held.append(abs(model.posterior_.mean()[0] - truth) < 1.645 * spread)
    assert np.mean(held) < 0.5


@pytest.mark.parametrize("mechanism", ["laplace", Sampler(n_points=2)])
def test_neighbours_are_not_told_apart_better_than_claimed(mechanism):
    """One of two records at either end; half of the noise, or of the tempering, is seen."""
    X, other = np.array([[0.0], [0.0]]), np.array([[0.0], [1.0]])

    def measured(epsilon):
        model = NormalMean(epsilon, mechanism=mechanism, bounds=(0, 1), sigma=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = audit(
                model, X, None, other, None, n_runs=700, random_state=0, verbose=False,
                observe=lambda fitted: fitted.posterior_.means,
            )  # fmt: skip
        return found.epsilon

    assert measured(1.0) <= 1.0 < measured(2.0)


def test_draws_are_kept_and_lie_between_the_bounds():
    model = NormalMean(2.0, mechanism=Sampler(n_samples=3), bounds=(0, 100), random_state=0).fit(
        people(np.random.default_rng(0))
    )
    assert model.posterior_.draws.shape == (3, 1)
    assert ((model.posterior_.draws >= 0) & (model.posterior_.draws <= 100)).all()
    assert model.guarantee_.mechanism == "sampler"


def test_close_people_are_protected_better():
    X = people(np.random.default_rng(0))
    model = NormalMean(0.5, bounds=(0, 100), random_state=0).fit(X)
    assert model.protection(100.0) == model.guarantee_.epsilon == 0.5
    assert model.protection(10.0) == pytest.approx(0.05, rel=1e-4)
    assert model.protection(0.0) == 0.0
    drawn = NormalMean(0.5, bounds=(0, 100), mechanism="sampler", random_state=0).fit(X)
    assert 0 < drawn.protection(1.0) < 0.01
    with pytest.raises(ValueError, match="not negative"):
        model.protection(-1.0)
    two = NormalMean(0.5, bounds=([0, 0], [100, 10]), random_state=0).fit(np.hstack([X, X / 10]))
    assert two.protection([100.0, 10.0]) == pytest.approx(0.5)
    assert two.protection([1.0, 0.0]) < two.protection([1.0, 1.0])


def test_bounds_read_from_the_data_are_a_leak():
    with pytest.warns(PrivacyLeakWarning, match="bounds of the columns"):
        model = NormalMean(random_state=0).fit(people(np.random.default_rng(0)))
    assert any("bounds" in condition for condition in model.guarantee_.conditions)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, "text", None])
def test_with_declared_bounds_no_value_makes_a_fit_fail(value):
    X = [[1.0], [value], [2.0]]
    for model in (NormalMean(bounds=(0, 5)), GammaExponential(bounds=(0, 5))):
        assert np.isfinite(model.fit(X).posterior_.mean()).all()


@pytest.mark.parametrize(
    "model",
    [
        NormalMean(sigma=-1.0, bounds=(0, 1)),
        NormalMean(prior=(0.0, 0.0), bounds=(0, 1)),
        NormalMean(mechanism="geometric", bounds=(0, 1)),
        GammaExponential(location=2.0, bounds=(0, 1)),
        GammaExponential(prior=(0.0, 1.0), bounds=(0, 1)),
        GammaExponential(data="poisson", bounds=(0, 1)),
        NormalMean(privacy_unit=PrivacyUnit(neighbours="add_remove"), bounds=(0, 1)),
        NormalMean(epsilon=1e-9, mechanism="sampler", bounds=(0, 1)),
    ],
    ids=repr,
)
def test_what_cannot_be_is_refused_before_the_charge(model):
    ledger = BudgetAccountant(epsilon=10.0)
    with pytest.raises(ValueError):  # noqa: PT011 - by several rules
        model.set_params(accountant=ledger).fit(np.array([[0.5], [0.25]]))
    assert ledger.total().epsilon == 0


@pytest.mark.parametrize("mechanism", ["laplace", "sampler"])
def test_protection_of_the_closest_people_includes_the_rounding(mechanism):
    """Whose numbers are on both sides of where rounding changes: one whole step apart."""
    model = NormalMean(0.5, bounds=(0, 100), mechanism=mechanism).fit(np.full((2000, 1), 50.0))
    plan, prior = model.plan(2000), model._public_schema(model._nobody(2000, 1), 2000)[0]
    edge = 100 * 1.5 / prior.grid
    near = np.array([np.nextafter(edge, 0), np.nextafter(edge, 100)])
    low, high = prior.columns[0].codes(near, prior.grid)
    assert high - low == 1
    loss = model.posterior_.slopes[0] * prior.step(0)  # of sums that are one step apart
    assert model.protection(near[1] - near[0]) >= loss > 1e-10
    assert plan.cost.epsilon == 0.5


class TestNormalMean(EstimatorContract):
    X = people(np.random.default_rng(0))

    def make(self, **options):
        return NormalMean(bounds=([0], [100]), **options)

    def answer(self, model):
        return model.posterior_.means


class TestGammaExponential(EstimatorContract):
    X = np.random.default_rng(0).exponential(5.0, (300, 1))

    def make(self, **options):
        return GammaExponential(bounds=([0], [60]), **options)

    def answer(self, model):
        return model.posterior_.credible_interval(0.95)


@pytest.mark.parametrize("mechanism", ["laplace", "sampler"])
def test_files_hold_what_was_released(mechanism):
    X = people(np.random.default_rng(0))
    model = NormalMean(bounds=(0, 100), mechanism=mechanism).fit(X)
    read = from_json(model.to_json())
    assert read.posterior_.means.tolist() == model.posterior_.means.tolist()
    assert read.protection(1.0) == model.protection(1.0)
    assert read.to_json() == model.to_json()
    assert "epsilon" in model.card()


def test_frames_dates_and_order():
    rng = np.random.default_rng(0)
    X = people(rng)
    frame = pd.DataFrame({"age": X[:, 0]})
    models = [
        NormalMean(bounds=(0, 100), random_state=0).fit(data)
        for data in (X, frame, X[::-1], X.astype(np.float32).astype(float))
    ]
    assert len({model.posterior_.means[0] for model in models[:3]}) == 1
    assert models[1].feature_names_in_.tolist() == ["age"]


def test_without_privacy_it_is_the_sample_mean_shrunk():
    X = np.clip(people(np.random.default_rng(0)), 0, 100)
    model = NormalMean(float("inf"), bounds=(0, 100), sigma=12, prior=(50, 1e6)).fit(X)
    assert model.posterior_.mean()[0] == pytest.approx(X.mean(), abs=1e-4)
    assert model.posterior_.variance()[0] == pytest.approx(12**2 / len(X), rel=1e-6)


def test_exponential_data_without_bounds_are_positive_only():
    model = GammaExponential()
    assert get_tags(model).input_tags.positive_only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        check_positive_only_tag_during_fit("GammaExponential", model)
    others = (GammaExponential(bounds=(0, 1)), GammaExponential(location=-9.0), NormalMean())
    assert not any(get_tags(other).input_tags.positive_only for other in others)
