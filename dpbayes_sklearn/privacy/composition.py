r"""The privacy cost of several releases together: the tightest of the proven rules.

**Concentrated differential privacy (zCDP), and what it says as (epsilon, delta).**

A release is :math:`\rho`-zCDP if the Rényi divergence of order :math:`\alpha` between its laws
on neighbouring data is at most :math:`\alpha\rho` for every :math:`\alpha > 1`. It adds up over
releases (Bun and Steinke 2016), a discrete or continuous Gaussian release of L2 sensitivity
:math:`\Delta_2` has :math:`\rho = \Delta_2^2/2\sigma^2`, and a pure :math:`\varepsilon` release
has at most that of randomised response (Bun and Steinke 2016, Proposition 3.3),

.. math:: D_\alpha(\varepsilon) = \varepsilon
          - \frac{\log(1+e^{-\varepsilon}) - \log(1+e^{-(2\alpha-1)\varepsilon})}{\alpha - 1}
          \le \min(\varepsilon, \tfrac12\alpha\varepsilon^2).

**Conversion.** A release with divergence :math:`\tau` of order :math:`\alpha` is
:math:`(\tau + g, \delta)`-DP (Canonne, Kamath and Steinke 2020, Proposition 12) with

.. math:: g(\alpha, \delta) = \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
          + \log\left(1 - \frac1\alpha\right).

It holds for **every** order, so a numerically found one can only cost tightness. The logarithms
are taken with 50 digits, where Python's ``decimal`` rounds them correctly, and everything else
is exact: what is returned is on the private side.

**The privacy cost of several releases together: what a ledger accepts, and what it reports.**

What is known of one release is a `Spend`: that it is :math:`(\varepsilon, \delta)`-DP, and
perhaps that it is :math:`\rho`-zCDP.

* *Sum.* :math:`(\sum\varepsilon_i, \sum\delta_i)`.
* *Rényi.* A release with a :math:`\rho_i` has divergence :math:`\alpha\rho_i` of order
  :math:`\alpha`; one without has that of randomised response (`zcdp.pure_divergence`), but for an
  event of probability :math:`\delta_i`. Divergences add up, and are converted at a
  :math:`\delta_c`.

**What is accepted** (`Filter`). Results may decide which releases come next and what they cost, so
a ledger accepts by one *privacy filter*, fixed when the ledger is created.

* ``"sum"``: the sums are within the ceiling :math:`(\varepsilon, \delta)` (Rogers et al. 2016).
* ``"zcdp"``: *either* the sums are within :math:`(\varepsilon, \delta/16)`, *or* the Rényi total is
  at most :math:`\varepsilon` at :math:`\delta_c = 14\delta/16`, with :math:`\delta_i` of releases
  without a :math:`\rho` that add up to at most :math:`\delta/16`. The order is fixed: the one
  that allows the most zCDP within the ceiling (Feldman and Zrnic 2021). It is
  found numerically when the ledger is created, and written into it.

**Claim.** Releases that a filter accepts are together :math:`(\varepsilon, \delta)`-DP, whatever
part earlier results had in choosing them.

**Proof.** *Failures.* A pair of laws of an :math:`(\varepsilon_i, \delta_i)`-DP release is
:math:`(1-\delta_i)P' + \delta_iF` and :math:`(1-\delta_i)Q' + \delta_iG` with P' and Q' within
:math:`e^{\pm\varepsilon_i}` of each other (Kairouz, Oh and Viswanath 2015). Some release fails
(draws from F) with probability at most :math:`\sum\delta_i` on the path where that is largest.
Without a failure, a path has the same factor :math:`w = \prod(1-\delta_i) \le 1` on both sides, and
:math:`\int_E w(dP' - e^\varepsilon dQ') \le \int(dP' - e^\varepsilon dQ')_+ \le \delta_c`
if :math:`P'(E) \le e^\varepsilon Q'(E) + \delta_c` for every E.
*Sum:* it is with :math:`\delta_c = 0`, because the log ratio of every path is at most
:math:`\sum\varepsilon_i \le \varepsilon`.
*Rényi:* on every path the divergences of the fixed order add up to at most :math:`\tau`. Then
:math:`M_k = (dP'/dQ')^\alpha_{\le k}\, e^{-(\alpha-1)\sum_{i \le k}\tau_i}` is a supermartingale
under Q', so the divergence of the whole is at most :math:`\tau`, and converts.
*Either of two:* the releases about one person only grow, and the figures of the ledger bound them
(those of parallel branches need not grow themselves: see `ledger`). So a sequence that ends within
a rule was, for every person, within it all along. Let S be the sequences that end within the sum,
and R all other accepted ones, which end within the Rényi rule. Replace the analyst by one who
stops before the first release that crosses
the sum: sequences in S have the same probabilities as before, so
:math:`P(E \cap S) \le e^\varepsilon Q(E \cap S) + \delta/16`, and likewise
:math:`P(E \cap R) \le e^\varepsilon Q(E \cap R) + 15\delta/16`. Add both. ∎

Without those shares, each rule with all of :math:`\delta`, results could decide which of the two is
relied on, and both would contribute: :math:`2\delta`.

**What is reported** (`tightest`, `privacy_loss_total`) takes the best order, or rule, for the
releases that were made. It holds for budgets that were fixed beforehand: it is no filter.
What is accepted is never reported to be above the ceiling.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.privacy.budget import Cost, Exact, exact, round_up, written

_FIFTY_DIGITS = Context(prec=50)  # Logarithms and powers are computed with 50 digits.
_ROUND_DOWN = Context(prec=10, rounding=ROUND_FLOOR)  # Rounds numbers down to ten digits.
# g, from three correctly rounded logarithms and a few operations, has a smaller error.
_ERROR_OF_G = Fraction(1, 10**40)
# For a pure release of smaller epsilon the divergence is its square.
_SMALL_EPSILON = Fraction(1, 10**9)
_SEARCH_PRECISION = Fraction(1, 10**8)  # A search ends at this relative precision.
_EPSILON_STEP = Fraction(1, 10**18)  # Epsilon is rounded up to a multiple of this.
# The search for the best order starts at these, minus 1.
_FIRST_ORDERS = np.geomspace(1e-6, 1e20, 313)

Pure = Mapping[Exact, int]
"""How many pure releases of each epsilon there are."""

_NONE: Pure = MappingProxyType({})  # Stands for a ledger without purely private releases.

_WORTH = Fraction(99, 100)  # A gain in epsilon of less than 1 % is not worth all of delta.
# Share of a zCDP ledger's delta for the sum, and for releases that may fail.
_DELTA_SHARE = Fraction(1, 16)
_FLOAT_ERROR = 1e-9  # The package's figures are floats, which may fall short by about 1e-15.


def zcdp_epsilon(rho: Exact, delta: Exact, pure: Pure = _NONE) -> Exact:
    r"""Return an epsilon at which rho-zCDP and pure releases together are (epsilon, delta)-DP.

    .. math:: \varepsilon = \min_{\alpha > 1} \alpha\rho
              + \sum_i D_\alpha(\varepsilon_i) + g(\alpha, \delta)

    ``rho`` is the sum over the releases that are known by their zCDP, ``pure`` the number of other
    releases of each pure epsilon. It is infinite for a delta of 0.

    >>> float(zcdp_epsilon(Fraction(244, 10_000), Fraction(1, 10**6)))
    1.0009...
    """
    if delta <= 0 or math.inf in (rho, *pure):
        return math.inf
    if delta >= 1 or not (rho or pure):
        return Fraction(0)
    order = _best_order(_epsilon_at(rho, delta, pure))
    epsilon = renyi_epsilon(order, rho, delta, pure)
    return max(math.ceil(epsilon / _EPSILON_STEP) * _EPSILON_STEP, Fraction(0))


def zcdp_rho(epsilon: Exact, delta: Exact) -> Exact:
    r"""Return the largest rho (to ten digits, rounded down) that is (epsilon, delta)-DP.

    .. math:: \rho = \max_{\alpha > 1} (\varepsilon - g(\alpha, \delta)) / \alpha

    >>> float(zcdp_rho(Fraction(1), Fraction(1, 10**6)))
    0.02435...
    """
    if delta <= 0:
        return Fraction(0)
    if epsilon == math.inf or delta >= 1:
        return math.inf
    order = best_order(epsilon, delta)
    return short((Fraction(epsilon) - renyi_epsilon(order, Fraction(0), delta)) / order)


@lru_cache(maxsize=256)
def best_order(epsilon: Exact, delta: Exact) -> Fraction:
    """Return the order that allows the largest rho within (epsilon, delta).

    >>> float(best_order(Fraction(1), Fraction(1, 10**6)))
    21.9...
    """
    gap, most = _epsilon_at(Fraction(0), delta, _NONE), float(epsilon)
    return _best_order(lambda x: (gap(x) - most) / (1 + np.exp(x)))


def renyi_epsilon(order: Fraction, rho: Exact, delta: Exact, pure: Pure = _NONE) -> Fraction:
    """Bound the epsilon of `zcdp_epsilon` at this order from above."""
    losses = (n * pure_divergence(order, Fraction(e)) for e, n in pure.items())
    return order * Fraction(rho) + sum(losses) + _gap(order, delta)


@lru_cache(maxsize=1024)
def pure_divergence(order: Fraction, epsilon: Fraction) -> Fraction:
    r"""Bound the divergence of a pure epsilon release, :math:`D_\alpha(\varepsilon)`, from above.

    >>> float(pure_divergence(Fraction(20), Fraction(1, 10)))
    0.07...
    """
    simple = min(epsilon, order * epsilon**2 / 2)
    if epsilon < _SMALL_EPSILON:  # the digits would cancel
        return simple
    less = _log_of_one_plus_exp(-epsilon) - _log_of_one_plus_exp((1 - 2 * order) * epsilon)
    return min(simple, epsilon - less / (order - 1) + _ERROR_OF_G * (1 + 1 / (order - 1)))


def pure_left(order: Fraction, slack: Fraction) -> Fraction:
    r"""Return the largest pure epsilon (eight digits) whose divergence is within ``slack``.

    The x with :math:`D_\alpha(x) = s`, which is at most :math:`s + \log 2/(\alpha - 1)`.

    >>> float(pure_left(Fraction(20), Fraction(1, 10))), float(pure_left(Fraction(20), Fraction(1)))
    (0.132..., 1.016...)
    """
    if slack <= 0:
        return Fraction(0)
    low = max(slack, min(_root(2 * slack / order), 2 / order))
    high = slack + 1 / (order - 1)
    while high > low * (1 + _SEARCH_PRECISION):
        middle = short((low + high) / 2)
        low, high = (low, middle) if pure_divergence(order, middle) > slack else (middle, high)
    return short(low)


def _epsilon_at(rho: Exact, delta: Exact, pure: Pure) -> Callable[[FloatArray], FloatArray]:
    """Return epsilon as a function of log(order - 1), in floats."""
    epsilons = np.array([float(epsilon) for epsilon in pure])[:, None]
    counts = np.array([float(count) for count in pure.values()])[:, None]
    slope, log_delta = float(rho), float(_log(Fraction(delta)))

    def epsilon_at(log_excess: FloatArray) -> FloatArray:
        excess = np.exp(log_excess)
        order = 1 + excess
        losses = (counts * _pure_divergences(order, epsilons)).sum(axis=0)
        gap = (-log_delta - np.log1p(excess)) / excess - np.log1p(1 / excess)
        return np.asarray(order * slope + losses + gap)

    return epsilon_at


def _pure_divergences(order: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return `pure_divergence` in floats; its quadratic bound where floats would cancel."""
    squares = order * epsilon**2 / 2
    less = np.log1p(np.exp(-epsilon)) - np.log1p(np.exp((1 - 2 * order) * epsilon))
    exact = epsilon - less / (order - 1)
    return np.asarray(np.where(order * epsilon < 1e-3, squares, np.minimum(exact, squares)))


@lru_cache(maxsize=256)
def _gap(order: Fraction, delta: Exact) -> Fraction:
    """Bound g(order, delta) from above."""
    gap = (_log(1 / Fraction(delta)) - _log(order)) / (order - 1) + _log(1 - 1 / order)
    return gap + _ERROR_OF_G * (1 + 1 / (order - 1))


def _best_order(objective: Callable[[FloatArray], FloatArray]) -> Fraction:
    """Return an order, as a short fraction, near the least value of a function of log(order - 1).

    The grid finds the basin (there may be several, for mixtures), a bounded search the rest.
    """
    grid = np.log(_FIRST_ORDERS)
    best = int(np.argmin(objective(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda x: float(objective(np.array([x]))[0]),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return 1 + Fraction(f"{math.exp(found.x):.12g}")


def _log(number: Fraction) -> Fraction:
    """Return the logarithm with an error below 1e-45 relative to the larger of it and 1."""
    ratio = _FIFTY_DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(_FIFTY_DIGITS.ln(ratio))


def _log_of_one_plus_exp(number: Fraction) -> Fraction:
    """Return log(1 + exp(x)) for a negative x, with an error below 1e-45."""
    power = _FIFTY_DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(_FIFTY_DIGITS.ln(_FIFTY_DIGITS.add(1, _FIFTY_DIGITS.exp(power))))


def _root(number: Fraction) -> Fraction:
    """Round the square root down; 0 where there is none."""
    return Fraction(math.isqrt(max(math.floor(number * 10**60), 0)), 10**30)


def short(number: Fraction) -> Fraction:
    """Round down to ten significant digits, and what is negative to 0."""
    if number <= 0:
        return Fraction(0)
    return Fraction(_ROUND_DOWN.divide(Decimal(number.numerator), Decimal(number.denominator)))


Composition = Literal["sum", "zcdp"]
"""How a ledger adds up: epsilons and deltas, or Rényi divergences."""


class Spend(NamedTuple):
    """What is known of one release: it is (epsilon, delta)-DP, and rho-zCDP if rho is finite."""

    cost: Cost
    rho: Exact = math.inf

    @classmethod
    def of(cls, epsilon: object = None, delta: object = 0, rho: object = None) -> Spend:
        """Read what is known exactly; without an epsilon, only zCDP is.

        >>> Spend.of(rho=0.1)
        Spend(cost=Cost(epsilon=inf, delta=Fraction(0, 1)), rho=Fraction(1, 10))
        """
        if epsilon is None and rho is None:
            raise TypeError("epsilon must be a real number, unless rho is given.")
        cost = Cost.of(math.inf if epsilon is None else epsilon, delta)
        spend = cls(cost, math.inf if rho is None else exact(rho, "rho"))
        if spend.rho == 0:
            raise ValueError("rho must not be 0.")
        written(spend.rho)
        return spend

    def __str__(self) -> str:
        if self.rho == math.inf:
            return str(self.cost)
        rho = f"rho={round_up(self.rho)}"
        return rho if self.cost.epsilon == math.inf else f"{self.cost}, {rho}"


def in_parallel(spends: Iterable[Spend]) -> list[Spend]:
    """Return releases that together cost as much as ``spends`` on disjoint people, or more.

    The largest rho, and beside it the largest cost of those that have none unless it is less.

    >>> in_parallel([Spend.of(0.1), Spend.of(0.2), Spend.of(1, 1e-6, rho=0.03)])
    [Spend(cost=Cost(epsilon=inf, delta=Fraction(0, 1)), rho=Fraction(3, 100))]
    """
    rho, cost = Fraction(0), Cost()
    for spend in spends:
        if spend.rho < math.inf:
            rho = max(rho, Fraction(spend.rho))
        else:
            cost = cost.joined(spend.cost)
    less = not cost.delta and cost.epsilon**2 / 2 <= rho
    return [Spend(Cost(math.inf), rho)] * bool(rho) + [Spend(cost)] * (not less)


class _Parts(NamedTuple):
    """A ledger as the Rényi rule sees it."""

    rho: Exact  # of the releases that have one
    pure: Counter[Exact]  # how many of the others have each epsilon
    failure: Exact  # sum of the deltas of the others


def _parts(spends: Mapping[Spend, int]) -> _Parts:
    rho, failure, pure = Fraction(0), Fraction(0), Counter[Exact]()
    for spend, count in spends.items():
        if spend.rho < math.inf:
            rho += count * Fraction(spend.rho)
        else:
            pure[spend.cost.epsilon] += count
            failure += count * Fraction(spend.cost.delta)
    return _Parts(rho, pure, failure)


class Filter(NamedTuple):
    """What a ledger accepts: the ceiling, and the one rule by which it composes."""

    ceiling: Cost
    composition: Composition = "sum"
    order: Fraction = Fraction(2)  # of the Rényi divergences, which a sum does not look at

    @classmethod
    def of(cls, ceiling: Cost, composition: str, order: Fraction | None = None) -> Filter:
        """Check that the rule exists and can convert; find the order unless it is fixed already."""
        if composition == "sum":
            return cls(ceiling)
        if composition != "zcdp":
            raise ValueError(f"composition must be 'sum' or 'zcdp'. Got {composition!r} instead.")
        if not (0 < ceiling.epsilon < math.inf and 0 < ceiling.delta < 1):
            raise ValueError(
                "composition='zcdp' needs a ceiling with a finite epsilon and a delta between 0 "
                f"and 1. Got {ceiling} instead."
            )
        if order is not None and not 1 < order < math.inf:
            raise ValueError("The order of Rényi divergences must be above 1.")
        return cls(ceiling, "zcdp", order or best_order(*ceiling))

    def accepts(self, added: Cost, spends: Mapping[Spend, int]) -> bool:
        """Return True where releases that add up to ``added`` keep within the ceiling."""
        return added <= self.for_sums or self.slack(spends) >= 0

    def remaining(self, added: Cost, spends: Mapping[Spend, int]) -> Cost:
        """Return a pure epsilon that would be accepted now, the largest, and a delta beside it.

        By the sum, delta could be spent with it; the Rényi rule has used it all for epsilon.
        """
        left = self.for_sums.left_by(added) if added <= self.for_sums else Cost()
        slack = self.slack(spends)
        if slack <= 0:
            return left
        more = pure_left(self.order, Fraction(slack))
        return Cost(more) if more * _WORTH > left.epsilon else left

    def __str__(self) -> str:
        return f"{self.ceiling}, by zCDP" if self.composition == "zcdp" else str(self.ceiling)

    @property
    def advice(self) -> str:
        """What to do about a charge that is refused."""
        other = ", or one with composition='zcdp', for releases that are many or known by rho only"
        may_convert = self.composition == "sum" and self.ceiling.epsilon < math.inf
        more = other if may_convert and self.ceiling.delta else ""
        return f"Ask for less, or use a ledger with a higher ceiling{more}."

    @property
    def for_sums(self) -> Cost:
        """What the sums may be."""
        share = 1 if self.composition == "sum" else _DELTA_SHARE
        return self.ceiling._replace(delta=Fraction(self.ceiling.delta) * share)

    def slack(self, spends: Mapping[Spend, int]) -> Exact:
        """Return what the Rényi rule leaves of epsilon, negative where it is crossed."""
        rho, pure, failure = _parts(spends)
        delta = Fraction(self.ceiling.delta)
        if self.composition == "sum" or failure > delta * _DELTA_SHARE or math.inf in pure:
            return -math.inf
        converted = delta * (1 - 2 * _DELTA_SHARE)
        return self.ceiling.epsilon - renyi_epsilon(self.order, rho, converted, pure)


def tightest(rule: Filter, added: Cost, spends: Mapping[Spend, int]) -> Cost:
    """Return the smallest total that is proven for budgets that were fixed beforehand.

    ``added`` is the sum; ``spends`` are the same releases, as many as there are of each kind. The
    delta is at most the ceiling's.

    >>> tightest(Filter(Cost.of(10, 1e-6)), Cost.of(10), {Spend.of(0.1): 100}).rounded_up()
    Cost(epsilon=5.07..., delta=1e-06)
    """
    ceiling, (rho, pure, failure) = rule.ceiling, _parts(spends)
    converted = Fraction(ceiling.delta) - Fraction(failure)
    if converted <= 0 or math.inf in pure:
        return added
    best = zcdp_epsilon(rho, converted, pure)
    epsilon = min(best, ceiling.epsilon) if rule.slack(spends) >= 0 else best
    enough = added <= ceiling and added.epsilon * _WORTH <= epsilon
    return added if enough else Cost(epsilon, ceiling.delta)


def privacy_loss_total(spends: Mapping[Spend, int], delta: float) -> float:
    """Return the epsilon of all releases at ``delta`` by composing privacy loss distributions.

    A release without a rho is taken as the worst mechanism with its (epsilon, delta), so the
    figure holds whatever the mechanisms were. Those with one are converted together, for half
    of delta if there are others. It is rounded pessimistically. It holds for budgets that were
    fixed beforehand.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise ImportError(
            "total(method='pld') needs the package dp-accounting: pip install "
            "dp-accounting, or use total()."
        ) from None
    concentrated = _parts(spends).rho
    others = [(spend.cost, count) for spend, count in spends.items() if spend.rho == math.inf]
    share = delta / 2 if concentrated and others else delta
    total = privacy_loss_distribution.identity()
    for cost, times in others:
        epsilon, mass = cost.rounded_up()
        if math.isinf(epsilon):
            return math.inf
        worst = common.DifferentialPrivacyParameters(epsilon, mass)
        law = privacy_loss_distribution.from_privacy_parameters(worst)
        total = total.compose(law.self_compose(times))
    composed = float(total.get_epsilon_for_delta(share)) + _FLOAT_ERROR if others else 0.0
    return composed + round_up(zcdp_epsilon(concentrated, Fraction(share)))
