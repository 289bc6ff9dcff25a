"""BayesianCountRegression as an estimator: checks, honesty, containers, files and refusals."""

from __future__ import annotations

import json
import math
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from dpbayes_sklearn import (
    BayesianCountRegression,
    BudgetAccountant,
    Categories,
    ForestDisplay,
    Interval,
    PrivacyLeakWarning,
    PrivacyUnit,
    Schema,
    from_json,
)
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from tests.contracts import EstimatorContract

RNG = np.random.default_rng(0)
N = 6000
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(20, 80, N),
        "area": RNG.choice(["town", "land"], N),
        "years": RNG.uniform(0.5, 4, N),
    }
)
RATE = np.exp(-0.5 + 0.02 * (FRAME.age - 50) + 0.5 * (FRAME.area == "land"))
VISITS = RNG.poisson(FRAME.years * RATE).astype(float)
SCHEMA = Schema(
    {
        "age": Interval(20, 80),
        "area": Categories(["town", "land"]),
        "years": Interval(0.5, 4),
    },
    target=Interval(0, 8),
)
ADDED = PrivacyUnit(neighbours="add_remove")


def model(epsilon=3.0, **options):
    given = {"schema": SCHEMA, "exposure": "years", "random_state": 0, **options}
    return BayesianCountRegression(epsilon, **given)


@pytest.mark.oldest
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@parametrize_with_checks([BayesianCountRegression(), BayesianCountRegression(bounds=(-5, 5))])
def test_scikit_learn_checks(estimator, check) -> None:
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


def test_parameters_are_validated() -> None:
    check_param_validation("BayesianCountRegression", BayesianCountRegression())


def newton(counts):
    """Return coefficients and White's errors of the same loss, by Newton's method."""
    x = np.column_stack([np.ones(N), FRAME.age - 50, FRAME.area == "land"])
    offset, w, cap = np.log(FRAME.years.to_numpy() / 8), np.zeros(3), 8.0
    for _ in range(60):
        q = 1 / (1 + np.exp(-(x @ w + offset)))
        r, bent = (counts + cap) * q - counts, (counts + cap) * q * (1 - q)
        hessian = x.T @ (bent[:, None] * x)
        w = w - np.linalg.solve(hessian, x.T @ r)
    inverse = np.linalg.inv(hessian)
    return w, np.sqrt(np.diag(inverse @ (x.T @ (r[:, None] ** 2 * x)) @ inverse))


def test_without_privacy_it_is_the_capped_negative_binomial_regression() -> None:
    w, errors = newton(np.minimum(VISITS, 8))
    found = model(math.inf, prior_precision=1e-6).fit(FRAME, VISITS).coefficients()
    rows = [found[name] for name in ("age", "area=land")]
    assert np.allclose([row.estimate for row in rows], w[1:], rtol=0.01)
    assert np.allclose([row.sd for row in rows], errors[1:], rtol=0.2)


def test_private_intervals_hold_the_exact_coefficients_and_say_of_what() -> None:
    exact = model(math.inf).fit(FRAME, VISITS).coefficients()
    for seed in range(6):
        found = model(random_state=seed).fit(FRAME, VISITS).coefficients()
        for one, other in zip(exact.rows, found.rows, strict=True):
            assert other.low - other.sd < one.estimate < other.high + other.sd
            assert other.sd >= 0.8 * one.sd
    assert "counts clipped at 8" in repr(found)
    assert "rate ratio" in found.heads
    assert "rate_ratio_low" in found.to_frame()


def test_few_large_counts_widen_intervals_as_without_privacy() -> None:
    bursts = np.where(RNG.random(N) < 0.01, 90, VISITS)
    schema = Schema(SCHEMA.columns, Interval(0, 100))
    exact, found = (
        model(epsilon, schema=schema).fit(FRAME, bursts).coefficients()["area=land"]
        for epsilon in (math.inf, 30.0)
    )
    assert found.identified
    assert 0.7 * exact.sd < found.sampling_sd < 1.5 * exact.sd


def test_what_the_noise_hides_is_not_identified() -> None:
    found = model(0.05, intervals=True).fit(FRAME, VISITS).coefficients()
    assert not any(row.identified for row in found.rows)
    assert "Not identified" in found.remark
    assert "Estimates only" in model(0.05).fit(FRAME, VISITS).coefficients().remark


def test_predictions_are_means_of_clipped_counts() -> None:
    fitted = model().fit(FRAME, VISITS)
    predicted = fitted.predict(FRAME)
    assert abs(predicted.mean() / np.minimum(VISITS, 8).mean() - 1) < 0.05
    twice = fitted.predict(FRAME.assign(years=1.0)) * 2
    assert np.allclose(fitted.predict(FRAME.assign(years=2.0)), twice, rtol=1e-3)
    parts = fitted.contributions(FRAME[:50])
    assert np.allclose(np.exp(parts.total), predicted[:50])
    assert fitted.effect("age").low.shape == fitted.effect("age").value.shape


def test_a_forest_of_rate_ratios() -> None:
    display = ForestDisplay.from_estimator(model().fit(FRAME, VISITS), ax=Figure().subplots())
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "rate ratio"
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["age", "area=land"]


@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
def test_private_scores_are_of_clipped_counts() -> None:
    ledger = BudgetAccountant(epsilon=10)
    fitted = model().fit(FRAME, VISITS)
    error = mean_absolute_error(VISITS.clip(max=8), fitted.predict(FRAME))
    found = private_score(fitted, FRAME, VISITS, scoring=["mae", "r2"], epsilon=math.inf)
    assert found["mae"].value == pytest.approx(error)
    assert found.cut is None
    asked = {"scoring": "mae", "epsilon": 3.0, "random_state": 0, "accountant": ledger}
    found = private_score(fitted, FRAME, VISITS, **asked)
    assert found["mae"].low < error < found["mae"].high
    assert found["mae"].noise_std < 0.1
    folds = private_cross_validate(model(random_state=None), FRAME, VISITS, cv=2, **asked)
    assert folds["mae"].value == pytest.approx(error, abs=0.3)
    assert ledger.total().epsilon == 9.0


@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
def test_the_score_is_the_explained_deviance() -> None:
    exact, private = model(math.inf).fit(FRAME, VISITS), model().fit(FRAME, VISITS)
    best = exact.score(FRAME, VISITS)
    assert 0.1 < best < 1
    assert best - 0.02 < private.score(FRAME, VISITS) <= best + 1e-3
    assert exact.score(FRAME, np.where(VISITS > 7, 1e6, VISITS)) > best - 0.05


class TestBayesianCountRegression(EstimatorContract):
    X, y = FRAME, VISITS

    def make(self, **options):
        return BayesianCountRegression(schema=SCHEMA, exposure="years", **options)

    def answer(self, model):
        return model.predict(FRAME)


@pytest.mark.parametrize("unit", ["record", ADDED, PrivacyUnit("person", max_records=2)], ids=str)
def test_a_fit_is_charged_as_planned_for_every_unit(unit) -> None:
    groups = np.arange(N) // 2 if unit not in ("record", ADDED) else None
    ledger = BudgetAccountant()
    own = model(1.0, privacy_unit=unit, accountant=ledger)
    planned = own.plan(n=N)
    own.fit(FRAME, VISITS, groups=groups)
    assert ledger.total().epsilon == float(planned.cost.epsilon) == own.guarantee_.epsilon == 1


def test_json_gives_the_same_model() -> None:
    for own in (model(), model(math.inf), model(intervals=False, effects="smooth")):
        fitted = own.fit(FRAME, VISITS)
        again = from_json(fitted.to_json())
        assert repr(again.coefficients()) == repr(fitted.coefficients())
        assert np.array_equal(again.predict(FRAME), fitted.predict(FRAME))
        assert "cap" in fitted.card()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda fitted: fitted["posterior_"].update(cap=9.0),
        lambda fitted: fitted["posterior_"]["scores"].update(shape=[1, 1], data=[1.0]),
        lambda fitted: fitted["schema_"].update(target={"low": 0.0, "high": 9.0}),
        lambda fitted: fitted["posterior_"]["parameters"].update(shape=[1], data=[0.0]),
    ],
)
def test_json_of_another_model_is_refused(wrong) -> None:
    content = json.loads(model().fit(FRAME, VISITS).to_json())
    wrong(content["fitted"])
    with pytest.raises(ValueError, match="fitted"):
        from_json(json.dumps(content))


def test_containers_agree() -> None:
    own = model().fit(FRAME, VISITS).predict(FRAME)
    named = FRAME.assign(visits=VISITS)
    for data, options in (
        ((pl.from_pandas(FRAME), VISITS), {}),
        ((named,), {"target": "visits"}),
        ((pl.from_pandas(named).lazy(),), {"target": "visits"}),
    ):
        assert np.array_equal(model().fit(*data, **options).predict(FRAME), own)


def test_missing_counts_add_nothing_and_odd_ones_are_clipped() -> None:
    odd = np.append(VISITS, [np.nan, -5.0, 1e300])
    more = pd.concat([FRAME, FRAME[:3]], ignore_index=True)
    kept = np.append(VISITS, [0.0, 8.0])
    exact = [
        model(math.inf).fit(X, y).coefficients()["age"].estimate
        for X, y in ((more, odd), (more.drop(index=N), kept))
    ]
    assert exact[0] == pytest.approx(exact[1], rel=1e-9)


def test_an_undeclared_cap_is_a_leak() -> None:
    with pytest.warns(PrivacyLeakWarning, match="largest count"):
        own = BayesianCountRegression(bounds=(0, 80)).fit(FRAME[["age"]], VISITS)
    assert own.cap_ == VISITS.max()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"schema": Schema(SCHEMA.columns, Interval(0, 2.5))}, "whole cap"),
        ({"schema": Schema(SCHEMA.columns, Interval(1, 3))}, "whole cap"),
        ({"schema": Schema(SCHEMA.columns, Categories([0, 1]))}, "whole cap"),
        ({"exposure": "months"}, "feature must be"),
        ({"exposure": "area"}, "positive low end"),
        (
            {"schema": Schema({**SCHEMA.columns, "years": Interval(0, 4)}, Interval(0, 8))},
            "low end",
        ),
    ],
)
def test_other_declarations_are_refused_before_the_charge(options, match) -> None:
    ledger = BudgetAccountant()
    own = clone(model()).set_params(**options).set_params(accountant=ledger)
    with pytest.raises(ValueError, match=match):
        own.fit(FRAME, VISITS)
    assert not len(ledger)
