"""The private names of scikit-learn in use: in one file, and doing what they are used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from numbers import Real
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import dpbayes_sklearn
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    _compat,
)
from dpbayes_sklearn._compat import (
    InvalidParameterError,
    Options,
    Range,
    StrOptions,
    _fit_context,
    validate_parameter_constraints,
)

pytestmark = pytest.mark.oldest


class Toy(BaseEstimator):
    _parameter_constraints = {  # noqa: RUF012
        "epsilon": [Range(Real, 0, None, closed="right")],
        "mechanism": [StrOptions({"laplace", "map"})],
    }

    def __init__(self, epsilon=1.0, *, mechanism="laplace"):
        self.epsilon = epsilon
        self.mechanism = mechanism

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Count the rows."""
        self.n_rows_ = len(X)
        return self


def test_fit_context_runs_the_method_and_keeps_its_face():
    assert Toy().fit([1, 2, 3]).n_rows_ == 3
    assert Toy.fit.__name__ == "fit"
    assert Toy.fit.__doc__ == "Count the rows."


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "1", None])
def test_fit_context_refuses_a_parameter_before_the_method_runs(epsilon):
    toy = Toy(epsilon)
    message = r"The 'epsilon' parameter of Toy must be a float in the range \(0.0, inf\]\. Got"
    with pytest.raises(InvalidParameterError, match=message):
        toy.fit([1])
    assert not hasattr(toy, "n_rows_")


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(InvalidParameterError, match=r"'laplace'.*'map'|'map'.*'laplace'"):
        Toy(mechanism="magic").fit([1])


def test_error_is_both_a_value_and_a_type_error():
    assert issubclass(InvalidParameterError, ValueError)
    assert issubclass(InvalidParameterError, TypeError)


def test_infinity_is_inside_an_interval_closed_on_the_right():
    """Epsilon = inf asks for no noise; ``closed="neither"`` would refuse it."""
    assert Toy(float("inf")).fit([1]).n_rows_ == 1


def test_constraints_can_be_checked_without_an_estimator():
    constraints = {"closed": [Options(str, {"left", "right"})]}
    validate_parameter_constraints(constraints, {"closed": "left"}, caller_name="Interval")
    with pytest.raises(InvalidParameterError, match="'closed' parameter of Interval"):
        validate_parameter_constraints(constraints, {"closed": "up"}, caller_name="Interval")


def imported_names(source: str) -> Iterator[str]:
    """Yield the dotted name of all that is imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_in_sklearn(name: str) -> bool:
    package, *parts = name.split(".")
    return package == "sklearn" and any(part.startswith("_") for part in parts)


@pytest.mark.parametrize(
    "line",
    [
        "import sklearn.utils._param_validation",
        "from sklearn.base import BaseEstimator, _fit_context",
        "from sklearn.utils._param_validation import Interval",
    ],
)
def test_a_private_import_is_seen(line):
    assert any(map(private_in_sklearn, imported_names(line)))


def test_no_other_file_imports_private_names():
    package = Path(dpbayes_sklearn.__path__[0])
    offenders = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(map(private_in_sklearn, imported_names(path.read_text(encoding="utf-8"))))
    }
    assert offenders == {Path(_compat.__file__).name}


@pytest.mark.parametrize(
    "model", [BayesianNaiveBayes(), BayesianNetworkClassifier(), BayesianLinearRegression()]
)
def test_unknown_arguments_are_refused_in_the_name_of_the_class(model):
    message = rf"{type(model).__name__}\.fit\(\) got an unexpected keyword argument 'weather'"
    with pytest.raises(TypeError, match=message):
        model.fit([[0], [1]], [0, 1], weather=1)
