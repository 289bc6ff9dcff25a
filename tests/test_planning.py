from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from dpbayes_sklearn import (
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
    _simulation,
)
from dpbayes_sklearn._simulation import NetworkSimulation
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.mechanisms import Fourier, Laplace, Sampler
from dpbayes_sklearn.planning import (
    Spread,
    epsilon_for,
    expected_error,
    recommend,
    records_per_person,
    report,
)
from dpbayes_sklearn.privacy import PrivacyUnit

N, D, REPEATS = 400, 4, 100


def classifier(**parameters):
    return BayesianNaiveBayes(
        **{"classes": [0, 1], "bounds": ([0] * D, [1] * D), "n_bins": 2, **parameters}
    )


def regression(**parameters):
    return BayesianLinearRegression(
        **{"bounds_X": ([0] * 3, [10] * 3), "bounds_y": (-4, 4), **parameters}
    )


def classes_and_features(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return (rng.random((N, D)) < 0.3 + 0.4 * y[:, None]).astype(int), y


def count_errors(model):
    """Mean absolute error of all released counts over many fits."""
    errors = []
    for seed in range(REPEATS):
        X, y = classes_and_features(seed)
        fitted = model.set_params(random_state=seed, inference="plug_in").fit(X, y)
        released = fitted.posterior_.released
        if hasattr(released, "increment"):
            released = replace(released, increment=0.0)
        exact = [
            np.array([[((y == c) & (X[:, j] == v)).sum() for v in (0, 1)] for c in (0, 1)])
            for j in range(D)
        ] + [np.bincount(y, minlength=2)]
        pairs = zip(released.tables, exact, strict=True)
        errors.append(np.concatenate([np.abs(t - u).ravel() for t, u in pairs]).mean())
    return float(np.mean(errors))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace", "fourier"])
@pytest.mark.parametrize("target", [5.0, 40.0])
def test_epsilon_for_counts_is_achieved(mechanism, target):
    model = classifier(mechanism=mechanism)
    epsilon = epsilon_for(model, N, target)
    achieved = count_errors(model.set_params(epsilon=epsilon))
    assert achieved == pytest.approx(target, rel=0.2)
    assert expected_error(model, N).mean == pytest.approx(target, rel=0.03)


@pytest.mark.parametrize("wrong", [0.7, 1.4])
def test_another_epsilon_would_be_noticed(wrong):
    model = classifier()
    model.set_params(epsilon=wrong * epsilon_for(model, N, 40.0))
    assert count_errors(model) != pytest.approx(40.0, rel=0.2)


def test_law_of_a_count_error():
    model = classifier(epsilon=2.0, mechanism=Laplace(noise="independent"), temperature=1)
    law = expected_error(model, N)
    scale = 2 * (D + 1) / 2.0
    q = math.exp(-1 / scale)
    assert law.of == "counts"
    assert law.mean == pytest.approx(2 * q / (1 - q**2), rel=0.01)
    for probability in (0.5, 0.9, 0.99):
        z = law.quantile(probability)
        assert 1 - 2 * q ** (z + 1) / (1 + q) >= probability - 1e-3
        assert 1 - 2 * q**z / (1 + q) <= probability + 1e-3
    assert "mean=" in repr(law)


def test_epsilon_for_a_quantile():
    model = classifier()
    epsilon = epsilon_for(model, N, 50, quantile=0.95)
    assert expected_error(model, N, epsilon).quantile(0.95) <= 50
    assert expected_error(model, N, epsilon / 1.1).quantile(0.95) > 50


def coefficient_errors(model, n, repeats):
    """Mean difference of the coefficients from exact ones, on the scale of the bounds."""
    errors = []
    for seed in range(repeats):
        rng = np.random.default_rng(1000 + seed)
        x = rng.uniform(-1, 1, (n, 3))
        y = np.clip(x @ rng.normal(scale=0.3, size=3) + rng.normal(scale=0.1, size=n), -1, 1)
        model.set_params(random_state=seed).fit(5 + 5 * x, 4 * y)
        exact = Ridge(alpha=0.01 * model.prior_precision).fit(x, y).coef_
        errors.append(np.abs(model.coef_ * 5 / 4 - exact).mean())
    return float(np.mean(errors))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace", "sampler"])
def test_epsilon_for_coefficients_is_achieved(mechanism, monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 16)
    n, target = 3000, 0.05
    spread = Spread(12**-0.5, target=0.1**0.5 / 2)
    # draws in a ball around 0, which holds coefficients that explain the target so well
    model = regression(mechanism=mechanism, noise_variance=0.01, coef_bound=1.0)
    epsilon = epsilon_for(model, n, target, spread=spread)
    less, right, more = (
        coefficient_errors(model.set_params(epsilon=factor * epsilon), n, repeats)
        for factor, repeats in ((0.7, 50 if mechanism == "sampler" else 25), (1.0, 40), (1.4, 12))
    )
    assert right == pytest.approx(target, rel=0.2)
    assert less > 1.1 * target  # so another epsilon would be noticed
    assert more < 0.8 * target


def test_expected_error_of_draws_depends_on_the_number_of_records():
    model = classifier(mechanism=Sampler(omega=0.1))
    shares = [expected_error(model, n, 1.0).mean / n for n in (100, 1000)]
    assert shares[0] > 1.5 * shares[1] > 0


@pytest.mark.parametrize(("n_classes", "n_values"), [(2, 200), (30, 30), (2, 60)])
def test_simulated_counts_do_not_overflow_small_integers(n_classes, n_values, monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 2)
    wide = {"classes": range(n_classes), "n_bins": n_values, "mechanism": "map"}
    model = classifier(**wide, bounds=([0] * 5, [1] * 5))
    simulation = NetworkSimulation(model, 1000)
    drawn, counted = [], []
    sample, count = _simulation.ancestral_sample, CountTables.count
    monkeypatch.setattr(
        _simulation, "ancestral_sample", lambda *a: drawn.append(sample(*a)) or drawn[-1]
    )
    monkeypatch.setattr(CountTables, "count", lambda *a: counted.append(count(*a)) or counted[-1])
    assert np.isfinite(simulation.after_inference()).all()
    for records, counts in zip(drawn, counted, strict=True):
        cells = records[:, -1] * n_values + records[:, 0]
        exact = np.bincount(cells, minlength=n_classes * n_values)
        assert counts.tables[0].ravel().tolist() == exact.tolist()


def test_a_report_has_a_verdict_and_a_remedy():
    good, bad = report(classifier(), 10_000), report(classifier(), 20, 0.1)
    assert good.ratio < 0.1
    assert "without privacy" in good.verdict
    assert not good.remedy
    assert bad.ratio > 1
    assert "hardly more" in str(bad)
    wanted = float(bad.remedy.split("epsilon of at least ")[1].split(",")[0])
    assert report(classifier(), 20, wanted * 1.2).ratio < 0.3
    few, many = (report(regression(), n, spread=Spread(0.2, target=0.1)) for n in (100, 100_000))
    assert many.ratio < 0.2 < few.ratio
    assert "tighter bounds" in few.remedy


def test_how_many_records_of_a_person_should_count():
    def answer(n_persons, epsilon, **unit):
        model = classifier(epsilon=epsilon, privacy_unit=PrivacyUnit("person", **unit))
        return records_per_person(model, n_persons, range(1, 13))

    assert answer(300, 0.1) == 1
    assert 1 < answer(3000, 1.0) <= answer(3000, 1.0, neighbours="add_remove") <= 12
    assert answer(10**6, 1.0) == 12
    for wrong in ([], [0, 1], [10**6]):
        with pytest.raises(ValueError, match="numbers of records of some persons"):
            records_per_person(classifier(), 100, wrong)


def test_recommendation_is_the_smallest_error(monkeypatch):
    model = classifier(inference="plug_in")
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 10)
    best, errors, model_name = recommend(model, N, epsilon=1.0)
    assert set(errors) == {"laplace", "fourier", "sampler", "map"}
    assert errors[best] == min(errors.values())
    assert recommend(model, N, epsilon=1.0) == (best, errors, model_name)  # no chance in it
    assert recommend(regression(), 2000, epsilon=1.0).errors.keys() == errors.keys()


def test_recommendation_keeps_options_and_skips_the_impossible(monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 10)
    model = classifier(mechanism=Fourier(stealth=0.0), inference="plug_in")
    plain = recommend(classifier(inference="plug_in"), N, 1.0).errors
    with_options = recommend(model, N, 1.0).errors
    assert with_options["fourier"] < plain["fourier"]
    assert with_options["laplace"] == plain["laplace"]
    tiny = recommend(classifier(inference="plug_in"), 50, epsilon=1e-13)
    assert tiny.errors["sampler"] == math.inf
    assert tiny.errors["laplace"] < math.inf


def test_planning_spends_nothing(monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 4)
    accountant = BudgetAccountant(epsilon=0.001)
    model = classifier(accountant=accountant)
    with accountant:
        expected_error(model, N, 1.0)
        epsilon_for(model, N, 30.0)
        recommend(model, 100, 1.0)
        expected_error(regression(), 100, 1.0)
    assert len(accountant) == 0
    assert not hasattr(model, "posterior_")


def test_schemas_and_networks(monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 4)
    schema = Schema(
        {"age": Interval(0, 90, bins=4), "job": Categories(["a", "b", "c"])}, Categories([0, 1])
    )
    network = BayesianNetworkClassifier(parents={"job": ["age", "class"]}, schema=schema)
    assert expected_error(network, N, 1.0).mean == pytest.approx(6, rel=0.03)
    mixed = replace(schema.columns["age"], bins=None)
    linear = Schema({"age": mixed, "job": schema.columns["job"]}, Interval(0, 1))
    law = expected_error(BayesianLinearRegression(schema=linear), N, 1.0)
    assert law.of == "coefficients"
    assert len(law.errors) % 4 == 0  # one number, three levels


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (classifier(classes=None), "set bounds or schema, and classes"),
        (classifier(bounds=None), "set bounds or schema, and classes"),
        (classifier(bounds=(0, 1)), "give n_features"),
        (regression(bounds_y=None), "bounds_y"),
        (regression(bounds_X=None), "bounds_X or schema"),
        (classifier(epsilon=0), "epsilon"),
    ],
)
def test_what_is_not_declared_cannot_be_planned(estimator, message):
    with pytest.raises(ValueError, match=message):
        expected_error(estimator, N)


def test_number_of_features_given_or_of_an_earlier_fit():
    given = expected_error(classifier(bounds=(0, 1)), N, 1.0, n_features=D)
    fitted = classifier(bounds=(0, 1), random_state=0).fit(*classes_and_features(0))
    assert (
        given.mean
        == expected_error(fitted, N, 1.0).mean
        == expected_error(classifier(), N, 1.0).mean
    )


def test_unreachable_targets_are_said():
    with pytest.raises(ValueError, match="No epsilon"):
        epsilon_for(classifier(mechanism=Sampler(omega=0.4)), 50, 0.0)
    with pytest.raises(TypeError, match="must be a BayesianClassifier"):
        expected_error(Ridge(), N)


def test_no_noise_no_error():
    assert expected_error(classifier(), N, math.inf).mean == 0


def test_what_nobody_can_move_has_no_error():
    constant = classifier(bounds=None, schema=Schema({"a": Categories(["x"])}, Categories([0, 1])))
    constant.set_params(privacy_unit="feature", classes=None, n_bins="auto")
    assert expected_error(constant, N).mean == 0
    assert constant.utility_bound(0.1, n=N) == 0


@pytest.mark.parametrize("share", [0.1, 3.0])
def test_a_share_of_the_class_table_is_planned_with(share):
    model = classifier(mechanism=Laplace(budget_split=share), epsilon=0.5)
    planned = expected_error(model, N).mean
    assert planned == pytest.approx(count_errors(model), rel=0.1)
    assert planned != pytest.approx(expected_error(classifier(epsilon=0.5), N).mean, rel=0.1)


def test_utility_bound_of_a_fit_does_not_follow_later_options():
    X, y = classes_and_features(0)
    model = classifier(mechanism=Laplace(noise="independent")).fit(X, y)
    bound = model.utility_bound(delta=0.1)
    model.set_params(mechanism__noise="auto")
    assert model.utility_bound(delta=0.1) == bound > clone(model).utility_bound(delta=0.1, n=N)


def test_utility_bound_before_and_after_a_fit():
    for mechanism in ("laplace", "fourier", "sampler"):
        model = classifier(mechanism=mechanism, random_state=0)
        before = model.utility_bound(delta=0.1, n=N)
        X, y = classes_and_features(0)
        assert model.fit(X, y).utility_bound(delta=0.1) == before
        each = model.utility_bound(delta=0.05)
        model.partial_fit(X, y)  # two releases, each beyond its bound at half of delta
        assert each > before
        expected = each if mechanism == "sampler" else 2 * each  # draws are averaged
        assert model.utility_bound(delta=0.1) == pytest.approx(expected)
    with pytest.raises(ValueError, match="number n of records"):
        classifier().utility_bound()
    with pytest.raises(ValueError, match="no utility bound"):
        classifier(mechanism="map").utility_bound(n=N)
    assert classifier(epsilon=math.inf).utility_bound(n=N) == 0


HOSPITAL = Schema({"age": Interval(0, 110), "stay": Interval(0, 30)}, Interval(0, 20_000))


def test_planned_errors_of_narrow_columns_are_measured_within_a_factor_of_two():
    spread = Spread({"age": 15.0, "stay": 2.0}, target=2000.0)
    planned = expected_error(BayesianLinearRegression(3.0, schema=HOSPITAL), 4000, spread=spread)
    gaps = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(60, 15, 4000), rng.poisson(4, 4000)])
        y = 2000 + 30 * X[:, 0] + 650 * X[:, 1] + rng.normal(0, 1500, 4000)
        exact, private = (
            BayesianLinearRegression(epsilon, schema=HOSPITAL, random_state=seed)
            .fit(X, y)
            .coefficients()
            for epsilon in (math.inf, 3.0)
        )
        gaps.append([abs(private[k].estimate - exact[k].estimate) for k in ("age", "stay")])
    for name, gap in zip(("age", "stay"), np.mean(gaps, axis=0), strict=True):
        assert 0.5 < gap / planned.coefficients[name] < 2


def test_without_a_spread_a_regression_has_a_range_and_no_epsilon(monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 4)
    model = BayesianLinearRegression(schema=HOSPITAL)
    law = expected_error(model, 500, 3.0)
    low, high = law.range
    assert low < law.mean < high
    assert "give spread=" in repr(law)
    assert set(law.coefficients) == {"age", "stay"}
    given = expected_error(model, 500, 3.0, spread=Spread(0.1, target=0.1, correlation=0.5))
    assert given.range is None
    assert "median" in repr(given)
    with pytest.raises(ValueError, match=r"spread=planning.Spread"):
        epsilon_for(model, 500, 1.0)


def test_correlation_and_rare_levels_make_planned_errors_larger(monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn._simulation._REPEATS", 8)
    model = BayesianLinearRegression(schema=HOSPITAL)
    loose, tied = (
        expected_error(model, 4000, 3.0, spread=Spread(0.1, 0.1, correlation)).mean
        for correlation in (0.0, 0.95)
    )
    assert tied > 1.5 * loose
    schema = Schema({"ward": Categories([*"abc"])}, Interval(0, 1))
    even, rare = (
        expected_error(
            BayesianLinearRegression(schema=schema), 4000, 3.0, spread=Spread(shares, 0.1)
        ).coefficients["ward=c"]
        for shares in ({}, {"ward": [0.5, 0.49, 0.01]})
    )
    assert rare > 1.5 * even


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.1), "positive"),
        (({"age": 1.0, "stay": float("nan")}, 0.1), "positive"),
        ((0.1, 0.1, 1.0), "correlation"),
        (({"age": 1.0}, 0.1), "missing: .*stay"),
        (({"age": 1.0, "stay": 1.0, "x": 1.0}, 0.1), "Unknown: .*x"),
        (({"age": 1.0, "stay": [1.0, 2.0]}, 0.1), "one number"),
    ],
)
def test_spreads_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        expected_error(BayesianLinearRegression(schema=HOSPITAL), 100, spread=Spread(*arguments))


def test_only_regressions_have_a_spread():
    with pytest.raises(ValueError, match="Only the errors of a linear regression"):
        expected_error(classifier(), N, 1.0, spread=Spread(0.1, 0.1))


@pytest.mark.parametrize("kind", [BayesianNaiveBayes, BayesianLogisticRegression])
def test_the_report_of_a_classifier_falls_with_epsilon(kind):
    model = kind(classes=[0, 1], bounds=([0.0] * 10, [1.0] * 10))
    grid = np.geomspace(0.01, 10, 25)
    ratios = [report(model, 600, float(epsilon)).ratio for epsilon in grid]
    assert (np.diff(ratios) < 0).all()


def test_a_rare_class_needs_more_records():
    for model in (classifier(), BayesianLogisticRegression(classes=[0, 1], bounds=([0] * 4, 1))):
        even, rare = (report(model, 500, class_shares=s) for s in ([0.5, 0.5], [0.02, 0.98]))
        assert even.ratio == report(model, 500).ratio
        assert rare.ratio > 10 * even.ratio
        assert "class_shares" in str(report(model, 500))
        assert "class_shares" not in str(rare)
    for wrong in ([0.5], [0.5, 0.6], [0.0, 1.0], [0.2, 0.3, 0.5]):
        with pytest.raises(ValueError, match="class_shares must be 2 positive numbers"):
            report(classifier(), 500, class_shares=wrong)


def test_a_report_says_whether_there_will_be_intervals():
    rng = np.random.default_rng(0)
    for n, intervals in ((3000, "auto"), (3000, True), (100_000, "auto")):
        model = BayesianLogisticRegression(
            10.0, classes=[0, 1], bounds=(-3, 3), effects="linear", intervals=intervals
        )
        X = rng.normal(size=(n, 1))
        fitted = model.fit(X, (X[:, 0] + rng.normal(size=n) > 0).astype(int))
        some = not fitted.coefficients().no_intervals
        assert ("will have intervals" in str(report(model, n, n_features=1))) is some
