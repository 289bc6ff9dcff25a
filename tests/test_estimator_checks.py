"""scikit-learn's own checks: every public estimator, every mechanism it takes, nothing skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unittest import SkipTest

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    check_param_validation,
    parametrize_with_checks,
)

import dpbayes_sklearn
from dpbayes_sklearn import Categories, Interval, Schema
from dpbayes_sklearn._compat import StrOptions
from dpbayes_sklearn.conjugate import PosteriorRelease
from dpbayes_sklearn.privacy.budget import PrivacyUnit

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
        if estimator is dpbayes_sklearn.BayesianClassifier:  # which has one for each model
            yield estimator()
        for mechanism in mechanism_names(estimator):
            options = {"delta": 1e-6} if mechanism in {"gaussian", "auto"} else {}
            if estimator is dpbayes_sklearn.BayesianNetworkClassifier and mechanism != "laplace":
                options["inference"] = "plug_in"  # naive Bayes has the other with every mechanism
            yield estimator(mechanism=mechanism, **options)


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
    assert names == ["auto", "fourier", "gaussian", "laplace", "map", "sampler"]


@parametrize_with_checks(PREDICTORS)
def test_scikit_learn_checks(estimator, check):
    run(check, estimator)


DECLARED = [
    dpbayes_sklearn.BayesianClassifier(bounds=(-5, 5)),
    dpbayes_sklearn.BayesianNaiveBayes(bounds=(-5, 5)),
    dpbayes_sklearn.BayesianNetworkClassifier(bounds=(-5, 5)),
    dpbayes_sklearn.BayesianLogisticRegression(bounds=(-5, 5), ordered=True),
    # an infinite target must raise, which it does only where its bounds are not declared
    dpbayes_sklearn.BayesianLinearRegression(bounds_X=(-5, 5)),
]


@parametrize_with_checks(DECLARED)
def test_scikit_learn_checks_with_declared_bounds(estimator, check):
    run(check, estimator)


PERSON = {"privacy_unit": PrivacyUnit("person", max_records=2, by_construction=True)}
BOTH = {
    "privacy_unit": PrivacyUnit(
        "person", max_records=2, by_construction=True, neighbours="add_remove"
    )
}
ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
OF_UNITS = [
    dpbayes_sklearn.BayesianNaiveBayes(**BOTH),
    dpbayes_sklearn.BayesianNetworkClassifier(**PERSON),
    dpbayes_sklearn.BayesianLinearRegression(**ADDED),
]


@parametrize_with_checks(OF_UNITS)
def test_scikit_learn_checks_of_units(estimator, check):
    """All checks, each estimator with one unit and each unit with one estimator."""
    run(check, estimator)


@pytest.mark.parametrize("estimator", PREDICTORS + DECLARED, ids=repr)
def test_tags_say_what_is_declared(estimator):
    tags = estimator.__sklearn_tags__().input_tags
    declared = estimator in DECLARED
    assert (tags.allow_nan, tags.string, tags.categorical) == (declared, declared, False)
    columns = {"job": Categories(["a", "b"]), "age": Interval(0, 99, bins=2)}
    names = {"bounds": None, "bounds_X": None, "schema": Schema(columns)}
    model = clone(estimator).set_params(
        **{name: value for name, value in names.items() if name in estimator.get_params()}
    )
    tags = model.__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string, tags.categorical) == (True, True, True)
    target = [0, 1, 0, 1] if tags.sparse else [0.0, 1.0, 0.0, 1.0]
    model.fit([["a", 3], ["b", float("nan")], [None, 1e9], ["?", "old"]], target)


ONE_COLUMN = [e for e in ALL if isinstance(e, PosteriorRelease)]


@pytest.mark.parametrize("estimator", ONE_COLUMN, ids=repr)
def test_one_column_is_no_matrix(estimator):
    tags = estimator.__sklearn_tags__().input_tags
    assert tags.one_d_array
    assert not tags.two_d_array


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_parameters_are_validated_before_anything_else(estimator):
    check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", {type(one): one for one in ALL}.values(), ids=repr)
def test_every_parameter_is_described_with_its_type(estimator):
    described = re.findall(r"^    (\w+) : ", type(estimator).__doc__, re.MULTILINE)
    assert set(estimator.get_params(deep=False)) <= set(described)


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
        logistic = isinstance(estimator, dpbayes_sklearn.BayesianLogisticRegression)
        poor = {"sampler"} if logistic else {"sampler", "map", "gaussian"}
        assert tags.classifier_tags.poor_score == (estimator.mechanism in poor)


def test_a_skipped_check_would_fail():
    def skips(estimator):
        raise SkipTest("no pandas")

    with pytest.raises(pytest.fail.Exception, match="skipped: no pandas"):
        run(skips, PREDICTORS[0])
