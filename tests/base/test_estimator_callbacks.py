"""scikit-learn's callbacks would see exact scores during a fit: refused by name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant

X = np.random.default_rng(0).random((50, 2))
Y = (X[:, 0] > 0.5).astype(int)


class Ear:
    """A callback of any kind."""

    def setup(self, *_, **__): ...

    def on_fit_task_begin(self, *_, **__): ...

    def on_fit_task_end(self, *_, **__): ...

    def teardown(self, *_, **__): ...


@pytest.mark.parametrize("model", [BayesianNaiveBayes(), BayesianLinearRegression()], ids=str)
def test_callbacks_cannot_be_set(model):
    assert not hasattr(model, "set_callbacks")
    with pytest.raises(AttributeError, match=r"takes no callbacks.*metrics\.private_score"):
        model.set_callbacks(Ear())


def test_one_that_is_set_all_the_same_is_refused_before_the_charge():
    ledger = BudgetAccountant(epsilon=1.0)
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), accountant=ledger)
    model._skl_callbacks = [Ear()]
    for each in (model, clone(model)):
        if getattr(each, "_skl_callbacks", None):  # scikit-learn 1.9 clones them too
            with pytest.raises(ValueError, match="BayesianNaiveBayes takes no callbacks"):
                each.fit(X, Y)
    assert len(ledger) == 0


def test_a_pipeline_passes_none_on():
    pipeline = Pipeline([("model", BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1)))])
    if not hasattr(pipeline, "set_callbacks"):
        pytest.skip("this scikit-learn has no callbacks")
    pipeline.set_callbacks(Ear())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not hasattr(pipeline.fit(X, Y)[-1], "_skl_callbacks")
