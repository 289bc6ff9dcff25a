"""Meta-estimators encode labels; a wrong declaration is hinted at from what was released."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Schema
from dpbayes_sklearn.model_selection import PrivateSearchCV

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, 3000)
NAMES = np.array(["maybe", "no", "yes"])  # in their order, as scikit-learn sorts them
LABELS = NAMES[CODES]
X = np.where(RNG.random((3000, 4)) < 0.9, CODES[:, None], RNG.integers(0, 3, (3000, 4)))

pytestmark = pytest.mark.filterwarnings("ignore:An ensemble has set random_state")


def model(classes, **options):
    return BayesianNaiveBayes(4.0, bounds=(0, 2), n_bins=3, classes=classes, **options)


def hints(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if "few or none" in r.getMessage()]


ENCODING = {
    "bagging": lambda member: BaggingClassifier(member, 3),
    "voting": lambda member: VotingClassifier([("a", member), ("b", member)]),
    "stacking": lambda member: StackingClassifier([("a", member)], member, cv=2),
}
PASSING_ON = {
    "pipeline": lambda member: make_pipeline(FunctionTransformer(), member),
    "grid": lambda member: GridSearchCV(member, {"alpha": [1.0]}, cv=2),
    "calibrated": lambda member: CalibratedClassifierCV(member, cv=2),
    "private search": lambda member: PrivateSearchCV(member, {"alpha": [1.0]}, epsilon=6.0),
}
BINARY = {
    "one against rest": OneVsRestClassifier,
    "one against one": OneVsOneClassifier,
    "codes": lambda member: OutputCodeClassifier(member, random_state=0),
}


@pytest.mark.parametrize("name", ENCODING)
def test_members_with_codes_learn_text_labels(name, caplog):
    if name == "stacking":  # its last model sees probabilities
        member = BayesianNaiveBayes(4.0, bounds=(0, 2), n_bins=3, classes=range(3))
        last = BayesianNaiveBayes(4.0, bounds=(0, 1), n_bins=4, classes=range(3))
        ensemble = StackingClassifier([("a", member)], last, cv=2)
    else:
        ensemble = ENCODING[name](model(range(3)))
    assert ensemble.fit(X, LABELS).score(X, LABELS) > 0.9
    assert hints(caplog) == []


@pytest.mark.parametrize("name", PASSING_ON)
def test_others_pass_labels_on(name, caplog):
    assert PASSING_ON[name](model(NAMES)).fit(X, LABELS).score(X, LABELS) > 0.9
    assert hints(caplog) == []


@pytest.mark.parametrize("name", BINARY)
def test_one_class_at_a_time_is_zero_or_one(name, caplog):
    assert BINARY[name](model([0, 1])).fit(X, LABELS).score(X, LABELS) > 0.8
    assert hints(caplog) == []


@pytest.mark.parametrize("name", ENCODING)
def test_labels_that_are_not_the_codes_are_hinted_at(name, caplog):
    ENCODING[name](model([1, 2, 3])).fit(X, CODES + 1)
    assert hints(caplog)
    assert all("class 3" in hint and "classes=range(k)" in hint for hint in hints(caplog))


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [("laplace", 4.0), ("laplace", math.inf), ("fourier", 80.0), ("fourier", math.inf)],
)
def test_an_absent_class_is_hinted_at(mechanism, epsilon, caplog):
    absent = model(range(5), mechanism=mechanism).set_params(epsilon=epsilon).fit(X, CODES)
    (hint,) = hints(caplog)
    assert "Of 3000 records, few or none have class 3 or 4" in hint
    assert caplog.records[0].levelno == logging.WARNING
    assert absent.posterior_.mean()[-1][3] < 0.05


def test_a_schema_declares_classes_too(caplog):
    schema = Schema({f"x{j}": Categories(range(3)) for j in range(4)}, Categories([0, 1, 2, 9]))
    BayesianNaiveBayes(4.0, schema=schema).fit(X, CODES)
    assert len(hints(caplog)) == 1


def test_a_rare_class_that_shows_is_not_hinted_at(caplog):
    rare = (np.arange(3000) % 50 == 0).astype(int)  # 60 records, noise of less than 20
    model([0, 1]).fit(X[:, :1], rare)
    assert hints(caplog) == []


def test_noise_that_could_hide_a_class_is_no_reason(caplog):
    model([0, 1]).set_params(epsilon=0.01).fit(X, np.zeros(3000, int))
    assert hints(caplog) == []


def test_later_batches_and_searches_say_nothing(caplog):
    batches = model(range(3)).partial_fit(X, CODES)
    batches.partial_fit(X, np.zeros(3000, int))
    search = PrivateSearchCV(model(range(4)), {"alpha": [1.0]}, epsilon=12.0).fit(X, CODES)
    assert search.classes_.tolist() == [0, 1, 2, 3]
    assert hints(caplog) == []  # what a rehearsal releases is not paid for
