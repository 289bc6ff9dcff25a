"""``with accountant:`` charges every fit in it, also those that joblib sends to other processes."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.privacy import BudgetAccountant

pytestmark = [
    # Python >= 3.12 warns of the forks that are tested here
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Scores are computed:dpbayes_sklearn.PrivacyLeakWarning"),
]

X = np.random.default_rng(0).random((60, 2))
Y = (X[:, 0] > 0.5).astype(int)


def model() -> BayesianNaiveBayes:
    return BayesianNaiveBayes(1.0, bounds=(0, 1), n_bins=2, classes=[0, 1])


@pytest.mark.filterwarnings("ignore:An ensemble has set random_state")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize(
    ("estimator", "fits"),
    [
        (model(), 1),
        (make_pipeline(model()), 1),
        (VotingClassifier([("a", model()), ("b", make_pipeline(model()))]), 2),
        (BaggingClassifier(model(), 2), 2),
    ],
    ids=["alone", "pipeline", "voting", "bagging"],
)
def test_every_fit_in_the_block_is_charged(estimator, fits, backend):
    with BudgetAccountant() as accountant, joblib.parallel_config(backend, n_jobs=2):
        cross_validate(estimator, X, Y, cv=3)
    assert len(accountant) == 3 * fits
    assert accountant.total() == (3 * fits, 0)


def test_what_comes_back_from_a_worker_is_free_of_the_block():
    with BudgetAccountant() as accountant, joblib.parallel_config("loky", n_jobs=2):
        returned = cross_validate(model(), X, Y, cv=2, return_estimator=True)["estimator"]
    for fitted in returned:
        fitted.fit(X, Y)
        clone(fitted).fit(X, Y)
    assert len(accountant) == 2


def test_fits_after_the_block_are_not_charged():
    estimator = model()
    with BudgetAccountant() as accountant:
        copies = [clone(estimator), copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))]
        estimator.fit(X, Y)
    for later in (estimator, *copies):
        later.fit(X, Y)
    assert len(accountant) == 1
    assert "_block" not in vars(estimator)


def test_the_parameter_comes_before_the_block():
    own = BudgetAccountant()
    with BudgetAccountant() as block, joblib.parallel_config("loky", n_jobs=2):
        cross_validate(model().set_params(accountant=own), X, Y, cv=2)
    assert (len(own), len(block)) == (2, 0)
