"""Regressions and correlations of one release, as users ask for them."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpbayes_sklearn import (
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyLeakWarning,
    PrivacyUnit,
    PrivateMoments,
    Schema,
    from_json,
)
from tests.contracts import EstimatorContract

SCHEMA = Schema(
    {
        "age": Interval(15, 70),
        "sex": Categories(["f", "m"]),
        "job": Categories([*"abc"]),
        "pay": Interval(0, 80),
        "visits": Interval(0, 10, missing="indicator"),
    }
)


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(20, 60, n), "sex": rng.choice(["f", "m"], n)})
    frame["job"] = rng.choice([*"abc"], n)
    frame["pay"] = 10 + 0.5 * frame["age"] + 3.0 * (frame["sex"] == "m") + rng.normal(0, 5, n)
    frame["visits"] = rng.poisson(3, n).clip(0, 10).astype(float)
    frame.loc[rng.random(n) < 0.1, "visits"] = np.nan
    return frame


def least_squares(frame, target, columns):
    parts = {
        "age": [frame["age"]],
        "sex": [frame["sex"] == "m"],
        "job": [frame["job"] == "b", frame["job"] == "c"],
        "pay": [frame["pay"]],
        "visits": [frame["visits"].fillna(5.0), frame["visits"].isna()],
    }
    x = np.column_stack([np.ones(len(frame)), *(p for c in columns for p in parts[c])])
    y = parts[target][0].to_numpy(float)
    w = np.linalg.lstsq(x.astype(float), y, rcond=None)[0]
    return w, 1 - np.var(y - x.astype(float) @ w) / np.var(y)


@pytest.fixture(scope="module")
def exact():
    return PrivateMoments(float("inf"), schema=SCHEMA, random_state=0).fit(people())


@pytest.fixture(scope="module")
def private():
    return PrivateMoments(2.0, schema=SCHEMA, random_state=0).fit(people(20_000))


@pytest.mark.parametrize("epsilon", [float("inf"), 1e6])
@pytest.mark.parametrize("value", [0.5, 3.0])
def test_without_noise_a_constant_column_hides_no_other(epsilon, value):
    X = np.random.default_rng(0).normal(size=(500, 3)).clip(-3, 3)
    X[:, 0], X[:, 2] = value, (X[:, 2] + X[:, 1]).clip(-3, 3)
    fitted = PrivateMoments(epsilon, bounds=(-3, 3), random_state=0).fit(X)
    slope = fitted.regress(2, on=[1]).table["x1"].estimate
    assert slope == pytest.approx(np.polyfit(X[:, 1], X[:, 2], 1)[0], abs=0.01)
    found = fitted.correlations().to_frame()
    assert found["estimate"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize("X", [np.full((50, 3), 0.5), np.zeros((0, 3))], ids=["alike", "none"])
def test_of_records_that_are_alike_no_correlation_is_told(X):
    unit = PrivacyUnit(neighbours="add_remove")
    fitted = PrivateMoments(np.inf, bounds=(-3, 3), privacy_unit=unit, random_state=0).fit(X)
    for given in ((), (0,)):
        assert fitted.correlations(given=given).to_frame()["estimate"].isna().all()


@pytest.mark.parametrize(
    ("target", "on"),
    [
        ("pay", ["age", "sex", "job", "visits"]),
        ("pay", ["job"]),
        ("age", ["pay", "sex"]),
        ("sex", ["pay", "visits"]),
        ("age", []),
    ],
)
def test_without_noise_a_regression_is_least_squares(exact, target, on):
    found = exact.regress(target, on)
    w, r2 = least_squares(people(), target, on)
    sds = np.array([row.sd for row in found.table.rows])
    assert (np.abs([row.estimate for row in found.table.rows] - w) < 0.02 * sds).all()
    assert found.r2 == pytest.approx(r2, abs=2e-3)


def test_all_other_columns_explain_if_none_are_named(exact):
    names = ["intercept", "age", "sex=m", "job=b", "job=c", "visits", "visits missing"]
    assert [row.name for row in exact.regress("pay").table.rows] == names
    assert repr(exact.regress(3)) == repr(exact.regress("pay"))


def test_correlations_without_noise_are_those_of_numpy(exact):
    frame = people()
    columns = {"age": frame["age"], "sex": (frame["sex"] == "m") * 1.0, "pay": frame["pay"]}
    found = exact.correlations()
    matrix = np.corrcoef(list(columns.values()))
    assert len(found) == 3
    for (i, a), (j, b) in [
        ((0, "age"), (1, "sex")),
        ((0, "age"), (2, "pay")),
        ((1, "sex"), (2, "pay")),
    ]:
        assert found[f"{a}, {b}"].estimate == pytest.approx(matrix[i, j], abs=1e-3)
    x = np.column_stack([np.ones(len(frame)), columns["sex"]])
    rest = [v - x @ np.linalg.lstsq(x, v, rcond=None)[0] for v in (frame["age"], frame["pay"])]
    partial = exact.correlations(["age", "pay"], given=["sex"])["age, pay"]
    assert partial.estimate == pytest.approx(np.corrcoef(rest)[0, 1], abs=1e-3)
    # the standard error of a correlation of normal numbers is (1 - r²)/sqrt(n)
    assert partial.sd == pytest.approx((1 - partial.estimate**2) / math.sqrt(4000), rel=0.2)


def test_private_intervals_hold_the_exact_coefficients():
    frame, held, wide = people(20_000), [], []
    w, _ = least_squares(frame, "pay", ["age", "sex", "job"])
    for seed in range(20):
        model = PrivateMoments(1.0, schema=SCHEMA, random_state=seed).fit(frame)
        rows = model.regress("pay", ["age", "sex", "job"]).table.rows
        held += [row.low <= v <= row.high for row, v in zip(rows, w, strict=True)]
        wide += [row.privacy_sd / row.sampling_sd for row in rows if row.identified]
    assert np.mean(held) >= 0.95
    assert 0.5 < np.median(wide) < 4


def test_what_noise_hides_is_not_identified():
    frame = people(60)
    model = PrivateMoments(0.1, schema=SCHEMA, random_state=0).fit(frame)
    found = model.regress("pay")
    assert not any(row.identified for row in found.table.rows[1:])
    assert math.isnan(found.r2)
    assert not any(row.identified for row in model.correlations().rows)


def test_json_and_pickle_keep_everything(private):
    for copy in (from_json(private.to_json()), pickle.loads(pickle.dumps(private))):
        assert repr(copy.regress("pay")) == repr(private.regress("pay"))
        assert repr(copy.correlations()) == repr(private.correlations())


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("turn", lambda a: 0 * a, "no release turns to"),
        ("turn", lambda a: 1e4 * a, "no release turns to"),
        ("products", lambda a: np.triu(a), "not symmetric"),
        ("products", lambda a: a + 1e59 * np.diag(np.arange(len(a)) == 1), "no regression can be"),
        ("pairs", lambda a: 1e61 * a, "too large"),
        ("far", lambda a: -a, "negative weight"),
        ("first", lambda a: a + 1, "not those of these columns"),
        ("first", lambda a: 1e-300 * a, "not those of these columns"),
    ],
)
def test_forged_moments_are_refused_when_they_are_read(private, field, change, message):
    wrong = json.loads(private.to_json())
    array = wrong["fitted"]["posterior_"][field]
    given = np.reshape(array["data"], array["shape"])
    array["data"] = change(given).ravel().tolist()
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps(wrong))


class TestPrivateMoments(EstimatorContract):
    X = people(500)

    def make(self, **options):
        return PrivateMoments(schema=SCHEMA, **options)

    def answer(self, model):
        return model.posterior_.first


def test_one_entry_of_the_ledger_pays_for_all(private):
    ledger = BudgetAccountant(2.0)
    model = PrivateMoments(2.0, schema=SCHEMA, accountant=ledger).fit(people(500))
    for target in ("pay", "age", "sex"):
        model.regress(target)
    model.correlations()
    assert len(ledger) == 1
    assert ledger.total().epsilon == 2.0


@pytest.mark.parametrize(
    "unit",
    [
        PrivacyUnit("record", neighbours="add_remove"),
        PrivacyUnit("person", max_records=2),
        PrivacyUnit("person", max_records=2, neighbours="add_remove"),
    ],
)
def test_every_unit_is_protected_at_epsilon(unit):
    frame = people(3000)
    groups = np.arange(3000) // 2 if unit.name == "person" else None
    model = PrivateMoments(3.0, schema=SCHEMA, privacy_unit=unit, random_state=0)
    model.fit(frame, groups=groups)
    assert model.guarantee_.epsilon == 3.0
    assert model.plan(3000).cost.epsilon == 3
    known = model.posterior_.n
    assert known == 3000 or (unit.size_is_secret and abs(known - 3000) < 500)


def test_undeclared_bounds_are_read_with_a_warning():
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        model = PrivateMoments(1.0, random_state=0).fit(people(300)[["age", "pay"]].to_numpy())
    assert [*model.schema_.columns] == ["x0", "x1"]


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"target": "job"}, "of two values"),
        ({"target": "visits"}, "indicator"),
        ({"target": "pay", "on": ["pay"]}, "not the target"),
        ({"target": "pay", "on": ["age", "age"]}, "different columns"),
        ({"target": "height"}, "name of a column"),
        ({"target": "pay", "level": 1.0}, "level must be"),
    ],
)
def test_a_regression_that_cannot_be_is_refused(private, asked, match):
    with pytest.raises(ValueError, match=match):
        private.regress(**asked)


def test_correlations_that_cannot_be_are_refused(private):
    for columns, given in ((["job", "age"], []), (["age", "age"], []), (["age", "pay"], ["pay"])):
        with pytest.raises(ValueError, match="columns must be different"):
            private.correlations(columns, given)


def test_too_many_coordinates_are_refused_before_the_charge():
    ledger = BudgetAccountant(1.0)
    schema = Schema({"place": Categories(range(30)), "age": Interval(15, 70)})
    model = PrivateMoments(1.0, schema=schema, accountant=ledger)
    with pytest.raises(ValueError, match=r"up to 20 coordinates, and these columns have 31"):
        model.fit(pd.DataFrame({"place": [1] * 50, "age": [30.0] * 50}))
    assert len(ledger) == 0


def test_values_of_a_feature_alone_are_not_protected_by_it():
    with pytest.raises(ValueError, match=r"privacy_unit"):
        PrivateMoments(1.0, schema=SCHEMA, privacy_unit="feature").fit(people(50))


@pytest.mark.oldest
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
@parametrize_with_checks([PrivateMoments(), PrivateMoments(bounds=(-5, 5))])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
