"""The one sequence of every fit: check, read, plan, charge, release, attach."""

from __future__ import annotations

import math
import sys
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial, wraps
from inspect import signature
from numbers import Integral, Rational, Real
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, NoReturn, Self, TypeVar, cast

import numpy as np
from sklearn.utils import check_scalar

from dpbayes_sklearn._compat import InvalidParameterError, Range, _fit_context, run_in_children
from dpbayes_sklearn._messages import silence
from dpbayes_sklearn.base.published import PublishedModel
from dpbayes_sklearn.base.remarks import warn_of_delta, warn_of_seeds
from dpbayes_sklearn.data.arrow import named_columns
from dpbayes_sklearn.data.persons import copies_of, declared_unit, records_that_count
from dpbayes_sklearn.data.records import LocalRecords, quiet_numpy
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.exceptions import (
    NOTHING_SPENT,
    BudgetError,
    LedgerError,
    PrivacyLeakWarning,
    warn_caller,
)
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, exact
from dpbayes_sklearn.privacy.active import active_accountant, one_branch
from dpbayes_sklearn.privacy.budget import LEAST_DELTA, Copies, at_least, round_up
from dpbayes_sklearn.privacy.guarantee import warn_if_weak
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.release import (
    GUESS,
    NOTHING_KNOWN,
    Facts,
    FitPlan,
    Plan,
    RecordCount,
    Release,
    SizePlan,
    carry_out,
    size_share,
)
from dpbayes_sklearn.schema.values import is_list

__all__ = ["FitInput", "PrivateEstimator", "Where", "once"]


NO_CALLBACKS = (
    "{} takes no callbacks: what a ScoringMonitor or another callback sees during a fit is exact, "
    "and no guarantee covers it. Evaluate the fitted model with metrics.private_score."
)
SEEDED = "the random_state is a secret and never used again: a known seed reveals the noise"
WIDTH_OF_LIST = (
    "X is a list, and how many cells most of its rows have is public (no schema or bounds declare "
    "the number of columns)"
)
_LARGE = 10**9  # more records change no cost
_ROUNDED = 1 + Fraction(1, 10**5)  # variances are rounded up to 22 bits, and so differ a little
_SIZE_STREAM = 2**16  # the stream of the first number of records that a seed releases

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


class FitInput(NamedTuple):
    """The input of a release.

    **Sensitive.**

    Attributes
    ----------
    public : object
        The public domains that the statistics were computed by.
    prior : object
        The belief about the parameters before any data, or what is asked of the records.
    statistics : object
        The exact statistics.
    conditions : tuple of str
        Conditions of the guarantee that concern the public domains.
    facts : Facts
        What is public about the number of records.
    """

    public: Any
    prior: Any
    statistics: Any
    conditions: tuple[str, ...] = ()
    facts: Facts = NOTHING_KNOWN


Where = Literal["nowhere", "in the plan", "in the schema"]

Read = Callable[[Any, Facts | None], FitInput]
"""Reads the records for an estimator; the facts stand for their number, if it is secret."""


NO_WEIGHTS = (
    "{} takes no sample_weight without a public bound, because a weight multiplies what a record "
    "changes. Models have a parameter for it, as in BayesianNaiveBayes(max_weight=5). Nothing was "
    "spent."
)
F = TypeVar("F", bound=Callable[..., Any])


class _TakesWeights:
    """A ``fit`` that has the argument ``sample_weight`` where ``max_weight`` is declared.

    Meta-estimators and checks of scikit-learn ask the signature of a model for it.
    """

    def __init__(self, fit: Callable[..., Any]) -> None:
        self.fit = fit
        self.__doc__ = fit.__doc__

    def __get__(self, model: Any, owner: Any) -> Callable[..., Any]:
        possible = "max_weight" in owner._parameter_constraints
        if possible and (model is None or model.max_weight is not None):
            return self.fit if model is None else MethodType(self.fit, model)
        fit = _without_weights(self.fit)
        return fit if model is None else MethodType(fit, model)


def _takes_weights(fit: F) -> F:
    return cast(F, _TakesWeights(fit))


@cache
def _without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function without weights, which are refused."""

    @wraps(fit)
    def unweighted(self: Any, *args: Any, **options: Any) -> Any:
        if options.pop("sample_weight", None) is not None:
            raise ValueError(NO_WEIGHTS.format(type(self).__name__))
        return fit(self, *args, **options)

    whole = signature(fit)
    fewer = [p for name, p in whole.parameters.items() if name != "sample_weight"]
    unweighted.__signature__ = whole.replace(parameters=fewer)  # type: ignore[attr-defined]
    return unweighted


class PrivateEstimator(PublishedModel):
    """Base of all estimators, with the only sequence by which one is fitted.

    A fit is check -> read -> plan -> charge -> release -> attach. A model fills in these hooks:
    :meth:`_records`, :meth:`_public_schema` and :meth:`_statistics` to read, :meth:`_prior`,
    :meth:`_plan` and :meth:`_attach`.
    """

    epsilon: Any
    delta: Any = 0.0
    mechanism: Any = Mechanism()  # of estimators without this parameter: no options, no delta
    accountant: Any
    random_state: Any
    _block: tuple[str, BudgetAccountant | str]
    _computed: list[str]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        # a Fraction stands apart because scikit-learn's Range cannot read one
        "epsilon": [Fraction, Range(Real, 0, math.inf, closed="right")],
        "accountant": [BudgetAccountant, None],
        "random_state": ["random_state"],
    }

    max_weight: Any = None

    @_takes_weights
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        target: str | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Release a posterior of the model, charging the accountant.

        Parameters
        ----------
        X : array, data frame, Arrow table or stream, or dask collection
            Records, one per person unless a person is the privacy unit. Classifiers also take
            sparse matrices, whose missing cells are zeros; the posterior of one variable takes one
            column. A polars ``LazyFrame``, a DuckDB relation, and whatever else has a stream of
            Arrow is read once.
        y : array-like of shape (n_samples,)
            Their classes or targets; ignored where there is none to learn.
        groups : array-like of shape (n_samples,), optional
            For ``PrivacyUnit("person", max_records=k)``: whose record it is, as any label. Of a
            person with more than k records only k count, drawn at random; records without a label
            do not count. With ``neighbours="replace"`` the number of those that count is public.
            Without groups a fit is refused, unless the unit says ``by_construction=True``. A text
            is the name of a column of X.
        target : str, optional
            The name of the column of X that is the target, instead of y.
        sample_weight : array-like of shape (n_samples,), optional
            How often every record counts; needs a declared ``max_weight``. Weights are clipped to
            [0, max_weight], missing ones are 0, and others than integers are rounded up or down at
            random. A text is the name of a column of X.

        Returns
        -------
        self
        """
        schema, codes = getattr(self, "schema", None), self._uses_codes
        columns = cache(  # a stream is read once
            partial(
                named_columns, X, y, target, groups, sample_weight, schema=schema, only_codes=codes
            )
        )

        def read(fitted: Self, facts: Facts | None) -> FitInput:
            rows, targets, (persons, weights) = columns()
            return fitted._read(rows, targets, groups=persons, facts=facts, sample_weight=weights)

        return self._fit(read)

    def plan(self, n: int, n_features: int | None = None) -> FitPlan:
        """Return what a fit to n records would release and spend, without data.

        Parameters
        ----------
        n : int
            Number of records.
        n_features : int, optional
            Needed if two numbers are the bounds of any number of features.

        Returns
        -------
        FitPlan
            With ``cost``, ``mechanism``, ``law``, ``steps`` and ``guarantee``; it prints what
            every step spends, and its noise.
        """
        self._validate_params()
        check_scalar(n, "n", Integral, min_val=1)
        asked, budget = copy(self), self._budget()
        asked._leak = _must_be_declared  # type: ignore[method-assign]
        nobody = asked._nobody(n, n_features or getattr(self, "n_features_in_", None))
        public, _ = asked._public_schema(nobody, n)
        share, rest = asked._shares(budget)
        sizes = (SizePlan.of(share),) if share.epsilon else ()
        facts = Facts(n, tuple(plan.law for plan in sizes))
        plan = asked._plan(asked._prior(public), facts, rest)
        return FitPlan(type(self).__name__, n, (*sizes, plan), self._copies)

    def _nobody(self, n: int, n_features: int | None) -> Any:
        """Return n records of declared columns that nobody has."""
        width = self._declared_width or n_features
        if width is None:
            raise ValueError(
                f"The number of columns of {type(self).__name__} is not declared: give n_features."
            )
        return LocalRecords.unlabelled(Table(np.broadcast_to(0.0, (n, width))))

    def _fit(self, read: Read, stream: int = 0, facts: Facts | None = None) -> Self:
        """Check -> read -> plan -> charge -> release -> attach, or change nothing.

        ``stream`` counts the fits that were made with the same seed and are published together.
        ``facts`` stand for a secret number of records, about which nothing is then released.
        """
        fitted = copy(self)
        fitted._computed = []
        with quiet_numpy(), one_branch():
            budget = fitted._budget()
            fitted._check_budget(budget)
            given, rest = fitted._sized(read, budget, stream, facts)
            plan = fitted._planned(given, rest)
            first = fitted._spent_before(budget, rest)
            with _told_what_was_spent(first):
                release = fitted._carried_out(plan, given, stream)
            promised = _spending(fitted._promised(budget), first, release)
            fitted._attach(given.public, promised)
            if not stream:
                fitted._hint()
            return self._become(fitted)

    def _rehearse(self, X: Any, y: Any, groups: Any) -> Self:
        """Fit to public records, with a public guess of their number if it would be secret."""
        self._validate_params()
        return self._fit(
            lambda fitted, facts: fitted._read(X, y, groups=groups, facts=facts),
            facts=NOTHING_KNOWN if self._unit.size_is_secret else None,
        )

    def _sized(
        self, read: Read, budget: Budget, stream: int = 0, facts: Facts | None = None
    ) -> tuple[FitInput, Budget]:
        """Read; if the number of records is secret, release it first. Return what is left to spend.

        Until it is released, a public guess stands for it. So everything that can be refused is
        refused before the charge, a fit that the ceiling has no room for included.
        """
        if not budget.unit.size_is_secret or budget.infinite:
            return read(self, facts), budget
        if self._uses_n == "nowhere":
            return read(self, NOTHING_KNOWN)._replace(facts=NOTHING_KNOWN), budget
        share, rest = self._shares(budget)
        size = SizePlan.of(share)
        given = read(self, size.guess)._replace(facts=size.guess)
        self._planned(given, rest)
        if facts is not None:
            return given, rest
        numbers = self._sizes(rest) if self._mechanism.knows_rho else (GUESS,)
        known = (given._replace(facts=Facts(n, size.guess.laws)) for n in numbers)
        self._check_together(share, [self._planned(one, rest).cost for one in known])
        exact = RecordCount(given.statistics.n)
        released = self._charged(size, exact, _SIZE_STREAM + stream).posterior
        self._n_released = released.n
        if self._uses_n == "in the schema":
            with silence():  # it has been said what is read from the data
                given = read(self, released)
        return given._replace(facts=released), rest

    def _shares(self, budget: Budget) -> tuple[Budget, Budget]:
        """Return the parts of a budget for a secret number of records, and for all else."""
        secret = budget.unit.size_is_secret and self._uses_n != "nowhere"
        if not secret or budget.infinite:
            return Budget(Fraction(0), unit=budget.unit), budget
        share = size_share(Fraction(budget.epsilon))
        rest = budget._replace(epsilon=Fraction(budget.epsilon) - share)
        return Budget(share, unit=budget.unit), rest

    _uses_codes: ClassVar[bool] = False
    """Whether the codes of its declared columns are all that is used of a record."""

    _uses_n: Where = "in the plan"
    """Where the number of records is used, besides the statistics; if it is secret, it has to be
    released for that. What is in the schema is in the plan as well."""

    def _read(
        self,
        X: Any,
        y: Any,
        known: Any = None,
        groups: Any = None,
        facts: Facts | None = None,
        sample_weight: Any = None,
    ) -> FitInput:
        """Read -> schema -> statistics; X and y are not used again.

        ``known`` is the public schema, if an earlier batch has settled it, and ``facts`` are what
        is public about the number of records, if it is not the number itself.
        """
        everything = self._records(X, y, reset=known is None)
        records, promises = self._protected(everything, groups, sample_weight)
        facts = Facts(records.n) if facts is None else facts
        settled = known is not None
        public, conditions = (known, ()) if settled else self._public_schema(records, facts.n)
        prior = self._prior(public)  # wrong parameters are refused before types of columns
        self._check_types(public, records)
        promises = (*promises, *self._promised_width(X, known))
        statistics = self._statistics(public, prior, records)
        return FitInput(public, prior, statistics, (*conditions, *promises), facts)

    @property
    def _declared_width(self) -> int | None:
        """How many columns are declared, None if not at all; here one, as of a single variable."""
        return 1

    def _width(self, reset: bool) -> int | None:
        """Return how many columns X must have, if that is known without looking at X."""
        return self._declared_width if reset else self.n_features_in_

    def _promised_width(self, X: Any, known: Any) -> tuple[str, ...]:
        """Return the condition of a list, whose rows alone say how many columns there are."""
        told = known is not None or self._declared_width is not None or not is_list(X)
        return () if told else (WIDTH_OF_LIST,)

    def _protected(
        self, records: Any, groups: Any, sample_weight: Any = None
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the records that count, and what was promised about persons."""
        unit, given, seed = self._declared_unit, self._copies, self.random_state
        if sample_weight is None:
            return records_that_count(records, groups, unit, seed)
        if given is None:
            raise ValueError(NO_WEIGHTS.format(type(self).__name__))
        copies = copies_of(sample_weight, records.n, given.most, seed)
        return records_that_count(records, groups, unit, seed, copies)

    def _check_types(self, public: Any, records: Any) -> None:
        """Refuse, by declared types alone, columns that cannot hold a value of their domain."""

    @abstractmethod
    def _records(self, X: Any, y: Any, *, reset: bool) -> Any:
        """Return the records, checked for shape and type; ``reset`` forgets earlier columns."""

    @abstractmethod
    def _public_schema(self, records: Any, n: int) -> tuple[Any, tuple[str, ...]]:
        """Return the public domains of the records, and the conditions they rest on.

        ``n`` is what is public about the number of records.
        """

    @abstractmethod
    def _statistics(self, public: Any, prior: Any, records: Any) -> Any:
        """Return the exact statistics of the records."""

    @abstractmethod
    def _prior(self, public: Any) -> Any:
        """Return the belief about the parameters before any data."""

    @abstractmethod
    def _plan(self, prior: Any, facts: Facts, budget: Budget) -> Plan[Any, Any]:
        """Return how a posterior is released; what cannot be released is refused."""

    def _planned(self, given: FitInput, budget: Budget) -> Plan[Any, Any]:
        """Return the plan of a release of what was read."""
        return self._plan(given.prior, given.facts, budget)

    @abstractmethod
    def _attach(self, public: Any, release: Release[Any]) -> Self:
        """Set the fitted attributes."""

    def _epsilon_wanted(self, n: int, n_features: int) -> float:
        """Return the epsilon that makes a step of a pipeline accurate, from public quantities."""
        return math.inf

    def _hint(self) -> None:
        """Log problems that the released values suggest: post-processing."""

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
        """Return the epsilon that was spent on the number of records, as it is promised."""
        if rest is budget:
            return Fraction(0)
        whole, left = (Fraction(self._promised(part).epsilon) for part in (budget, rest))
        return whole - left

    def _promised(self, cost: Budget) -> Budget:
        """Return a cost as it is charged and promised: to who is declared to be protected."""
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
        """Refuse an estimator that would count records by weights, where nobody passes them on."""
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

    # A worker process is outside the ``with`` block that its task was sent from, so a pickled
    # estimator carries the block's accountant, and its clones there do. At home nobody needs it.
    # If it cannot be known, it carries the reason, and is refused when it is fitted there.

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

        Where zCDP composes, the cost of a fit is known with its statistics, and checked then.
        """
        ledger = self._ledger()
        if ledger is not None and not (ledger.delta and self._mechanism.knows_rho):
            cost = self._promised(budget)
            ledger.check(cost.epsilon, cost.delta, unit=cost.unit)

    def _sizes(self, budget: Budget) -> tuple[int, ...]:
        """Return numbers of records, at one of which a release costs as much as at any number."""
        return (1, GUESS, _LARGE)

    def _check_together(self, share: Budget, costs: Sequence[Budget]) -> None:
        """Refuse a fit if the ceiling has no room for the number of records and the model.

        The zCDP of the model may depend on the number, which is not known yet: there must be room
        for the largest.
        """
        first, ledger = Fraction(self._promised(share).epsilon), self._ledger()
        if ledger is None:
            return
        for cost in dict.fromkeys(map(self._promised, costs)):
            rho = Fraction(cost.rho) * _ROUNDED + first**2 / 2 if cost.rho else None
            ledger.check(cost.epsilon + first, cost.delta, rho=rho, unit=cost.unit)

    def _carried_out(self, plan: Plan[Any, Any], given: FitInput, stream: int = 0) -> Release[Any]:
        """Charge the ledger durably, then carry out the plan.

        Everything that could be refused is refused before the charge.
        """
        cost = self._promised(plan.cost)
        warn_if_weak(cost)
        if not given.facts.guessed:
            warn_of_delta(cost, given.facts.n)
        self._advise(plan, given.public, given.facts)
        conditions = given.conditions
        if self.random_state is not None:
            if not cost.infinite:
                warn_of_seeds(self._ledger())
            conditions = (*conditions, SEEDED)
        release = self._charged(plan, given.statistics, stream)
        return Release(release.posterior, release.guarantee.under(*conditions))

    def _charged(self, plan: Plan[Any, Any], statistics: Any, stream: int) -> Release[Any]:
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
        return Release(release.posterior, release.guarantee.of_copies(self._copies))

    def _advise(self, plan: Any, public: Any, facts: Facts) -> None:
        """Log problems that follow from public quantities, before the fit is charged."""

    def _description(self, mechanism: str) -> str:
        """Return what the ledger calls a release."""
        return f"{type(self).__name__}, {mechanism}"

    def _become(self, fitted: Self) -> Self:
        """Take over a fitted copy in one step, so that no error leaves half a fit behind."""
        for name in fitted.__dict__.pop("_computed", ()):
            fitted.__dict__.pop(name)
        self.__dict__ = fitted.__dict__
        return self

    def _leak(self, what: str, parameter: str) -> str:
        """Warn that something was read from the data; return the condition it puts on the claim."""
        warn_caller(
            f"{what} read from the data, which may reveal them: set {parameter} to public values.",
            PrivacyLeakWarning,
        )
        return (
            f"{what} read from the data without revealing anything ({parameter} was not declared)"
        )


def _must_be_declared(what: str, parameter: str) -> str:
    """Refuse to plan without what a fit would read from the data."""
    raise ValueError(f"Planning needs declared domains: set {parameter}.")


def _block_to_carry() -> BudgetAccountant | str | None:
    """Return the accountant of the block that is open here, or why it cannot be known."""
    try:
        return active_accountant()
    except LedgerError as unknown:
        return str(unknown)


@contextmanager
def _told_what_was_spent(first: Fraction) -> Iterator[None]:
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


def _spending(budget: Budget, first: Fraction, release: Release[Any]) -> Release[Any]:
    """Return a release with the guarantee of a whole budget.

    A first part of it was spent on the number of records.
    """
    if not first:
        return release
    guarantee, rho = release.guarantee, release.guarantee.rho
    if rho is not None and math.isfinite(rho):  # one that no float holds is rounded up to infinity
        rho = round_up(exact(rho, "rho") + first**2 / 2)
    together = replace(guarantee, epsilon=round_up(budget.epsilon), rho=rho)
    return Release(release.posterior, together)
