"""scikit-learn's own checks: every public estimator, every mechanism it takes, nothing skipped."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import SkipTest

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    check_param_validation,
    parametrize_with_checks,
)

import dpbayes_sklearn
from dpbayes_sklearn._sklearn_compat import StrOptions

pytestmark = [
    pytest.mark.oldest,
    # the checks fit with default arguments, so bounds and classes are read from the data
    pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning"),
]


def public_estimators() -> list[type[BaseEstimator]]:
    """Return every estimator that the package exports, those of the future included."""
    public = (getattr(dpbayes_sklearn, name) for name in dpbayes_sklearn.__all__)
    return [
        thing
        for thing in public
        if isinstance(thing, type) and issubclass(thing, BaseEstimator) and hasattr(thing, "fit")
    ]


def mechanism_names(estimator: type[BaseEstimator]) -> list[str]:
    """Return the names that the estimator's own parameter constraints allow."""
    constraints = estimator._parameter_constraints.get("mechanism", [])
    return sorted({n for c in constraints if isinstance(c, StrOptions) for n in c.options})


def with_every_mechanism() -> Iterator[BaseEstimator]:
    for estimator in public_estimators():
        for mechanism in mechanism_names(estimator):
            yield estimator(mechanism=mechanism)


ALL = list(with_every_mechanism())
# An estimator that only releases a posterior takes one column of counts, not a matrix.
PREDICTORS = [estimator for estimator in ALL if hasattr(estimator, "predict")]


def run(check, estimator):
    """Run a check; where it would be skipped, say so by failing."""
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


def test_the_estimators_are_found():
    assert dpbayes_sklearn.BayesianNaiveBayes in public_estimators()
    names = mechanism_names(dpbayes_sklearn.BayesianNaiveBayes)
    assert names == ["fourier", "laplace", "map", "sampler"]


@parametrize_with_checks(PREDICTORS)
def test_scikit_learn_checks(estimator, check):
    run(check, estimator)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_parameters_are_validated_before_anything_else(estimator):
    check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_columns_keep_their_names(estimator):
    check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_input_that_is_read_only_is_enough(estimator):
    check_inplace_ensure_writeable(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_poor_score_is_claimed_only_where_measured(estimator):
    """Laplace and Fourier pass the accuracy checks; nothing may excuse them from it."""
    tags = estimator.__sklearn_tags__()
    if tags.classifier_tags is not None:
        assert tags.classifier_tags.poor_score == (estimator.mechanism in {"sampler", "map"})


def test_a_skipped_check_would_fail():
    def skips(estimator):
        raise SkipTest("no pandas")

    with pytest.raises(pytest.fail.Exception, match="skipped: no pandas"):
        run(skips, PREDICTORS[0])
