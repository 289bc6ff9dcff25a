r"""Life tables: their release, survival with intervals, and the log-rank test.

Time is cut into K public intervals. A record is in one cell of its group: that of the interval in
which it left, by the event or unobserved, or that of those still there at the end. So a group has
2K + 1 cells.

Guarantee
---------
*Precondition*: groups and ends of the intervals are public; the number of records n is, too, unless
records may be added or removed. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: the cells are the
categories of one variable, whose counts get the noise that :mod:`~dpbayes_sklearn.categories.plans`
proves: of sum zero and scale :math:`2/\varepsilon`, or independent noise of scale
:math:`1/\varepsilon` where n is secret. All that follows is post-processing. ∎

**Inference.** With d events and w unobserved exits among the N at risk when an interval begins,
:math:`r = N - w/2` are exposed (the actuarial estimate), and

.. math:: \hat S_k = \prod_{j \le k} \Big(1 - \frac{d_j}{r_j}\Big), \qquad
          \operatorname{Var} \ln \hat S_k = \sum_{j \le k} \frac{d_j}{r_j(r_j - d_j)} + \tau_k^2 .

The sum is Greenwood's; :math:`\tau^2` is the variance of the noise along the gradient of
:math:`\ln\hat S` in the cells. So many records m as would have the first part without censoring,
:math:`(1 - \hat S)/(\hat S\, m)`, give the interval of Wilson's form (Rothman 1978) with noise:

.. math:: \Big\{S : (\hat S - S)^2 \le z^2 \Big(\frac{S(1 - S)}{m} + \tau^2\hat S^2\Big)\Big\}.

It has no sampling error that a noisy count of events could hide: with none released, S(1 - S)/m
stays. Intervals end where too few are at risk for the ratio :math:`d/r` to be nearly linear.

The log-rank test compares the events of every group with those that its part of the exposed leads
one to expect, in the intervals that the tables of all groups reach:

.. math:: Z_g = \sum_k \Big(d_{gk} - d_k \frac{r_{gk}}{r_k}\Big), \qquad
          \operatorname{Cov} Z = V + J \Sigma J^\top,

with the hypergeometric V, the gradient J of Z in the cells, and the covariance Σ of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.joint import MAX_CELLS
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts, OneStepPlan
from dpbayes_sklearn.schema import Categories, Domain

LEAST_AT_RISK = 10.0
"""Tables end where fewer are at risk when an interval begins,"""

LEAST_DEVIATIONS = 4.0
"""or fewer than this many standard deviations of the noise in their number."""


class Cells(NamedTuple):
    """Public: how many groups and intervals a life table has."""

    groups: int
    intervals: int

    @property
    def of_group(self) -> int:
        """Cells of one group."""
        return 2 * self.intervals + 1

    @property
    def total(self) -> int:
        """Cells of all groups."""
        return self.groups * self.of_group

    def check(self) -> None:
        """Refuse more cells than exact noise is drawn for."""
        if self.total > MAX_CELLS:
            raise ValueError(
                f"A life table has at most {MAX_CELLS:,} cells. Got {self.total:,} instead; "
                "declare fewer intervals or groups."
            )


def count_cells(domains: tuple[Domain, ...], event: Categories, records: Records) -> SimplexCounts:
    """Count records by the domains of their columns, of which the interval is cut at all ends."""
    (time,) = (j for j, domain in enumerate(domains) if domain.is_numeric)
    groups = math.prod(domain.n_values for domain in domains if not domain.is_numeric)
    cells = Cells(groups, domains[time].n_values - 1)
    ask = partial(_cells, encoder=Encoder(domains), time=time, event=event, cells=cells)
    return SimplexCounts(records.total(ask))


def _cells(shard: Shard, encoder: Encoder, time: int, event: Categories, cells: Cells) -> IntArray:
    counts = np.zeros(cells.total, np.int64)
    for rows, codes in encoder.chunks(shard.table):
        place = 2 * codes[:, time].astype(np.intp) + event.encode(shard.target[rows])
        place = np.minimum(place, 2 * cells.intervals)  # at the end nobody asks what came later
        for j in range(codes.shape[1]):
            place += cells.of_group * codes[:, j].astype(np.intp) * (j != time)
        counts += np.bincount(place, minlength=cells.total)
    return counts


class Survival(NamedTuple):
    """Estimates at the ends of the first intervals, all that are told of a group."""

    at_risk: FloatArray
    events: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray


class LogRank(NamedTuple):
    """A test of whether all groups have the same survival; NaN if no interval has enough at risk.

    Attributes
    ----------
    statistic, p : float
        A chi-squared statistic and its p-value, which include the privacy noise.
    df : int
        Degrees of freedom: one less than there are groups.
    intervals : int
        How many intervals, from the first, were compared.
    """

    statistic: float
    p: float
    df: int
    intervals: int


@dataclass(frozen=True)
class LifeTables:
    """Released counts of the cells of every group, and what they tell of survival.

    Examples
    --------
    >>> tables = LifeTables(np.array([[0, 20, 10, 30, 40]]), 100, ())
    >>> tables.survival(0).estimate.round(3).tolist()
    [0.8, 0.48]
    """

    counts: (
        IntArray  # (groups, cells of a group): unobserved exits and events by turns, then others
    )
    n: int | None  # The number of records, if it is public.
    laws: tuple[NoiseLaw, ...]  # The noise in the counts: none without privacy.

    @property
    def released(self) -> LifeTables:
        """What was released: all of it."""
        return self

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the largest error of a released count."""
        return sum(law.error_bound(delta) for law in self.laws)

    @property
    def cells(self) -> Cells:
        """Numbers of groups and intervals."""
        return Cells(len(self.counts), self.counts.shape[1] // 2)

    @property
    def _maps(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """At risk, events and exposed by interval, as linear maps of the cells of a group."""
        rows, columns = np.indices((self.cells.intervals, self.cells.of_group))
        at_risk = (columns >= 2 * rows).astype(np.float64)
        return at_risk, 1.0 * (columns == 2 * rows + 1), at_risk - 0.5 * (columns == 2 * rows)

    def _noise(self, weights: FloatArray) -> FloatArray:
        """Covariance of the noise in sums of all cells with these weights (sums, cells)."""
        covariance = np.zeros((len(weights),) * 2)
        for law in self.laws:
            free = weights if law.independent else weights - weights.mean(axis=1, keepdims=True)
            covariance += law.variance() * free @ free.T
        return covariance

    def _noise_of(self, group: int, weights: FloatArray) -> FloatArray:
        """Variances of the noise in sums of the cells of one group."""
        everywhere = np.zeros((len(weights), *self.counts.shape))
        everywhere[:, group] = weights
        return np.diag(self._noise(everywhere.reshape(len(weights), self.counts.size)))

    def end(self, group: int) -> int:
        """Return how many intervals have enough at risk."""
        at_risk = self._maps[0]
        deviations = np.sqrt(self._noise_of(group, at_risk))
        least = np.maximum(LEAST_AT_RISK, LEAST_DEVIATIONS * deviations)
        return int(np.cumprod(at_risk @ self.counts[group] >= least).sum())

    def survival(self, group: int, level: float = 0.95) -> Survival:
        """Return survival of one group to the end of every interval with enough at risk."""
        end = self.end(group)
        at_risk, event, exposed = (part[:end] for part in self._maps)
        counts = self.counts[group]
        n, r, released = at_risk @ counts, exposed @ counts, event @ counts
        d = np.minimum(released, r - 0.5)  # somebody survives every interval
        estimate = np.exp(np.cumsum(np.log1p(-d / r)))
        gradient = np.cumsum(exposed * (d / r / (r - d))[:, None] - event / (r - d)[:, None], 0)
        noise = np.minimum(estimate, 1.0) ** 2 * self._noise_of(group, gradient)
        size = _effective_size(np.maximum(d, 0.0), r, n)
        z2 = float(ndtri((1 + level) / 2)) ** 2
        middle = estimate + z2 / (2 * size)
        square = middle**2 - (1 + z2 / size) * (estimate**2 - z2 * noise)
        reach = np.sqrt(np.maximum(square, 0.0))
        low, high = ((middle + side * reach) / (1 + z2 / size) for side in (-1, 1))
        ends = np.clip([low, high], 0.0, 1.0)
        return Survival(n, released, np.minimum(estimate, 1.0), ends[0], ends[1])

    def difference(self, first: int, second: int, level: float = 0.95) -> Survival:
        """Return by how much the first group survives more, at the ends that both reach.

        The ends are those of both intervals, combined by Newcombe's method of squares.
        """
        end = min(self.end(first), self.end(second))
        one, other = (
            Survival(*(a[:end] for a in self.survival(g, level))) for g in (first, second)
        )
        apart = one.estimate - other.estimate
        down = np.hypot(one.estimate - one.low, other.high - other.estimate)
        up = np.hypot(one.high - one.estimate, other.estimate - other.low)
        at_risk, events = one.at_risk + other.at_risk, one.events + other.events
        return Survival(at_risk, events, apart, apart - down, apart + up)

    def logrank(self) -> LogRank:
        """Compare all groups."""
        k = self.cells.groups
        end = min(map(self.end, range(k)))
        _, event, exposed = (part[:end] for part in self._maps)
        d, r = self.counts @ event.T, self.counts @ exposed.T
        events, all_exposed = d.sum(axis=0), r.sum(axis=0)
        share = r / all_exposed
        z = (d - events * share).sum(axis=1)[:-1]
        spread = np.clip(events, 0.0, all_exposed)
        spread = spread * (all_exposed - spread) / np.maximum(all_exposed - 1, 1.0)
        sampling = np.diag((spread * share).sum(axis=1)) - (spread * share) @ share.T
        own = np.eye(k)[:, :, None] - share[:, None]  # (groups, groups whose cells, intervals)
        gradient = own @ event - (own * events / all_exposed) @ exposed
        covariance = sampling + self._noise(gradient.reshape(k, -1))
        known = end > 0 and k > 1
        statistic = float(z @ np.linalg.pinv(covariance[:-1, :-1]) @ z) if known else math.nan
        return LogRank(
            statistic, float(chdtrc(k - 1, statistic)) if known else math.nan, k - 1, end
        )


def _effective_size(d: FloatArray, r: FloatArray, n: FloatArray) -> FloatArray:
    """Return how many records without censoring survival would be as accurate for.

    At least those that are left in the end, at most those in the beginning.

    >>> uncensored = np.array([100.0, 80.0])
    >>> _effective_size(np.array([20.0, 32.0]), uncensored, uncensored).round(6).tolist()
    [100.0, 100.0]
    """
    greenwood, lost = np.cumsum(d / (r * (r - d))), -np.cumsum(np.log1p(-d / r))
    size = np.divide(np.expm1(lost), greenwood, out=r.copy(), where=greenwood > 0)
    return np.asarray(np.clip(size, np.maximum(r - d, 1.0), np.maximum(n[:1], 1.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class LifeTablePlan(OneStepPlan[SimplexCounts, LifeTables]):
    """Noise in the counts of all cells, or none where no privacy is asked for."""

    cells: Cells
    n: int | None
    law: NoiseLaw | None

    @property
    def structure(self) -> dict[str, Any]:
        """How many cells there are: a record is in one."""
        return {"kind": "categories", "categories": self.cells.total}

    @property
    def what(self) -> str:
        """The counts."""
        return f"counts of {self.cells.total} cells of a life table"

    def ask(self, statistics: SimplexCounts, known: None) -> list[IntArray]:
        """Return the counts."""
        return [statistics.counts]

    def read(self, known: None, answer: list[IntArray]) -> LifeTables:
        """Return the counts by group."""
        counts = answer[0].reshape(-1, self.cells.of_group)
        return LifeTables(counts, self.n, () if self.law is None else (self.law,))


def plan(cells: Cells, facts: Facts, budget: Budget) -> LifeTablePlan:
    """Return how life tables are released.

    >>> from fractions import Fraction
    >>> made = plan(Cells(2, 12), Facts(1000), Budget(Fraction(1)))
    >>> made.what, made.law.scale
    ('counts of 50 cells of a life table', Fraction(2, 1))
    """
    counts, law = SimplexCounts.of_size(0, cells.total), None
    if not budget.infinite:
        law = counts.law("zero_sum", budget.unit, Fraction(budget.epsilon))
    n = None if budget.unit.size_is_secret else facts.n
    return LifeTablePlan(
        cost=budget.without_delta, mechanism="geometric", cells=cells, law=law, n=n
    )
