"""The ledger as a card: how much of the budget is gone, and on what."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpbayes_sklearn._html import QUIET, Html, card, meter, table, tag, tiles
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Entry

__all__ = ["ledger_card"]

_SHOWN = 20  # latest entries
_HEADS = ("", "time (UTC)", "label", "epsilon", "delta")


def ledger_card(entries: Sequence[Entry], ceiling: Cost) -> Html:
    """Return the state of a budget and its latest releases."""
    spent = entries[-1].spent if entries else Cost()
    left = ceiling.left_by(spent).rounded_down()
    figures = [
        ("spent", _figures(spent.rounded_up())),
        ("left", _figures(left)),
        ("ceiling", _figures(ceiling.rounded_down())),
        ("releases", len(entries)),
    ]
    parts = [tiles(figures)]
    if 0 < ceiling.epsilon < math.inf:
        parts.append(meter(float(spent.epsilon / ceiling.epsilon)))
    if entries:
        rows = (
            (e.number, f"{e.time:%Y-%m-%d %H:%M:%S}", e.label, f"{e.epsilon:g}", f"{e.delta:g}")
            for e in entries[-_SHOWN:]
        )
        parts.append(table(_HEADS, rows, text=[2]))
    earlier = len(entries) - _SHOWN
    if earlier > 0:
        parts.append(tag("p", f"These are the latest; {earlier} came before.", class_=QUIET))
    return card("Privacy budget", *parts, accent="good" if any(left) else "bad")


def _figures(cost: Cost) -> str:
    """Return epsilon, and delta if there is any."""
    epsilon = "∞" if cost.epsilon == math.inf else f"{float(cost.epsilon):g}"
    return f"ε = {epsilon}, δ = {float(cost.delta):g}" if cost.delta else f"ε = {epsilon}"
