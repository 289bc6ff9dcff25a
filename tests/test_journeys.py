"""Three journeys of a new user: a file, a schema, a model, its evaluation and its card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
    planning,
)
from dpbayes_sklearn.command_line.console import main

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def visits(n: int = 6000) -> pd.DataFrame:
    """Several rows a patient, dates, notes with line breaks, typos and rows without an outcome."""
    age, day = RNG.integers(18, 95, n), RNG.integers(0, 700, n)
    back = RNG.random(n) < 1 / (1 + np.exp(4 - age / 15))
    outcome = np.where(back, "yes", "no").astype(object)
    outcome[RNG.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "patient": RNG.integers(0, n // 2, n),
            "age": np.where(RNG.random(n) < 0.01, 999, age),
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(day, unit="D"),
            "note": "first line\nsecond, with a comma",
            "back": outcome,
        }
    )


def test_visits_of_a_hospital() -> None:
    visits().to_csv("visits.csv", index=False)
    table = pd.read_csv("visits.csv", parse_dates=["day"])
    unit = PrivacyUnit("person", max_records=2, neighbours="add_remove")
    columns = {
        "age": Interval(18, 95, bins=6),
        "day": Interval(np.datetime64("2023-01-01"), np.datetime64("2025-01-01"), bins=4),
    }
    schema = Schema(columns, target=Categories(["no", "yes"]))
    ledger = BudgetAccountant(1.0, path="visits.sqlite")
    model = BayesianNaiveBayes(1.0, schema=schema, privacy_unit=unit, accountant=ledger)
    print(planning.report(model, n=len(table)))
    model.fit(table, table["back"], groups=table["patient"])
    card = model.card(title="Who comes back", description="Visits of two years.")
    assert ledger.total().epsilon == 1
    assert model.predict_proba(table)[table["age"].between(80, 95), 1].mean() > 0.6
    assert "not counted: the record is left out" in card


def test_a_survey_of_wages() -> None:
    n = 8000
    school = RNG.integers(8, 20, n)
    wage = RNG.lognormal(1.5 + 0.08 * school, 0.4)
    pd.DataFrame({"school": school, "union": RNG.random(n) < 0.2, "wage": wage}).to_csv("w.csv")
    table = pd.read_csv("w.csv", index_col=0)
    with BudgetAccountant(1.0) as ledger:
        schema = Schema.learn(table, epsilon=0.3, bins=None, target="wage", verbose=False)
        model = BayesianLinearRegression(0.7, schema=schema).fit(table, table["wage"])
    assert ledger.total().epsilon == 1
    assert "in total epsilon = 1, which makes no result more than 2.72 times" in str(
        model.guarantee_
    )
    assert abs(model.predict(table).mean() - wage.mean()) < 0.15 * wage.mean()


def test_baskets_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    n = 1500
    kind = RNG.integers(0, 2, n)
    items = RNG.random((n, 300)) < np.where(kind[:, None] == 1, 0.3, 0.2)
    frame = pd.DataFrame(items.astype(int), columns=[f"item {j}" for j in range(300)])
    frame.assign(family=np.where(kind, "yes", "no")).to_csv("baskets.csv", index=False, sep=";")
    Path("schema.json").write_text(
        '{"columns": {"*": {"values": [0, 1]}}, "target": {"values": ["no", "yes"]}}'
    )
    data = ["baskets.csv", "--target", "family", "--schema", "schema.json", "--sep", ";"]
    assert main(["check", *data]) == 0
    gaussian = ["--mechanism", "auto", "--delta", "1e-6"]
    assert main(["fit", *data, "--epsilon", "1", *gaussian]) == 0
    assert main(["predict", "model.json", "baskets.csv", "--sep", ";", "--out", "p.csv"]) == 0
    assert main(["card", "model.json", "--out", "card.html"]) == 0
    predicted = pd.read_csv("p.csv")["prediction"]
    assert np.mean(predicted == np.where(kind, "yes", "no")) > 0.7
    assert "0 of 1500 values outside" in capsys.readouterr().out
