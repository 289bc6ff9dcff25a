r"""How quantiles, common texts and choices of columns are released.

Guarantee
---------
**Quantiles.** *Precondition*: the columns share the budget equally; the levels of a column's
questions share that of the column, and neighbours change the distances of all questions of a level
by ranges that add up to at most the level's sensitivity. *Claim*: the release is
:math:`\varepsilon`-DP. *Proof*: a draw from :math:`\mu(z)\,e^{-\eta d(z)}` loses at most
:math:`\eta` times the range of the change of d, because a constant change cancels; with
:math:`\eta = (\varepsilon_l - r)/\Delta_l` a level loses at most :math:`\varepsilon_l`, r being
what rounding can add; levels and columns compose. (McSherry and Talwar 2007; Smith 2011; the
recursion is that of Kaplan, Schnapp and Stemmer 2022.) Every quantile is a point of a public
lattice, with integer weights: see :mod:`dpbayes_sklearn.columns.ranks`.

**Common texts.** *Precondition*: a replaced record takes one from the count of a text in each of d
columns and adds one to another. *Claim*: publishing the texts whose count plus noise is above the
reach of the noise is :math:`(\varepsilon, \delta)`-DP. *Proof*: the noises are independent, so only
the 2d counts that change matter. Each loses at most 1/b but for an event of probability
:math:`P(Z = k)`; they compose to :math:`(2d/b,\; 2d\,P(Z = k))`, and b and k are chosen so that
this is at most :math:`(\varepsilon, \delta)`. A text that nobody has is never published, so it
does not matter that the list of all texts is not known. Noise:
:math:`P(Z = z) \propto e^{-|z|/b}` for integers :math:`|z| \le k`.

**Both**, for the domains of a data frame: with m columns of numbers and t columns of texts,
quantiles that are :math:`\varepsilon m/(m+t)`-DP and texts that are
:math:`(\varepsilon t/(m+t), \delta)`-DP are :math:`(\varepsilon, \delta)`-DP together, by
composition.

**Choices.** *Precondition*: neighbours differ in no score by more than :math:`\Delta`; what can be
chosen depends on earlier choices only. *Claim*: choices with shares :math:`s_i` of
:math:`\varepsilon`, :math:`\sum_i s_i = 1`, are :math:`\varepsilon`-DP. *Proof*: permute-and-flip
(McKenna and Sheldon 2020), or above 64 candidates the exponential mechanism, with scores times
:math:`s_i\varepsilon/2\Delta`, less what rounding to integers can add; adaptive composition. A
candidate is drawn from integer weights: see :mod:`dpbayes_sklearn.noise.finite`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property, partial
from operator import add, attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.columns.quantiles import Answers, Level, QuantileQuestions, SortedColumns
from dpbayes_sklearn.columns.ranks import ROUNDING, RankLaw, Ranks, key_at
from dpbayes_sklearn.counts.dependence import LARGEST_SCORE, Choices, Scored
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.noise.finite import (
    MAX_CHOICES,
    MAX_POINTS,
    choice_log_law,
    choice_loss,
    integer_weights,
    rounding_loss,
)
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import Budget, Exact, PrivacyUnit
from dpbayes_sklearn.release import OneStepPlan, Step, StepPlan

_Options = tuple[list[Any], IntArray, int]  # Candidates, their scores, and how far these change.
Found = tuple[tuple[str, ...], ...]
"""Some texts of every column, in alphabetical order."""


@dataclass(frozen=True, repr=False)
class TextCounts:
    """Sensitive: how many records have each text, by column; what is no text is not counted.

    **Sensitivity.** A record has one text in every column. If r records are replaced, the counts of
    a column change by 2r in L1: some fall by r in all, others rise by r in all; if r come or go,
    by r. The probability that noise does not hide a change grows faster than the change, so the
    worst case is one count that falls by r and one that rises by r, or only one of them.
    """

    columns: tuple[Counter[str], ...]
    n: int

    @classmethod
    def of_shard(cls, places: Sequence[int], shard: Shard) -> TextCounts:
        """Count the texts of some columns of a shard."""
        columns = (_counted(shard.table.column(j)) for j in places)
        return cls(tuple(columns), shard.table.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def __add__(self, other: TextCounts) -> TextCounts:
        """Return the counts of the records of both."""
        pairs = zip(self.columns, other.columns, strict=True)
        return TextCounts(tuple(a + b for a, b in pairs), self.n + other.n)

    def law(self, unit: PrivacyUnit, epsilon: Fraction, delta: Fraction) -> TruncatedLaplace:
        """Return the noise of every count that makes all columns (epsilon, delta)-private."""
        sides = unit.n_changed // unit.max_records
        scale = laplace_scale(unit.n_changed * self.n_columns, epsilon)
        per_count = delta / (sides * self.n_columns)
        return TruncatedLaplace.calibrated(scale, per_count, unit.max_records)


def _counted(cells: Any) -> Counter[str]:
    return Counter(str.__str__(cell) for cell in cells if isinstance(cell, str))


@dataclass(frozen=True, repr=False)
class NumbersAndTexts:
    """Sensitive: the columns of numbers and the columns of texts of the same records."""

    numbers: SortedColumns
    texts: TextCounts

    @property
    def n(self) -> int:
        """Number of records."""
        return self.numbers.n


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantilePlan(OneStepPlan[SortedColumns, Answers]):
    """Quantiles of every column, each close in rank to the exact quantile."""

    law: QuantileQuestions
    in_words = "draws that are close in rank"

    @classmethod
    def of(cls, questions: QuantileQuestions, budget: Budget) -> QuantilePlan:
        """Return the plan that spends epsilon and no delta."""
        cost = budget.without_delta
        return cls(cost=cost, mechanism="quantiles", law=questions)

    @property
    def structure(self) -> dict[str, Any]:
        """The levels of every column, and the nats per rank of each."""
        if self.cost.infinite:
            return {"kind": "ranks", "columns": []}
        share, unit = Fraction(self.cost.epsilon) / self.law.n_columns, self.cost.unit
        each = [
            [{**asdict(o), "rate": rate(o, share, unit)} for o in q.levels] for q in self.law.each
        ]
        return {"kind": "ranks", "columns": each}

    @property
    def what(self) -> str:
        """The quantiles."""
        return f"quantiles of {self.law.n_columns} columns"

    def draw(self, exact: SortedColumns, law: QuantileQuestions, noise: Noise) -> Answers:
        """Ask one question after the other."""
        if self.cost.infinite:
            return law.exact(exact)
        share = Fraction(self.cost.epsilon) / law.n_columns

        def choose(ranks: Ranks, level: Level) -> float:
            return point_of(ranks.law(rate(level, share, self.cost.unit)), noise)

        return law.ask(exact, choose)


def rate(level: Level, epsilon: Fraction, unit: PrivacyUnit) -> float:
    r"""Return :math:`\eta`, in nats per rank, of a level of a column with budget ``epsilon``.

    Each record that comes, goes or is replaced changes two draws at most: r is `ROUNDING` for each.

    >>> half = Level(Fraction(1, 2), Fraction(2), Fraction(1))
    >>> units = [PrivacyUnit("person", max_records=k) for k in (1, 2)]
    >>> [round(rate(half, Fraction(1), unit), 6) for unit in units]
    [0.25, 0.125]
    """
    spent = max(level.share * epsilon - unit.max_records * ROUNDING, Fraction(0))
    return float(spent / level.sensitivity(unit))


def point_of(law: RankLaw, noise: Noise) -> float:
    """Draw a point of one of the lattices."""
    masses = [mass for part in law for mass in part.masses]
    weights = [weight for part in law for weight in part.weights]
    segment, offset = noise.point(masses, weights)
    for part in law:
        if segment < len(part.masses):
            break
        segment -= len(part.masses)
    start, stop = part.starts[segment : segment + 2].tolist()
    return part.lattice.value(key_at(part.lattice, start, stop, offset))


@dataclass(frozen=True, kw_only=True, eq=False)
class TextPlan(OneStepPlan[TextCounts, Found]):
    """The texts that many records share; needs a delta."""

    law: TruncatedLaplace | None  # None where no privacy is asked for
    what = "texts that many records share"
    in_words = "counts with truncated Laplace noise"

    @classmethod
    def of(cls, n_columns: int, budget: Budget) -> TextPlan:
        """Return the plan of so many columns of texts."""
        law = None
        if not budget.infinite:
            columns = TextCounts((Counter(),) * n_columns, 0)
            law = columns.law(budget.unit, Fraction(budget.epsilon), Fraction(budget.delta))
        return cls(cost=budget, mechanism="common_texts", law=law)

    def draw(self, exact: TextCounts, law: TruncatedLaplace | None, noise: Noise) -> Found:
        """Return the texts whose count plus noise is above the reach of the noise."""
        if law is None:
            return tuple(tuple(sorted(texts)) for texts in exact.columns)
        return noise.common(exact.columns, law)


@dataclass(frozen=True, kw_only=True, eq=False)
class FramePlan(StepPlan[NumbersAndTexts, tuple[Answers, Found]]):
    """Quantiles of columns of numbers, and the common texts of others; None where there are none.

    Every column has as much of epsilon as any other.
    """

    numbers: QuantilePlan | None
    texts: TextPlan | None

    @classmethod
    def of(cls, questions: QuantileQuestions, n_texts: int, budget: Budget) -> FramePlan:
        """Return the plan; it spends delta if there are texts, and refuses them without one."""
        n_numbers = questions.n_columns
        if n_texts and not budget.delta and not budget.infinite:
            raise ValueError("Columns of text need a delta above zero, or declared categories.")

        of_numbers, of_texts = shares(n_numbers, n_texts, budget)
        return cls(
            cost=budget if n_texts else budget.without_delta,
            mechanism="domains",
            numbers=QuantilePlan.of(questions, of_numbers) if n_numbers else None,
            texts=TextPlan.of(n_texts, of_texts) if n_texts else None,
        )

    start = ()

    @cached_property
    def steps(self) -> tuple[Step[NumbersAndTexts, Any], ...]:
        """The quantiles, then the texts."""
        numbers = self.numbers.steps if self.numbers else ()
        texts = self.texts.steps if self.texts else ()
        return (
            *(step.of_part(attrgetter("numbers")) for step in numbers),
            *(step.of_part(attrgetter("texts")) for step in texts),
        )

    def posterior(self, known: tuple[Any, ...]) -> tuple[Answers, Found]:
        """Return the answers about numbers, and the texts."""
        return known[0] if self.numbers else (), known[-1] if self.texts else ()


def shares(n_numbers: int, n_texts: int, budget: Budget) -> tuple[Budget, Budget]:
    """Return the budgets of numbers and of texts: every column has as much as any other."""
    if budget.infinite:
        return budget, budget
    each = Fraction(budget.epsilon) / (n_numbers + n_texts)
    return budget._replace(epsilon=n_numbers * each), budget._replace(epsilon=n_texts * each)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoicePlan(StepPlan[Scored, tuple[Hashable, ...]]):
    """Candidates of high scores, chosen one after the other."""

    choice: Choices

    @classmethod
    def of(cls, choice: Choices, budget: Budget) -> ChoicePlan:
        """Return the plan, or refuse more candidates than can be drawn from exactly."""
        if choice.most_candidates > MAX_POINTS and not budget.infinite:
            raise ValueError(
                f"One of up to {choice.most_candidates} candidates would be chosen at a time, and "
                f"exact draws are from {MAX_POINTS} at most: give fewer columns."
            )
        cost = budget.without_delta
        return cls(cost=cost, mechanism="permute_and_flip", choice=choice)

    start = ()

    @cached_property
    def steps(self) -> tuple[Step[Scored, tuple[Hashable, ...]], ...]:
        """The choices, which draw nothing once there is nothing left to choose from."""
        steps = []
        for turn, share in enumerate(shares := self.choice.shares, start=1):
            cost = self.cost if self.cost.infinite else self.cost.part(share)
            about = f"choice {turn} of {len(shares)}", cost, cost.epsilon, "permute-and-flip"
            step = partial(Step, *about, structure={"kind": "dependence"})
            steps.append(step(ask=self._options, draw=self._choose, read=add))
        return tuple(steps)

    def _options(self, statistics: Scored, chosen: tuple[Hashable, ...]) -> _Options:
        return *statistics.options(chosen), statistics.sensitivity(self.cost.unit)

    def _choose(self, options: _Options, epsilon: Exact, noise: Noise) -> tuple[Hashable, ...]:
        """Return one of the candidates, if there are any."""
        candidates, scores, sensitivity = options
        if not candidates:
            return ()
        if self.cost.infinite:
            return (candidates[int(np.argmax(scores))],)
        below = float(epsilon) * (1 - 2.0**-50)

        def weights(scores: IntArray) -> npt.NDArray[np.uint64]:
            return choice_weights(scores, sensitivity, below)

        return (candidates[noise.choose_by(scores, weights, sensitivity, sensitivity)],)


def choice_weights(scores: IntArray, sensitivity: int, epsilon: float) -> npt.NDArray[np.uint64]:
    """Return the integer weights that are drawn from, shape (1, candidates)."""
    if sensitivity == 0:  # no record can change a score
        return np.eye(len(scores), dtype=np.uint64)[[int(np.argmax(scores))]]
    few = len(scores) <= MAX_CHOICES
    magnitude = epsilon * LARGEST_SCORE / (2.0 * sensitivity)
    loss = (choice_loss if few else rounding_loss)(len(scores), magnitude)
    nats = max(epsilon - loss, 0.0) / (2.0 * sensitivity) * scores[None].astype(float)
    return integer_weights(choice_log_law(nats) if few else nats)
