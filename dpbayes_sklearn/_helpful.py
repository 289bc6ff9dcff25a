"""An estimator that asks back when a name was mistyped."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from dpbayes_sklearn._sklearn_compat import InvalidParameterError, StrOptions
from dpbayes_sklearn._suggestions import did_you_mean

__all__ = ["HelpfulEstimator"]


class HelpfulEstimator(BaseEstimator):
    """scikit-learn's base class, with the nearest valid name after its error messages."""

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
