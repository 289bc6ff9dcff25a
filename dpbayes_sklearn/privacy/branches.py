r"""What a parallel scope costs: its branches are joined, the releases of one branch add up.

Guarantee
---------
*Precondition*: neighbours have all records of one unit more (``add_remove``), and the records of
one unit are all in the data of one branch. *Claim*: all releases of a scope together cost as much
as its most expensive branch. *Proof*: the added unit is in one branch. The data of every other
branch are the same for both neighbours, so what it releases has privacy loss 0, whatever results of
other branches its budget was chosen by. What is left is the sequence of releases of one branch.

A unit that is *replaced* may be in one branch before and in another one after, which changes the
number of records of both. Releases that protect replaced units publish that number, so no cost
covers them, and a scope takes none of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpbayes_sklearn.privacy.composition import Spend, in_parallel
from dpbayes_sklearn.privacy.cost import Cost

__all__ = ["Branches", "scope_spends"]


class Branches:
    """The (epsilon, delta) of one parallel scope, added up for every branch."""

    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._alone = 0

    def add(self, branch: str | None, cost: Cost) -> Cost:
        """Add a release and return by how much the scope costs more; None is a branch of its own.

        >>> north, scope = "north", Branches()
        >>> [float(scope.add(north, Cost.of(e)).epsilon) for e in (0.5, 0.25)]
        [0.5, 0.25]
        >>> float(scope.add("south", Cost.of(1)).epsilon)
        0.25
        """
        before, name = self.cost, self._name(branch)
        self._costs[name] = self._costs.get(name, Cost()).plus(cost)
        return self.cost.beyond(before)

    @property
    def cost(self) -> Cost:
        """The largest epsilon and the largest delta of any branch."""
        joined = Cost()
        for cost in self._costs.values():
            joined = joined.joined(cost)
        return joined

    def _name(self, branch: str | None) -> str:
        self._alone += branch is None
        return f"alone {self._alone}" if branch is None else f"named {branch}"


def scope_spends(releases: Iterable[tuple[str | None, Spend]]) -> list[Spend]:
    """Return releases that together cost as much as (branch, release) of a scope, or more."""
    branches, alone = defaultdict[str, list[Spend]](list), list[Spend]()
    for branch, spend in releases:
        (alone if branch is None else branches[branch]).append(spend)
    return in_parallel([*alone, *(_in_sequence(spends) for spends in branches.values())])


def _in_sequence(spends: Sequence[Spend]) -> Spend:
    """Return one release that costs as much as several about the same people, or more.

    A pure release is epsilon²/2-zCDP, so zCDP adds up unless a release is known by (epsilon, delta)
    alone.
    """
    if len(spends) == 1:
        return spends[0]
    concentrated = any(spend.rho < math.inf for spend in spends)
    rho = sum((_rho(spend) for spend in spends), Fraction(0))
    if concentrated and rho < math.inf:
        return Spend(Cost(math.inf), rho)
    cost = Cost()
    for spend in spends:
        cost = cost.plus(spend.cost)
    return Spend(cost)


def _rho(spend: Spend) -> Fraction | float:
    """Return the zCDP of a release; infinite where only (epsilon, delta) is known."""
    if spend.rho < math.inf:
        return spend.rho
    return math.inf if spend.cost.delta else spend.cost.epsilon**2 / 2
