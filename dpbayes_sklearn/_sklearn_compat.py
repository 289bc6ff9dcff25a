"""The one place that imports private names of scikit-learn.

They have not moved from scikit-learn 1.6 to the newest release; should they, it is repaired here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "_fit_context",
    "validate_parameter_constraints",
]

if TYPE_CHECKING:

    class InvalidParameterError(ValueError, TypeError):
        """A parameter has a value or type that is not allowed."""

else:
    from sklearn.utils._param_validation import InvalidParameterError

Method = TypeVar("Method", bound=Callable[..., Any])


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Validate the estimator's parameters before the decorated method runs.

    The same as scikit-learn's own decorator, with the type of the method kept.
    """
    decorator = _untyped_fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return cast("Callable[[Method], Method]", decorator)
