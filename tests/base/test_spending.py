"""Every fit is one row of the ledger, whoever clones, forks or threads the estimator."""

from __future__ import annotations

import itertools
import pickle
import re
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpbayes_sklearn
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError
from dpbayes_sklearn.data.records import _BLAS
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.noise import made_by
from dpbayes_sklearn.privacy.active import _BRANCH
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.privacy.ledger_file import _GATE

pytestmark = pytest.mark.filterwarnings(
    "ignore:Scores are computed:dpbayes_sklearn.PrivacyLeakWarning"
)

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 2, (60, 2)), np.arange(60) % 2
BACKENDS = [("loky", 2), ("threading", 2), ("multiprocessing", 2), ("loky", 1), ("threading", 1)]


def classifier(accountant, epsilon=0.1, **params):
    return BayesianNaiveBayes(
        epsilon,
        inference="plug_in",
        classes=[0, 1],
        bounds=(0, 1),
        accountant=accountant,
        **params,
    )


def spent(accountant):
    """Return the exact sum, read back from the rows themselves."""
    return sum((entry.cost.epsilon for entry in accountant), Fraction(0))


def assert_ledger(accountant, *epsilons):
    """Assert one row for each epsilon, in any order, and a total of exactly their sum."""
    assert sorted(entry.cost.epsilon for entry in accountant) == sorted(epsilons)
    assert len({entry.release_id for entry in accountant}) == len(accountant) == len(epsilons)
    assert spent(accountant) == sum(epsilons)
    assert accountant.total().epsilon == float(sum(epsilons))


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_fit_of_a_grid_search_is_charged(backend, n_jobs):
    accountant = BudgetAccountant()
    search = GridSearchCV(classifier(accountant), {"epsilon": [0.1, 0.2, 0.3]}, cv=5, n_jobs=n_jobs)
    with joblib.parallel_config(backend):
        search.fit(X, Y)
    tenth = Fraction(1, 10)
    refit = Fraction(str(search.best_params_["epsilon"]))
    assert_ledger(accountant, *[tenth] * 5, *[2 * tenth] * 5, *[3 * tenth] * 5, refit)
    assert search.best_estimator_.accountant == accountant


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_fold_of_a_cross_validation_is_charged(backend, n_jobs):
    accountant = BudgetAccountant()
    with joblib.parallel_config(backend):
        cross_val_score(classifier(accountant), X, Y, cv=5, n_jobs=n_jobs)
    assert_ledger(accountant, *[Fraction(1, 10)] * 5)


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_estimator_of_a_vote_is_charged(backend, n_jobs):
    accountant = BudgetAccountant()
    members = [(name, classifier(accountant, mechanism=name)) for name in MECHANISMS]
    with joblib.parallel_config(backend):
        VotingClassifier(members, n_jobs=n_jobs).fit(X, Y)
    assert_ledger(accountant, *[Fraction(1, 10)] * 4)
    assert sorted(entry.label.split(", ")[1] for entry in accountant) == sorted(MECHANISMS)


@pytest.mark.filterwarnings("ignore:An ensemble has set random_state")
@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_bag_is_charged(backend, n_jobs):
    accountant = BudgetAccountant()
    bagging = BaggingClassifier(classifier(accountant), n_estimators=7, n_jobs=n_jobs)
    with joblib.parallel_config(backend):
        bagging.fit(X, Y)
    assert_ledger(accountant, *[Fraction(1, 10)] * 7)


def test_pipeline_and_wrappers():
    accountant = BudgetAccountant()
    make_pipeline(FunctionTransformer(), classifier(accountant)).fit(X, Y)
    CalibratedClassifierCV(classifier(accountant, 0.2), cv=3).fit(X, Y)
    OneVsRestClassifier(classifier(accountant, 0.3)).fit(X, np.arange(60) % 3)
    tenths = [Fraction(k, 10) for k in (1, 2, 2, 2, 3, 3, 3)]
    assert_ledger(accountant, *tenths)


def test_nested_clones_copies_and_pickles_share_one_ledger():
    accountant = BudgetAccountant()
    model = classifier(accountant)
    nested = clone(clone(make_pipeline(clone(model))))
    for copy in (model, clone(clone(model)), pickle.loads(pickle.dumps(model)), nested):
        copy.fit(X, Y)
    inner = GridSearchCV(nested, {"bayesiannaivebayes__epsilon": [0.1, 0.1]}, cv=2)
    cross_val_score(inner, X, Y, cv=2)  # 2 outer folds of 2 x 2 inner ones and a refit each
    assert_ledger(accountant, *[Fraction(1, 10)] * (4 + 2 * 5))


def test_the_innermost_open_accountant_is_charged():
    with BudgetAccountant() as outer:
        classifier(None).fit(X, Y)
        with BudgetAccountant() as inner:
            classifier(None).fit(X, Y)
            classifier(outer).fit(X, Y)
    classifier(None).fit(X, Y)
    assert (len(outer), len(inner)) == (2, 1)


def test_batches_in_a_parallel_scope_cost_their_maximum():
    accountant = BudgetAccountant()
    model = classifier(accountant, privacy_unit=PrivacyUnit("record", neighbours="add_remove"))
    with accountant.parallel():
        model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert len(accountant) == 4
    assert len({entry.branch for entry in accountant}) == 2
    assert accountant.total().epsilon == 0.1 == model.guarantee_.epsilon


@pytest.mark.filterwarnings("ignore:An ensemble has set random_state")
@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "threading"), (2, "threading"), (2, "loky")])
def test_the_ceiling_refuses_exactly_the_fits_that_would_cross_it(n_jobs, backend):
    accountant = BudgetAccountant(0.7)
    with joblib.parallel_config(backend):
        bagging = BaggingClassifier(classifier(accountant), n_estimators=7, n_jobs=n_jobs)
        bagging.fit(X, Y)  # 0.1 seven times is 0.7 to the last digit
        assert_ledger(accountant, *[Fraction(1, 10)] * 7)
        with pytest.raises(BudgetError) as refused:
            BaggingClassifier(classifier(accountant), n_estimators=2, n_jobs=n_jobs).fit(X, Y)
    assert refused.value.requested.epsilon == 0.1
    assert refused.value.remaining.epsilon == 0.0
    assert len(accountant) == 7


def test_of_many_fits_the_first_that_crosses_is_refused_and_smaller_ones_still_pass():
    accountant = BudgetAccountant(1.0)
    outcomes = []
    for epsilon in (0.4, 0.5, 0.2, 0.1, 1e-9):
        try:
            classifier(accountant, epsilon).fit(X, Y)
            outcomes.append(True)
        except BudgetError:
            outcomes.append(False)
    assert outcomes == [True, True, False, True, False]


def test_the_charge_comes_before_the_noise():
    accountant = BudgetAccountant()
    rows_at_release = []

    class Watched(Noise):
        def add(self, arrays, law):
            rows_at_release.append(len(accountant))
            return super().add(arrays, law)

    with made_by(Watched):
        classifier(accountant).fit(X, Y)
    assert rows_at_release == [1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("params", "labels"),
    [({"n_bins": [2]}, Y), ({"alpha": [1.0]}, Y), ({"bounds": (1, 0)}, Y), ({}, Y[:-1])],
)
def test_fits_that_fail_charge_nothing(mechanism, params, labels):
    accountant = BudgetAccountant()
    model = classifier(accountant, mechanism=mechanism).set_params(**params)
    with pytest.raises(ValueError, match=r"must|inconsistent"):
        model.fit(X, labels)
    assert len(accountant) == 0


class Injected(BaseException):
    """Like an interrupt from the keyboard: no error that anybody would catch."""


PACKAGE = str(Path(dpbayes_sklearn.__file__).parent)


def lines_of_fit(model):
    """Fit, and return all lines of the library that were stepped on, in their order."""
    steps = []

    def noting(frame, event, _):
        if event == "line":
            steps.append((frame.f_code.co_filename, frame.f_lineno))
        return noting

    traced(model, lambda frame: noting if frame.f_code.co_filename.startswith(PACKAGE) else None)
    return steps


def fit_with_error_at(line, count, model):
    """Fit, raising when a line is stepped on for so many times."""
    (filename, number), left = line, itertools.count(1 - count)

    def stopping(frame, event, _):
        if event == "line" and frame.f_lineno == number and not next(left):
            raise Injected
        return stopping

    traced(model, lambda frame: stopping if frame.f_code.co_filename == filename else None)


def traced(model, follow):
    """Fit with a function that follows some frames; errors that it injects are dropped."""
    earlier = sys.gettrace()
    sys.settrace(lambda frame, *_: follow(frame))
    try:
        model.fit(X[:8], Y[:8])
    except Injected:
        pass
    finally:
        sys.settrace(earlier)
        # an error between a lock's acquisition and its block leaves it held, as no error of the
        # code itself can; other tests' threads would wait for it for ever
        for lock in (_GATE, _BLAS.lock):
            while lock._is_owned():
                lock.release()
        _BLAS._users = 0  # and one beside it leaves BLAS at one thread
        _BRANCH.set(None)  # which would let the charges of later fits in a scope add up


def outcomes_of_errors(model, where=""):
    """Return (fitted, charged) for an error at the first and at the last step on every line."""
    lines_of_fit(clone(model))  # what is calibrated once is remembered
    steps = Counter(line for line in lines_of_fit(clone(model)) if where in line[0])
    inner = re.compile("noise|laws|posteriors|statistics")  # of no other state when they loop
    for line, times in steps.items():
        for count in {1} if inner.search(line[0]) else {1, times}:
            tried, rows = clone(model), len(model.accountant)
            before = dict(vars(tried))
            fit_with_error_at(line, count, tried)
            fitted = vars(tried).keys() != before.keys()
            assert fitted or vars(tried) == before
            yield fitted, len(model.accountant) - rows


@pytest.mark.parametrize(
    ("mechanism", "where"),
    [("laplace", ""), ("sampler", "counts/dirichlet.py"), ("sampler", "base/estimator.py")],
)
def test_an_error_at_any_line_leaves_no_fit_without_a_charge(mechanism, where):
    model = classifier(BudgetAccountant(), mechanism=mechanism, random_state=0)
    # refused, charged but nothing released, or charged and fitted: never fitted and not charged
    outcomes = set(outcomes_of_errors(model, where))
    assert {(False, 0), (False, 1)} <= outcomes <= {(False, 0), (False, 1), (True, 1)}


class ChargesLast(BayesianNaiveBayes):
    """A planted fault: the ledger is charged when all is done."""

    def _ledger(self):
        return None

    def fit(self, X, y):
        super().fit(X, y)
        self.accountant.spend(self.epsilon)
        return self


def test_an_estimator_that_charges_last_is_caught():
    params = {"classes": [0, 1], "bounds": (0, 1), "inference": "plug_in", "random_state": 0}
    model = ChargesLast(accountant=BudgetAccountant(), **params)
    assert (True, 0) in set(outcomes_of_errors(model, "privacy"))
