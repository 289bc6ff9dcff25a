r"""The boundary that private data cross, once: a plan, made of public facts, releases.

A fit is check -> read -> plan -> charge -> release -> attach. A :class:`Plan` is everything that
follows from public facts, decided once and before a record is looked at: what is charged is what
is drawn. Its ``release`` is the only function that turns private statistics into public values, one
:class:`Step` after the other.

**The number of records, where records may be added or removed.**

Guarantee
---------
*Precondition*: neighbours differ in the records of one unit, at most k of them, so the number of
records n has sensitivity k. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: discrete Laplace noise
of scale :math:`k/\varepsilon`. It is released before anything else; all that a fit would do with a
public n it then does with the released one, which is post-processing.

**Samples of the records, where so many are more than a step needs.**

Guarantee
---------
*Precondition*: neighbours are of the same size n, and list their records in any order; a step that
looks at m of the records is :math:`\varepsilon`-private for data sets of m records. *Claim*: asked
of m = n/s records that are drawn at random, m by a public rule, it is :math:`\varepsilon`-private.
*Proof*: let a bijection map the positions of one data set to those of its neighbour, such that
records that are in both are mapped to themselves. It maps the sets of m positions onto each other,
and all of them have the same probability. So let both neighbours draw sets that belong together:
given these, the records that are asked are themselves neighbours, or the same, and outcomes differ
in probability by a factor of at most :math:`e^\varepsilon`. What holds given every set holds for
the mixture (of Rényi divergences because they are quasi-convex). ∎

The proof holds for k records of a person: at most k are asked, for which the step is calibrated. It
holds for several steps that share one sample, given which their losses add up. It does not hold for
records by their positions, such as every s-th: in a table that is kept in order, one record that is
replaced shifts others. The sample itself stays secret. That it hides who was asked (amplification)
is not claimed.

With a secret number of records the size of a sample would tell it, so all records are asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np

from dpbayes_sklearn._presenting import card, table, tag
from dpbayes_sklearn._typing import IntArray, Positions
from dpbayes_sklearn.noise import DiscreteLaplace, Marginal, Noise, NoiseLaw
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import Budget, Copies, PrivacyUnit, at_least
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee
from dpbayes_sklearn.privacy.plain import plain

GUESS = 10_000
"""Stands for a secret number of records before it is released: a public constant."""

_SIZE_SHARE = Fraction(1, 25)
"""Part of epsilon that a secret number of records gets."""

_UNLIKELY_SIZE = 1e-20
"""Chance that a secret number exceeds its public bound, which costs accuracy, never privacy."""

S = TypeVar("S", contravariant=True)
K = TypeVar("K")
T = TypeVar("T")
P = TypeVar("P")


@dataclass(frozen=True)
class Facts:
    """What is public about the number of records."""

    n: int  # The number of records if it is public; if it is secret, the released one or a guess.
    laws: tuple[NoiseLaw, ...] = ()  # The noise in n: none if n is public.
    # True if n is a public constant, because nothing was released about a secret number.
    guessed: bool = False

    @property
    def n_bound(self) -> int:
        """A public number that the number of records does not exceed: see :func:`bound_of`."""
        return bound_of(self.n, self.laws)


NOTHING_KNOWN = Facts(GUESS, guessed=True)
"""Of a secret number of records that a release does not need."""


@dataclass(frozen=True)
class Expense:
    """One thing that a plan spends a part of the budget on, as it is shown.

    Attributes
    ----------
    what : str
        What is released.
    cost : Budget
        The part of the budget that it spends.
    law : object
        The public law that the answer is drawn from: that of noise which is added, or whatever the
        draw takes. Where it depends on what was released before, a function of that; None where
        nothing is drawn.
    in_words : str
        The law in words, if it is not one of noise.
    structure : object
        What the sensitivity follows from, such as the network of tables: public facts, or a
        function of what was released before.
    """

    what: str
    cost: Budget
    law: Any = None
    in_words: str = ""
    structure: Any = field(default=None, kw_only=True)

    @property
    def spends(self) -> str:
        """The part of the budget, as text.

        Of a delta that steps have together, one of them has no part: its zCDP is shown.

        >>> cost = Budget(Fraction(1, 2), Fraction(1, 10**6))
        >>> Expense("counts", cost).spends, Expense("counts", cost._replace(rho=0.01)).spends
        ('epsilon = 0.5, delta = 1e-06', 'rho = 0.01')
        """
        if self.cost.delta and self.cost.rho is not None:
            return f"rho = {at_least(self.cost.rho)}"
        delta = f", delta = {at_least(self.cost.delta)}" if self.cost.delta else ""
        return f"epsilon = {at_least(self.cost.epsilon)}{delta}"

    @property
    def error(self) -> float | None:
        """Standard deviation of the noise in one released number; None if it is not public."""
        return float(self.law.variances.mean()) ** 0.5 if isinstance(self.law, NoiseLaw) else None

    @property
    def expected(self) -> str:
        """Noise and error, as text."""
        if self.error is None:
            earlier = "follows from earlier steps, all of them released"
            return self.in_words or (earlier if callable(self.law) else "none")
        noise = self.in_words or f"{type(self.law).__name__} noise"
        return f"{noise}, standard deviation {self.error:.3g}"


def added(exact: Any, law: NoiseLaw | None, noise: Noise) -> Any:
    """Return arrays of integers with noise of a law: how a step is answered, if it says no other.

    Without a law, which is without privacy, they are returned as they are.
    """
    return exact if law is None else noise.add(exact, law)


@dataclass(frozen=True)
class Step(Expense, Generic[S, K]):
    """One private step of a release: what is asked, what the answer is drawn from, what it tells.

    It is a public value. Only ``ask`` is handed the records. The law is a function of public facts
    and of what earlier steps released, and the statistics' own type knows its sensitivity.

    Attributes
    ----------
    ask : function of statistics and what is known
        Returns what is asked exactly, such as arrays of integers: sensitive.
    read : function of what is known and an answer
        Returns what is known afterwards: post-processing.
    draw : function of what was asked, the law and the noise
        Returns the answer; adds noise by default.

    Examples
    --------
    How many numbers are above 0, then how many are above that:

    >>> from dpbayes_sklearn.noise import DiscreteLaplace
    >>> law, half = DiscreteLaplace.of(Fraction(2), [1]), Budget(Fraction(1, 2))
    >>> above = Step(
    ...     "numbers above a known one", half, law,
    ...     ask=lambda numbers, known: [np.array([(numbers > known).sum()])],
    ...     read=lambda known, answer: int(answer[0][0]),
    ... )
    >>> print(f"{above.what}: {above.spends}; {above.expected}")
    numbers above a known one: epsilon = 0.5; DiscreteLaplace noise, standard deviation 2.8
    >>> class Twice(StepPlan):
    ...     start, steps = 0, (above, above)
    >>> plan = Twice(cost=composed([half, half]), mechanism="laplace")
    >>> plan.cost.epsilon, plan.release(np.arange(-50, 50), Noise.of(0))
    (Fraction(1, 1), ...)
    """

    _: KW_ONLY
    ask: Callable[[S, K], Any]
    read: Callable[[K, Any], K]
    draw: Callable[[Any, Any, Noise], Any] = added

    def law_given(self, known: K) -> Any:
        """Return the law that the answer is drawn from."""
        return self.law(known) if callable(self.law) else self.law

    def release(self, statistics: S, known: K, noise: Noise) -> K:
        """Ask the records, and return what is known afterwards."""
        answer = self.draw(self.ask(statistics, known), self.law_given(known), noise)
        return self.read(known, answer)

    def record(self, known: K) -> dict[str, Any]:
        """Return what was spent on what and the law that was drawn from, for a checker."""
        cost, law = self.cost, self.law_given(known)
        structure = self.structure(known) if callable(self.structure) else self.structure
        spent = {"epsilon": cost.epsilon, "delta": cost.delta, "rho": cost.rho}
        found: dict[str, Any] = plain(
            {"what": self.what, **spent, "structure": structure, "law": law}
        )
        return found

    def of_part(self, part: Callable[[T], S]) -> Step[T, tuple[Any, ...]]:
        """Return a first step as one of a release of larger statistics: it adds what it tells."""
        return Step(
            *(self.what, self.cost, self.law, self.in_words),
            ask=partial(_asked, self.ask, part),
            read=partial(_joined, self.read),
            draw=self.draw,
            structure=self.structure,
        )


def _asked(ask: Callable[..., Any], part: Callable[..., Any], whole: Any, known: Any) -> Any:
    return ask(part(whole), None)


def _joined(read: Callable[..., Any], known: tuple[Any, ...], answer: Any) -> tuple[Any, ...]:
    return (*known, read(None, answer))


def composed(costs: Iterable[Budget]) -> Budget:
    r"""Return the cost of releases that are made one after the other.

    Where the zCDP of one is known, purely private others are :math:`\varepsilon^2/2`-zCDP.

    >>> costs = Budget(Fraction(1), Fraction(1, 10**6), rho=Fraction(1, 8)), Budget(Fraction(1, 2))
    >>> composed(costs).epsilon, composed(costs).rho
    (Fraction(3, 2), Fraction(1, 4))
    """
    epsilons, deltas, units, rhos, _ = zip(*costs, strict=True)
    rho = None
    if any(own is not None for own in rhos):
        each = zip(epsilons, deltas, rhos, strict=True)
        known = [e**2 / 2 if own is None and not delta else own for e, delta, own in each]
        rho = None if None in known else sum(known)
    return Budget(sum(epsilons), sum(deltas), units[0], rho)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(ABC, Generic[S, P]):
    """Everything about a release that follows from public facts, made once before the release.

    Making a plan refuses what cannot be released, so that nothing is charged for it. Nearly all
    plans are a :class:`StepPlan`.

    Attributes
    ----------
    cost : Budget
        Epsilon, delta and zCDP: exactly what the ledger is charged.
    mechanism : str
        Its name, also where "auto" chose it.
    conditions : tuple of str
        Assumptions that a reader of the guarantee must know.
    """

    cost: Budget
    mechanism: str
    conditions: tuple[str, ...] = ()

    @abstractmethod
    def release(self, statistics: S, noise: Noise) -> P:
        """Turn exact statistics into a public posterior; the statistics are not kept."""

    def promise(self, released: P) -> PrivacyGuarantee:
        """Return the guarantee of what was released."""
        return PrivacyGuarantee.of(self.cost, self.mechanism, self.conditions)

    @property
    def steps(self) -> tuple[Expense, ...]:
        """What is released one after the other, and what each step spends."""
        return (Expense(f"posterior, {self.mechanism}", self.cost),)


class StepPlan(Plan[S, P]):
    """A release that is the list of its steps: what is printed and charged is what is drawn."""

    @property
    def start(self) -> Any:
        """What is known before the first step."""
        return None

    @property
    @abstractmethod
    def steps(self) -> tuple[Step[S, Any], ...]:
        """What is asked one after the other; made once."""

    def release(self, statistics: S, noise: Noise) -> P:
        """Take the steps, one after the other."""
        known = self.start
        for step in self.steps:
            if noise.notes is not None:
                noise.notes.append(step.record(known))
            known = step.release(statistics, known, noise)
        return self.posterior(known)

    def posterior(self, known: Any) -> P:
        """Return what the release is, of what is known after the last step."""
        return cast(P, known)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneStepPlan(StepPlan[S, P]):
    """A release in one step; what it asks and reads may be more than is drawn and returned."""

    law: Any

    @property
    @abstractmethod
    def what(self) -> str:
        """What is released."""

    @property
    def in_words(self) -> str:
        """The law in words, if it is not one of noise."""
        return ""

    @property
    def structure(self) -> Any:
        """What the sensitivity follows from."""
        return None

    def ask(self, statistics: S, known: Any) -> Any:
        """Return what is asked exactly: all of the statistics."""
        return statistics

    def read(self, known: Any, answer: Any) -> P:
        """Return the posterior given the answer: the answer itself."""
        return cast(P, answer)

    def draw(self, exact: Any, law: Any, noise: Noise) -> Any:
        """Return the answer."""
        return added(exact, law, noise)

    @cached_property
    def steps(self) -> tuple[Step[S, Any], ...]:
        """The one step."""
        about = self.what, self.cost, self.law, self.in_words
        asked = partial(Step, *about, structure=self.structure)
        return (asked(ask=self.ask, read=self.read, draw=self.draw),)


class Released:
    """Base of what is public after noise; inference is a function of a prior and of this."""

    n: int  # The number of records: public, or released.
    # The law of the noise of every batch that was added up: none without noise.
    laws: tuple[NoiseLaw, ...]
    size_laws: tuple[NoiseLaw, ...]  # The same for ``n``: none if it is public.

    @property
    def size_noise(self) -> Marginal:
        """The distribution of the noise in n, all batches together; exact if n is public."""
        return sum_of([law.marginal() for law in self.size_laws])

    @property
    def grid(self) -> int:
        """Number of steps in one unit: the finest lattice among the noises."""
        return max((law.grid for law in self.laws), default=1)

    @property
    def independent(self) -> bool:
        """True if every number has a noise of its own."""
        return all(law.independent for law in self.laws)

    def _together(self, other: Released) -> dict[str, Any]:
        """Return number of records and laws of both batches."""
        return {
            "n": self.n + other.n,
            "laws": self.laws + other.laws,
            "size_laws": self.size_laws + other.size_laws,
        }


@dataclass(frozen=True)
class Release(Generic[P]):
    """What a fit has released: a posterior and its guarantee."""

    posterior: P
    guarantee: PrivacyGuarantee
    steps: Sequence[dict[str, Any]] = ()  # The records of its steps, as JSON has them.


class _Comparable(Protocol):
    """A plan that public facts compare with another of its type."""

    def beats(self, other: Any, /) -> bool: ...


C = TypeVar("C", bound=_Comparable)


def less_noise(pure: C, gaussian: Callable[[], C]) -> C:
    """Return Gaussian noise where it can be drawn and beats pure noise: the mechanism "auto"."""
    with suppress(ValueError):  # without a delta, or with too small an epsilon
        other = gaussian()
        if other.beats(pure):
            return other
    return pure


def carry_out(plan: Plan[S, P], statistics: S, noise: Noise) -> Release[P]:
    """Release what is planned: the one boundary that private data cross."""
    return _BOUNDARY.get()(plan, statistics, noise)


def _released(plan: Plan[S, P], statistics: S, noise: Noise) -> Release[P]:
    noise.notes = []
    posterior = plan.release(statistics, noise)
    return Release(posterior, plan.promise(posterior), noise.notes)


_BOUNDARY: ContextVar[Callable[..., Release[Any]]] = ContextVar("boundary", default=_released)


@contextmanager
def boundary(stand_in: Callable[..., Release[Any]]) -> Iterator[None]:
    """Let ``stand_in(release, plan, statistics, noise)`` see all that is released in a block.

    For audits and tests. ``release(plan, statistics, noise)`` is what would have been called.
    """
    real = _BOUNDARY.get()
    token = _BOUNDARY.set(lambda *released: stand_in(real, *released))
    try:
        yield
    finally:
        _BOUNDARY.reset(token)


@dataclass(frozen=True)
class RecordCount:
    """**Sensitive:** the number of records, if records may be added or removed."""

    n: int

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return by how much neighbours differ: the records of one unit; 0 if n is public."""
        return unit.n_changed if unit.size_is_secret else 0

    def law(self, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return discrete Laplace noise."""
        return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit), epsilon), [1])


@dataclass(frozen=True, kw_only=True, eq=False)
class SizePlan(OneStepPlan[RecordCount, Facts]):
    r"""Release of a secret number of records: noise :math:`P(z) \propto e^{-\varepsilon|z|/k}`.

    The result is at least 1.
    """

    law: NoiseLaw
    what, structure = "number of records", "records"

    @classmethod
    def of(cls, budget: Budget) -> Self:
        """Return the plan that spends a budget.

        >>> from dpbayes_sklearn.privacy.budget import PrivacyUnit
        >>> unit = PrivacyUnit(neighbours="add_remove")
        >>> SizePlan.of(Budget(Fraction(1, 25), unit=unit)).law.scales
        (Fraction(25, 1),)
        """
        law = RecordCount(0).law(budget.unit, Fraction(budget.epsilon))
        return cls(cost=budget, mechanism="size", law=law)

    @property
    def guess(self) -> Facts:
        """Made-up public facts, for plans that are only checked and not carried out."""
        return Facts(GUESS, (self.law,), guessed=True)

    def ask(self, statistics: RecordCount, known: None) -> list[IntArray]:
        """Return the number of records."""
        return [np.array([statistics.n], np.int64)]

    def read(self, known: None, answer: Sequence[IntArray]) -> Facts:
        """Return the number of records after noise."""
        return Facts(max(int(answer[0][0]), 1), (self.law,))


@dataclass(frozen=True)
class FitPlan:
    """What a fit would release, known without data: print it, or read its attributes.

    Attributes
    ----------
    estimator : str
        Name of the class.
    n : int
        Number of records.
    parts : tuple of Plan
        The plan of a secret number of records, if there is one, and that of the model.
    copies : Copies, optional
        How often records may count, where weights say it: n is then their total.
    """

    estimator: str
    n: int
    parts: tuple[Plan[Any, Any], ...]
    copies: Copies | None = None

    def _promised(self, cost: Budget) -> Budget:
        return cost if self.copies is None else self.copies.outer(cost)

    @property
    def cost(self) -> Budget:
        """Epsilon, delta and zCDP of the whole fit."""
        return composed(self._promised(plan.cost) for plan in self.parts)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, also where "auto" chose it."""
        return self.parts[-1].mechanism

    @property
    def steps(self) -> tuple[Expense, ...]:
        """What is released one after the other: what it is, what it spends, its noise and error."""
        steps = (step for plan in self.parts for step in plan.steps)
        return tuple(replace(step, cost=self._promised(step.cost)) for step in steps)

    @property
    def law(self) -> NoiseLaw | None:
        """The distribution of the noise of the model, if it is one of numbers that are added."""
        laws = (step.law for step in self.parts[-1].steps)
        return next((law for law in laws if isinstance(law, NoiseLaw)), None)

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """What the fit would promise; undeclared facts and seeds add conditions."""
        return PrivacyGuarantee.of(self.cost, self.mechanism, self.parts[-1].conditions)

    def __str__(self) -> str:
        lines = [f"{self.estimator}, {self.n:,} records. {self.guarantee}"]
        lines += [f"  {step.what}: {step.spends}; {step.expected}" for step in self.steps]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(step.what, step.spends, step.expected) for step in self.steps]
        return card(
            f"Plan of {self.estimator}, {self.n:,} records",
            tag("p", str(self.guarantee)),
            table(("step", "spends", "noise"), rows, text=(0, 1, 2)),
        )


def size_share(epsilon: Fraction) -> Fraction:
    """Return the part of epsilon that the number of records gets.

    Its noise then has a standard deviation of 35 records at epsilon 1. All other noise is half of
    that with a public number, which more than makes up for it.

    >>> size_share(Fraction(1))
    Fraction(1, 25)
    """
    return _SIZE_SHARE * epsilon


def bound_of(n: int, laws: tuple[NoiseLaw, ...]) -> int:
    """Return a public number that the secret one does not exceed, up to a chance of 1e-20.

    What must not exceed it is cut there, so that privacy does not rest on chance.
    """
    return n + sum(int(law.error_bound(_UNLIKELY_SIZE)) + 1 for law in laws)


def drawn_sample(n: int, every: int, unit: PrivacyUnit, noise: Noise) -> Positions | None:
    """Draw the positions of one of ``every`` records, in increasing order; None asks all."""
    if every == 1 or unit.size_is_secret:
        return None
    return noise.positions(n, -(-n // every))
