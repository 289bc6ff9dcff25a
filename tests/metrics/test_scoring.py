"""Private evaluation: exact values without privacy, one charge, and nothing else."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import metrics as exact

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    BudgetError,
    Interval,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.metrics.intervals import Noisy, auc, ratio
from dpbayes_sklearn.metrics.plan import plan
from dpbayes_sklearn.metrics.scoring import _folds
from dpbayes_sklearn.metrics.statistics import Classification
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy import exact as read

INF = float("inf")
SCALARS = ("accuracy", "balanced_accuracy", "log_loss", "brier_score", "roc_auc")
ALL = (*SCALARS, "calibration_curve", "confusion_matrix")
ADDED = PrivacyUnit(neighbours="add_remove")


@cache
def classifier(n_classes=2, unit=None):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 2000)
    X = rng.normal(0, 1, (2000, 4)) + 0.7 * y[:, None]
    declared = {"classes": range(n_classes), "bounds": (-3, 5), "n_bins": 6}
    model = BayesianNaiveBayes(2.0, privacy_unit=unit or "record", random_state=0, **declared)
    groups = np.arange(1000) if getattr(unit, "name", "") == "person" else None
    return model.fit(X[:1000], y[:1000], groups=groups), X[1000:], y[1000:]


@cache
def regression():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (3000, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=3000)
    model = BayesianLinearRegression(bounds_X=(0, 10), bounds_y=(-25, 20), random_state=0)
    return model.fit(X[:1500], y[:1500]), X[1500:], y[1500:]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_privacy_metrics_are_those_of_scikit_learn(n_classes):
    model, X, y = classifier(n_classes)
    names = ALL if n_classes == 2 else tuple(name for name in ALL if name != "roc_auc")
    found = private_score(model, X, y, scoring=names, epsilon=INF, least_probability=1e-9)
    p, guess = model.predict_proba(X), model.predict(X)
    truth = {
        "accuracy": exact.accuracy_score(y, guess),
        "balanced_accuracy": exact.balanced_accuracy_score(y, guess),
        "log_loss": exact.log_loss(y, p),
        "brier_score": np.square(p - np.eye(n_classes)[y]).sum(axis=1).mean()
        / (2 if n_classes == 2 else 1),
        "roc_auc": exact.roc_auc_score(y, p[:, 1]) if n_classes == 2 else None,
    }
    for name in set(SCALARS) & set(names):
        assert found[name].value == pytest.approx(truth[name], abs=1e-5), name
        assert found[name].low < truth[name] < found[name].high
        assert found[name].noise_std == 0 < found[name].sampling_std
    assert (found["confusion_matrix"].value == exact.confusion_matrix(y, guess)).all()
    curve = found["calibration_curve"]
    assert curve.n_records.sum() == len(y)
    assert (curve.n_records * curve.accuracy).sum() == pytest.approx((guess == y).sum())
    assert not found.guarantee.is_private


def test_without_privacy_a_regression_has_the_usual_metrics():
    model, X, y = regression()
    options = {"epsilon": INF, "largest_error": 100.0}
    found = private_score(model, X, y, scoring=["r2", "rmse", "mae"], **options)
    guess = model.predict(X)
    assert found["r2"].value == pytest.approx(exact.r2_score(y, guess), abs=1e-5)
    assert found["rmse"].value == pytest.approx(math.sqrt(np.mean((y - guess) ** 2)), abs=1e-3)
    assert found["mae"].value == pytest.approx(np.abs(y - guess).mean(), abs=1e-4)


@pytest.mark.parametrize("declared", [0.5, None])
def test_large_errors_are_clipped_as_declared_or_at_four_standard_deviations(declared):
    model, X, y = regression()
    y[:100] = y.max()  # errors beyond
    found = private_score(model, X, y, scoring="mae", epsilon=INF, largest_error=declared)
    sd = math.sqrt(model.posterior_.noise_variance) * model._scale.half
    errors = np.abs(y - model.predict(X))
    largest = 4 * sd if declared is None else declared
    assert errors.max() > largest
    assert found["mae"].value == pytest.approx(np.minimum(errors, largest).mean(), abs=1e-4)


def skewed(scale=1.0):
    """Return a regression of costs, a tenth of which are far above what is predicted."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (6000, 2))
    y = scale * np.minimum(np.exp(X @ [2.0, 1.0] + rng.normal(0, 1.0, 6000)), 100.0)
    model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 100 * scale), random_state=0)
    return model.fit(X[:3000], y[:3000]), X[3000:], y[3000:]


def test_errors_and_the_variance_of_the_target_are_cut_at_the_same_place():
    model, X, y = skewed()
    found = private_score(model, X, y, scoring=["r2", "rmse", "mae"], epsilon=INF)
    guess, largest = np.clip(model.predict(X), 0, 100), found.largest_error
    moved = guess + np.clip(y - guess, -largest, largest)
    assert found["r2"].value == pytest.approx(exact.r2_score(moved, guess), abs=1e-5)
    assert found["rmse"].value == pytest.approx(math.sqrt(np.mean((moved - guess) ** 2)), rel=1e-5)
    assert found["mae"].value == pytest.approx(np.abs(moved - guess).mean(), rel=1e-5)
    assert found.cut.value == np.mean(np.abs(y - guess) > largest) > 0.01
    assert "share of errors cut" in repr(found)
    assert f"Errors are cut at {largest:.4g}" in found.sentence
    assert found.to_dict()["cut"]["value"] == found.cut.value
    whole = private_score(model, X, y, scoring="r2", epsilon=INF, largest_error=100.0)
    assert whole["r2"].value == pytest.approx(exact.r2_score(y, guess), abs=1e-5)
    assert whole.cut is None
    assert "cut" not in whole.sentence


@pytest.mark.parametrize("unit", ["record", ADDED], ids=str)
def test_the_share_that_is_cut_is_released_within_the_budget(unit):
    model, X, y = skewed()
    ledger = BudgetAccountant(epsilon=2.0)
    asked = {"scoring": "rmse", "epsilon": 2.0, "privacy_unit": unit, "accountant": ledger}
    found = private_score(model, X, y, random_state=0, **asked)
    share = np.mean(np.abs(y - model.predict(X)) > found.largest_error)
    assert ledger.total().epsilon == found.guarantee.epsilon == 2
    assert found.cut.noise_std > 0
    assert found.cut.value != share
    assert found.cut.low < share < found.cut.high


@pytest.mark.parametrize("scale", [1e-280, 1e-170, 1e-9, 1e9, 1e160, 1e300])
def test_metrics_do_not_depend_on_the_unit_of_the_target(scale):
    """Squares of such numbers are no floats, and a mean of them is above the largest ratio."""
    asked = {"scoring": ["r2", "rmse", "mae"], "epsilon": 1.0, "random_state": 0}
    one, other = (private_score(*skewed(by), **asked) for by in (1.0, scale))
    assert other["r2"].value == pytest.approx(one["r2"].value, rel=1e-3)
    for name in ("rmse", "mae"):
        for end in ("value", "low", "high", "noise_std"):
            in_units = getattr(other[name], end) / scale
            assert in_units == pytest.approx(getattr(one[name], end), rel=1e-3), (name, end)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("unit", [None, ADDED], ids=str)
def test_several_metrics_are_one_charge(unit, delta):
    model, X, y = classifier(unit=unit)
    ledger = BudgetAccountant(epsilon=1.0, delta=2 * delta)
    found = private_score(model, X, y, scoring=ALL, epsilon=0.7, delta=delta, accountant=ledger)
    (entry,) = ledger
    assert (entry.epsilon, entry.delta) == (0.7, delta)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (0.7, delta)
    assert found.guarantee.mechanism == ("gaussian" if delta else "laplace")
    assert entry.rho == found.guarantee.rho
    assert list(found) == list(ALL)
    with pytest.raises(BudgetError):
        private_score(model, X, y, scoring=ALL, epsilon=0.7, delta=delta, accountant=ledger)
    assert len(ledger) == 1


def test_the_models_ledger_is_charged_by_default():
    model, X, y = classifier()
    ledger = BudgetAccountant(epsilon=2.0)
    with ledger:
        private_score(model, X, y, scoring="accuracy", epsilon=0.5)
    assert ledger.total().epsilon == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "mae"}, "scoring must be among accuracy"),
        ({"scoring": []}, "at least one metric"),
        ({"epsilon": 0}, "epsilon must be in the range"),
        ({"epsilon": -1}, "must not be negative"),
        ({"epsilon": 1e-12}, "would not fit into 64 bits"),
        ({"delta": 1}, "delta in"),
        ({"level": 1.0}, "'level' parameter of private_score"),
        ({"least_probability": 0}, "'least_probability' parameter"),
        ({"privacy_unit": "feature"}, "'privacy_unit' parameter"),
        ({"groups": np.zeros(1000)}, "groups says whose record"),
        ({"target": "ill"}, "not both"),
        ({"y": None}, "requires y to be passed"),
        ({"y": None, "target": "ill"}, "X must have one column 'ill'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_before_the_charge(options, message):
    model, X, y = classifier()
    ledger = BudgetAccountant(epsilon=2.0)
    asked = {"y": y, "scoring": "accuracy", "epsilon": 1.0, "accountant": ledger, **options}
    with pytest.raises(ValueError, match=message):
        private_score(model, X, **asked)
    assert len(ledger) == 0


def test_errors_that_floats_cannot_tell_apart_are_refused_before_the_charge():
    model, X, y = regression()
    ledger = BudgetAccountant(epsilon=2.0)
    for largest in (0.0, 1e-20, float("nan")):
        asked = {"largest_error": largest, "accountant": ledger}
        with pytest.raises(ValueError, match="'largest_error' parameter of private_score"):
            private_score(model, X, y, scoring="r2", epsilon=1.0, **asked)
    assert len(ledger) == 0


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_what_is_said_about_a_record_has_the_same_bits_without_the_others(n_classes):
    """The sensitivity rests on it: no record may change the bin or the loss of another."""
    model, X, _ = classifier(n_classes)
    together = model.predict_proba(X)
    for size in (1, 10, 70):
        apart = [model.predict_proba(X[i : i + size]) for i in range(0, 140, size)]
        np.testing.assert_array_equal(np.vstack(apart), together[:140])
    np.testing.assert_array_equal(model.predict_proba(X[::-1])[::-1], together)


def test_a_logistic_regression_is_evaluated():
    _, X, y = classifier()
    model = BayesianLogisticRegression(1.0, classes=[0, 1], bounds=(-3, 5)).fit(X, y)
    found = private_score(model, X, y, scoring=("accuracy", "roc_auc"), epsilon=INF)
    assert found["accuracy"].value == pytest.approx(model.score(X, y), abs=1e-9)
    together = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[5:6]), together[5:6])
    np.testing.assert_array_equal(model.predict_proba(X[::-1])[::-1], together)


def test_other_models_are_refused():
    from sklearn.linear_model import LogisticRegression

    _, X, y = classifier()
    other = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="classifier or regression of this library"):
        private_score(other, X, y, scoring="accuracy", epsilon=1.0)
    with pytest.raises(ValueError, match="roc_auc is for two classes"):
        private_score(*classifier(3), scoring="roc_auc", epsilon=1.0)


def test_a_search_is_evaluated_by_its_winner():
    model, X, y = classifier()
    search = PrivateSearchCV(model, {"alpha": [0.5, 1.0]}, epsilon=3.0, random_state=0).fit(X, y)
    found = private_score(search, X, y, scoring="accuracy", epsilon=INF)
    assert found["accuracy"].value == pytest.approx(search.best_estimator_.score(X, y), abs=1e-9)


def test_nobody_may_be_there_if_the_number_is_secret():
    model, X, y = classifier(unit=ADDED)
    found = private_score(model, X[:0], y[:0], scoring=ALL, epsilon=1.0)
    for name in SCALARS:
        assert found[name].low <= found[name].value <= found[name].high
    assert math.isfinite(found["log_loss"].value)


def test_records_of_a_person_beyond_the_limit_do_not_count():
    model, X, y = classifier(unit=PrivacyUnit("person", max_records=2))
    groups = np.arange(len(y)) // 5
    found = private_score(model, X, y, scoring="accuracy", epsilon=INF, groups=groups)
    assert found.n_records == 2 * len(y) / 5
    assert "is public" in found.guarantee.conditions[-1]


def test_frames_by_name_and_texts_in_numbers_columns():
    schema = Schema({"a": Interval(-3, 5, bins=4), "b": Interval(-3, 5, bins=4)})
    _, X, y = classifier()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    model = BayesianNaiveBayes(1.0, schema=schema, classes=[0, 1]).fit(frame, y)
    exact = {"scoring": "accuracy", "epsilon": INF}
    found = private_score(model, frame, y, **exact)["accuracy"].value
    assert private_score(model, frame[["b", "a"]], y, **exact)["accuracy"].value == found
    with pytest.raises(ValueError, match="feature names"):
        private_score(model, frame.rename(columns={"b": "c"}), y, **exact)


@pytest.mark.parametrize("evaluate", [private_score, private_cross_validate])
def test_the_target_and_the_groups_may_be_columns(evaluate):
    schema = Schema({"a": Interval(-3, 5, bins=4), "b": Interval(-3, 5, bins=4)})
    _, X, y = classifier()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    whole, who = frame.assign(ill=y, person=np.arange(len(y)) // 2), np.arange(len(y)) // 2
    unit = PrivacyUnit("person", max_records=2)
    model = BayesianNaiveBayes(1.0, schema=schema, classes=[0, 1], privacy_unit=unit)
    if evaluate is private_score:
        model.fit(whole, target="ill", groups="person")
    asked = {"scoring": "accuracy", "epsilon": 1.0, "random_state": 0}
    apart = evaluate(model, frame, y, groups=who, **asked)
    for X in (whole, pa.table(whole)):
        together = evaluate(model, X, target="ill", groups="person", **asked)
        assert together["accuracy"] == apart["accuracy"]


def test_seeds_are_a_condition_and_repeat():
    model, X, y = classifier()
    asked = {"scoring": "accuracy", "epsilon": 0.5, "random_state": 3}
    first, second = (private_score(model, X, y, **asked) for _ in range(2))
    assert first["accuracy"] == second["accuracy"]
    assert any("random_state" in c for c in first.guarantee.conditions)


def test_it_shows_itself():
    model, X, y = classifier()
    found = private_score(model, X, y, scoring=ALL, epsilon=1.0)
    assert "balanced_accuracy" in repr(found)
    assert "error by noise" in found._repr_html_()
    assert found.to_dict()["scores"]["accuracy"]["value"] == float(found["accuracy"])
    for form in ("markdown", "html"):
        card = model.card(form, evaluation=found)
        assert "Private evaluation" in card
        assert "private_score" not in card
    assert "private_score" in model.card()


@pytest.mark.parametrize("unit", ["record", PrivacyUnit("person", max_records=2), ADDED], ids=str)
def test_a_cross_validation_costs_all_its_fits(unit):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = (rng.random((600, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
    groups = np.arange(600) // 2 if getattr(unit, "name", unit) == "person" else None
    options = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, "privacy_unit": unit}
    ledger = BudgetAccountant(epsilon=5.0)
    found = private_cross_validate(
        BayesianNaiveBayes(0.5, **options),
        X,
        y,
        scoring=["accuracy", "log_loss"],
        epsilon=1.0,
        cv=4,
        groups=groups,
        accountant=ledger,
    )
    assert ledger.total().epsilon == found.guarantee.epsilon == 2.5
    assert len(ledger) == 1
    assert len(found.models) == 4
    assert {model.guarantee_.epsilon for model in found.models} == {0.5}
    assert found["accuracy"].low < 0.9


@pytest.mark.parametrize("persons", [5, 8])
def test_no_cross_validation_of_few_persons_fails_by_chance(persons):
    rng, unit = np.random.default_rng(0), PrivacyUnit("person", max_records=4)
    who = np.repeat(np.arange(persons), rng.integers(1, 9, persons))
    X, y = rng.integers(0, 2, (len(who), 2)), rng.integers(0, 2, len(who))
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2, privacy_unit=unit)
    for seed in range(20):
        found = private_cross_validate(
            model, X, y, groups=who, scoring="accuracy", epsilon=1.0, random_state=seed
        )
        assert found.n_records == np.minimum(np.bincount(who), 4).sum()


def test_as_many_persons_are_in_every_fold_each_in_one():
    who, unit = np.repeat(np.arange(13), 3), PrivacyUnit("person", max_records=3)
    seen = set()
    for seed in range(20):
        fold = _folds(len(who), who, unit, 5, Noise.of(seed))
        assert (fold.reshape(13, 3) == fold[::3, None]).all()
        assert sorted(np.bincount(fold[::3])) == [2, 2, 3, 3, 3]
        seen.add(tuple(fold))
    assert len(seen) == 20


@pytest.mark.parametrize("who", [np.zeros(60), np.repeat([0, 1, 2, 3], 15)], ids=["one", "four"])
def test_too_few_persons_for_the_folds_are_refused_before_the_charge(who):
    ledger, unit = BudgetAccountant(epsilon=5.0), PrivacyUnit("person", max_records=10)
    model = BayesianNaiveBayes(0.5, classes=[0, 1], bounds=(0, 1), privacy_unit=unit)
    X, y = np.zeros((60, 2)), np.arange(60) % 2
    asked = {"groups": who, "scoring": "accuracy", "epsilon": 1.0, "accountant": ledger}
    with pytest.raises(ValueError, match="fewer persons than folds"):
        private_cross_validate(model, X, y, **asked)
    sizes = np.repeat([*range(6)], [45, 3, 3, 3, 3, 3])  # 10 and 3 of each count, in 2 folds
    model.set_params(privacy_unit=PrivacyUnit("person", max_records=20))
    with pytest.raises(ValueError, match="may be more than the records of 1 of 2 folds"):
        private_cross_validate(model, X, y, **{**asked, "groups": sizes}, cv=2)
    assert len(ledger) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"privacy_unit": "feature"}, "protects records or persons"),
        ({"privacy_unit": PrivacyUnit("person", max_records=2)}, "give groups"),
        ({"bounds": None}, "needs declared domains"),
        ({"classes": None}, "needs declared domains"),
    ],
    ids=str,
)
def test_a_cross_validation_is_refused_before_the_charge(change, message):
    _, X, y = classifier()
    ledger = BudgetAccountant(epsilon=5.0)
    model = BayesianNaiveBayes(0.5, **{"classes": [0, 1], "bounds": (0, 1), **change})
    with pytest.raises(ValueError, match=message):
        private_cross_validate(model, X, y, scoring="accuracy", epsilon=1.0, accountant=ledger)
    good = BayesianNaiveBayes(0.5, classes=[0, 1], bounds=(0, 1))
    with pytest.raises(ValueError, match="scoring must be among"):
        private_cross_validate(good, X, y, scoring="r2", epsilon=1.0, accountant=ledger)
    assert len(ledger) == 0


def test_a_ratio_whose_denominator_is_hidden_may_be_anything():
    rng = np.random.default_rng(0)
    top, bottom = (Noisy(value, rng.normal(0, 50, 4000)) for value in (20.0, 30.0))
    score = ratio(top, bottom, lambda a: 1.0, (0.0, 1.0), 0.95)
    assert (score.low, score.high) == (0.0, 1.0)


def test_the_area_of_exact_counts():
    counts = np.array([[5.0, 1.0], [3.0, 2.0], [1.0, 6.0]])
    scores = np.repeat([0, 0, 1, 1, 2, 2], counts.ravel().astype(int))
    labels = np.repeat([0, 1] * 3, counts.ravel().astype(int))
    assert auc(counts, 0.0, 0.0, 0.95).value == pytest.approx(exact.roc_auc_score(labels, scores))


@pytest.mark.parametrize(
    ("epsilon", "n"), [(0.1, 500), (1.0, 500), (0.1, 20_000), (1.0, 20_000)], ids=str
)
def test_intervals_cover_the_truth(epsilon, n):
    """In short; ``benchmarks.accuracy.private_scores`` has all metrics and 1,000 repeats."""
    from dpbayes_sklearn.metrics.statistics import Labelled
    from dpbayes_sklearn.noise import Noise

    rng = np.random.default_rng(0)
    planned = plan(Classification(2, 0.01), ("accuracy", "brier_score"), Budget(read(epsilon)), n)
    hits, repeats = np.zeros(2), 150
    for _ in range(repeats):
        p = rng.choice([0.05, 0.2, 0.7, 0.95], n)
        truth = (rng.random(n) < p).astype(int)
        proba = np.stack([1 - p, p], axis=1)
        released = planned.release(Labelled(truth, proba.argmax(axis=1), proba), Noise.of())
        right = np.mean([0.95, 0.8, 0.7, 0.95])
        brier = np.mean([x * (1 - x) for x in (0.05, 0.2, 0.7, 0.95)])
        for j, (name, value) in enumerate((("accuracy", right), ("brier_score", brier))):
            score = released.score(name, 0.95)
            hits[j] += score.low <= value <= score.high
    assert (hits >= 0.88 * repeats).all(), hits
