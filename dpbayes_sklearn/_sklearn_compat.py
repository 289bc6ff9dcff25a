"""The one place that imports private names of scikit-learn.

They have not moved from scikit-learn 1.6 to the newest release; should they, it is repaired here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import Interval as Range  # ours is a domain

__all__ = [
    "HasMethods",
    "InvalidParameterError",
    "Options",
    "Range",
    "StrOptions",
    "_fit_context",
    "_safe_indexing",
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

    The same as scikit-learn's own decorator, with the type of the method kept, and with errors
    about arguments that name the class of the estimator, not the base class of the method.
    """
    decorator = _untyped_fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)

    def decorate(method: Method) -> Method:
        validated, known = decorator(method), signature(method).parameters

        @wraps(method)
        def fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in known:
                    why = " Weights would change how much one person counts." * ("weight" in name)
                    raise TypeError(
                        f"{type(estimator).__name__}.{method.__name__}() got an unexpected keyword "
                        f"argument {name!r}.{why}"
                    )
            return validated(estimator, *args, **kwargs)

        return cast("Method", fit)

    return decorate
