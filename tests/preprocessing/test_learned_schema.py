"""Schema.learn: domains of a frame, learned for one charge, for any estimator."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
    __version__,
    from_json,
)
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler

RNG = np.random.default_rng(0)
N = 4000
FRAME = pd.DataFrame(
    {
        "wage": RNG.lognormal(8, 1.5, N),
        "age": RNG.integers(18, 90, N),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "smoker": RNG.random(N) < 0.3,
        "sex": pd.Series(RNG.choice(["f", "m"], N), dtype="string"),
    }
)
SEX = {"sex": Categories(["f", "m"])}
LABELS = (FRAME["wage"] > FRAME["wage"].median()).to_numpy().astype(int)


def test_bins_are_learned_for_one_charge_and_printed(capsys):
    ledger = BudgetAccountant()
    schema = Schema.learn(FRAME, 1.0, columns=SEX, accountant=ledger)
    assert [float(entry.epsilon) for entry in ledger] == [1.0]
    assert schema.guarantee.epsilon == 1.0
    assert [*schema.columns] == [*FRAME]
    said = capsys.readouterr().out
    assert said.count("(learned)") == 3
    assert said.count("(declared)") == said.count("(boolean)") == 1
    assert "epsilon = 1 " in said
    codes = schema.columns["wage"].encode(FRAME["wage"])
    assert np.bincount(codes, minlength=8).min() > 0.05 * N
    assert schema.columns["day"].dates
    assert schema.columns["day"].short.startswith(("[2019", "[2020"))


def test_it_serves_classifiers_and_comes_back_from_json():
    target = Categories([0, 1])
    schema = Schema.learn(FRAME, 1.0, columns=SEX, target=target, verbose=False)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert again.guarantee == str(schema.guarantee)
    model = BayesianNaiveBayes(1.0, schema=again).fit(FRAME, LABELS)
    assert np.mean(model.predict(FRAME) == LABELS) > 0.85
    assert {*model.sample(50, random_state=0)[1].tolist()} == {0, 1}
    loaded = BayesianNaiveBayes.from_json(model.to_json())
    assert np.array_equal(loaded.predict(FRAME), model.predict(FRAME))


def test_ranges_serve_a_regression():
    numbers = FRAME[["age", "wage"]]
    schema = Schema.learn(numbers, 1.0, bins=None, target=Interval(0, 100), verbose=False)
    assert schema.columns["age"].edges is None
    assert 0 < schema.columns["age"].low < 25
    assert 80 < schema.columns["age"].high < 105
    model = BayesianLinearRegression(5.0, schema=schema).fit(numbers, FRAME["age"].astype(float))
    assert model.score(numbers, FRAME["age"]) > 0.8


def test_polars_and_constant_or_missing_columns():
    frame = pl.DataFrame({"one": [3.0] * 50, "none": [None] * 50}, schema_overrides={"none": float})
    for bins in (None, 2, 8):
        schema = Schema.learn(frame, 10.0, bins=bins, verbose=False)
        assert all(domain.low < domain.high for domain in schema.columns.values())


def test_what_cannot_be_learned_is_refused_before_anything_is_spent():
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match=r"columns \['sex'\] hold no numbers"):
        Schema.learn(FRAME, accountant=ledger)
    with pytest.raises(ValueError, match="lacks the columns"):
        Schema.learn(FRAME, columns={"gender": SEX["sex"], **SEX}, accountant=ledger)
    with pytest.raises(TypeError, match="data frame"):
        Schema.learn(FRAME.to_numpy(), accountant=ledger)
    assert len(ledger) == 0


def test_ranges_are_never_absurd_where_the_records_are_few():
    rng = np.random.default_rng(3)
    visits = rng.poisson(1.4, 4000)
    frame = pd.DataFrame({"age": rng.integers(18, 95, 4000), "visits": visits, "pay": visits**2.0})
    for seed in range(40):  # epsilon of a column as in docs/getting_started.md
        schema = Schema.learn(frame, 0.18, random_state=seed, verbose=False)
        for name, domain in schema.columns.items():
            assert domain.high - domain.low < 10 * frame[name].max(), name
            assert domain.low <= min(domain.edges) <= max(domain.edges) <= domain.high


def test_too_few_records_are_refused_before_anything_is_spent(caplog):
    ledger, few = BudgetAccountant(), FRAME[["wage", "age"]][:300]
    with pytest.raises(ValueError, match=r"300 records.*at least 1\.3\. Nothing was spent"):
        Schema.learn(few, 0.6, accountant=ledger)
    assert len(ledger) == 0
    Schema.learn(few, 0.7, accountant=ledger, verbose=False)
    assert "300 records with epsilon = 0.7 for 2 columns are few to learn ranges" in caplog.text
    caplog.clear()
    Schema.learn(few, 1.4, accountant=ledger, verbose=False)
    assert not caplog.text
    for scaler in (PrivateMinMaxScaler(0.1), PrivateKBinsDiscretizer(epsilon=0.1)):
        caplog.clear()
        scaler.fit(few)
        assert "too few to learn ranges" in caplog.text
        caplog.clear()
        scaler.set_params(bounds=(0, 1e6)).fit(few)
        assert not caplog.text


def test_the_target_can_be_learned(capsys):
    frame = FRAME[["age", "wage"]]
    schema = Schema.learn(frame, 1.0, target="wage")
    assert [*schema.columns] == ["age"]
    assert schema.target.edges is None
    assert "wage: [" in capsys.readouterr().out
    classes = pd.DataFrame({"age": FRAME["age"], "ill": np.where(FRAME["age"] > 50, "yes", "no")})
    schema = Schema.learn(classes, 1.0, target="ill", delta=1e-6, verbose=False)
    assert schema.target.values == ("no", "yes")
    declared = Schema.learn(classes, columns={"ill": Categories(["no", "yes"])}, target="ill")
    assert declared.target == Categories(["no", "yes"])
    with pytest.raises(ValueError, match="lacks the column 'sick'"):
        Schema.learn(classes, delta=1e-6, target="sick")


def test_dates_in_texts_are_pointed_out(capsys):
    frame = pd.DataFrame({"day": FRAME["day"].astype(str)})
    with pytest.raises(ValueError, match="parse_dates"):
        Schema.learn(frame, 1.0)
    Schema.learn(frame, 0.1, delta=1e-12)  # so that no date is found by chance
    assert "parse_dates" in capsys.readouterr().out


def test_texts_are_found_with_a_delta(capsys):
    rng = np.random.default_rng(1)
    jobs = rng.choice(["clerk", "nurse", "pilot"], N, p=[0.6, 0.3, 0.1]).astype(object)
    jobs[:5] = ["only I have this job", None, 3.5, float("nan"), "two"]
    frame = pd.DataFrame({"job": jobs, "wage": FRAME["wage"]})
    for column in (jobs, pd.Series(jobs).astype("string"), pd.Categorical(jobs)):
        ledger = BudgetAccountant(delta=1e-5)
        learned = frame.assign(job=column)
        schema = Schema.learn(learned, 2.0, delta=1e-6, accountant=ledger)
        assert schema.columns["job"] == Categories(["clerk", "nurse", "pilot", "other"], "other")
        (entry,) = ledger
        assert (float(entry.epsilon), float(entry.delta)) == (2.0, 1e-6)
        assert (schema.guarantee.epsilon, schema.guarantee.delta) == (2.0, 1e-6)
        assert "only I" not in capsys.readouterr().out
        assert Schema.from_json(schema.to_json()) == schema
    model = BayesianNaiveBayes(1.0, schema=schema, classes=[0, 1]).fit(frame, LABELS)
    assert "delta = 1e-06" in model.guarantee_.conditions[0]
    few = Schema.learn(frame[["job"]], 0.001, delta=1e-9, verbose=False)
    assert few.columns["job"].values == ("other",)
    BayesianNaiveBayes(1.0, schema=few, classes=[0, 1]).fit(frame[["job"]], LABELS)


def test_without_noise_all_texts_are_found():
    frame = pd.DataFrame({"job": ["b", "a", None, "other", "a"]})
    schema = Schema.learn(frame, float("inf"), delta=0.1, verbose=False)
    assert schema.columns["job"].values == ("a", "b", "other")
    assert schema.guarantee.delta == 0


def test_delta_is_not_spent_without_texts():
    ledger = BudgetAccountant()
    schema = Schema.learn(FRAME, 1.0, columns=SEX, delta=1e-6, accountant=ledger, verbose=False)
    assert schema.guarantee.delta == 0
    assert [float(entry.delta) for entry in ledger] == [0.0]


@pytest.mark.parametrize("delta", [-0.1, 1.0, 1e-320])
def test_a_wrong_delta_is_refused_before_anything_is_spent(delta):
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match="delta"):
        Schema.learn(FRAME[["sex"]], 1.0, delta=delta, accountant=ledger)
    assert len(ledger) == 0


def test_a_ceiling_stops_numbers_and_texts_together():
    ledger = BudgetAccountant(1.0, delta=1e-9)
    with pytest.raises(BudgetError):
        Schema.learn(FRAME, 1.0, delta=1e-6, accountant=ledger)
    assert len(ledger) == 0


@pytest.mark.parametrize("bins", [None, 4])
def test_dask_frames_give_the_same_schema(bins):
    dask = pytest.importorskip("dask.dataframe")
    there = dask.from_pandas(FRAME, npartitions=3)
    options = {"bins": bins, "delta": 1e-6, "random_state": 0, "verbose": False}
    assert Schema.learn(there, 2.0, **options) == Schema.learn(FRAME, 2.0, **options)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1])
def test_dates_can_always_be_shown(epsilon, capsys):
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=40)})
    added = PrivacyUnit("record", neighbours="add_remove")  # too few records are a secret
    for bins in (None, 2, 8):
        for _ in range(20):
            schema = Schema.learn(days, epsilon, bins=bins, privacy_unit=added)
            assert schema._repr_html_()
            assert Schema.from_json(schema.to_json()) == schema


def test_nothing_to_learn_costs_nothing(capsys):
    ledger = BudgetAccountant()
    schema = Schema.learn(FRAME[["sex"]], columns=SEX, accountant=ledger)
    assert schema.guarantee is None
    assert len(ledger) == 0
    assert "nothing was spent" in capsys.readouterr().out


def test_edges_of_an_interval():
    domain = Interval(0, 100, edges=[1, 5, 5, 20])
    assert domain.n_values == 5
    assert domain.encode([-3, 1, 4.9, 5, 19, 1e300, -np.inf, np.nan]).tolist() == [
        0, 1, 1, 3, 3, 4, 0, 4,
    ]  # fmt: skip
    drawn = domain.decode(np.array([0, 2, 4]), np.random.default_rng(0))
    assert 0 <= drawn[0] <= 1
    assert drawn[1] == 5
    assert 20 <= drawn[2] <= 100
    assert "edges=(1.0, 5.0, 5.0, 20.0)" in repr(domain)
    assert domain.n_integers is None
    for wrong in ([], [2, 1], [np.nan]):
        with pytest.raises(ValueError, match="ascending"):
            Interval(0, 1, edges=wrong)
    with pytest.raises(ValueError, match="so it has 3 bins"):
        Interval(0, 1, bins=2, edges=[0.1, 0.2])


@pytest.mark.parametrize("edges", ["many", [1], [2.0, 1.0], None, [float("1e400")]])
def test_edges_in_json_are_checked(edges):
    good = Schema({"a": Interval(0, 9, edges=[1.0, 2.0])})
    assert Schema.from_json(good.to_json()) == good
    wrong = good.to_dict()
    wrong["columns"]["a"]["edges"] = edges
    with pytest.raises(ValueError, match="columns"):
        Schema.from_dict(wrong)


def test_a_model_says_that_its_domains_were_learned() -> None:
    rng = np.random.default_rng(0)
    frame, labels = pd.DataFrame({"wage": rng.lognormal(7, 1, 3000)}), rng.integers(0, 2, 3000)
    schema = Schema.learn(frame, 0.5, verbose=False)
    for known in (schema, Schema.from_json(schema.to_json())):
        model = BayesianNaiveBayes(0.1, schema=known, classes=[0, 1]).fit(frame, labels)
        (condition,) = model.guarantee_.conditions
        assert "learned domains" in condition
        assert "epsilon = 0.5" in condition
        assert "in total epsilon = 0.6, which makes no result more than 1.83 times" in condition
        assert condition in from_json(model.to_json()).card()


def test_a_card_has_a_title_a_date_a_version_and_a_description() -> None:
    frame, labels = FRAME[["age"]], LABELS
    schema = Schema({"age": Interval(18, 90, bins=4)}, Categories([0, 1]))
    model = BayesianNaiveBayes(schema=schema).fit(frame, labels)
    text = model.card(title="Wages of 2025", description="Everybody who answered in May.")
    assert text.startswith("# Wages of 2025")
    for part in ("Everybody who answered", f"on {date.today()} by", __version__, "4,000 records"):
        assert part in text
    assert model.card().startswith("# BayesianNaiveBayes")


def test_integers_of_two_values_get_a_bin_each_and_others_do_not(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(1, 3, 20_000),
            "smoker": (rng.random(20_000) < 0.1).astype(int),
            "stars": rng.integers(1, 6, 20_000),
            "share": (rng.random(20_000) < 0.5) * 1.0,
        }
    )
    schema = Schema.learn(frame, 2.0, random_state=0)
    assert schema.columns["sex"] == Interval(1, 2, bins=2)
    assert schema.columns["smoker"] == Interval(0, 1, bins=2)
    assert schema.columns["stars"].n_values == schema.columns["share"].n_values == 8
    assert "sex: 2 bins between [1, 2] (learned)" in capsys.readouterr().out
