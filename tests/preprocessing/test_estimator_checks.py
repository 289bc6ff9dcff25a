"""scikit-learn's own checks on every transformer, nothing skipped and nothing expected to fail."""

from __future__ import annotations

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    check_param_validation,
    check_set_output_transform,
    check_set_output_transform_pandas,
    check_transformer_get_feature_names_out,
    check_transformer_get_feature_names_out_pandas,
    parametrize_with_checks,
)

from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)

pytestmark = pytest.mark.oldest

ALL = [
    PrivateMinMaxScaler(),
    PrivateMinMaxScaler(bounds=(-5, 5)),
    PrivateStandardScaler(),
    PrivateKBinsDiscretizer(),
    PrivateKBinsDiscretizer(3, strategy="uniform"),
]
MORE = [
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    check_param_validation,
    check_set_output_transform,
    check_set_output_transform_pandas,
    check_transformer_get_feature_names_out,
    check_transformer_get_feature_names_out_pandas,
]


@parametrize_with_checks(ALL)
def test_scikit_learn_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("check", MORE)
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_checks_that_are_not_among_them(estimator, check):
    check(type(estimator).__name__, estimator)
