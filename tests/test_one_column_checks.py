"""scikit-learn's checks of estimators that take one column of values.

Their tags say that they take no matrix, and scikit-learn then runs a single check. Here all of its
checks run that such an estimator can pass; the others are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from dpbayes_sklearn import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.privacy.budget import PrivacyUnit

pytestmark = pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")

INDEXES_COLUMNS = "takes columns or single features of X, which is one column"
COUNTS_FEATURES = "asks for the number of columns of a matrix"
MISSING_IS_A_VALUE = "asks for an error on NaN, which here counts as a category: no value may raise"
OTHER_WORDS = "asks for scikit-learn's words about matrices; one column has its own error"
OTHER_VALUES = "passes numbers that are no categories, which are refused without spending"

OF_ONE_COLUMN = {
    "check_complex_data": OTHER_WORDS,
    "check_dict_unchanged": INDEXES_COLUMNS,
    "check_dont_overwrite_parameters": INDEXES_COLUMNS,
    "check_dtype_object": INDEXES_COLUMNS,
    "check_estimator_sparse_array": INDEXES_COLUMNS,
    "check_estimators_empty_data_messages": OTHER_WORDS,
    "check_estimators_nan_inf": MISSING_IS_A_VALUE,
    "check_f_contiguous_array_estimator": INDEXES_COLUMNS,
    "check_fit2d_1feature": INDEXES_COLUMNS,
    "check_fit2d_1sample": INDEXES_COLUMNS,
    "check_fit2d_predict1d": INDEXES_COLUMNS,
    "check_methods_sample_order_invariance": INDEXES_COLUMNS,
    "check_methods_subset_invariance": INDEXES_COLUMNS,
    "check_n_features_in": COUNTS_FEATURES,
    "check_n_features_in_after_fitting": COUNTS_FEATURES,
    "check_positive_only_tag_during_fit": OTHER_VALUES,
}
OF_ZEROS_AND_ONES = dict.fromkeys(
    [
        "check_array_api_input",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_readonly_memmap_input",
    ],
    OTHER_VALUES,
)
DO_NOT_APPLY = {
    BetaBinomial: OF_ONE_COLUMN | OF_ZEROS_AND_ONES,
    DirichletMultinomial: OF_ONE_COLUMN,
}


def checks(estimator: Any) -> Iterator[Any]:
    """Yield the checks of an estimator that takes a matrix."""

    class OfAMatrix(estimator):
        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array = True
            return tags

    OfAMatrix.__name__ = estimator.__name__
    for _, check in estimator_checks_generator(OfAMatrix()):
        yield check


CASES = [(estimator, check) for estimator in DO_NOT_APPLY for check in checks(estimator)]


def name_of(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else thing.func.__name__


@pytest.mark.parametrize(("estimator", "check"), CASES, ids=name_of)
def test_every_check_passes_or_does_not_apply(estimator: Any, check: Any) -> None:
    if name_of(check) not in DO_NOT_APPLY[estimator]:
        check(estimator())
        return
    with pytest.raises(Exception) as stopped:  # noqa: PT011  (each check has its own)
        check(estimator())
    assert stopped.type is not SkipTest


@pytest.mark.parametrize(
    "check", [check for estimator, check in CASES if estimator is DirichletMultinomial], ids=name_of
)
def test_persons_and_secret_numbers_pass_the_same_checks(check: Any) -> None:
    if name_of(check) not in OF_ONE_COLUMN:
        whom = {
            "privacy_unit": PrivacyUnit(
                "person", max_records=2, by_construction=True, neighbours="add_remove"
            )
        }
        check(DirichletMultinomial(**whom))


def test_the_list_holds_no_other_checks() -> None:
    for estimator, reasons in DO_NOT_APPLY.items():
        assert reasons.keys() <= {name_of(check) for check in checks(estimator)}
