"""PrivateSearchCV: scikit-learn's conventions, what it costs and to whom it is charged."""

from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
)
from dpbayes_sklearn.model_selection import PrivateSearchCV

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 400)
X = (RNG.random((400, 3)) < 0.1 + 0.8 * Y[:, None]).astype(int)
TARGET = 2 * X[:, 0] + X[:, 1] + RNG.normal(0, 0.2, 400)
GRID = {"mechanism": ["laplace", "map"], "alpha": [0.5, 2.0]}
REGRESSION_GRID = {"prior_precision": [0.1, 1.0]}


def classifier(**params):
    return BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2, **params)


def regression(**params):
    return BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(-1, 4), **params)


def search(**params):
    return PrivateSearchCV(classifier(), GRID, **{"runs_per_candidate": 2, **params})


def test_the_winner_predicts():
    found = search(epsilon=30.0, random_state=0).fit(X, Y)
    assert is_classifier(found)
    assert found.score(X, Y) == found.best_estimator_.score(X, Y) > 0.85
    assert found.predict_proba(X[:5]).shape == found.predict_log_proba(X[:5]).shape == (5, 2)
    assert found.classes_.tolist() == [0, 1]
    assert found.n_features_in_ == 3
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    assert found.best_params_.items() <= found.best_estimator_.get_params().items()
    assert 0.7 < found.best_score_ < 1.1


def test_a_regression_is_searched_for():
    found = PrivateSearchCV(regression(), REGRESSION_GRID, epsilon=100.0, random_state=0)
    found.fit(X, TARGET)
    assert is_regressor(found)
    assert found.score(X, TARGET) > 0.8
    assert not hasattr(found, "predict_proba")
    mean, std = found.predict(X[:3], return_std=True)
    assert mean.shape == std.shape == (3,)


def test_frames_with_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = search().fit(frame, pd.Series(Y))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.predict(frame).shape == (400,)


def test_before_fit():
    with pytest.raises(NotFittedError):
        search().predict(X)
    assert not hasattr(search(), "classes_")
    assert "epsilon=1.0" not in repr(clone(search()))
    assert clone(search(epsilon=0.3)).get_params()["estimator__alpha"] == 1.0


@parametrize_with_checks(
    [
        # what a release is read by is checked with the estimators themselves
        PrivateSearchCV(
            BayesianNaiveBayes(inference="plug_in"), {"alpha": [1.0, 2.0]}, runs_per_candidate=1
        ),
        PrivateSearchCV(
            BayesianLinearRegression(inference="plug_in"),
            {"prior_precision": [1.0]},
            runs_per_candidate=2,
        ),
    ]
)
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ what it costs


@pytest.mark.parametrize("epsilon", [0.1, 1.0, Fraction(2, 7), 3])
def test_ledger_claim_and_question_are_one_figure(epsilon):
    accountant = BudgetAccountant()
    found = search(epsilon=epsilon, accountant=accountant).fit(X, Y)
    (entry,) = accountant
    assert entry.cost.epsilon == entry.spent.epsilon == Fraction(str(epsilon))
    assert entry.label == "PrivateSearchCV of BayesianNaiveBayes, record"
    assert found.guarantee_.epsilon == entry.epsilon == accountant.total().epsilon
    assert found.best_estimator_.guarantee_ == found.guarantee_
    assert found.best_estimator_.epsilon == Fraction(str(epsilon)) / 3


def test_cost_is_known_in_advance():
    cost = PrivateSearchCV.cost(classifier(epsilon=0.2), GRID, n=400, test_size=0.25)
    assert cost == (0.6, 0.2, 40, 300, 100)
    accountant = BudgetAccountant(epsilon=cost.epsilon)
    found = search(epsilon=cost.epsilon, accountant=accountant).fit(X, Y)
    assert accountant.remaining().epsilon == 0.0
    assert found.best_estimator_.epsilon == Fraction(1, 5)
    with pytest.raises(ValueError, match="param_grid must not hold 'epsilon'"):
        PrivateSearchCV.cost(classifier(), {"epsilon": [1.0]}, n=10)


def in_a_block(accountant):
    with accountant:
        return search().fit(X, Y)


HOLDERS = {
    "search": lambda a: search(accountant=a).fit(X, Y),
    "estimator": lambda a: PrivateSearchCV(classifier(accountant=a), GRID).fit(X, Y),
    "both": lambda a: PrivateSearchCV(classifier(accountant=a), GRID, accountant=a).fit(X, Y),
    "block": in_a_block,
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_whoever_holds_the_accountant_it_is_charged_once(holder):
    accountant = BudgetAccountant()
    holder(accountant)
    assert [entry.cost.epsilon for entry in accountant] == [1]


def test_its_own_accountant_counts_first():
    own, other = BudgetAccountant(), BudgetAccountant()
    with BudgetAccountant() as block:
        PrivateSearchCV(classifier(accountant=other), GRID, accountant=own).fit(X, Y)
    assert (len(own), len(other), len(block)) == (1, 0, 0)


@pytest.mark.filterwarnings("ignore:Scores are computed:dpbayes_sklearn.PrivacyLeakWarning")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_two_jobs_charge_once(backend):
    with BudgetAccountant() as accountant, joblib.parallel_config(backend):
        found = search(n_jobs=2).fit(X, Y)
    assert len(accountant) == 1
    assert found.score(X, Y) > 0.4


def test_each_search_of_a_cross_validation_is_charged():
    accountant = BudgetAccountant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # of the scores
        cross_val_score(search(epsilon=0.1, accountant=accountant), X, Y, cv=3)
    assert [entry.cost.epsilon for entry in accountant] == [Fraction(1, 10)] * 3


def test_the_winner_charges_again_when_it_is_fitted_again():
    accountant = BudgetAccountant()
    found = PrivateSearchCV(classifier(accountant=accountant), GRID).fit(X, Y)
    found.best_estimator_.fit(X, Y)
    assert [entry.cost.epsilon for entry in accountant] == [1, Fraction(1, 3)]


def test_more_batches_do_not_make_the_winner_look_cheaper():
    winner = search().fit(X, Y).best_estimator_
    winner.partial_fit(X, Y)
    assert winner.guarantee_.epsilon == 1.0


class Untouchable:
    """Data that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("the data were touched")


def test_a_search_beyond_the_ceiling_never_sees_the_data():
    accountant = BudgetAccountant(epsilon=0.99)
    with pytest.raises(BudgetError) as refused:
        search(accountant=accountant).fit(Untouchable(), Untouchable())
    assert refused.value.requested.epsilon == 1.0
    assert len(accountant) == 0


# ------------------------------------------------------------------ what is refused


OWN = ["epsilon", "accountant", "random_state", "privacy_unit", "bounds_y"]


@pytest.mark.parametrize("name", OWN)
def test_parameters_of_the_search_are_not_searched_over(name):
    with pytest.raises(ValueError, match=f"param_grid must not hold '{name}'"):
        PrivateSearchCV(classifier(), [GRID, {name: [None]}]).fit(X, Y)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(FunctionTransformer(), classifier()),
        BetaBinomial(),
        PrivateSearchCV(classifier(), GRID),
    ],
    ids=lambda e: type(e).__name__,
)
def test_other_estimators_are_refused(estimator):
    with pytest.raises(ValueError, match="'estimator' parameter of PrivateSearchCV"):
        PrivateSearchCV(estimator, GRID).fit(X, Y)


BAD = [{"epsilon": e} for e in (0, -1, math.nan, True, "1", None)]
BAD += [{"runs_per_candidate": r} for r in (0, 1.5)]
BAD += [{"test_size": s} for s in (0.0, 1.0, 2)]


@pytest.mark.parametrize("params", BAD, ids=str)
def test_bad_parameters_of_a_search_are_refused(params):
    (name,) = params
    with pytest.raises(ValueError, match=f"'{name}' parameter of PrivateSearchCV"):
        search(**params).fit(X, Y)


@pytest.mark.parametrize("grid", [{"alpha": [1.0, -1.0]}, {"n_bins": [2, [2]]}, {"beta": [1]}])
def test_a_bad_candidate_is_refused_before_anything_is_charged(grid):
    accountant = BudgetAccountant()
    with pytest.raises(ValueError, match=r"must|Invalid"):
        PrivateSearchCV(classifier(), grid, accountant=accountant).fit(X, Y)
    assert len(accountant) == 0


# ------------------------------------------------------------------ what is told


def test_domains_that_are_read_from_the_data_are_warned_of_once():
    grid = {"bounds": [None, (0, 1)], "alpha": [1.0, 2.0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = PrivateSearchCV(BayesianNaiveBayes(n_bins=2), grid).fit(X, Y)
    told = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
    assert sorted(text.split()[0] for text in told) == ["bounds", "classes"]
    # whoever wins, the choice was made among candidates that looked
    assert len(found.guarantee_.conditions) == 2
    assert caught[0].filename == __file__


def test_declared_domains_have_no_conditions_and_a_seed_is_one():
    assert search().fit(X, Y).guarantee_.conditions == ()
    (condition,) = search(random_state=0).fit(X, Y).guarantee_.conditions
    assert "random_state" in condition


def test_a_unit_is_passed_through():
    found = PrivateSearchCV(classifier(privacy_unit="feature"), {"alpha": [1.0]})
    with BudgetAccountant() as accountant:
        found.fit(X, Y)
    assert found.guarantee_.unit == "feature"
    assert next(iter(accountant)).label.endswith(", feature")


def test_a_seed_makes_a_search_repeatable():
    first, second = (search(random_state=3).fit(X, Y) for _ in range(2))
    assert first.best_score_ == second.best_score_
    assert pickle.dumps(first.best_estimator_) == pickle.dumps(second.best_estimator_)
    assert search(random_state=4).fit(X, Y).best_score_ != first.best_score_


def test_a_seed_of_the_estimator_does_not_freeze_the_noise():
    seeded = PrivateSearchCV(classifier(random_state=0), {"alpha": [1.0]})
    tables = {seeded.fit(X, Y).best_estimator_.posterior_.mean()[0].tobytes() for _ in range(5)}
    assert len(tables) > 1


def test_nothing_but_the_winner_is_kept():
    found = search(epsilon=1.0).fit(X, Y)
    attached = {name for name in vars(found) if name not in found.get_params(deep=False)}
    assert attached == {
        "_proof",
        "best_estimator_",
        "best_index_",
        "best_params_",
        "best_score_",
        "cv_results_",
        "guarantee_",
    }
    assert found.cv_results_.keys() == {"params"}
    assert "epsilon = 1 " in str(found.guarantee_)
    assert "epsilon = 1<" in found._repr_mimebundle_()["text/html"]
    assert pickle.loads(pickle.dumps(found)).predict(X).tolist() == found.predict(X).tolist()


def test_batches_that_the_winner_learns_later_are_charged_to_the_same_ledger():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = (rng.random((200, 2)) < 0.2 + 0.6 * y[:, None]).astype(int)
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2)
    grid = {"alpha": [0.5, 1.0]}
    search = PrivateSearchCV(model, grid, epsilon=0.9, accountant=ledger).fit(X, y)
    search.best_estimator_.partial_fit(X, y)
    assert len(ledger) == 2
    assert ledger.total().epsilon == pytest.approx(1.2)
