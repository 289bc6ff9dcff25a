"""Seeds are warned of where they meet what looks like a real release."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, PrivacyLeakWarning
from dpbayes_sklearn.model_selection import PrivateSearchCV

X, Y = np.arange(120).reshape(60, 2) % 2, np.arange(60) % 2


def model(**options):
    return BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1], **options)


def warned(estimator) -> set[str]:
    """Return the files and first words of the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, Y)
    assert all(w.category is PrivacyLeakWarning and w.filename == __file__ for w in caught)
    return {" ".join(str(w.message).split()[:3]) for w in caught}


@pytest.fixture
def on_disk(tmp_path):
    return BudgetAccountant(path=tmp_path / "ledger.sqlite")


def test_a_seed_with_a_ledger_on_disk(on_disk):
    assert warned(model(random_state=0, accountant=on_disk)) == {"random_state is set,"}
    with on_disk:
        assert warned(model(random_state=np.random.RandomState(0))) == {"random_state is set,"}


def test_a_search_tells_of_its_own_seed_only(on_disk):
    search = PrivateSearchCV(model(), {"alpha": [1.0]}, runs_per_candidate=2, accountant=on_disk)
    assert warned(search) == set()
    assert warned(search.set_params(random_state=0)) == {"random_state is set,"}


def test_what_is_no_release_or_has_no_seed_is_not_told_of(on_disk):
    assert warned(model(accountant=on_disk)) == set()
    assert warned(model(random_state=0)) == set()
    assert warned(model(random_state=0, accountant=BudgetAccountant())) == set()
    assert warned(model(epsilon=math.inf, random_state=0, accountant=on_disk)) == set()


def test_ensembles_that_hand_out_seeds():
    assert warned(BaggingClassifier(model(), n_estimators=2)) == {"An ensemble has"}
    assert warned(BaggingClassifier(model(epsilon=math.inf), n_estimators=2)) == set()


def test_ensembles_that_do_not():
    members = [("a", model()), ("b", model(alpha=2.0))]
    assert warned(VotingClassifier(members)) == set()
    assert warned(StackingClassifier(members, final_estimator=model(), cv=2)) == set()
