r"""Releases of sums of bounded numbers, and what they tell about a mean or a rate.

Every record is clipped to public bounds and its statistic T rounded to one of
:math:`G + 1` public steps, so sums are exact integers.

Guarantee
---------
*Precondition*: n records of d columns; n, the bounds and the priors are public. *Claim*: pure
:math:`\varepsilon`-DP for k records that are replaced. *Proof*, for noise: a record changes every
sum by at most G, so all of them by at most kG in the sup norm and kdG in L1, of which the noise
with less variance is taken (:mod:`dpbayes_sklearn.noise`). *Proof*, for draws: see
:func:`draw_loss`; columns and draws add up.

**Privacy under a metric** (Dimitrakakis et al. 2014, Definition 2). For two records whose
statistics differ by :math:`\rho_j > 0`, steps of the lattice differ by less than one more, so the
loss is at most :math:`\sum_j \lambda_j(\rho_j + h_j)`, or for noise in the sup norm
:math:`\max_j \lambda_j(\rho_j + h_j)`, with steps :math:`h_j`; λ are the ``slopes`` of a release,
and its ``roundings`` are :math:`\lambda_jh_j`, for draws with what floats and integer weights add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.mechanisms import Laplace, Mechanism, Sampler
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.finite import integer_weights, rounding_loss
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit
from dpbayes_sklearn.release import Facts, OneStepPlan
from dpbayes_sklearn.schema.domains import Interval
from dpbayes_sklearn.schema.values import as_numbers
from dpbayes_sklearn.sums.posterior import Family, SumsPosterior, moments_given

GRID = 2**20
"""Most steps of a statistic: their rounding is far below any private noise."""

_GRID_POINTS = 513
"""Points of the public grid that parameters are drawn from."""


class Column(NamedTuple):
    """Public: the bounds of a column, and the statistic of its numbers.

    ``power`` is 0 for the number itself, 1 for the distance from ``location``, 2 for half of its
    square; with ``positive`` only numbers above the location count.
    """

    interval: Interval
    power: int = 0
    location: float = 0.0
    positive: bool = False

    def statistic(self, numbers: FloatArray) -> FloatArray:
        """Return T of numbers that lie in the interval."""
        if self.power == 0:
            return numbers
        apart = numbers - self.location
        apart = np.maximum(apart, 0.0) if self.positive else np.abs(apart)
        return apart if self.power == 1 else apart**2 / 2

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value of T."""
        low, high = self.interval.low, self.interval.high
        inside = min(max(self.location, low), high) if self.power else low
        found = self.statistic(np.array([low, high, inside]))
        return float(found.min()), float(found.max())

    def codes(self, numbers: FloatArray, grid: int) -> IntArray:
        """Return the steps of T from 0 to ``grid``; what is missing counts as the middle."""
        low, high = self.interval.low, self.interval.high
        inside = np.clip(np.where(np.isnan(numbers), (low + high) / 2, numbers), low, high)
        least, most = self.range
        share = (self.statistic(inside) - least) / (most - least)
        return np.rint(np.clip(share, 0.0, 1.0) * grid).astype(np.int64)


@dataclass(frozen=True, repr=False)
class BoundedSums:
    """**Sensitive:** exact sums of the steps of every column."""

    sums: IntArray
    n: int
    grid: int = GRID

    @classmethod
    def of(cls, columns: tuple[Column, ...], records: Records, grid: int = GRID) -> BoundedSums:
        """Add up the records."""
        return cls(records.total(partial(_sums, columns=columns, grid=grid)), records.n, grid)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return by how much neighbours differ in any one sum."""
        return largest_change(self.grid, unit)


def largest_change(grid: int, unit: PrivacyUnit) -> int:
    """Return by how much replaced records change a sum of steps: each by all steps at most.

    >>> largest_change(8, PrivacyUnit("person", max_records=3))
    24
    """
    return unit.max_records * grid


def _sums(shard: Shard, columns: tuple[Column, ...], grid: int) -> IntArray:
    sums = np.zeros(len(columns), np.int64)
    for _, chunk in shard.table.chunks():
        together = shard.table.as_numbers(chunk)
        for j, column in enumerate(columns):
            numbers = together[:, j] if together is not None else shard.table.column(j, chunk)
            sums[j] += column.codes(as_numbers(numbers), grid).sum()
    return sums


def finest_grid(n: int, d: int, budget: Budget) -> int:
    """Return how many steps a statistic has, so that sums and noise fit 64-bit integers.

    >>> finest_grid(1000, 1, Budget(Fraction(1))), finest_grid(1000, 1, Budget(Fraction(1, 10**10)))
    (1048576, 65536)
    """
    grid = GRID
    noise = 0 if budget.infinite else d * budget.unit.max_records / Fraction(budget.epsilon)
    while grid and (n * grid >= 2**62 or noise * grid >= 2**50):
        grid //= 2
    if not grid:
        raise ValueError(
            "No exact noise of so large a scale is available; use a larger epsilon or fewer "
            "columns."
        )
    return grid


class Prior(NamedTuple):
    """Public: the columns, and the family of each."""

    columns: tuple[Column, ...]
    families: tuple[Family, ...]
    grid: int = GRID

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def bounds(self, j: int, n: int) -> tuple[float, float]:
        """Return the least and the largest sum of a column's statistic."""
        low, high = self.columns[j].range
        return n * low, n * high

    def step(self, j: int) -> float:
        """Return what one step of a column is in units of its statistic."""
        low, high = self.columns[j].range
        return (high - low) / self.grid

    def totals(self, sums: IntArray, n: int) -> FloatArray:
        """Return sums in units of the statistics."""
        return np.array([self.bounds(j, n)[0] + self.step(j) * s for j, s in enumerate(sums)])

    def moments(
        self, n: int, log_likelihood: Callable[[int, FloatArray], FloatArray]
    ) -> list[tuple[float, float]]:
        """Return mean and variance of every parameter given the likelihood of a release."""
        return [
            moments_given(family, n, self.bounds(j, n), partial(log_likelihood, j))
            for j, family in enumerate(self.families)
        ]

    def posterior(
        self,
        moments: npt.ArrayLike,
        slopes: npt.ArrayLike,
        floats: npt.ArrayLike = 0.0,
        **more: Any,
    ) -> SumsPosterior:
        """Return the posterior with these means and variances."""
        means, variances = np.array(moments, dtype=float).T
        skewed = all(column.power for column in self.columns)
        steps = np.array([self.step(j) for j in range(self.d)])
        roundings = np.array(slopes, float) * steps + floats
        return SumsPosterior(means, variances, slopes, roundings, positive=skewed, **more)


@singledispatch
def plan(mechanism: Mechanism, prior: Prior, facts: Facts, budget: Budget) -> SumsPlan:
    """Return how the posterior of means or rates is released; refuse what cannot be."""
    raise ValueError(
        f"The {mechanism.name()} mechanism cannot release sums: use 'laplace' or 'sampler'."
    )


def _checked(facts: Facts, budget: Budget) -> int:
    """Return the public number of records."""
    if budget.unit.size_is_secret:
        raise ValueError(
            "A posterior of means or rates needs a public number of records: set "
            "neighbours='replace' in the privacy_unit."
        )
    return facts.n


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsPlan(OneStepPlan[BoundedSums, SumsPosterior]):
    """A release of the sums of all columns."""

    prior: Prior
    n: int

    @property
    def structure(self) -> dict[str, Any]:
        """How many columns there are, and in how many steps a record is counted."""
        return {"kind": "sums", "columns": self.prior.d, "grid": self.prior.grid}

    @property
    def what(self) -> str:
        """The sums."""
        return f"sums of {self.prior.d} columns"

    def ask(self, statistics: BoundedSums, known: None) -> list[IntArray]:
        """Return the sums."""
        return [statistics.sums]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPlan(SumsPlan):
    """No privacy is asked for: the conjugate posterior."""

    law: None = None

    def read(self, known: None, answer: Sequence[IntArray]) -> SumsPosterior:
        """Return the posterior of the exact sums."""
        totals = self.prior.totals(answer[0], self.n)
        pairs = zip(self.prior.families, totals, strict=True)
        moments = [family.moments(self.n, total) for family, total in pairs]
        return self.prior.posterior(moments, [0.0] * self.prior.d)  # nothing is protected


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisePlan(SumsPlan):
    """Noise on the sums, and inference that knows its law."""

    law: NoiseLaw
    slopes: tuple[float, ...]

    def read(self, known: None, answer: Sequence[AnyArray]) -> SumsPosterior:
        """Return the posterior given the noisy sums."""
        totals = self.prior.totals(answer[0], self.n)
        moments = self.prior.moments(self.n, partial(self._log_likelihood, totals))
        return self.prior.posterior(moments, self.slopes, joint=isinstance(self.law, SupNorm))

    def _log_likelihood(self, totals: FloatArray, j: int, sums: FloatArray) -> FloatArray:
        return self.law.log_weight((sums - totals[j]) / self.prior.step(j))


@plan.register
def _(mechanism: Laplace, prior: Prior, facts: Facts, budget: Budget) -> SumsPlan:
    n = _checked(facts, budget)
    if mechanism.budget_split != 1:
        raise ValueError("budget_split is for tables of counts: sums of columns have equal shares.")
    if budget.infinite:
        return ExactPlan(cost=budget, mechanism=mechanism.name(), prior=prior, n=n)
    epsilon, moved = Fraction(budget.epsilon), largest_change(prior.grid, budget.unit)
    alone = DiscreteLaplace.of(moved * prior.d / epsilon, [prior.d])
    together = SupNorm.of((1,) * prior.d, moved, epsilon)
    asked: dict[str, NoiseLaw] = {"independent": alone, "joint": together}
    least = min(asked.values(), key=lambda one: one.variance())
    law = asked.get(mechanism.noise, least)
    parts = prior.d if law is alone else 1
    slopes = [float(epsilon) / (parts * moved * prior.step(j)) for j in range(prior.d)]
    return NoisePlan(
        cost=budget, mechanism=mechanism.name(), prior=prior, n=n, law=law, slopes=tuple(slopes)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SumDrawPlan(SumsPlan):
    """Draws from tempered posteriors on public grids."""

    law: Any = None
    tempers: tuple[float, ...]
    n_draws: int
    points: int
    slopes: tuple[float, ...]

    def log_weights(self, j: int, total: FloatArray) -> FloatArray:
        """Return log weights of the points of a column's grid for sums of its statistic."""
        family = self.prior.families[j]
        return family.log_posterior(family.grid(self.points), self.n, total, self.tempers[j])

    def weights(self, j: int, total: FloatArray) -> npt.NDArray[np.uint64]:
        """Return the integer weights that are drawn from."""
        return integer_weights(self.log_weights(j, total))

    @property
    def structure(self) -> dict[str, Any]:
        """What the loss of a draw follows from."""
        prior, known = self.prior, {"n": self.n, "points": self.points, "draws": self.n_draws}
        each = [prior.bounds(j, 1) for j in range(prior.d)]
        tempers = {"families": prior.families, "bounds": each, "tempers": self.tempers}
        return {"kind": "tempered", **known, **tempers}

    @property
    def in_words(self) -> str:
        """How many draws there are, and of what."""
        return f"{self.n_draws} draws of the parameters of {self.prior.d} columns"

    def draw(self, exact: list[IntArray], law: None, noise: Noise) -> IntArray:
        """Draw points of the grids, columns first."""
        totals = self.prior.totals(exact[0], self.n)
        return np.stack(
            [
                noise.choose(np.tile(self.weights(j, totals[j : j + 1]), (self.n_draws, 1)))
                for j in range(self.prior.d)
            ]
        )

    def read(self, known: None, answer: IntArray) -> SumsPosterior:
        """Return the draws, and the posterior given them."""
        draws = [f.grid(self.points)[i] for f, i in zip(self.prior.families, answer, strict=True)]
        moments = self.prior.moments(self.n, partial(self._log_likelihood, answer))
        floats = [
            self.n_draws * _rounding(self.prior, j, self.n, self.points, temper)
            for j, temper in enumerate(self.tempers)
        ]
        return self.prior.posterior(moments, self.slopes, floats, draws=np.array(draws).T)

    def _log_likelihood(self, drawn: Any, j: int, sums: FloatArray) -> FloatArray:
        logs = self.log_weights(j, sums)
        normalised = logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True)
        return np.asarray(normalised[:, drawn[j]].sum(axis=1))


@plan.register
def _(mechanism: Sampler, prior: Prior, facts: Facts, budget: Budget) -> SumsPlan:
    n = _checked(facts, budget)
    if mechanism.omega is not None:
        raise ValueError("omega is for tables of counts: means and rates are drawn within bounds.")
    if budget.infinite:
        return ExactPlan(cost=budget, mechanism=mechanism.name(), prior=prior, n=n)
    points, k, d = mechanism.n_points or _GRID_POINTS, budget.unit.max_records, prior.d
    each = float(budget.epsilon) / (d * mechanism.n_samples)
    tempers = tuple(_largest_temper(prior, j, n, k, points, each) for j in range(d))
    spans = [np.ptp(f.natural(np.array([f.low, f.high]))) for f in prior.families]
    slopes = [mechanism.n_samples * t * span for t, span in zip(tempers, spans, strict=True)]
    widths = [_width(prior, j, n, k, points, tempers[j]) for j in range(d)]
    rho = mechanism.n_samples * sum(width**2 for width in widths) / 8
    return SumDrawPlan(
        cost=budget._replace(rho=Fraction(min(rho, float(budget.epsilon) ** 2 / 2) * (1 + 1e-9))),
        mechanism=mechanism.name(),
        prior=prior,
        n=n,
        tempers=tempers,
        n_draws=mechanism.n_samples,
        points=points,
        slopes=tuple(slopes),
    )


def draw_loss(prior: Prior, j: int, n: int, k: int, points: int, temper: float) -> float:
    r"""Return the largest loss of one draw if k of n records are replaced, rounding included.

    For sums s and s + Δ the log ratio at θ is :math:`\tau\eta(\theta)\Delta - \log E_s
    e^{\tau\eta\Delta}`. The mean grows with s, so at every θ the ratio is extreme at the least and
    the largest s; it is linear in η, so it is extreme at an end of the grid; and its derivative in
    Δ there, :math:`\tau(\eta(\theta) - E_{s+\Delta}\eta)`, has one sign, so it is extreme at the
    largest Δ. Four numbers decide.
    """
    family = prior.families[j]
    low, high = prior.bounds(j, n)
    shift = min(k, n) * (high - low) / n
    theta = family.grid(points)
    sums = np.array([low, low + shift, high - shift, high])
    logs = family.log_posterior(theta, n, sums, temper)
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    ratios = np.abs(np.stack([logs[0] - logs[1], logs[2] - logs[3]]))
    return float(ratios.max()) + _rounding(prior, j, n, points, temper)


def _rounding(prior: Prior, j: int, n: int, points: int, temper: float) -> float:
    """Return what floats and integer weights may add to the loss of a draw."""
    family, theta = prior.families[j], prior.families[j].grid(points)
    largest = max(map(abs, prior.bounds(j, n)))
    slopes = temper * np.abs(family.natural(theta)).max() * largest
    magnitude = float(slopes + np.abs(family.log_terms(theta, n, temper)).max())
    return rounding_loss(points, magnitude)


def _width(prior: Prior, j: int, n: int, k: int, points: int, temper: float) -> float:
    r"""Return the width of the interval of the log ratio of one draw: w²/8-zCDP.

    It is linear in η, with a slope of at most τ times the change of the sum.
    """
    low, high = prior.families[j].natural(prior.families[j].grid(points)[[0, -1]])
    shift = k * (prior.bounds(j, 1)[1] - prior.bounds(j, 1)[0])
    span = temper * float(abs(high - low)) * shift
    return span + 2 * _rounding(prior, j, n, points, temper)


def _largest_temper(prior: Prior, j: int, n: int, k: int, points: int, epsilon: float) -> float:
    """Return the largest tempering in (0, 1] with a loss of at most epsilon, by bisection."""

    def enough(temper: float) -> bool:
        return draw_loss(prior, j, n, k, points, temper) <= epsilon

    if enough(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    if not low:
        raise ValueError(
            f"epsilon={epsilon:g} for each draw and column is too small to draw from a grid; use "
            "a larger epsilon, fewer draws or columns, or mechanism='laplace'."
        )
    return low
