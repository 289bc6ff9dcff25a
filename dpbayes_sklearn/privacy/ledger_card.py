"""The ledger as an HTML card: the budget spent, and the releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpbayes_sklearn._html import QUIET, Html, card, meter, table, tag, tiles
from dpbayes_sklearn.privacy.composition import Filter
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Entry
from dpbayes_sklearn.privacy.printing import at_least, at_most

__all__ = ["ledger_card"]

_SHOWN = 20  # latest entries
_HEADS = ("", "time (UTC)", "label", "epsilon", "delta", "rho")


_FIXED = (
    "What was spent is composed by zCDP, for releases whose budgets were fixed beforehand. The "
    "ceiling holds also if results decided what was spent next."
)


def ledger_card(entries: Sequence[Entry], spent: Cost, left: Cost, rule: Filter) -> Html:
    """Return the state of a budget and its latest releases."""
    ceiling = rule.ceiling
    figures = [
        ("spent", _figures(spent, at_least)),
        ("left", _figures(left, at_most)),
        ("ceiling", _figures(ceiling, at_least)),
        ("releases", len(entries)),
    ]
    parts = [tiles(figures)]
    if rule.composition == "zcdp":
        parts.append(tag("p", _FIXED, class_=QUIET))
    if 0 < ceiling.epsilon < math.inf:
        parts.append(meter(float(spent.epsilon) / float(ceiling.epsilon)))
    if entries:
        parts.append(table(_HEADS, map(_row, entries[-_SHOWN:]), text=[2]))
    earlier = len(entries) - _SHOWN
    if earlier > 0:
        parts.append(tag("p", f"These are the latest; {earlier} came before.", class_=QUIET))
    return card("Privacy budget", *parts, accent="good" if any(left) else "bad")


def _row(entry: Entry) -> tuple[object, ...]:
    cost = (at_least(entry.epsilon), at_least(entry.delta))
    if entry.rho is not None and math.isinf(entry.epsilon):
        cost = ("", "")  # only zCDP is known
    rho = "" if entry.rho is None else at_least(entry.rho)
    return (entry.number, f"{entry.time:%Y-%m-%d %H:%M:%S}", entry.label, *cost, rho)


def _figures(cost: Cost, rounded: Callable[[object], str]) -> str:
    """Return epsilon, and delta if there is any."""
    epsilon = "∞" if cost.epsilon == math.inf else rounded(cost.epsilon)
    return f"ε = {epsilon}, δ = {rounded(cost.delta)}" if cost.delta else f"ε = {epsilon}"
