"""What one fit spends: its budget, the unit that it protects, and the ledger that is charged."""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from dpbayes_sklearn._compat import InvalidParameterError, Range, run_in_children
from dpbayes_sklearn.base.published import PublishedModel
from dpbayes_sklearn.data.persons import declared_unit
from dpbayes_sklearn.exceptions import NOTHING_SPENT, BudgetError, LedgerError
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, exact
from dpbayes_sklearn.privacy.active import active_accountant
from dpbayes_sklearn.privacy.budget import (
    LEAST_DELTA,
    RECORD,
    Copies,
    PrivacyUnit,
    at_least,
    round_up,
)
from dpbayes_sklearn.privacy.plain import plain
from dpbayes_sklearn.release import P, Plan, Release, S, SizePlan, carry_out

NO_CALLBACKS = (
    "{} takes no callbacks: what a ScoringMonitor or another callback sees during a fit is exact, "
    "and no guarantee covers it. Evaluate the fitted model with metrics.private_score."
)
# Variances are rounded up to 22 bits, so the cost of two plans may differ by this factor.
_ROUNDING_OF_COST = 1 + Fraction(1, 10**5)

DELTA: dict[str, list[Any]] = {"delta": [Fraction, Range(Real, 0, 1, closed="left")]}
"""The constraint of the parameter, for estimators that have it."""


class _Here:
    """A process-unique token; process numbers are used again."""

    process = uuid.uuid4().hex


_here = _Here()
run_in_children(lambda: setattr(_here, "process", uuid.uuid4().hex))


if TYPE_CHECKING:
    once = property
else:

    class once:
        """A property that is computed once in a fit, during which parameters do not change."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute, self.__doc__ = compute, compute.__doc__

        def __get__(self, estimator: Any, owner: type) -> Any:
            if estimator is None:
                return self
            value = self.compute(estimator)
            if "_computed" in estimator.__dict__:  # from now on the attribute hides the property
                estimator.__dict__[self.compute.__name__] = value
                estimator._computed.append(self.compute.__name__)
            return value


class SpendingEstimator(PublishedModel):
    """What one fit may spend, for whom, by which mechanism, and the ledger that is charged."""

    epsilon: Any
    delta: Any = 0.0
    mechanism: Any = Mechanism()  # of estimators without this parameter: no options, no delta
    accountant: BudgetAccountant | None
    random_state: int | np.random.RandomState | None
    max_weight: Any = None
    _block: tuple[str, BudgetAccountant | str]
    _proof: list[dict[str, Any]]
    """Every fit that was released, step by step, for those who check its guarantee: public."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        # a Fraction stands apart because scikit-learn's Range cannot read one
        "epsilon": [Fraction, Range(Real, 0, math.inf, closed="right")],
        "accountant": [BudgetAccountant, None],
        "random_state": ["random_state"],
    }

    @property
    def set_callbacks(self) -> NoReturn:
        """Not there, so that scikit-learn's meta-estimators pass no callbacks on."""
        raise AttributeError(NO_CALLBACKS.format(type(self).__name__))

    def _validate_params(self) -> None:
        """Check all parameters; scikit-learn trips over fractions and over very long integers."""
        if getattr(self, "_skl_callbacks", None):
            raise InvalidParameterError(NO_CALLBACKS.format(type(self).__name__))
        for name, value in self.get_params(deep=False).items():
            takes_fractions = Fraction in self._parameter_constraints.get(name, [])
            too_long = isinstance(value, Rational) and abs(Fraction(value)) > sys.float_info.max
            if too_long or (isinstance(value, Fraction) and not takes_fractions):
                raise InvalidParameterError(
                    f"The '{name}' parameter of {type(self).__name__} must be a float or an int "
                    f"that fits one. Got {type(value).__name__} instead."
                )
        super()._validate_params()

    def _budget(self) -> Budget:
        """Return what one fit may spend by the unit that noise is calibrated to, read exactly."""
        epsilon = self._exact("epsilon", self.epsilon)
        budget = Budget(epsilon, self._delta(math.isinf(epsilon)), self._declared_unit)
        return budget if self._copies is None else self._copies.inner(budget)

    def _spent_before(self, budget: Budget, rest: Budget) -> Fraction:
        """Return the epsilon that the guarantee counts for the released number of records."""
        if rest is budget:
            return Fraction(0)
        whole, left = (Fraction(self._promised(part).epsilon) for part in (budget, rest))
        return whole - left

    def _promised(self, cost: Budget) -> Budget:
        """Return a cost for the declared unit, in which it is charged and promised."""
        return cost if self._copies is None else self._copies.outer(cost)

    _unit_names: ClassVar[tuple[str, ...]] = ("record",)
    """Names that the parameter ``privacy_unit`` may have, beside objects."""

    @once
    def _declared_unit(self) -> PrivacyUnit:
        """What one fit protects: what the parameters declare, if there are any."""
        return declared_unit(self) if hasattr(self, "privacy_unit") else RECORD

    @once
    def _copies(self) -> Copies | None:
        """How often records may count, if weights say it."""
        unit = self._declared_unit
        if self.max_weight is None:
            return None
        if not unit.whole_records:
            raise InvalidParameterError(
                f"The 'max_weight' parameter of {type(self).__name__} must be None for "
                "privacy_unit='feature': a weight belongs to a whole record."
            )
        return Copies(unit, int(self.max_weight))

    def _refuse_weights(self, by: str) -> None:
        """Refuse an estimator with ``max_weight`` where weights are not passed on."""
        if self.max_weight is not None:
            raise ValueError(f"{by} passes no weights on: leave max_weight=None.")

    @once
    def _unit(self) -> PrivacyUnit:
        """What noise is calibrated to: the declared unit, or all copies that its records may be."""
        return self._declared_unit if self._copies is None else self._copies.counted

    def _delta(self, infinite: bool = False) -> Fraction:
        """Return the delta that one fit may spend: zero if the mechanism is purely private."""
        mechanism, delta = self._mechanism, self._declared_delta()
        if infinite or not mechanism.spends_delta:
            return Fraction(0)
        if mechanism.needs_delta and not delta:
            raise InvalidParameterError(
                f"The 'delta' parameter of {type(self).__name__} must be a float in the range "
                f"(0.0, 1.0) for the {mechanism.name()} mechanism, well below one over the number "
                f"of records. Got {self.delta!r} instead."
            )
        return delta

    def _declared_delta(self) -> Fraction:
        """Return the parameter, read exactly."""
        if self.delta != 0 and not LEAST_DELTA <= self.delta < 1:  # scikit-learn reads no Fraction
            raise InvalidParameterError(
                f"The 'delta' parameter of {type(self).__name__} must be a float in the range "
                f"[0.0, 1.0), 0 or at least 1e-300. Got {self.delta!r} instead."
            )
        return Fraction(self._exact("delta", self.delta))

    def _exact(self, name: str, value: Any) -> Fraction | float:
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

    @once
    def _mechanism(self) -> Mechanism:
        """The mechanism as an object, its options checked."""
        mechanism = resolve_mechanism(self.mechanism)
        mechanism._validate_params()
        return mechanism

    def _ledger(self) -> BudgetAccountant | None:
        """Return the accountant to charge: the parameter, or that of an open ``with`` block."""
        ledger: BudgetAccountant | None = self.accountant or active_accountant()
        _, carried = self.__dict__.get("_block", (None, None))
        if ledger is None and isinstance(carried, str):
            raise LedgerError(carried)
        return ledger or carried or BudgetAccountant.current()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if self.accountant is None and (block := _block_to_carry()):
            state["_block"] = (_here.process, block)
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
        """Refuse a fit that would exceed the ceiling before any data are read.

        Where zCDP composes, the cost of a fit is known with its statistics, and checked then; so is
        a delta that may turn out to be of no use.
        """
        ledger = self._ledger()
        if ledger is not None and not (ledger.delta and self._mechanism.knows_rho):
            cost = self._promised(budget)
            delta = cost.delta if self._mechanism.needs_delta else Fraction(0)
            ledger.check(cost.epsilon, delta, unit=cost.unit)

    def _check_together(self, share: Budget, costs: Sequence[Budget]) -> None:
        """Refuse a fit if the ceiling has no room for the number of records and the model.

        The zCDP of the model may depend on the number, which is not known yet: there must be room
        for the largest.
        """
        first, ledger = Fraction(self._promised(share).epsilon), self._ledger()
        if ledger is None:
            return
        for cost in dict.fromkeys(map(self._promised, costs)):
            rho = Fraction(cost.rho) * _ROUNDING_OF_COST + first**2 / 2 if cost.rho else None
            ledger.check(cost.epsilon + first, cost.delta, rho=rho, unit=cost.unit)

    def _charged(self, plan: Plan[S, P], statistics: S, stream: int) -> Release[P]:
        """Charge the ledger durably, then release."""
        cost, ledger = self._promised(plan.cost), self._ledger()
        if ledger is not None:
            label = f"{self._description(plan.mechanism)}, {cost.unit.label}"
            # a rho of 0, where no record changes anything, is no rho that a ledger takes
            rho = cost.rho or None
            ledger.spend(cost.epsilon, cost.delta, label=label, rho=rho, unit=cost.unit)
        release = carry_out(plan, statistics, Noise.of(self.random_state, stream))
        if self._copies is None:
            return release
        return replace(release, guarantee=release.guarantee.of_copies(self._copies))

    def _record(self, size: Budget, release: Release[P]) -> list[dict[str, Any]]:
        """Return the record of a fit, as JSON has it, with what a secret number of records had."""
        sized = SizePlan.of(size).steps if size.epsilon else ()
        steps = [*(step.record(None) for step in sized), *release.steps]
        return [{"unit": plain(self._declared_unit), "copies": self.max_weight, "steps": steps}]

    def _description(self, mechanism: str) -> str:
        """Return what the ledger calls a release."""
        return f"{type(self).__name__}, {mechanism}"


def _block_to_carry() -> BudgetAccountant | str | None:
    """Return the accountant of the block that is open here, or why it cannot be known."""
    try:
        return active_accountant()
    except LedgerError as unknown:
        return str(unknown)


@contextmanager
def told_what_was_spent(first: Fraction) -> Iterator[None]:
    """Let a refusal say that the number of records was charged, if it was."""
    try:
        yield
    except BudgetError as refused:
        if not first:
            raise
        told = (
            f"epsilon={at_least(first)} was spent on the number of records; the model was not "
            "released."
        )
        text = str(refused).replace(NOTHING_SPENT, told)
        raise BudgetError(text, refused.requested, refused.remaining) from None


def spending(budget: Budget, first: Fraction, release: Release[P]) -> Release[P]:
    """Return a release with the guarantee of a whole budget.

    A first part of it was spent on the number of records.
    """
    if not first:
        return release
    guarantee, rho = release.guarantee, release.guarantee.rho
    if rho is not None and math.isfinite(rho):  # one that no float holds is rounded up to infinity
        rho = round_up(exact(rho, "rho") + first**2 / 2)
    together = replace(guarantee, epsilon=round_up(budget.epsilon), rho=rho)
    return replace(release, guarantee=together)
