"""The table of coefficients: names, units, intervals."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from benchmarks.accuracy import honesty
from benchmarks.data.families import FAMILIES
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    Categories,
    Interval,
    Schema,
)

SCHEMA = Schema(
    {
        "age": Interval(20, 60),
        "job": Categories(["clerk", "nurse", "smith"]),
        "sex": Categories(["f", "m"]),
    },
    target=Interval(0, 20),
)


def frame(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    y = 3 + 0.1 * data["age"] + 2 * (data["job"] == "nurse") - 1.5 * (data["sex"] == "m")
    return data, y + rng.normal(size=n)


JOBS = ["clerk", "nurse", "smith"]
NAMES = ["intercept", "age", "job=nurse", "job=smith", "sex=m"]
TRUTH = [3, 0.1, 2, 0, -1.5]


def test_without_noise_it_is_least_squares():
    data, y = frame(3000)
    table = BayesianLinearRegression(float("inf"), schema=SCHEMA, prior_precision=1e-9).fit(data, y)
    table = table.coefficients().to_frame()
    z = np.column_stack(
        [
            np.ones(len(y)),
            data["age"],
            data["job"] == "nurse",
            data["job"] == "smith",
            data["sex"] == "m",
        ]
    ).astype(float)
    w = np.linalg.solve(z.T @ z, z.T @ y)
    assert list(table.index) == NAMES
    np.testing.assert_allclose(table["estimate"], w, atol=1e-6)
    residual = np.mean((y - z @ w) ** 2)
    np.testing.assert_allclose(
        table["sd"], np.sqrt(residual * np.diag(np.linalg.inv(z.T @ z))), 5e-3
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_every_family_is_as_without_privacy_within_its_bounds(family):
    data = FAMILIES[family].make(5000, np.random.default_rng(1))
    options = {"schema": data.schema, "fit_intercept": data.intercept, "prior_precision": 1e-6}
    if FAMILIES[family].group == "logistic":
        model = BayesianLogisticRegression(float("inf"), **honesty.LOGISTIC, **options)
    else:
        model = BayesianLinearRegression(float("inf"), **options)
    model.fit(data.X, data.y if data.truth is None else data.y.astype(int))
    exact = honesty.exact_of(data)
    if data.truth is None:
        np.testing.assert_allclose(model.predict(data.X), exact.fitted, atol=1e-3 * data.y.std())
    estimate = model.coefficients().to_frame()["estimate"].to_numpy()
    tolerance = 1e-3 if data.truth is None else 0.12  # what a logistic model asks is on a grid
    np.testing.assert_allclose((estimate - exact.w) / exact.sd, 0 * exact.sd, atol=tolerance)


@pytest.mark.parametrize("unit", [1e-160, 1.7e308])
def test_the_table_is_in_units_of_the_target_however_small_or_large(unit):
    data, y = frame(3000)
    tables = []
    for scale in (1.0, unit):
        schema = Schema(dict(SCHEMA.columns), target=Interval(0, scale))
        model = BayesianLinearRegression(2, schema=schema, random_state=0)
        model.fit(data, (y / 20).to_numpy() * scale)
        summary, ends = model.summary(), model.effect("age").high / scale
        assert summary._repr_html_()
        assert np.isfinite(ends).all()
        tables.append(summary.to_frame().to_numpy() / [*[scale] * 6, 1, 1])
    np.testing.assert_allclose(*tables, rtol=1e-6)


def test_intervals_hold_in_most_releases():
    data, y = frame()
    inside = []
    for seed in range(20):
        model = BayesianLinearRegression(schema=SCHEMA, random_state=seed).fit(data, y)
        table = model.coefficients().to_frame()
        inside.append(((table["low"] < TRUTH) & (table["high"] > TRUTH)).to_numpy())
    assert np.mean(inside) > 0.9


def test_it_reads_as_text_and_html():
    model = BayesianLinearRegression(schema=SCHEMA, random_state=0).fit(*frame(20_000))
    table = model.coefficients(level=0.5)
    assert len(table) == 5
    assert table["age"].low < table["age"].estimate < table["age"].high
    assert repr(table).splitlines()[0].split("  ")[0] == "coefficient"
    assert "50 % from" in repr(table)
    assert table._repr_html_().count("<tr>") == 6
    wide = model.coefficients(level=0.99)["age"]
    assert wide.high - wide.low > table["age"].high - table["age"].low


def test_without_an_intercept_the_first_categories_are_levels_and_others_differences():
    data, y = frame(20_000)
    schema = Schema(SCHEMA.columns, target=Interval(0, 20))
    exact, noisy = (
        BayesianLinearRegression(e, schema=schema, fit_intercept=False, random_state=0)
        .fit(data, y)
        .coefficients()
        for e in (float("inf"), 10.0)
    )
    assert [row.name for row in noisy.rows] == ["age", *(f"job={j}" for j in JOBS), "sex=m"]
    for row, name, truth in zip(exact.rows, noisy.rows, [0.1, 3, 5, 3, -1.5], strict=True):
        assert abs(row.estimate - truth) < 5 * row.sd + 0.02
        assert name.low < truth < name.high
    assert noisy["sex=m"].sd < 10 * exact["sex=m"].sd


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [2, 5])
def test_columns_whose_indicators_have_equal_sums_are_not_uncertain(columns, intercept):
    rng = np.random.default_rng(columns)
    codes = rng.choice(3, (20_000, columns), p=[0.5, 0.3, 0.2])
    data = pd.DataFrame(codes, columns=[f"g{j}" for j in range(columns)])
    y = np.where(codes == 1, 0.5, 0.0).sum(axis=1) + rng.normal(size=len(codes))
    schema = Schema(dict.fromkeys(data.columns, Categories(range(3))), target=Interval(-6, 8))
    table, exact = (
        BayesianLinearRegression(e, schema=schema, fit_intercept=intercept, random_state=1)
        .fit(data, y)
        .coefficients()
        for e in (10.0, float("inf"))
    )
    differences = [row for row in table.rows if row.name[-2:] != "=0" and row.name != "intercept"]
    for row in differences[0 if intercept else 2 :]:
        assert row.sd < 2 * exact[row.name].sd
        assert abs(row.estimate - 0.5 * row.name.endswith("=1")) < 4 * row.sd


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_an_impossible_level_is_refused(level):
    model = BayesianLinearRegression(schema=SCHEMA, random_state=0).fit(*frame(200))
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.coefficients(level)


WITHOUT = [{"mechanism": "map"}, {"mechanism": "sampler"}, {"inference": "plug_in"}]


@pytest.mark.parametrize("options", WITHOUT, ids=str)
def test_no_intervals_are_stated_where_the_errors_are_not_known(options):
    model = BayesianLinearRegression(schema=SCHEMA, random_state=0, **options).fit(*frame(2000))
    table = model.coefficients()
    assert np.isnan([row[2:] for row in table.rows]).all()
    assert np.isfinite([row.estimate for row in table.rows]).all()
    shown = [repr(table), table._repr_html_(), model.card(), model.card("html")]
    for text in shown:
        assert "No intervals: " in text
        assert "95 %" not in text
    assert list(table.to_frame().dropna(axis=1).columns) == ["estimate"]


@pytest.mark.parametrize("options", WITHOUT, ids=str)
def test_an_exact_posterior_has_intervals_whatever_was_asked_for(options):
    model = BayesianLinearRegression(np.inf, schema=SCHEMA, **options).fit(*frame(2000))
    table = model.coefficients()
    assert all(row.low < row.estimate < row.high for row in table.rows)
    assert "95 %" in repr(table)


def test_a_summary_tests_against_zero_and_has_the_joint_covariance():
    model = BayesianLinearRegression(3.0, schema=SCHEMA, random_state=0).fit(*frame())
    summary, table = model.summary(), model.coefficients()
    found = summary.to_frame()
    assert list(found.index) == NAMES
    np.testing.assert_allclose(np.sqrt(np.diag(summary.covariance)), found["sd"])
    ratio = found["z"] / (found["estimate"] / found["sd"])  # the noise of a slope of 0 is another
    assert ratio.between(0.5, 1.1).all()
    parts = found["sampling_sd"] ** 2 + found["privacy_sd"] ** 2
    np.testing.assert_allclose(np.sqrt(parts), found["sd"])
    assert summary.n == 20_000
    data, y = frame()
    exact = BayesianLinearRegression(np.inf, schema=SCHEMA).fit(data, y)
    assert exact.summary().r2 == pytest.approx(exact.score(data, y), abs=1e-3)
    assert summary.r2 == pytest.approx(exact.summary().r2, abs=0.05)
    assert found.loc["age", "p"] < 1e-3 < found.loc["job=smith", "p"]
    assert 0.8 < summary.residual_deviation < 1.25
    shown = repr(summary)
    assert "epsilon = 3" in shown
    assert all(row.name in shown for row in table.rows)
    head = next(line for line in shown.splitlines() if line.startswith("coefficient"))
    assert head.split() == [
        "coefficient", "estimate", "sd", "z", "p", "95", "%", "from", "to", "sampling", "privacy"
    ]  # fmt: skip
    assert "an interval holds what such a test does not reject" in shown
    assert summary._repr_html_().count("<tr") == 1 + len(NAMES)


@pytest.mark.parametrize("mechanism", ["map", "sampler"])
def test_a_summary_without_intervals_says_why(mechanism):
    model = BayesianLinearRegression(schema=SCHEMA, mechanism=mechanism, random_state=0)
    summary = model.fit(*frame(2000)).summary()
    assert summary.n == 2000
    assert "2,000 records" in repr(summary)
    assert np.isnan(summary.covariance).all()
    assert "No intervals: " in repr(summary)
    assert "No intervals: " in summary._repr_html_()
    assert summary.to_frame()["p"].isna().all()


def test_a_level_that_is_not_identified_hides_no_slope():
    data = FAMILIES["rare_level"].make(20_000, np.random.default_rng(0))
    model = BayesianLinearRegression(1.0, schema=data.schema, random_state=0).fit(data.X, data.y)
    table = model.coefficients()
    assert not table["g=3"].identified
    assert table["x"].identified


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "fourier", "gaussian", "map", "sampler"])
@pytest.mark.parametrize("family", [name for name, f in FAMILIES.items() if f.group == "older"])
def test_intervals_hold_or_are_not_stated(family, mechanism):
    """Two releases of every family with fixed seeds: no error of more than 5 sd is stated."""
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    population = honesty.truth(family, 4000)
    for seed in range(2):
        data = FAMILIES[family].make(4000, np.random.default_rng(seed))
        options = {"mechanism": mechanism, "delta": delta, "schema": data.schema}
        model = BayesianLinearRegression(2.0, random_state=seed, **options).fit(data.X, data.y)
        table = model.coefficients()
        assert bool(table.no_intervals) == (model.posterior_.slopes is None)
        assert bool(table.no_intervals) >= (mechanism in {"map", "sampler"})
        for row, true in zip(table.rows[1:], population[1:], strict=True):
            if table.no_intervals:
                assert np.isnan([row.sd, row.low, row.high, row.p]).all()
            elif row.identified:
                assert abs(row.estimate - true) < 5 * row.sd
            else:
                assert np.isinf([row.low, row.high]).all()
                assert np.isnan(row.estimate)


def test_the_slope_of_a_date_is_per_year():
    rng = np.random.default_rng(0)
    days = rng.integers(0, 3653, 20_000)
    since = pd.DataFrame({"since": pd.Timestamp("2010-01-01") + pd.to_timedelta(days, "D")})
    years = days / 365.25
    ten = Interval(date(2010, 1, 1), date(2020, 1, 1))
    exact = {"epsilon": float("inf")}
    line = BayesianLinearRegression(**exact, schema=Schema({"since": ten}, Interval(-50, 50)))
    table = line.fit(since, 2 * years + rng.normal(size=20_000)).coefficients()
    assert [row.name for row in table.rows] == ["intercept", "since (per year)"]
    assert table["since (per year)"].estimate == pytest.approx(2.0, abs=0.02)
    assert line.summary().covariance[1, 1] == pytest.approx(table["since (per year)"].sd ** 2)
    odds = Schema({"since": ten}, Categories([0, 1]))
    ill = (rng.random(20_000) < 1 / (1 + np.exp(5 - years))).astype(int)
    logistic = BayesianLogisticRegression(**exact, effects="linear", schema=odds).fit(since, ill)
    found = logistic.coefficients()["since (per year)"]
    assert found.odds_ratio == pytest.approx(np.e, rel=0.1)


def test_tables_go_into_papers_and_pages():
    model = BayesianLinearRegression(3.0, schema=SCHEMA, random_state=0).fit(*frame())
    for table in (model.coefficients(), model.summary()):
        latex, markdown = table.to_latex().splitlines(), table.to_markdown().splitlines()
        heads, rows = table._body
        assert latex[0] == rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
        assert latex[2].startswith("coefficient & estimate & sd & ")
        assert r"95 \% from" in latex[2]
        assert latex[4].startswith("intercept & ")
        assert all(line.count(" & ") == len(heads) - 1 for line in latex[4 : 4 + len(rows)])
        assert all(line.count(" | ") == len(heads) - 1 for line in markdown[: 2 + len(rows)])
        assert table.to_html().count("<tr") == 1 + len(rows)
        assert "epsilon = 3" not in latex[-1] or table.to_markdown().endswith(
            model.summary().guarantee
        )


def test_every_entry_of_coef_has_a_name():
    columns = {"a": Interval(0, 1, missing="indicator"), "b": Categories([*"xyz"])}
    columns["c"] = Categories(["no", "yes"])
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "a": rng.random(3000),
            "b": rng.choice([*"xyz"], 3000),
            "c": rng.choice(["no", "yes"], 3000),
        }
    )
    y = (data["b"] == "y") * 0.5 + 0.3 * data["a"]
    line = BayesianLinearRegression(np.inf, schema=Schema(columns, target=Interval(0, 1)))
    line.fit(data, y)
    levels = ("b=x", "b=y", "b=z", "c=no", "c=yes")
    assert line.coef_names_ == ("a", "a present", "a missing", *levels)
    assert len(line.coef_names_) == len(line.coef_)
    named = dict(zip(line.coef_names_, line.coef_, strict=True))
    assert named["a"] == pytest.approx(0.3, abs=0.01)
    assert named["b=y"] - named["b=x"] == pytest.approx(0.5, abs=0.01)
    for effects, own in (("linear", ("a",)), ("smooth", ("a at",) * 4)):
        schema = Schema(columns, target=Categories([False, True]))
        odds = BayesianLogisticRegression(np.inf, schema=schema, effects=effects).fit(data, y > 0.4)
        assert odds.coef_.shape == (1, len(odds.coef_names_))
        assert odds.coef_names_[len(own) :] == ("a missing", *levels)
        assert all(n.startswith(m) for n, m in zip(odds.coef_names_, own, strict=False))
        assert odds.coef_names_[int(odds.coef_.argmax())] == "b=y"
    with pytest.raises(NotFittedError):
        BayesianLinearRegression().coef_names_  # noqa: B018
