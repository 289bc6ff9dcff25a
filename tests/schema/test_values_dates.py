"""Dates: the same instant is the same number in every type, unit and time zone."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.values import seconds, seconds_of_column

YEARS = Interval(date(2020, 1, 1), date(2024, 1, 1), bins=3)
DAYS = pd.Series(pd.to_datetime(["2020-02-01", "2021-06-01", "2022-03-05", "2023-12-24", None]))
CODES = [0, 1, 1, 2, 1]  # a missing one is the middle
UNITS = ["D", "h", "m", "s", "ms", "us", "ns"]


def columns() -> dict[str, Any]:
    numpy_days = DAYS.to_numpy()
    return {
        **{f"numpy {unit}": numpy_days.astype(f"M8[{unit}]") for unit in UNITS},
        **{f"pandas {unit}": DAYS.astype(f"M8[{unit}]") for unit in UNITS[3:]},
        "pandas UTC": DAYS.dt.tz_localize("UTC"),
        "pandas Tokyo": DAYS.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        "pandas arrow": DAYS.astype("timestamp[us][pyarrow]"),
        "pandas objects": DAYS.astype(object),
        "polars": pl.Series([*DAYS.dt.to_pydatetime().tolist()[:4], None]),
        "polars ns": pl.Series(DAYS).cast(pl.Datetime("ns")),
        "polars Tokyo": pl.Series(DAYS).dt.replace_time_zone("UTC").dt.convert_time_zone("Japan"),
        "polars dates": pl.Series(DAYS).cast(pl.Date),
        "dates": [None if pd.isna(day) else day.date() for day in DAYS],
    }


@pytest.mark.parametrize("name", columns())
def test_every_unit_type_and_time_zone_reads_the_same(name: str) -> None:
    column = columns()[name]
    assert YEARS.encode(column).tolist() == CODES
    if not isinstance(column, list) and name != "pandas objects":  # which may be texts
        frame = pl.DataFrame({"day": column}) if "polars" in name else pd.DataFrame({"day": column})
        model = BayesianNaiveBayes(math.inf, schema=Schema({"day": YEARS}), classes=[0, 1])
        counts = model.fit(frame, np.zeros(5, int)).posterior_.released.tables[0][0]
        assert counts.tolist() == [1, 3, 1]


@given(
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_the_same_instant_is_the_same_number(instant: datetime, zone: timezone) -> None:
    number = seconds(instant)
    assert seconds(instant.replace(tzinfo=UTC).astimezone(zone)) == number
    assert seconds(pd.Timestamp(instant)) == number
    for unit in ("us", "ns"):
        assert seconds(np.datetime64(instant, unit)) == number


def test_coarse_units_and_what_is_far_away() -> None:
    for unit in ("Y", "M", "W", "D"):
        dtype = f"M8[{unit}]"
        assert seconds_of_column(np.array(["2015-01-01"], "M8[D]").astype(dtype)) == pytest.approx(
            seconds(date(2015, 1, 1)), abs=7 * 86400
        )
        far = np.array([2**62, -(2**62), 0]).astype(dtype)
        numbers = seconds_of_column(far)
        assert numbers[0] > 1e12
        assert numbers[1] < -1e12
        assert numbers[2] == 0 or unit == "W"
    assert np.isnan(seconds_of_column(np.array(["NaT"], "M8")))


@pytest.mark.parametrize(
    "ends",
    [
        (date(2020, 1, 1), date(2024, 1, 1)),
        ("2020-01-01", "2024-01-01T00:00Z"),
        (datetime(2020, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        (pd.Timestamp("2020-01-01"), pd.Timestamp("2024-01-01", tz="UTC")),
        (np.datetime64("2020-01-01"), np.datetime64("2024-01-01", "ns")),
    ],
)
def test_ends_of_every_type_are_the_same(ends: Any) -> None:
    assert Interval(*ends, bins=3) == YEARS
    assert Schema.from_json(Schema({"a": Interval(*ends, bins=3)}).to_json()).columns["a"] == YEARS


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (date(2020, 1, 1), 5, "both numbers or both dates"),
        ("1.1.2020", "1.1.2024", "finite number, or a date such as"),
        (date(2024, 1, 1), date(2020, 1, 1), "low < high"),
        (pd.NaT, pd.NaT, "finite number, or a date such as"),
    ],
)
def test_ends_that_are_refused(low: Any, high: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(low, high)


@pytest.mark.parametrize(
    ("column", "domain", "message"),
    [
        (DAYS.astype(str), YEARS, r"holds text by its type.* hold dates, .*parse_dates"),
        (DAYS.astype(object), YEARS, r"'day' of X holds objects.* hold dates, .*parse_dates"),
        (
            DAYS.astype(str).astype(object),
            Interval(0, 9, bins=4),
            r"objects.* numbers, .*to_numeric",
        ),
        (DAYS, Interval(0, 1e18, bins=4), r"holds dates by its type.* hold numbers, .*Interval"),
        (DAYS - DAYS[0], Interval(0, 1e18, bins=4), "holds durations by its type"),
        (np.arange(5), YEARS, "holds integers by its type"),
        (DAYS, Categories([1, 2]), "holds dates by its type"),
    ],
)
def test_columns_of_another_type_are_refused_before_the_charge(
    column: Any, domain: Any, message: str
) -> None:
    accountant, frame = BudgetAccountant(1.0), pd.DataFrame({"day": column})
    for model, y in (
        (BayesianNaiveBayes(classes=[0, 1]), np.zeros(5, int)),
        (BayesianLinearRegression(bounds_y=(0, 1)), np.zeros(5)),
    ):
        model.set_params(schema=Schema({"day": domain}), accountant=accountant)
        with pytest.raises(ValueError, match=message):
            model.fit(frame, y)
    assert len(accountant) == 0


def test_bounds_take_dates() -> None:
    X = DAYS.to_numpy()[:, None]
    bounds = date(2020, 1, 1), date(2024, 1, 1)
    model = BayesianNaiveBayes(bounds=bounds, n_bins=3, classes=[0, 1]).fit(X, np.zeros(5, int))
    assert model.schema_.columns["x0"] == YEARS
    linear = BayesianLinearRegression(bounds_X=bounds, bounds_y=(0, 1)).fit(X, np.zeros(5))
    assert linear.schema_.columns["x0"] == Interval(*bounds)


def test_the_repr_tells_dates() -> None:
    assert repr(Interval(0, 1)) == "Interval(low=0.0, high=1.0, bins=None)"
    assert repr(YEARS).endswith("bins=3, dates=True)")
    assert eval(repr(YEARS)) == YEARS


def test_dates_that_only_noise_can_give_are_shown() -> None:
    assert Interval(-1e300, 1e300, dates=True).short.startswith("[-3168")
