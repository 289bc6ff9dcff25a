"""Mistyped names are answered with the nearest one."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    Interval,
    Schema,
    mechanisms,
)

X, Y = [[0], [1]] * 20, [0, 1] * 20
MODEL = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1])


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        (clone(MODEL).set_params(mechanism="laplase"), "laplace"),
        (clone(MODEL).set_params(mechanism="Fourier"), "fourier"),
        (clone(MODEL).set_params(inference="noise-aware"), "noise_aware"),
        (clone(MODEL).set_params(privacy_unit="records"), "record"),
        (clone(MODEL).set_params(mechanism=mechanisms.MAP(score="posterier")), "posterior"),
        (BayesianLinearRegression(mechanism="samples"), "sampler"),
        (BetaBinomial(mechanism="geometry"), "geometric"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_mistyped_choice_is_answered_with_the_nearest(model, meant):
    data = (Y,) if isinstance(model, BetaBinomial) else (X, Y)
    with pytest.raises(ValueError, match=rf"instead\. Did you mean '{meant}'\?$"):
        model.fit(*data)


def test_no_question_where_nothing_is_near():
    with pytest.raises(ValueError, match=r"Got 'wasserstein' instead\.$"):
        clone(MODEL).set_params(mechanism="wasserstein").fit(X, Y)
    with pytest.raises(ValueError, match=r"Got -1 instead\.$"):
        clone(MODEL).set_params(alpha=-1).fit(X, Y)


def test_the_error_does_not_drag_another_along():
    with pytest.raises(ValueError, match="Did you mean") as caught:
        clone(MODEL).set_params(mechanism="laplase").fit(X, Y)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_mistyped_parameter_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"Invalid parameter 'epsilonn'.*mean 'epsilon'\?$"):
        clone(MODEL).set_params(epsilonn=1)
    with pytest.raises(ValueError, match=r"Invalid parameter 'omga'.*mean 'omega'\?$"):
        BayesianNaiveBayes(mechanism=mechanisms.Sampler()).set_params(mechanism__omga=0.1)


def test_options_of_a_mere_name():
    with pytest.raises(ValueError, match=r"mechanism='sampler' is only a name and takes no"):
        BayesianNaiveBayes(mechanism="sampler").set_params(mechanism__omega=0.1)
    with pytest.raises(ValueError, match="is only a name"):
        clone(MODEL).set_params(mechanism="sampler", mechanism__omega=0.1)


def test_a_grid_still_reaches_the_options():
    model = clone(MODEL).set_params(mechanism=mechanisms.Sampler(), random_state=0)
    search = GridSearchCV(model, {"mechanism__omega": [0.1, 0.2]}, cv=2).fit(X, Y)
    assert search.best_params_["mechanism__omega"] in {0.1, 0.2}


def test_a_mistyped_column_is_answered_with_the_nearest():
    schema = Schema({"agee": Interval(0, 1, bins=2)}, target=Categories([0, 1]))
    frame = pd.DataFrame({"age": Y, "job": Y})
    with pytest.raises(ValueError, match=r"lacks the columns \['agee'\].*Did you mean 'age'\?$"):
        BayesianNaiveBayes(schema=schema).fit(frame, Y)


def test_a_parameter_that_there_is_not():
    with pytest.raises(TypeError, match=r"'n_draws'\. Valid parameters are: .*'n_samples'"):
        mechanisms.Sampler(n_draws=2)
    with pytest.raises(TypeError, match=r"Did you mean 'epsilon'\?$"):
        BetaBinomial(epsilonn=1)
