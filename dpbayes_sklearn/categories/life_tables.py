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
stays.

**When within an interval the w left** is not known: many leave at visits, just after or before an
end. If all left at once, :math:`N - w` were exposed, and N if they stayed to the end; the
Kaplan-Meier estimate of the exact times is between these two. So the low end of an interval is
that of :math:`r = N - w`, the high end that of :math:`r = N`. Tables end where too few are surely
exposed for the ratio :math:`d/r` to be nearly linear.

The log-rank test compares the events of every group with those that its part of the exposed leads
one to expect, in the intervals that the tables of all groups reach:

.. math:: Z_g = \sum_k \Big(d_{gk} - d_k \frac{r_{gk}}{r_k}\Big), \qquad
          \operatorname{Cov} Z = V + J \Sigma J^\top,

with the hypergeometric V, the gradient J of Z in the cells, and the covariance Σ of the noise. The
parts :math:`r_{gk}/r_k` are between those of the two extremes, as if all groups left alike within
an interval. The statistic is the least that such expected numbers allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import chdtrc, ndtri

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.joint import MAX_CELLS
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts, OneStepPlan
from dpbayes_sklearn.schema import Categories, Domain

LEAST_AT_RISK = 10.0
"""Tables end where fewer are at risk and do not leave unobserved in the interval,"""

LEAST_DEVIATIONS = 4.0
"""or fewer than this many standard deviations of the noise in their number."""

_LEFT = (0.5, 1.0, 0.0)
"""Which parts of those who leave unobserved in an interval are taken off the exposed: the usual
one, and the extremes."""
_LEAST_VARIANCE = 1e-9  # Smaller ones, relative to the largest, are rounding.


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
    """Estimates at the interval ends up to which the release identifies a group's survival."""

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

    def _exposed(self, left: float = _LEFT[0]) -> FloatArray:
        """Return exposed by interval as a linear map of the cells of a group.

        ``left`` is the part of those who leave unobserved that is taken off: 0 gives those at risk.
        """
        rows, columns = np.indices((self.cells.intervals, self.cells.of_group))
        return np.asarray((columns >= 2 * rows) - left * (columns == 2 * rows))

    @property
    def _events(self) -> FloatArray:
        """Events by interval, as a linear map of the cells of a group."""
        rows, columns = np.indices((self.cells.intervals, self.cells.of_group))
        return np.asarray(columns == 2 * rows + 1, np.float64)

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
        """Return how many intervals have enough who are surely exposed."""
        surely = self._exposed(1.0)
        deviations = np.sqrt(self._noise_of(group, surely))
        least = np.maximum(LEAST_AT_RISK, LEAST_DEVIATIONS * deviations)
        return int(np.cumprod(surely @ self.counts[group] >= least).sum())

    def survival(self, group: int, level: float = 0.95) -> Survival:
        """Return survival of one group to the end of every interval with enough at risk."""
        end, counts = self.end(group), self.counts[group]
        found = np.array([self._wilson(group, end, level, left) for left in _LEFT])
        return self._told(counts, found)

    def difference(self, first: int, second: int, level: float = 0.95) -> Survival:
        """Return by how much the first group survives more, at the ends that both reach.

        The ends are those of both intervals, combined by Newcombe's method of squares, if both
        groups leave alike within an interval.
        """
        end = min(self.end(first), self.end(second))
        found = []
        for left in _LEFT:
            one, low, high = self._wilson(first, end, level, left)
            other, least, most = self._wilson(second, end, level, left)
            down, up = np.hypot(one - low, most - other), np.hypot(high - one, other - least)
            found.append([one - other, one - other - down, one - other + up])
        return self._told(self.counts[first] + self.counts[second], np.array(found))

    def _told(self, counts: AnyArray, found: FloatArray) -> Survival:
        """Return estimates and the farthest ends, of the rows for each of ``_LEFT``."""
        end = found.shape[2]
        at_risk, events = (part[:end] @ counts for part in (self._exposed(0.0), self._events))
        low, high = found[:, 1].min(axis=0), found[:, 2].max(axis=0)
        return Survival(at_risk, events, found[0, 0], low, high)

    def _wilson(self, group: int, end: int, level: float, left: float) -> FloatArray:
        """Return estimates and the ends of intervals if ``left`` is taken off the exposed."""
        counts, exposed, event = self.counts[group], self._exposed(left)[:end], self._events[:end]
        n, r = self._exposed(0.0)[:end] @ counts, exposed @ counts
        d = np.minimum(event @ counts, r - 0.5)  # somebody survives every interval
        estimate = np.exp(np.cumsum(np.log1p(-d / r)))
        gradient = np.cumsum(exposed * (d / r / (r - d))[:, None] - event / (r - d)[:, None], 0)
        noise = np.minimum(estimate, 1.0) ** 2 * self._noise_of(group, gradient)
        size, z2 = _effective_size(np.maximum(d, 0.0), r, n), float(ndtri((1 + level) / 2)) ** 2
        middle = estimate + z2 / (2 * size)
        square = middle**2 - (1 + z2 / size) * (estimate**2 - z2 * noise)
        reach = np.sqrt(np.maximum(square, 0.0))
        ends = ((middle + side * reach) / (1 + z2 / size) for side in (-1, 1))
        return np.asarray(np.clip([estimate, *ends], 0.0, 1.0))

    def logrank(self) -> LogRank:
        """Compare all groups."""
        k = self.cells.groups
        end = min(map(self.end, range(k)))
        if end == 0 or k == 1:
            return LogRank(math.nan, math.nan, k - 1, end)
        event, exposed = self._events[:end], self._exposed()[:end]
        d, r = self.counts @ event.T, self.counts @ exposed.T
        events, all_exposed = d.sum(axis=0), r.sum(axis=0)
        share = r / all_exposed
        spread = np.clip(events, 0.0, all_exposed)
        spread = spread * (all_exposed - spread) / np.maximum(all_exposed - 1, 1.0)
        sampling = np.diag((spread * share).sum(axis=1)) - (spread * share) @ share.T
        own = np.eye(k)[:, :, None] - share[:, None]  # (groups, groups whose cells, intervals)
        gradient = own @ event - (own * events / all_exposed) @ exposed
        covariance = sampling + self._noise(gradient.reshape(k, -1))
        parts = [self.counts @ self._exposed(left)[:end].T for left in _LEFT]
        expected = events * np.array([part / part.sum(axis=0) for part in parts])
        ends = expected.min(axis=0).sum(axis=1), expected.max(axis=0).sum(axis=1)
        statistic = _least(d.sum(axis=1), covariance, *ends)
        return LogRank(statistic, float(chdtrc(k - 1, statistic)), k - 1, end)


def _least(
    observed: FloatArray, covariance: FloatArray, low: FloatArray, high: FloatArray
) -> float:
    """Return the least chi-squared statistic of numbers whose expectations are in a box.

    >>> _least(np.array([30.0]), np.array([[4.0]]), np.array([24.0]), np.array([26.0]))
    4.0
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _LEAST_VARIANCE * max(float(values[-1]), 1.0)
    root = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
    found = lsq_linear(root, root @ observed, (low, high + _LEAST_VARIANCE * (1 + np.abs(high))))
    return round(2 * float(found.cost), 9)


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
