r"""The privacy cost of several releases together: the tightest of the proven rules.

What is known of one release is a `Spend`: that it is :math:`(\varepsilon, \delta)`-DP, and
perhaps that it is :math:`\rho`-zCDP. Two rules give a total at most at the ceiling's
:math:`\delta`:

* *Sum.* :math:`(\sum\varepsilon_i, \sum\delta_i)`.
* *Rényi.* A release with a :math:`\rho_i` has divergence :math:`\alpha\rho_i` of order
  :math:`\alpha`; one without has at most
  :math:`\min(\varepsilon_i, \tfrac12\alpha\varepsilon_i^2)` but for an event of probability
  :math:`\delta_i` (approximate zCDP, Bun and Steinke 2016, Section 8). Divergences add up and are
  converted at 15/16 of the ceiling's :math:`\delta`; the :math:`\delta_i` may add up to the rest.
  The shares are fixed, because results could otherwise decide how much is left to convert with.

**What is reported and what is enforced.** A report (`tightest`) takes the best order for the
releases that were made, which is a statement about budgets that do not depend on results. Budgets
often do, so the ceiling is enforced (`allowed`) by rules that are *privacy filters*: the sum
(Rogers et al. 2016), and the Rényi rule of the one order that allows the most zCDP within the
ceiling (Feldman and Zrnic 2021). For Gaussian releases and small pure ones that order is the best
when the ceiling is reached, so nothing is lost. What is allowed is never reported to be above the
ceiling. (Should results even decide which of the two rules is relied on, each contributes its
:math:`\delta`.)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from dpbayes_sklearn.privacy.budget import Exact, exact
from dpbayes_sklearn.privacy.cost import Cost, written
from dpbayes_sklearn.privacy.guarantee import round_up
from dpbayes_sklearn.privacy.zcdp import best_order, pure_left, renyi_epsilon, zcdp_epsilon

__all__ = ["Spend", "allowed", "in_parallel", "privacy_loss_total", "remaining", "tightest"]

_WORTH = Fraction(99, 100)  # a gain in epsilon of less than 1 % is not worth all of delta
_CONVERTS = Fraction(15, 16)  # of delta; the rest is for releases that may fail
_FLOAT_ERROR = 1e-9  # the package's figures are floats, which may fall short by about 1e-15


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


def tightest(ceiling: Cost, added: Cost, spends: Mapping[Spend, int]) -> Cost:
    """Return the total by the rule with the smaller epsilon; its delta is at most the ceiling's.

    ``added`` is the sum; ``spends`` are the same releases, as many as there are of each kind.

    >>> tightest(Cost.of(10, 1e-6), Cost.of(10), {Spend.of(0.1): 100}).rounded_up()
    Cost(epsilon=5.23..., delta=1e-06)
    """
    rho, pure, failure = _parts(spends)
    conversion = _conversion(ceiling)
    if not conversion or failure > Fraction(ceiling.delta) - conversion or math.inf in pure:
        return added
    best = zcdp_epsilon(rho, conversion, pure)
    epsilon = min(best, ceiling.epsilon) if _slack(ceiling, spends) >= 0 else best
    enough = added <= ceiling and added.epsilon * _WORTH <= epsilon
    return added if enough else Cost(epsilon, ceiling.delta)


def allowed(ceiling: Cost, added: Cost, spends: Mapping[Spend, int]) -> bool:
    """Return True where releases that add up to ``added`` keep within the ceiling by a rule."""
    return added <= ceiling or _slack(ceiling, spends) >= 0


def remaining(ceiling: Cost, added: Cost, spends: Mapping[Spend, int]) -> Cost:
    """Return a pure epsilon that could be spent now, as large as either rule allows, and a delta.

    By the sum rule, delta could be spent with it; the Rényi rule has used it all for epsilon.
    """
    left = ceiling.left_by(added) if added <= ceiling else Cost()
    slack = _slack(ceiling, spends)
    if slack <= 0:
        return left
    more = pure_left(best_order(*ceiling), Fraction(slack))
    return Cost(more) if more * _WORTH > left.epsilon else left


def _slack(ceiling: Cost, spends: Mapping[Spend, int]) -> Exact:
    """Return what the Rényi rule leaves of the ceiling's epsilon, negative where it is crossed."""
    rho, pure, failure = _parts(spends)
    conversion = _conversion(ceiling)
    failed = not conversion or failure > Fraction(ceiling.delta) - conversion
    if failed or not 0 < ceiling.epsilon < math.inf or math.inf in pure:
        return -math.inf
    return ceiling.epsilon - renyi_epsilon(best_order(*ceiling), rho, conversion, pure)


def _conversion(ceiling: Cost) -> Fraction:
    """Return the share of the ceiling's delta that converts Rényi divergences."""
    return Fraction(ceiling.delta) * _CONVERTS


def privacy_loss_total(spends: Mapping[Spend, int], delta: float) -> float:
    """Return the epsilon of all releases at ``delta`` by composing privacy loss distributions.

    A release without a rho is taken as the worst mechanism with its (epsilon, delta), so the
    figure holds whatever the mechanisms were. Those with one are converted together, for half
    of delta if there are others. It is rounded pessimistically.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise ImportError(
            "total(method='pld') needs the optional dp-accounting package. Install "
            "dpbayes_sklearn[pld], or use total()."
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
