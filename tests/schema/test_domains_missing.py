"""Where missing numbers go: the middle, a value, or a place of their own."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    PosteriorDisplay,
    Schema,
)

VALUES = np.array([3.0, 99.0, np.nan, np.inf])


@pytest.mark.parametrize(
    ("missing", "codes", "numbers"),
    [
        ("middle", [0, 3, 2, 3], [3, 99, 50, 100]),
        (10, [0, 3, 0, 3], [3, 99, 10, 100]),
        ("indicator", [0, 3, 4, 3], [3, 99, 50, 100]),
    ],
)
def test_every_choice_has_its_codes_and_numbers(
    missing: Any, codes: list[int], numbers: list[float]
) -> None:
    interval = Interval(0, 100, bins=4, missing=missing)
    assert interval.encode(VALUES).tolist() == codes
    assert interval.clip(VALUES).tolist() == numbers
    uneven = Interval(0, 100, edges=(25, 50, 75), missing=missing)
    assert uneven.encode(VALUES).tolist() == codes
    assert uneven.n_values == interval.n_values == max(4, max(codes) + 1)


def test_text_and_objects_that_are_no_numbers_are_missing() -> None:
    interval = Interval(0, 100, bins=2, missing="indicator")
    assert interval.encode(np.array(["a", None, 99, pd.NA], dtype=object)).tolist() == [2, 2, 1, 2]


def test_a_bin_of_missing_values_is_drawn_as_missing() -> None:
    rng = np.random.default_rng(0)
    for interval in (
        Interval(0, 100, bins=4, missing="indicator"),
        Interval(0, 3, bins=4, missing="indicator"),
        Interval(0, 100, edges=(25, 50, 75), missing="indicator"),
    ):
        codes = np.arange(5)
        drawn = interval.decode(codes, rng)
        assert interval.encode(drawn).tolist() == codes.tolist()
        assert np.isnan(drawn).tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("missing", ["low", None, True, np.nan, -1, 101, np.inf, [1], date.today()])
def test_what_is_no_place_for_them_is_refused(missing: Any) -> None:
    with pytest.raises(ValueError, match=r"missing must be 'middle', 'indicator', or a value from"):
        Interval(0, 100, missing=missing)


def test_a_date_can_stand_for_missing_dates() -> None:
    days = Interval(date(2020, 1, 1), date(2024, 1, 1), bins=4, missing=date(2020, 2, 1))
    assert days.encode(np.array(["NaT", "2023-12-24"], "datetime64[D]")).tolist() == [0, 3]


@pytest.mark.parametrize("missing", ["middle", "indicator", 7.5])
def test_it_is_kept_as_json(missing: Any) -> None:
    schema = Schema({"crp": Interval(0, 100, bins=4, missing=missing)})
    assert Schema.from_json(schema.to_json()) == schema
    assert ("missing" in schema.to_json()) == (missing != "middle")
    assert eval(repr(schema.columns["crp"])) == schema.columns["crp"]


@pytest.mark.parametrize("missing", ["nowhere", 1, None, [], True, 101.0])
def test_other_json_is_refused(missing: Any) -> None:
    fields = Schema({"crp": Interval(0, 100, missing=3.0)}).to_dict()
    fields["columns"]["crp"]["missing"] = missing
    with pytest.raises(ValueError, match=r"columns.crp.*must be (middle|'middle')"):
        Schema.from_dict(fields)


def test_a_target_that_is_missing_has_no_place() -> None:
    with pytest.raises(ValueError, match="leaves out records without a target"):
        Schema({}, target=Interval(0, 1, missing=0.5))


def lab(n: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Skewed CRP values, a fifth of which were not measured, and a cost of 30 for each mg/l."""
    rng = np.random.default_rng(seed)
    crp = np.minimum(rng.lognormal(np.log(8), 1, n), 100)
    cost = 2000 + 30 * crp + rng.normal(0, 1000, n)
    return pd.DataFrame({"crp": np.where(rng.random(n) < 0.2, np.nan, crp)}), cost


@pytest.mark.parametrize("epsilon", [3.0, float("inf")])
def test_an_indicator_keeps_the_slope(epsilon: float) -> None:
    X, y = lab(20_000)
    slopes, target = {}, Interval(-2000, 10_000)
    for missing in ("middle", "indicator"):
        schema = Schema({"crp": Interval(0, 100, missing=missing)}, target)
        model = BayesianLinearRegression(epsilon, schema=schema, random_state=0).fit(X, y)
        slopes[missing] = model.coefficients()["crp"].estimate
    assert slopes["middle"] < 15
    assert abs(slopes["indicator"] - 30) < 3
    table = model.coefficients()
    assert [row.name for row in table.rows] == ["intercept", "crp", "crp missing"]
    # a missing value is that of an average patient, so it costs less than one of 50 would
    assert table["crp missing"].high < -800
    prediction = model.predict(pd.DataFrame({"crp": [np.nan, 5.0]}))
    assert abs(prediction[0] - y[X["crp"].isna()].mean()) < 60
    assert len(model.coef_) == 3


def test_without_an_intercept_present_and_missing_have_a_coefficient_each() -> None:
    X, y = lab(3000)
    schema = Schema({"crp": Interval(0, 100, missing="indicator")}, Interval(-2000, 10_000))
    model = BayesianLinearRegression(
        float("inf"), schema=schema, fit_intercept=False, prior_precision=1e-9
    ).fit(X, y)
    assert [row.name for row in model.coefficients().rows] == [
        "crp",
        "crp present",
        "crp missing",
    ]
    assert abs(model.coefficients()["crp"].estimate - 30) < 3


def test_a_classifier_learns_what_being_missing_means() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 4000)
    X = pd.DataFrame({"crp": np.where((y == 1) & (rng.random(4000) < 0.6), np.nan, 8.0)})
    schema = Schema({"crp": Interval(0, 100, bins=4, missing="indicator")}, Categories([0, 1]))
    model = BayesianNaiveBayes(schema=schema, random_state=0).fit(X, y)
    assert model.predict(pd.DataFrame({"crp": [np.nan, 8.0]})).tolist() == [1, 0]
    drawn, labels = model.sample(500, random_state=0)
    assert 0.4 < np.isnan(drawn["crp"][labels == 1]).mean() < 0.8
    again = BayesianNaiveBayes.from_json(model.to_json())
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    display = PosteriorDisplay.from_estimator(model, column="crp", ax=Figure().subplots())
    assert "crp missing | class 1" in display.means_
