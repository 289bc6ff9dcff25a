"""How the steps of a pipeline share a budget: by public facts, and exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import BayesianNaiveBayes, planning
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler

MODEL = BayesianNaiveBayes(bounds=(0, 7), n_bins=8, classes=[0, 1])


def epsilons(pipeline):
    private = pipeline.get_params(deep=True).items()
    return [Fraction(str(value)) for name, value in private if name.endswith("__epsilon")]


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("n", [10, 5_000, 10_000_000])
def test_the_shares_add_up_exactly(epsilon, n):
    steps = [
        PrivateKBinsDiscretizer(8),
        FunctionTransformer(),
        PrivateSelectKBest(3, bounds=(0, 7), classes=[0, 1]),
        make_column_transformer((PrivateMinMaxScaler(), [0])),
    ]
    shared = planning.share_epsilon(make_pipeline(*steps, MODEL), epsilon, n, 6)
    found = epsilons(shared)
    assert len(found) == 4
    assert sum(found) == Fraction(str(epsilon))
    assert shared[-1].epsilon >= 0.59 * epsilon


def test_more_records_need_a_smaller_share():
    pipeline = make_pipeline(PrivateKBinsDiscretizer(8), MODEL)
    few, many = (planning.share_epsilon(pipeline, 1.0, n, 4)[0].epsilon for n in (10_000, 10**6))
    assert (few, many) == (0.2, 0.05)
    assert pipeline[0].epsilon == 1.0  # a clone is shared
    uniform = make_pipeline(PrivateKBinsDiscretizer(8, strategy="uniform"), MODEL)
    assert planning.share_epsilon(uniform, 1.0, 40_000, 4)[0].epsilon == 0.08
    select = make_pipeline(PrivateSelectKBest("auto"), MODEL)
    assert planning.share_epsilon(select, 1.0, 6_000, 10)[0].epsilon == 0.2


def test_a_model_alone_gets_everything_and_others_are_refused():
    assert planning.share_epsilon(make_pipeline(MODEL), 0.3, 100, 2)[0].epsilon == 0.3
    with pytest.raises(ValueError, match="private model"):
        planning.share_epsilon(make_pipeline(LogisticRegression()), 1.0, 100, 2)
    with pytest.raises(ValueError, match="finite"):
        planning.share_epsilon(make_pipeline(MODEL), float("inf"), 100, 2)
