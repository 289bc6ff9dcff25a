r"""The boundary that private data cross, once: a plan, made of public facts, releases.

A fit is check -> read -> plan -> charge -> release -> attach. A :class:`Plan` is everything that
follows from public facts, decided once and before a record is looked at: what is charged is what
is drawn. Its ``release`` is the only function that turns private statistics into public values.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dpbayes_sklearn._presenting import card, table, tag
from dpbayes_sklearn._typing import Positions
from dpbayes_sklearn.noise import DiscreteLaplace, Marginal, Noise, NoiseLaw
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import Budget, Copies, PrivacyUnit, at_least
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee

GUESS = 10_000
"""Stands for a secret number of records before it is released: a public constant."""

_SIZE_SHARE = Fraction(1, 25)
"""Part of epsilon that a secret number of records gets."""

_UNLIKELY_SIZE = 1e-20
"""Chance that a secret number exceeds its public bound, which costs accuracy, never privacy."""

S = TypeVar("S", contravariant=True)
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


class Step(NamedTuple):
    """One private step of a plan, as it is shown."""

    what: str  # What is released.
    cost: Budget  # The part of the budget that it spends.
    noise: str = ""  # Its noise, in words.
    # Standard deviation of the noise in one released number; None if that depends on the data.
    error: float | None = None

    @property
    def spends(self) -> str:
        """The part of the budget, as text.

        >>> Step("counts", Budget(Fraction(1, 2), Fraction(1, 10**6))).spends
        'epsilon = 0.5, delta = 1e-06'
        """
        delta = f", delta = {at_least(self.cost.delta)}" if self.cost.delta else ""
        return f"epsilon = {at_least(self.cost.epsilon)}{delta}"

    @property
    def expected(self) -> str:
        """Noise and error, as text."""
        error = "" if self.error is None else f"standard deviation {self.error:.3g}"
        return ", ".join(filter(None, (self.noise, error))) or "depends on the data"


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(ABC, Generic[S, P]):
    """Everything about a release that follows from public facts, made once before the release.

    Making a plan refuses what cannot be released, so that nothing is charged for it.

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
    def steps(self) -> tuple[Step, ...]:
        """What is released one after the other, and what each step spends."""
        return (Step(f"posterior, {self.mechanism}", self.cost),)


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
    posterior = plan.release(statistics, noise)
    return Release(posterior, plan.promise(posterior))


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
class SizePlan(Plan[RecordCount, Facts]):
    r"""Release of a secret number of records: noise :math:`P(z) \propto e^{-\varepsilon|z|/k}`.

    The result is at least 1.
    """

    law: NoiseLaw

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
        """Public facts that stand for the released ones in plans that are not carried out."""
        return Facts(GUESS, (self.law,), guessed=True)

    def release(self, statistics: RecordCount, noise: Noise) -> Facts:
        """Return the number of records after noise."""
        (noisy,) = noise.add([np.array([statistics.n], np.int64)], self.law)
        return Facts(max(int(noisy[0]), 1), (self.law,))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The number of records."""
        error = float(self.law.variance()) ** 0.5
        return (Step("number of records", self.cost, "Laplace noise", error),)


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
        *first, last = (self._promised(plan.cost) for plan in self.parts)
        epsilon, rho = last.epsilon, last.rho
        for own in first:  # a purely private release is epsilon²/2-zCDP
            epsilon, rho = epsilon + own.epsilon, rho and rho + Fraction(own.epsilon) ** 2 / 2
        return last._replace(epsilon=epsilon, rho=rho, pure_epsilon=Fraction(0))

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, also where "auto" chose it."""
        return self.parts[-1].mechanism

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is released one after the other: what it is, what it spends, its noise and error."""
        steps = (step for plan in self.parts for step in plan.steps)
        return tuple(step._replace(cost=self._promised(step.cost)) for step in steps)

    @property
    def law(self) -> NoiseLaw | None:
        """The distribution of the noise of the model, if it is one of numbers that are added."""
        plan = self.parts[-1]
        return getattr(getattr(plan, "tables", plan), "law", None)

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
