"""LifeTable as an estimator: checks, containers, intervals, files and refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import check_param_validation

from benchmarks.accuracy.event_times import classes, concordance, cox, regression, simulated
from dpbayes_sklearn import (
    BudgetAccountant,
    Categories,
    Interval,
    LifeTable,
    PrivacyLeakWarning,
    PrivacyUnit,
    Schema,
    from_json,
)
from tests.contracts import EstimatorContract

RNG = np.random.default_rng(0)
N = 2000
ARM = RNG.choice(["new", "old"], N)
DEATH, LEFT = RNG.exponential(np.where(ARM == "new", 30, 20)), RNG.uniform(6, 60, N)
FRAME = pd.DataFrame({"months": np.minimum(DEATH, LEFT), "arm": ARM})
DIED = np.where(DEATH <= LEFT, "yes", "no")
SCHEMA = Schema(
    {"months": Interval(0, 48, bins=8), "arm": Categories(["new", "old"])},
    target=Categories(["no", "yes"]),
)
ADDED = PrivacyUnit(neighbours="add_remove")


def fitted(**options):
    return LifeTable(**{"schema": SCHEMA, "random_state": 0, **options}).fit(FRAME, DIED)


@pytest.mark.oldest
def test_parameters_are_validated() -> None:
    check_param_validation("LifeTable", LifeTable())


class TestLifeTable(EstimatorContract):
    X, y = FRAME, DIED

    def make(self, **options):
        return LifeTable(schema=SCHEMA, **options)

    def answer(self, model):
        return np.array(repr(model.survival()))


def test_noise_changes_survival_little_and_intervals_hold_it() -> None:
    exact, private = fitted(epsilon=math.inf), fitted()
    for group in ("new", "old"):
        one, other = exact.survival(group), private.survival(group)
        assert np.abs(one.estimate - other.estimate).max() < 0.02
        assert (other.high - other.low > one.high - one.low).mean() > 0.8
        scale = {"new": 30, "old": 20}[group]
        truth = np.exp(-other.ends / scale)
        assert ((other.low <= truth) & (truth <= other.high)).mean() > 0.8
    assert private.logrank().p < 1e-6
    apart = private.difference("new", "old")
    assert apart.low[2] > 0
    assert "difference" in repr(apart)


@pytest.mark.parametrize("unit", ["record", ADDED, PrivacyUnit("person", max_records=2)], ids=str)
def test_n_is_hidden_only_where_records_are_added_or_removed(unit) -> None:
    groups = np.arange(N) // 2 if unit not in ("record", ADDED) else None
    model = LifeTable(schema=SCHEMA, privacy_unit=unit).fit(FRAME, DIED, groups=groups)
    assert (model.posterior_.n is None) == (unit is ADDED)
    assert len(model.survival("new")) == 8


@pytest.mark.slow
def test_intervals_of_small_and_noisy_tables_hold() -> None:
    rng, held, seen = np.random.default_rng(1), np.zeros(10), np.zeros(10)
    truth = np.exp(-0.7 * np.arange(1, 11) / 10)
    for seed in range(300):
        death, left = rng.exponential(1 / 0.7, 300), rng.uniform(0.3, 1.2, 300)
        model = LifeTable(0.7, bounds=(0, 1), n_bins=10, random_state=seed)
        found = model.fit(np.minimum(death, left)[:, None], death <= left).survival()
        k = len(found)
        held[:k] += (found.low <= truth[:k]) & (truth[:k] <= found.high)
        seen[:k] += 1
    assert 0.925 < held.sum() / seen.sum() < 0.985


def test_the_test_of_equal_groups_rejects_about_as_often_as_it_says() -> None:
    rng, found = np.random.default_rng(2), []
    schema = Schema({"t": Interval(0, 1, bins=6), "g": Categories([0, 1])})
    for seed in range(400):
        death, left = rng.exponential(1.5, 400), rng.uniform(0.3, 1.2, 400)
        X = np.column_stack([np.minimum(death, left), rng.integers(0, 2, 400)])
        model = LifeTable(1.0, schema=schema, random_state=seed).fit(X, death <= left)
        found.append(model.logrank().p)
    assert 0.02 <= np.mean(np.array(found) < 0.05) <= 0.08


def test_json_gives_the_same_tables() -> None:
    for model in (fitted(), fitted(privacy_unit=ADDED), fitted(epsilon=math.inf)):
        again = from_json(model.to_json())
        assert repr(again.survival(1)) == repr(model.survival(1))
        assert again.logrank() == model.logrank()
        assert again.to_json() == model.to_json()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda fitted: fitted["posterior_"]["counts"].update(shape=[17, 2]),
        lambda fitted: fitted["posterior_"]["counts"].update(shape=[34], axes=[0]),
        lambda fitted: fitted["posterior_"]["laws"][0].update(cells=9),
        lambda fitted: fitted["schema_"]["columns"]["months"]["edges"].append(99.0),
        lambda fitted: fitted["schema_"]["columns"].update(
            arm=fitted["schema_"]["columns"]["months"]
        ),
    ],
)
def test_json_of_other_tables_is_refused(wrong) -> None:
    content = json.loads(fitted().to_json())
    wrong(content["fitted"])
    with pytest.raises(ValueError, match="fitted"):
        from_json(json.dumps(content))


def test_containers_agree() -> None:
    named = FRAME.assign(died=DIED)
    data = [
        ((pl.from_pandas(FRAME), DIED), {}),
        ((named,), {"target": "died"}),
        ((pl.from_pandas(named).lazy(),), {"target": "died"}),
        ((FRAME[["arm", "months"]], DIED), {}),
        ((FRAME.to_numpy(object), DIED), {}),
    ]
    tables = [fitted().posterior_.counts]
    for given, options in data:
        model = LifeTable(schema=SCHEMA, random_state=0).fit(*given, **options)
        tables.append(model.posterior_.counts)
    assert all(np.array_equal(tables[0], other) for other in tables[1:])


def test_weights_count_records_so_often() -> None:
    weights = RNG.integers(1, 4, N)
    model = LifeTable(math.inf, schema=SCHEMA, max_weight=3).fit(FRAME, DIED, sample_weight=weights)
    assert model.survival("new").at_risk[0] == weights[ARM == "new"].sum()


def test_undeclared_bounds_are_a_leak() -> None:
    with pytest.warns(PrivacyLeakWarning, match="bounds of the features 'months'"):
        model = LifeTable().fit(FRAME[["months"]], DIED == "yes")
    assert model.ends_[-1] == FRAME["months"].max()
    assert "read from the data" in str(model.guarantee_)


def test_times_may_be_cut_at_unequal_edges() -> None:
    schema = Schema({"months": Interval(0, 48, edges=[3, 12])})
    model = LifeTable(math.inf, schema=schema).fit(FRAME[["months"]], DIED == "yes")
    assert model.ends_.tolist() == [3, 12, 48]
    assert model.survival().at_risk.tolist() == [N, *((FRAME.months >= e).sum() for e in (3, 12))]


TWO = {"a": Interval(0, 1), "b": Interval(0, 1)}


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        (Schema(TWO), "takes one column of times"),
        (Schema({"a": Categories([0, 1])}), "takes one column of times"),
        (Schema({"a": Interval(0, 1, missing="indicator")}), "takes one column of times"),
        (Schema({"a": Interval(0, 1)}, Interval(0, 1)), "the event second"),
        (Schema({"a": Interval(0, 1)}, Categories([0, 1, 2])), "the event second"),
        (Schema({"a": Interval(0, 1, bins=40_000)}), "at most 32,768 cells"),
    ],
)
def test_other_declarations_are_refused_before_the_charge(schema, match) -> None:
    ledger = BudgetAccountant()
    model = LifeTable(schema=schema, accountant=ledger)
    with pytest.raises(ValueError, match=match):
        model.fit(np.zeros((5, len(schema))), np.zeros(5))
    assert not len(ledger)


def test_groups_are_named_or_numbered() -> None:
    model = fitted()
    assert model.groups_ == ("new", "old")
    assert repr(model.survival(1)) == repr(model.survival("old"))
    with pytest.raises(ValueError, match=r"group must be one of 'new', 'old', or its number"):
        model.survival("both")
    with pytest.raises(ValueError, match=r"level must be .* \(0, 1\)"):
        model.survival(level=95)
    alone = LifeTable(bounds=(0, 48)).fit(FRAME[["months"]], DIED == "yes")
    with pytest.raises(ValueError, match="declare a column of them"):
        alone.logrank()


def test_plot_draws_a_line_and_a_band_for_every_group() -> None:
    ax = fitted().plot()
    assert [line.get_label() for line in ax.lines] == ["new", "old"]
    assert len(ax.collections) == 2
    assert ax.get_xlabel() == "months"
    assert fitted().plot(ax) is ax


def test_tables_are_frames_cards_and_html() -> None:
    model = fitted()
    frame = model.survival().to_frame()
    assert frame.shape == (8, 5)
    assert "95 % from" in frame
    assert "at risk" in model.survival()._repr_html_()
    assert "every released number differs from the exact one by at most" in model.card()


def test_the_cumulative_hazard_is_that_of_survival() -> None:
    model = fitted(epsilon=math.inf)
    table = model.survival("old")
    found = model.cumulative_hazard([0.0, *table.ends, 1e9, math.nan], "old")
    assert np.allclose(np.exp(-found[1:-2]), table.estimate)
    assert found[0] == 0
    assert found[-2] == found[-3]  # beyond the table
    assert math.isnan(found[-1])
    between = model.cumulative_hazard(pd.Series([table.ends[0] / 2]), "old")
    assert between[0] == pytest.approx(found[1] / 2)
    noisy = fitted(epsilon=0.02).cumulative_hazard(np.linspace(0, 48, 50))
    assert (np.diff(noisy) >= 0).all()
    assert (noisy >= 0).all()


@pytest.mark.parametrize("hazards", [False, True])
def test_a_regression_on_the_hazard_ranks_by_risk_where_follow_up_depends_on_a_column(
    hazards: bool,
) -> None:
    data = simulated(hazards)
    train, test = np.split(np.random.default_rng(0).permutation(len(data.time)), [4800])
    by_time, by_class = (
        concordance(data.time[test], data.event[test], model(data, train, test, 3.0))
        for model in (regression, classes)
    )
    exact = concordance(data.time[test], data.event[test], cox(data, train, test))
    assert by_time > exact - 0.02
    assert by_class < exact - 0.02
