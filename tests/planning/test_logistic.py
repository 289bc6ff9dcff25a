"""What planning expects of a logistic regression, without data."""

from __future__ import annotations

import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.planning import epsilon_for, expected_error, recommend, report


def test_log_odds_are_simulated():
    model = BayesianLogisticRegression(
        schema=Schema({"age": Interval(0, 99), "job": Categories([*"abc"])}), classes=[0, 1]
    )
    errors = [expected_error(model, n, epsilon) for n, epsilon in ((500, 1.0), (5000, 1.0))]
    assert {error.of for error in errors} == {"log odds"}
    assert errors[1].mean < errors[0].mean / 2
    assert expected_error(model, 5000, 1.0).mean == errors[1].mean
    assert 0.3 < epsilon_for(model, 5000, errors[1].mean) < 3
    assert "hardly more than the shares" in str(report(model, 100, 0.03))
    good = report(model, 50_000)
    assert (good.ratio < 0.1, good.remedy) == (True, "")
    assert "fewer columns or bins" in report(model, 200, 0.3).remedy


def test_recommendation_compares_the_classifiers_of_two_classes():
    model = BayesianLogisticRegression(bounds=([0] * 5, [1] * 5), classes=[0, 1])
    few, many = (recommend(model, n, epsilon=1.0) for n in (300, 400))  # 16 parameters
    assert few.model == "BayesianNaiveBayes"
    assert (many.mechanism, many.model) == ("map", "BayesianLogisticRegression")
    assert many.errors["map"] < many.errors["sampler"]
    line = BayesianLinearRegression(bounds_X=([0] * 5, [1] * 5), bounds_y=(0, 1))
    assert recommend(line, 2000, epsilon=1.0).model == ""


@pytest.mark.slow
def test_recommendation_knows_the_limit_of_several_classes():
    model = BayesianLogisticRegression(bounds=([0] * 5, [1] * 5), classes=[0, 1, 2])
    few, many = (recommend(model, n, epsilon=1.0) for n in (1800, 2000))  # 3 x 16 parameters
    assert few.model == "BayesianNaiveBayes"
    assert (many.mechanism, many.model) == ("map", "BayesianLogisticRegression")
    assert many.errors["sampler"] == float("inf")
    assert many.errors["map"] < few.errors["map"] * 1.2
    assert report(model, 200_000).ratio < report(model, 1000).ratio
