"""Tighter totals than addition, through the optional dp-accounting package."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Entry

__all__ = ["privacy_loss_total", "sequential_costs"]

_FLOAT_ERROR = 1e-9  # the package's figures are floats, which may fall short by about 1e-15


def sequential_costs(entries: Iterable[Entry]) -> list[Cost]:
    """Return costs that compose by addition: one an entry, and one a parallel scope."""
    costs: dict[str, Cost] = {}
    for entry in entries:
        key = entry.scope or entry.release_id
        costs[key] = costs.get(key, Cost()).joined(entry.cost)
    return list(costs.values())


def privacy_loss_total(entries: Iterable[Entry], delta: float) -> float:
    """Return the epsilon of all entries at ``delta`` by composing privacy loss distributions.

    Every entry is taken as the worst mechanism with its (epsilon, delta), so the
    figure holds whatever the mechanisms were. It is rounded pessimistically.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise ImportError(
            "total(method='pld') needs the optional dp-accounting package. Install "
            "dpbayes_sklearn[pld], or use total() which adds."
        ) from None
    total = privacy_loss_distribution.identity()
    for cost, times in Counter(sequential_costs(entries)).items():
        epsilon, mass = cost.rounded_up()
        if math.isinf(epsilon):
            return math.inf
        worst = common.DifferentialPrivacyParameters(epsilon, mass)
        law = privacy_loss_distribution.from_privacy_parameters(worst)
        total = total.compose(law.self_compose(times))
    return float(total.get_epsilon_for_delta(delta)) + _FLOAT_ERROR
