"""The one sequence of every fit: check, read, plan, charge, release, attach."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial, wraps
from inspect import signature
from numbers import Integral
from types import MethodType
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
)

import numpy as np
from sklearn.utils import check_scalar

from dpbayes_sklearn._compat import _fit_context
from dpbayes_sklearn._presenting import silence
from dpbayes_sklearn.base.remarks import advise_of_steps, warn_of_delta, warn_of_seeds
from dpbayes_sklearn.base.spending import SpendingEstimator, spending, told_what_was_spent
from dpbayes_sklearn.data.frames import named_columns
from dpbayes_sklearn.data.persons import OWN_WEIGHTS, copies_of, records_that_count
from dpbayes_sklearn.data.records import LocalRecords, Table, quiet_numpy
from dpbayes_sklearn.exceptions import PrivacyLeakWarning, warn_caller
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.active import one_branch
from dpbayes_sklearn.privacy.guarantee import warn_if_weak
from dpbayes_sklearn.release import (
    GUESS,
    NOTHING_KNOWN,
    Facts,
    FitPlan,
    Plan,
    RecordCount,
    Release,
    SizePlan,
    size_share,
)
from dpbayes_sklearn.schema.values import is_list

SEEDED = "the random_state is a secret and never used again: a known seed reveals the noise"
WIDTH_OF_LIST = (
    "X is a list, and how many cells most of its rows have is public (no schema or bounds declare "
    "the number of columns)"
)
# Numbers of records at which a release is planned while the number is secret: what it spends, a
# delta or none, may change from one to the next, and more change no cost.
_SIZES = (1, 30, 100, 300, 1000, 3000, GUESS, 10**5, 10**9)
_SIZE_STREAM = 2**16  # The first stream of a seed that draws the noise of a number of records.

NO_WEIGHTS = (
    "{} takes no sample_weight without a public bound, because a weight multiplies what a record "
    "changes. Models have a parameter for it, as in BayesianNaiveBayes(max_weight=5). Nothing was "
    "spent."
)


class Counted(Protocol):
    """Records, or statistics of them, that know their number: sensitive."""

    @property
    def n(self) -> int:
        """Number of records."""


DataT = TypeVar("DataT", bound=Counted)
PublicT = TypeVar("PublicT")
PriorT = TypeVar("PriorT")
StatisticsT = TypeVar("StatisticsT", bound=Counted)
PosteriorT = TypeVar("PosteriorT")


class FitInput(NamedTuple, Generic[PublicT, PriorT, StatisticsT]):
    """**Sensitive:** the input of a release.

    ``public`` are the domains by which the exact ``statistics`` were computed, ``prior`` the belief
    before any data, or what is asked of the records, ``conditions`` those of the guarantee that
    concern the domains, and ``facts`` what is public about the number of records.
    """

    public: PublicT
    prior: PriorT
    statistics: StatisticsT
    conditions: tuple[str, ...] = ()
    facts: Facts = NOTHING_KNOWN


Where = Literal["nowhere", "in the plan", "in the schema"]

Read = Callable[[Any, Facts | None], FitInput[PublicT, PriorT, StatisticsT]]
"""Reads the records for an estimator; the facts stand for their number, if it is secret."""


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


class PrivateEstimator(SpendingEstimator, Generic[DataT, PublicT, PriorT, StatisticsT, PosteriorT]):
    """Base of all estimators, with the only sequence by which one is fitted.

    A fit is check -> read -> plan -> charge -> release -> attach. A model fills in these hooks:
    :meth:`_records`, :meth:`_public_schema` and :meth:`_statistics` to read, :meth:`_prior`,
    :meth:`_plan` and :meth:`_attach`. It is generic in what they hand on: the records, what is
    public about them, the prior, the exact statistics, and the posterior that is released.
    """

    posterior_: PosteriorT
    _computed: list[str]

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

        def read(fitted: Self, facts: Facts | None) -> FitInput[PublicT, PriorT, StatisticsT]:
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

    def _nobody(self, n: int, n_features: int | None) -> DataT:
        """Return n made-up records of the declared columns."""
        width = self._declared_width or n_features
        if width is None:
            raise ValueError(
                f"The number of columns of {type(self).__name__} is not declared: give n_features."
            )
        records = LocalRecords.unlabelled(Table(np.broadcast_to(0.0, (n, width))))
        return cast(DataT, records)

    def _fit(
        self, read: Read[PublicT, PriorT, StatisticsT], stream: int = 0, facts: Facts | None = None
    ) -> Self:
        """Check -> read -> plan -> charge -> release -> attach, or change nothing.

        ``stream`` counts the fits that were made with the same seed and are published together.
        ``facts`` stand for a secret number of records, about which nothing is then released.
        """
        advise_of_steps(self)
        fitted = copy(self)
        fitted._computed = []
        with quiet_numpy(), one_branch():
            budget = fitted._budget()
            fitted._check_budget(budget)
            given, rest = fitted._sized(read, budget, stream, facts)
            plan = fitted._planned(given, rest)
            first = fitted._spent_before(budget, rest)
            with told_what_was_spent(first):
                release = fitted._carried_out(plan, given, stream)
            promised = spending(fitted._promised(budget), first, release)
            fitted._attach(given.public, promised)
            size = Budget(budget.epsilon - rest.epsilon if first else 0, unit=budget.unit)
            fitted._proof = fitted._record(size, release)
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
        self,
        read: Read[PublicT, PriorT, StatisticsT],
        budget: Budget,
        stream: int = 0,
        facts: Facts | None = None,
    ) -> tuple[FitInput[PublicT, PriorT, StatisticsT], Budget]:
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
        numbers = self._sizes(rest) if self._mechanism.spends_delta else (GUESS,)
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
        known: PublicT | None = None,
        groups: Any = None,
        facts: Facts | None = None,
        sample_weight: Any = None,
    ) -> FitInput[PublicT, PriorT, StatisticsT]:
        """Read -> schema -> statistics; X and y are not used again.

        ``known`` is the public schema, if an earlier batch has settled it, and ``facts`` are what
        is public about the number of records, if it is not the number itself.
        """
        everything = self._records(X, y, reset=known is None)
        records, promises = self._protected(everything, groups, sample_weight)
        facts = Facts(records.n) if facts is None else facts
        conditions: tuple[str, ...] = ()
        if known is None:
            public, conditions = self._public_schema(records, facts.n)
        else:
            public = known
        prior = self._prior(public)  # wrong parameters are refused before types of columns
        self._check_types(public, records)
        told = known is not None or self._declared_width is not None or not is_list(X)
        promises = promises if told else (*promises, WIDTH_OF_LIST)
        statistics = self._statistics(public, prior, records)
        return FitInput(public, prior, statistics, (*conditions, *promises), facts)

    @property
    def _declared_width(self) -> int | None:
        """How many columns are declared, None if not at all; here one, as of a single variable."""
        return 1

    def _width(self, reset: bool) -> int | None:
        """Return how many columns X must have, if that is known without looking at X."""
        return self._declared_width if reset else self.n_features_in_

    def _protected(
        self, records: DataT, groups: Any, sample_weight: Any = None
    ) -> tuple[DataT, tuple[str, ...]]:
        """Return the records that count, and what was promised about persons and weights."""
        unit, given, seed = self._declared_unit, self._copies, self.random_state
        if sample_weight is None:
            return records_that_count(records, groups, unit, seed)
        if given is None:
            raise ValueError(NO_WEIGHTS.format(type(self).__name__))
        copies = copies_of(sample_weight, records.n, given.most, seed)
        counted, promises = records_that_count(records, groups, unit, seed, copies)
        return counted, (*promises, OWN_WEIGHTS)

    def _check_types(self, public: PublicT, records: DataT) -> None:
        """Refuse, by declared types alone, columns that cannot hold a value of their domain."""

    @abstractmethod
    def _records(self, X: Any, y: Any, *, reset: bool) -> DataT:
        """Return the records, checked for shape and type; ``reset`` forgets earlier columns."""

    @abstractmethod
    def _public_schema(self, records: DataT, n: int) -> tuple[PublicT, tuple[str, ...]]:
        """Return the public domains of the records, and the conditions they rest on.

        ``n`` is what is public about the number of records.
        """

    @abstractmethod
    def _statistics(self, public: PublicT, prior: PriorT, records: DataT) -> StatisticsT:
        """Return the exact statistics of the records."""

    @abstractmethod
    def _prior(self, public: PublicT) -> PriorT:
        """Return the belief about the parameters before any data."""

    @abstractmethod
    def _plan(self, prior: PriorT, facts: Facts, budget: Budget) -> Plan[StatisticsT, PosteriorT]:
        """Return how a posterior is released; what cannot be released is refused."""

    def _planned(
        self, given: FitInput[PublicT, PriorT, StatisticsT], budget: Budget
    ) -> Plan[StatisticsT, PosteriorT]:
        """Return the plan of a release of what was read."""
        return self._plan(given.prior, given.facts, budget)

    @abstractmethod
    def _attach(self, public: PublicT, release: Release[PosteriorT]) -> Self:
        """Set the fitted attributes."""

    def _epsilon_wanted(self, n: int, n_features: int) -> float:
        """Return the epsilon that makes a step of a pipeline accurate, from public quantities."""
        return math.inf

    def _hint(self) -> None:
        """Log problems that the released values suggest: post-processing."""

    # A worker process is outside the ``with`` block that its task was sent from, so a pickled
    # estimator carries the block's accountant, and its clones there do. At home nobody needs it.
    # If it cannot be known, it carries the reason, and is refused when it is fitted there.

    def _sizes(self, budget: Budget) -> tuple[int, ...]:
        """Return numbers of records, at one of which a release costs as much as at any number."""
        return _SIZES

    def _carried_out(
        self,
        plan: Plan[StatisticsT, PosteriorT],
        given: FitInput[PublicT, PriorT, StatisticsT],
        stream: int = 0,
    ) -> Release[PosteriorT]:
        """Charge the ledger durably, then carry out the plan.

        Everything that could be refused is refused before the charge.
        """
        cost = self._promised(plan.cost)
        asked = self._promised(self._budget())  # with the share of a secret number of records
        warn_if_weak(cost._replace(epsilon=asked.epsilon))
        if not given.facts.guessed:
            warn_of_delta(cost, given.facts.n, charged=bool(given.facts.laws))
        self._advise(plan, given.public, given.facts)
        conditions = given.conditions
        if self.random_state is not None:
            if not cost.infinite:
                warn_of_seeds(self._ledger())
            conditions = (*conditions, SEEDED)
        release = self._charged(plan, given.statistics, stream)
        return replace(release, guarantee=release.guarantee.under(*conditions))

    def _advise(self, plan: Any, public: PublicT, facts: Facts) -> None:
        """Log problems that follow from public quantities, before the fit is charged."""

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


AnyEstimator: TypeAlias = PrivateEstimator[Any, Any, Any, Any, Any]
"""An estimator, whatever it reads and releases: for code that treats all alike."""

AnyInput: TypeAlias = FitInput[Any, Any, Any]
"""What any estimator has read: for the same code."""


def _must_be_declared(what: str, parameter: str) -> str:
    """Refuse to plan without what a fit would read from the data."""
    raise ValueError(f"Planning needs declared domains: set {parameter}.")
