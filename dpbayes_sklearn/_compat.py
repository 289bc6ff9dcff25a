"""The one place that imports private names of scikit-learn, and what differs between systems.

The names have not moved from scikit-learn 1.6 to the newest release; should they, it is repaired
here. Windows cannot fork, so there nothing is done when a process forks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache, wraps
from inspect import signature
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from sklearn.base import BaseEstimator
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
    "HelpfulEstimator",
    "InvalidParameterError",
    "Options",
    "Range",
    "StrOptions",
    "_fit_context",
    "_safe_indexing",
    "did_you_mean",
    "hold_while_forking",
    "run_in_children",
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
                    raise TypeError(
                        f"{type(estimator).__name__}.{method.__name__}() got an unexpected keyword "
                        f"argument {name!r}."
                    )
            return validated(estimator, *args, **kwargs)

        return cast("Method", fit)

    return decorate


def did_you_mean(word: object, names: Iterable[object]) -> str:
    """Return a question to put after an error message, or nothing if no name is near.

    >>> did_you_mean("laplase", ["laplace", "fourier"])
    " Did you mean 'laplace'?"
    >>> did_you_mean("gaussian", ["laplace", "fourier"])
    ''
    """
    by_lower = {str(name).lower(): name for name in names}
    near = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.7)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


@lru_cache
def _parameter_names(cls: Any) -> tuple[str, ...]:
    """Return what scikit-learn reads off the constructor, which takes a while."""
    return tuple(super(HelpfulEstimator, cls)._get_param_names())


class HelpfulEstimator(BaseEstimator):
    """scikit-learn's base class, with the nearest valid name after its error messages."""

    def __new__(cls, *_: Any, **params: Any) -> Self:
        """Refuse a parameter that there is not, and list those that there are."""
        known = cls._get_param_names() if params else []
        for name in params:
            if name not in known:
                raise TypeError(
                    f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}. Valid "
                    f"parameters are: {known!r}.{did_you_mean(name, known)}"
                )
        return super().__new__(cls)  # type: ignore[no-any-return]

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters; a fit asks for them a dozen times."""
        kind: Any = cls
        return list(_parameter_names(kind))

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            refused = f"{error}{self._meant_value(str(error))}"
        else:
            return
        raise InvalidParameterError(refused)

    def _meant_value(self, message: str) -> str:
        """Return the nearest name to the text that was refused, if there is one."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, str) and message.startswith(f"The {name!r} parameter"):
                kinds = (k for k in self._parameter_constraints[name] if isinstance(k, StrOptions))
                return did_you_mean(value, [option for kind in kinds for option in kind.options])
        return ""

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, options of a mechanism as ``mechanism__option``.

        Parameters
        ----------
        **params : parameters
            As in scikit-learn.

        Returns
        -------
        self
        """
        known = self._get_param_names()
        for name in params:
            owner, _, option = name.partition("__")
            if owner not in known:
                raise ValueError(
                    f"Invalid parameter {owner!r} for estimator {self}. Valid parameters are: "
                    f"{known!r}.{did_you_mean(owner, known)}"
                )
            held = params.get(owner, getattr(self, owner))
            if option and isinstance(held, str):
                raise ValueError(
                    f"{owner}={held!r} is only a name and takes no {option!r}. Give an instance "
                    "that carries its options, from dpbayes_sklearn.mechanisms."
                )
        return super().set_params(**params)  # type: ignore[no-any-return]


def hold_while_forking(lock: RLock) -> None:
    """Let a fork wait for a lock: one that another thread held would stay locked in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


def run_in_children(hook: Callable[[], object]) -> None:
    """Call a function at the start of every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)
