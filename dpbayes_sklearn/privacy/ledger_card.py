"""The ledger as an HTML card: the budget spent, and the releases."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpbayes_sklearn._html import QUIET, Html, card, meter, table, tag, tiles
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Entry

__all__ = ["ledger_card"]

_SHOWN = 20  # latest entries
_HEADS = ("", "time (UTC)", "label", "epsilon", "delta", "rho")


def ledger_card(entries: Sequence[Entry], spent: Cost, left: Cost, ceiling: Cost) -> Html:
    """Return the state of a budget and its latest releases."""
    figures = [
        ("spent", _figures(spent)),
        ("left", _figures(left)),
        ("ceiling", _figures(ceiling.rounded_down())),
        ("releases", len(entries)),
    ]
    parts = [tiles(figures)]
    if 0 < ceiling.epsilon < math.inf:
        parts.append(meter(float(spent.epsilon) / float(ceiling.epsilon)))
    if entries:
        parts.append(table(_HEADS, map(_row, entries[-_SHOWN:]), text=[2]))
    earlier = len(entries) - _SHOWN
    if earlier > 0:
        parts.append(tag("p", f"These are the latest; {earlier} came before.", class_=QUIET))
    return card("Privacy budget", *parts, accent="good" if any(left) else "bad")


def _row(entry: Entry) -> tuple[object, ...]:
    cost = (f"{entry.epsilon:g}", f"{entry.delta:g}")
    if entry.rho is not None and math.isinf(entry.epsilon):
        cost = ("", "")  # only zCDP is known
    rho = "" if entry.rho is None else f"{entry.rho:g}"
    return (entry.number, f"{entry.time:%Y-%m-%d %H:%M:%S}", entry.label, *cost, rho)


def _figures(cost: Cost) -> str:
    """Return epsilon, and delta if there is any."""
    epsilon = "∞" if cost.epsilon == math.inf else f"{float(cost.epsilon):g}"
    return f"ε = {epsilon}, δ = {float(cost.delta):g}" if cost.delta else f"ε = {epsilon}"
