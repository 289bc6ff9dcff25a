r"""The privacy cost of several releases together: what a ledger accepts, and what it reports.

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
  that allows the most zCDP within the ceiling (Feldman and Zrnic 2021).

**Claim.** Releases that a filter accepts are together :math:`(\varepsilon, \delta)`-DP, whatever
part earlier results had in choosing them.

**Proof.** *Failures.* A pair of laws of an :math:`(\varepsilon_i, \delta_i)`-DP release is
:math:`(1-\delta_i)P' + \delta_iF` and :math:`(1-\delta_i)Q' + \delta_iG` with P' and Q' within
:math:`e^{\pm\varepsilon_i}` of each other (Kairouz, Oh and Viswanath 2015). Some release fails
(draws from F) with probability at most :math:`\sum\delta_i` on the path where that is largest.
The factors :math:`1-\delta_i` are the same on both sides, so without a failure
:math:`P(E) \le e^\varepsilon Q(E) + \delta_c` if that is true of the P' and Q'.
*Sum:* it is with :math:`\delta_c = 0`, because the log ratio of every path is at most
:math:`\sum\varepsilon_i \le \varepsilon`.
*Rényi:* on every path the divergences of the fixed order add up to at most :math:`\tau`. Then
:math:`M_k = (dP'/dQ')^\alpha_{\le k}\, e^{-(\alpha-1)\sum_{i \le k}\tau_i}` is a supermartingale
under Q', so the divergence of the whole is at most :math:`\tau`, and converts.
*Either of two:* what was spent only grows, so a sequence that ends within a rule was within it all
along. Let S be the sequences that end within the sum, and R all other accepted ones, which end
within the Rényi rule. Replace the analyst by one who stops before the first release that crosses
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
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from dpbayes_sklearn.privacy.budget import Exact, exact
from dpbayes_sklearn.privacy.cost import Cost, written
from dpbayes_sklearn.privacy.guarantee import round_up
from dpbayes_sklearn.privacy.zcdp import best_order, pure_left, renyi_epsilon, zcdp_epsilon

__all__ = ["Composition", "Filter", "Spend", "in_parallel", "privacy_loss_total", "tightest"]

Composition = Literal["sum", "zcdp"]
"""How a ledger adds up: epsilons and deltas, or Rényi divergences."""

_WORTH = Fraction(99, 100)  # a gain in epsilon of less than 1 % is not worth all of delta
_SHARE = Fraction(1, 16)  # of a zCDP ledger's delta: for the sum, and for releases that may fail
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


class Filter(NamedTuple):
    """What a ledger accepts: the ceiling, and the one rule by which it composes."""

    ceiling: Cost
    composition: Composition = "sum"

    @classmethod
    def of(cls, ceiling: Cost, composition: str) -> Filter:
        """Check that the rule exists and can convert."""
        if composition == "sum":
            return cls(ceiling)
        if composition != "zcdp":
            raise ValueError(f"composition must be 'sum' or 'zcdp'. Got {composition!r} instead.")
        if not (0 < ceiling.epsilon < math.inf and 0 < ceiling.delta < 1):
            raise ValueError(
                "composition='zcdp' needs a ceiling with a finite epsilon and a delta between 0 "
                f"and 1. Got {ceiling} instead."
            )
        return cls(ceiling, "zcdp")

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
        more = pure_left(best_order(*self.ceiling), Fraction(slack))
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
        share = 1 if self.composition == "sum" else _SHARE
        return self.ceiling._replace(delta=Fraction(self.ceiling.delta) * share)

    def slack(self, spends: Mapping[Spend, int]) -> Exact:
        """Return what the Rényi rule leaves of epsilon, negative where it is crossed."""
        rho, pure, failure = _parts(spends)
        delta = Fraction(self.ceiling.delta)
        if self.composition == "sum" or failure > delta * _SHARE or math.inf in pure:
            return -math.inf
        order, converted = best_order(*self.ceiling), delta * (1 - 2 * _SHARE)
        return self.ceiling.epsilon - renyi_epsilon(order, rho, converted, pure)


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
