"""Searches over pipelines that protect persons, or records of a secret number."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from benchmarks.audit.tools.replaying import SEARCH, replay
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    PrivateSearchCV,
)
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit

ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=2)}
BOTH = {"privacy_unit": PrivacyUnit("person", max_records=2, neighbours="add_remove")}
WHOM = [ADDED, PERSON, BOTH]
RNG = np.random.default_rng(0)
N = 1200
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, 4)) + [[0, 2, 0, 0]] * Y[:, None]
WHO = np.repeat(np.arange(N), RNG.integers(1, 5, N))[:N]
GRID = {"bayesiannaivebayes__alpha": [0.5, 2.0]}
whom = pytest.mark.parametrize("whom", WHOM, ids=str)


def pipe(whom):
    coded = {"bounds": (0, 3), "n_bins": 4, "classes": [0, 1], **whom}
    return make_pipeline(
        PrivateKBinsDiscretizer(4, epsilon=0.2, **whom),
        PrivateSelectKBest(2, epsilon=0.2, **coded),
        BayesianNaiveBayes(0.6, inference="plug_in", temperature=1, **coded),
    )


def persons(whom, who):
    return {"groups": who} if whom["privacy_unit"].name == "person" else {}


@pytest.mark.parametrize(
    ("whom", "routing"), [*((whom, False) for whom in WHOM), (WHOM[-1], True)], ids=str
)
def test_one_charge_for_one_unit(whom, routing):
    ledger = BudgetAccountant()
    search = PrivateSearchCV(pipe(whom), GRID, epsilon=60.0, runs_per_candidate=3, test_size=0.3)
    with sklearn.config_context(enable_metadata_routing=routing):
        search.set_params(accountant=ledger).fit(X, Y, **persons(whom, WHO))
    (entry,) = ledger
    unit = search.guarantee_.privacy_unit
    assert (entry.epsilon, unit) == (60.0, whom["privacy_unit"])
    assert entry.label.endswith(unit.label)
    steps = [step for _, step in search.best_estimator_.steps]
    assert all(step.guarantee_ == search.guarantee_ for step in steps)
    assert not any("no person has more" in condition for condition in search.guarantee_.conditions)
    assert np.mean(search.predict(X) == Y) > 0.7
    assert 0 < search.best_score_ < 1.5
    assert leaks(search, {"a column": X[:, 2], "labels": Y, "persons": WHO}) == []


def test_a_regression():
    line = make_pipeline(
        PrivateMinMaxScaler(0.3, **ADDED),
        BayesianLinearRegression(0.7, bounds_X=(0, 1), bounds_y=(-3, 5), **ADDED),
    )
    grid = {"privateminmaxscaler__quantiles": [(0.01, 0.99), (0.1, 0.9)]}
    search = PrivateSearchCV(line, grid, epsilon=6.0, runs_per_candidate=2)
    assert search.fit(X, X[:, 1]).guarantee_.privacy_unit.size_is_secret


@whom
def test_a_neighbour_differs_in_nothing_but_the_release(whom):
    search = PrivateSearchCV(pipe(whom), GRID, epsilon=0.9, runs_per_candidate=1, random_state=0)
    for n in (60, 2):
        who = np.repeat(np.arange(n), 2)[:n] if n > 2 else np.zeros(n)
        own = who == who[-1] if persons(whom, who) else np.arange(n) == n - 1
        one, other = [X[:n], Y[:n], who], [X[:n].copy(), Y[:n].copy(), who]
        other[0][own], other[1][own] = [np.nan, np.inf, -1e300, 0.0], 7
        if whom["privacy_unit"].size_is_secret:
            other = [X[:n][~own], Y[:n][~own], who[~own]]
        elif n == 2:
            continue  # too few to hold some out, which is public
        groups = (one[2], other[2]) if persons(whom, who) else (None, None)
        found = replay(
            search, *one[:2], *other[:2], groups=groups[0], groups2=groups[1], freeze=SEARCH
        )
        assert found.sound, found.divergences
        assert found.status == "fitted"
        assert found.epsilon == 0.9


def test_no_step_releases_a_number_of_records_in_the_rehearsal(monkeypatch):
    """A guess stands for it: no number of made-up records is released, or warned of."""
    released, charged = [], PrivateEstimator._charged

    def noted(self, plan, *rest):
        released.append((type(self).__name__, plan.mechanism, bool(rehearsing)))
        return charged(self, plan, *rest)

    def noting(self, *people):
        rehearsing.append(self)
        try:
            return rehearse(self, *people)
        finally:
            rehearsing.pop()

    rehearsing, rehearse = [], PrivateEstimator._rehearse
    monkeypatch.setattr(PrivateEstimator, "_charged", noted)
    monkeypatch.setattr(PrivateEstimator, "_rehearse", noting)
    model = make_pipeline(
        PrivateMinMaxScaler(0.5, **ADDED),
        BayesianNaiveBayes(0.5, bounds=(0, 1), n_bins=2, classes=[0, 1], **ADDED),
    )
    PrivateSearchCV(model, GRID, epsilon=3.0, runs_per_candidate=1).fit(X, Y)
    sizes = [guessed for _, mechanism, guessed in released if mechanism == "size"]
    assert sizes
    assert not any(sizes)
    assert any(guessed for _, mechanism, guessed in released if mechanism == "quantiles")


def test_steps_of_different_units_are_refused_before_anything_is_spent():
    ledger = BudgetAccountant()
    mixed = clone(pipe(ADDED)).set_params(privatekbinsdiscretizer__privacy_unit="record")
    search = PrivateSearchCV(mixed, GRID, accountant=ledger)
    with pytest.raises(ValueError, match="same unit"):
        search.fit(X, Y)
    with pytest.raises(ValueError, match="give groups"):
        PrivateSearchCV(pipe(PERSON), GRID, accountant=ledger).fit(X, Y)
    assert len(ledger) == 0
