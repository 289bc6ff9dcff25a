"""Before a search is charged, nothing that it does depends on the records."""

from __future__ import annotations

import itertools
import os
import pickle
import random

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.exceptions import PrivacyLeakWarning
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import boundary

N = 300
LABELS = np.arange(N) % 2
BITS = dict.fromkeys("abcd", Interval(0, 1, bins=2))
TARGET = Categories([0, 1])
QUICK = {"inference": "plug_in", "temperature": 1}
ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=2)}


def telling(column):
    """Return records of which one column tells the class, so that it is selected."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({c: LABELS if c == column else rng.integers(0, 2, N) for c in "abcd"})


def select(k=1, domains=BITS, **options):
    return PrivateSelectKBest(k, epsilon=0.5, schema=Schema(domains, target=TARGET), **options)


def bayes(**options):
    declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    return BayesianNaiveBayes(0.5, **{**declared, **QUICK, **options})


def by_schema(columns):
    schema = Schema({c: BITS[c] for c in columns}, target=TARGET)
    return bayes(schema=schema, bounds=None, classes=None)


def search(*steps, **options):
    defaults = {"epsilon": 60.0, "runs_per_candidate": 1, "accountant": BudgetAccountant()}
    return PrivateSearchCV(make_pipeline(*steps), {}, **{**defaults, **options})


def refusal(model, X, y=LABELS, **persons):
    """Return the error of a search, which must not have been charged."""
    with pytest.raises(ValueError, match=r".") as caught:
        model.fit(X, y, **persons)
    assert len(model.accountant) == 0
    return str(caught.value)


# ------------------------------------------------------------------ errors of later steps


@pytest.mark.parametrize(
    ("later", "match"),
    [
        ([by_schema("a")], "lacks the columns"),
        ([by_schema("d")], "lacks the columns"),
        ([bayes(bounds=([0] * 4, [1] * 4))], "each of the 2 features"),
        ([PrivateKBinsDiscretizer([2, 2, 2], epsilon=0.5), bayes()], "each of the 2 features"),
        ([PrivateMinMaxScaler(0.5), by_schema("a")], "1 columns, but X has 2"),
    ],
)
def test_the_error_of_a_later_step_does_not_tell_what_was_selected(later, match):
    said = {refusal(search(select(2), *later), telling(column)) for column in "abcd" * 3}
    assert len(said) == 1
    assert match in said.pop()


def test_a_column_that_a_later_step_cannot_take_is_refused_though_it_may_not_be_selected():
    X = telling("a").assign(e="text")
    domains = {**BITS, "e": Categories(["text", "else"])}
    for k in (1, 2, 4):
        for later in ([bayes()], [PrivateStandardScaler(0.5), bayes()]):
            assert "holds text" in refusal(search(select(k, domains), *later), X)


def test_what_every_selection_allows_is_fitted():
    for later in ([bayes()], [PrivateMinMaxScaler(0.5), bayes()], [by_schema("abcd")]):
        model = search(select(2), *later)
        assert model.fit(telling("b"), LABELS).guarantee_.epsilon == 60.0


# ------------------------------------------------------------------ all that is done


class Charged(Exception):
    """The search would be charged now."""


class Stop(BudgetAccountant):
    """A ledger at which a search ends."""

    def spend(self, *_, **__):
        raise Charged


def before_the_charge(model, X, y, groups, monkeypatch):
    """Return the statistics of all releases before the charge, with the same noise every time."""
    released, noise = [], random.Random(0)

    def noted(release, plan, statistics, source):
        released.append(pickle.dumps((plan, statistics)))
        return release(plan, statistics, source)

    model.set_params(accountant=Stop(), random_state=0)
    with monkeypatch.context() as patch, boundary(noted):
        patch.setattr(os, "urandom", noise.randbytes)
        with pytest.raises(Charged):
            model.fit(X, y, groups)
    return released


SEARCHES = {
    "model": lambda whom: bayes(**whom),
    "regression": lambda whom: BayesianLinearRegression(
        bounds_X=(0, 1), bounds_y=(0, 1), inference="plug_in", **whom
    ),
    "selection": lambda whom: make_pipeline(select(2, **whom), bayes(**whom)),
    "scaled": lambda whom: make_pipeline(PrivateMinMaxScaler(0.5, **whom), bayes(**whom)),
}


@pytest.mark.parametrize("whom", [{}, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("kind", SEARCHES)
def test_nothing_about_the_records_is_released_before_the_charge(kind, whom, monkeypatch):
    model = PrivateSearchCV(SEARCHES[kind](whom), {}, epsilon=3.0)
    groups = np.arange(N) // 2 if whom == PERSON else None
    seen = [
        before_the_charge(model, X, y, groups, monkeypatch)
        for X, y in ((telling("a"), LABELS), (telling("c"), np.sort(LABELS)))
    ]
    assert seen[0]
    assert seen[0] == seen[1]


# ------------------------------------------------------------------ errors after the charge


class Fussy(PrivateMinMaxScaler):
    """A step made by a user, whose error shows a value."""

    def transform(self, X):
        if np.asarray(X).max() > 1:
            raise KeyError(f"{np.asarray(X).max()}")
        return super().transform(X)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_error_of_a_run_shows_no_value(n_jobs):
    X = telling("a").assign(d=4711)
    model = search(Fussy(0.5), bayes(), n_jobs=n_jobs)
    with pytest.raises(RuntimeError, match=r"Candidate 0 .* charged: KeyError\.") as caught:
        model.fit(X, LABELS)
    assert len(model.accountant) == 1  # no public fact could tell
    error, texts = caught.value, []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    assert not any("4711" in text for text in texts)


def test_domains_that_cannot_be_read_are_refused_before_the_charge_if_the_first_step_needs_them():
    X = telling("a").astype(float)
    X.loc[::2, "b"] = np.nan
    undeclared = PrivateSelectKBest(2, epsilon=0.5, classes=[0, 1])
    with pytest.warns(PrivacyLeakWarning, match="bounds of the features"):
        assert "NaN" in refusal(search(undeclared, bayes()), X)
    later = search(select(3), bayes(bounds=None))
    with pytest.warns(PrivacyLeakWarning), pytest.raises(RuntimeError, match="ValueError"):
        later.fit(X, LABELS)
    assert len(later.accountant) == 1


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.exceptions.PrivacyLeakWarning")
def test_one_value_that_cannot_be_read_is_refused_before_the_charge_whoever_is_held_out(pipeline):
    X = telling("a").to_numpy(float, copy=True)
    X[3, 1] = np.nan
    chosen = PrivateSelectKBest(3, epsilon=0.5, classes=[0, 1])
    for test_size in (0.05, 0.95):
        model = search(chosen, bayes(), test_size=test_size, random_state=0)
        if not pipeline:
            model.set_params(estimator=bayes(bounds=None))
        assert "NaN" in refusal(model, X)


def test_undeclared_domains_are_warned_of_once_and_become_a_condition():
    model = search(PrivateMinMaxScaler(0.5), bayes(classes=None), runs_per_candidate=5)
    with pytest.warns(PrivacyLeakWarning) as warned:
        model.fit(telling("a"), LABELS)
    assert len(warned) == 1
    assert any("classes were read" in condition for condition in model.guarantee_.conditions)


def test_a_preflight_sees_the_domains_that_were_read(monkeypatch):
    """A model whose domains come from the data is asked with them, and not only with stand-ins."""
    asked, planned = [], BayesianNaiveBayes._planned

    def noted(self, given, budget):
        asked.append(given.public.classes.n_values)
        return planned(self, given, budget)

    monkeypatch.setattr(BayesianNaiveBayes, "_planned", noted)
    model = PrivateSearchCV(bayes(classes=None), {}, accountant=Stop())
    with pytest.warns(PrivacyLeakWarning), pytest.raises(Charged):
        model.fit(telling("a"), np.arange(N) % 7)
    assert {2, 7} <= {*asked}


def test_all_columns_are_chosen_and_left_out_in_some_form():
    from dpbayes_sklearn.model_selection.rehearsal import _forms

    for d, k in itertools.product(range(1, 8), range(1, 8)):
        if k >= d:
            continue
        X = pd.DataFrame(np.zeros((4, d)), columns=[f"x{j}" for j in range(d)])
        step = PrivateSelectKBest(k, bounds=(0, 1), classes=[0, 1]).fit(X, [0, 1, 0, 1])
        masks = np.array([form.get_support() for form in _forms(step, X)])
        assert (masks.sum(axis=1) == k).all()
        assert masks.any(axis=0).all()
        assert not masks.all(axis=0).any()
        assert len([*_forms(step, X.to_numpy())]) == 1
