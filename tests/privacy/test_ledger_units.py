"""A ledger adds up releases that protect the same unit, whoever makes them."""

import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    PosteriorQuerySession,
    PrivateSearchCV,
)
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from tests.visits import ADDED, CLASSIFIER, PERSON, labels, visits


def other_units():
    """Yield what each of several fits to a ledger is called, and the fit."""
    X, y, who = visits(200)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    naive = BayesianNaiveBayes(**CLASSIFIER)
    sampler = clone(naive).set_params(mechanism="sampler", random_state=0)

    def fit(**whom):
        groups = labels(whom, who)
        return lambda ledger: (
            clone(naive).set_params(accountant=ledger, **whom).fit(X, y, groups=groups)
        )

    def search(ledger):
        grid = {"alpha": [1.0, 2.0]}
        model = clone(naive).set_params(**ADDED)
        PrivateSearchCV(model, grid, accountant=ledger, random_state=0).fit(X, y)

    def block(ledger):
        with ledger:
            BetaBinomial(**ADDED).fit(y)

    yield "add_remove", fit(**ADDED)
    yield (
        "feature",
        lambda ledger: clone(naive).set_params(accountant=ledger, privacy_unit="feature").fit(X, y),
    )
    yield "person", fit(**PERSON)
    yield "search", search
    yield "block", block
    yield (
        "session",
        lambda ledger: PosteriorQuerySession(
            clone(sampler).set_params(**ADDED), X, y, accountant=ledger
        ),
    )
    yield (
        "processes",
        lambda ledger: cross_val_score(
            clone(naive).set_params(accountant=ledger, **ADDED),
            X,
            y,
            cv=2,
            n_jobs=2,
            error_score="raise",
        ),
    )
    yield "transformer", lambda ledger: PrivateMinMaxScaler(accountant=ledger).fit(frame)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "fit", [fit for _, fit in other_units()], ids=[n for n, _ in other_units()]
)
def test_a_ledger_refuses_another_unit_before_anything_is_spent(fit):
    ledger = BudgetAccountant()
    ledger.spend(0.1, unit=PrivacyUnit("person", max_records=7, neighbours="add_remove"))
    with pytest.raises(ValueError, match="BudgetAccountant of its own"):
        fit(ledger)
    assert len(ledger) == 1
    fit(BudgetAccountant())


def test_a_ledger_with_a_delta_refuses_another_unit():
    X, y, _ = visits()
    ledger = BudgetAccountant(epsilon=5, delta=1e-6)
    model = BayesianNaiveBayes(**CLASSIFIER, mechanism="gaussian", delta=1e-8, accountant=ledger)
    model.fit(X, y)
    with pytest.raises(ValueError, match="'record', not 'record, add_remove'"):
        clone(model).set_params(**ADDED).fit(X, y)
    assert [entry.unit for entry in ledger] == ["record"]
    assert list(ledger.to_frame()["unit"]) == ["record"]


def test_a_ledger_is_about_one_number_of_records_per_person(tmp_path):
    X, y, who = visits()
    model = BayesianNaiveBayes(**CLASSIFIER, **PERSON)
    model.set_params(accountant=BudgetAccountant(path=tmp_path / "ledger")).fit(X, y, groups=who)
    again = BudgetAccountant(path=tmp_path / "ledger", existing=True)
    assert again.unit == "person (3 records)"
    with pytest.raises(ValueError, match="person"):
        clone(model).set_params(
            privacy_unit=PrivacyUnit("person", max_records=4), accountant=again
        ).fit(X, y, groups=who)
    again.spend(1.0, label="by hand")
    clone(model).set_params(accountant=again).fit(X, y, groups=who)
    assert [entry.unit for entry in again] == 3 * ["person (3 records)"]
