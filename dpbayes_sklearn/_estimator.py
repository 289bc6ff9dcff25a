"""The one way every estimator spends its budget: check, charge, release, attach."""

from __future__ import annotations

import math
import os
import sys
import uuid
import warnings
from abc import abstractmethod
from contextlib import suppress
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._helpful import HelpfulEstimator
from dpbayes_sklearn._sklearn_compat import Interval, InvalidParameterError
from dpbayes_sklearn.exceptions import LedgerError, PrivacyLeakWarning
from dpbayes_sklearn.mechanisms import Mechanism, Release, resolve_mechanism
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, exact
from dpbayes_sklearn.privacy.hints import tell_if_weak
from dpbayes_sklearn.serialization import Codec, read_model, write_model

__all__ = ["PrivateEstimator"]

SEEDED = "the random_state is a secret and never used again: a known seed reveals the noise"


class _Here:
    """A name of this process that no other has, unlike its number."""

    process = uuid.uuid4().hex


_here = _Here()
os.register_at_fork(after_in_child=lambda: setattr(_here, "process", uuid.uuid4().hex))

_TOLD: set[str] = set()  # ledgers whose holders know that scores are not private


class PrivateEstimator(HelpfulEstimator):
    """Base of all estimators. Subclasses compute statistics and hand them to :meth:`_release`."""

    epsilon: Any
    mechanism: Any
    accountant: Any
    random_state: Any
    _block: tuple[str, BudgetAccountant]

    _exported: ClassVar[dict[str, Codec]] = {}
    """Fitted attributes that :meth:`to_json` writes; all others follow from them."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        # a Fraction stands apart because scikit-learn's Interval cannot read one
        "epsilon": [Fraction, Interval(Real, 0, math.inf, closed="right")],
        "accountant": [BudgetAccountant, None],
        "random_state": ["random_state"],
    }

    def _validate_params(self) -> None:
        """Check all parameters; scikit-learn trips over fractions and over very long integers."""
        for name, value in self.get_params(deep=False).items():
            takes_fractions = Fraction in self._parameter_constraints.get(name, [])
            too_long = isinstance(value, Rational) and abs(Fraction(value)) > sys.float_info.max
            if too_long or (isinstance(value, Fraction) and not takes_fractions):
                raise InvalidParameterError(
                    f"The '{name}' parameter of {type(self).__name__} must be a float or an int "
                    f"that fits one. Got {type(value).__name__} instead."
                )
        super()._validate_params()

    def _budget(self, unit: str = "record") -> Budget:
        """Return what one fit spends, read exactly."""
        return Budget(self._exact("epsilon", self.epsilon), self._delta(), unit)

    def _delta(self) -> Fraction:
        return Fraction(0)

    def _exact(self, name: str, value: Any) -> Any:
        try:
            number = exact(value, name)
        except (TypeError, ValueError):
            number = Fraction(0)
        if name == "epsilon" and number == 0:
            raise InvalidParameterError(
                f"The '{name}' parameter of {type(self).__name__} must be a float in the range "
                f"(0.0, inf]. Got {value!r} instead."
            )
        return number

    def _resolve_mechanism(self) -> Mechanism:
        """Return the mechanism object, its options checked."""
        mechanism = resolve_mechanism(self.mechanism)
        mechanism._validate_params()
        return mechanism

    def _ledger(self) -> BudgetAccountant | None:
        """Return the accountant to charge: the parameter, or that of an open ``with`` block."""
        _, carried = self.__dict__.get("_block", (None, None))
        ledger: BudgetAccountant | None = self.accountant
        return ledger or BudgetAccountant.current() or carried

    # A worker process is outside the ``with`` block that its task was sent from, so a pickled
    # estimator carries the block's accountant, and its clones there do. At home nobody needs it.

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if self.accountant is None and (current := BudgetAccountant.current()):
            state["_block"] = (_here.process, current)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        home, _ = state.get("_block", (None, None))
        arrived = {name: value for name, value in state.items() if name != "_block"}
        super().__setstate__(state if home != _here.process else arrived)

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()
        if "_block" in self.__dict__:
            clone._block = self._block
        return clone

    def _check_budget(self, budget: Budget) -> None:
        """Refuse a fit that the ledger cannot hold before any data are touched."""
        ledger = self._ledger()
        if ledger is not None:
            ledger.check(budget.epsilon, budget.delta)

    def _release(
        self,
        statistics: Any,
        prior: Any,
        budget: Budget,
        conditions: tuple[str, ...] = (),
        stream: int = 0,
    ) -> Release[Any]:
        """Charge the ledger durably, then let the mechanism release a posterior.

        Everything that could be refused is refused before the charge. ``stream`` counts the
        releases that were made with the same seed and are published together.
        """
        mechanism = self._resolve_mechanism()
        mechanism.preflight(statistics, prior, budget)
        tell_if_weak(budget)
        ledger = self._ledger()
        if ledger is not None:
            label = f"{type(self).__name__}, {mechanism.name()}, {budget.unit}"
            ledger.spend(budget.epsilon, budget.delta, label=label)
        source = random_source(self.random_state, stream)
        release = mechanism.release(statistics, prior, budget, source)
        if self.random_state is not None:
            conditions = (*conditions, SEEDED)
        return Release(release.posterior, release.guarantee.under(*conditions))

    def to_json(self) -> str:
        """Return the fitted model as JSON text, for others to load without trusting a pickle.

        It holds the parameters, the released posterior and the guarantee: what was released, and
        nothing else. ``accountant`` and ``random_state`` are left out; whoever has the seed can
        take the noise off.

        Returns
        -------
        str
            What :meth:`from_json` and :func:`dpbayes_sklearn.from_json` read.
        """
        check_is_fitted(self)
        return write_model(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the fitted model that :meth:`to_json` wrote; its predictions are the same.

        The text is checked field by field, and nothing in it is run or imported. That tells that
        it is a model, not that its guarantee is true: get it from somebody you believe.

        Parameters
        ----------
        text : str

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the text is anything else.
        """
        return read_model(cls, text)

    @abstractmethod
    def _restore(self, **released: Any) -> Self:
        """Become fitted by checked values of the attributes in ``_exported``, or refuse them."""

    def _become(self, fitted: Self) -> Self:
        """Take over a fitted copy in one step, so that no error leaves half a fit behind."""
        self.__dict__ = fitted.__dict__
        return self

    def _leak(self, what: str, parameter: str) -> str:
        """Warn that something was read from the data; return the condition it puts on the claim."""
        warnings.warn(
            f"{what} read from the data, which may reveal them: set {parameter} to public values.",
            PrivacyLeakWarning,
            stacklevel=6,  # the line that called fit
        )
        return (
            f"{what} read from the data without revealing anything ({parameter} was not declared)"
        )

    def _tell_about_scores(self) -> None:
        """Warn, once for each ledger and process, that a score is neither private nor charged."""
        with suppress(LedgerError):
            ledger = self._ledger()
            if ledger is not None and ledger.path not in _TOLD:
                _TOLD.add(ledger.path)
                warnings.warn(
                    "A score looks at the data without noise, and no accountant is charged for "
                    "it: publish scores of public data only. To choose parameters by private "
                    "data use PrivateSearchCV.",
                    PrivacyLeakWarning,
                    stacklevel=3,  # the line that called score
                )

    def _with_card(self, html: str) -> str:
        guarantee = getattr(self, "guarantee_", None)
        return html if guarantee is None else html + guarantee._repr_html_()

    def _repr_html_inner(self) -> str:
        return self._with_card(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_card(bundle["text/html"])
        return bundle
