from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    PrivacyLeakWarning,
    mechanisms,
)
from dpbayes_sklearn.display import privacy_utility_curve

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 120)
X = (rng.random((120, 3)) < 0.15 + 0.7 * Y[:, None]).astype(int)
MODEL = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1], random_state=0)


def test_scores_are_those_of_cross_validation() -> None:
    curve = privacy_utility_curve(MODEL, X, Y, epsilons=[0.5, 2], mechanisms=["map"], cv=3)
    by_hand = MODEL.__class__(**{**MODEL.get_params(), "mechanism": "map", "epsilon": 2})
    assert curve.scores["map"][2] == cross_val_score(by_hand, X, Y, cv=3).tolist()
    exact = by_hand.set_params(epsilon=np.inf)
    assert curve.baseline == cross_val_score(exact, X, Y, cv=3).mean()
    assert [*curve.scores["map"]] == [0.5, 2]


def test_by_default_every_mechanism_is_tried() -> None:
    curve = privacy_utility_curve(MODEL, X, Y, epsilons=[1], cv=2)
    assert [*curve.scores] == ["laplace", "fourier", "map", "sampler"]
    curve = privacy_utility_curve(BetaBinomial(random_state=0), Y, epsilons=[1], cv=2)
    assert set(curve.scores) >= {"geometric", "laplace", "exponential", "hellinger"}


def test_a_mechanism_may_carry_options() -> None:
    chosen = mechanisms.Sampler(n_samples=3)
    curve = privacy_utility_curve(MODEL, X, Y, epsilons=[1], mechanisms=[chosen], cv=2)
    assert [*curve.scores] == ["Sampler(n_samples=3)"]


def test_a_pipeline_that_ends_in_an_estimator() -> None:
    flipped = make_pipeline(FunctionTransformer(lambda x: 1 - x), MODEL)
    curve = privacy_utility_curve(flipped, X, Y, epsilons=[1], cv=2)
    assert [*curve.scores] == ["laplace", "fourier", "map", "sampler"]
    assert curve.baseline > 0.9


def test_an_estimator_without_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="LinearRegression has no parameters epsilon"):
        privacy_utility_curve(LinearRegression(), X, Y)


def test_every_fit_is_charged() -> None:
    ledger = BudgetAccountant()
    model = BayesianLinearRegression(
        bounds_X=(0, 1), bounds_y=(0, 1), accountant=ledger, random_state=0
    )
    with pytest.warns(PrivacyLeakWarning, match="Scores are computed from the data"):
        privacy_utility_curve(model, X, Y, epsilons=[1, 2], mechanisms=["laplace"], cv=3)
    assert [entry.epsilon for entry in ledger] == [np.inf] * 3 + [1] * 3 + [2] * 3


def test_leaks_are_told_by_the_first_fits_alone() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, random_state=0)
        privacy_utility_curve(model, X, Y, epsilons=[1, 2], cv=3)
    leaks = [w for w in told if w.category is PrivacyLeakWarning]
    assert len(leaks) == 3


def test_a_bar_only_for_who_wants_it() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for verbose in (True, False):
        with redirect_stderr(Terminal()) as screen:
            privacy_utility_curve(
                MODEL, X, Y, epsilons=[1], mechanisms=["laplace"], cv=2, verbose=verbose
            )
        assert ("cross-validation" in screen.getvalue()) is verbose
