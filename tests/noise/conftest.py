"""Exact laws of what is drawn with dice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

Die = Callable[..., int]


def _exact_law(draw: Callable[[Die], Any]) -> dict[Any, Fraction]:
    """Return the law of ``draw(die)`` by letting every die fall on each of its sides."""
    law: Counter[Any] = Counter()
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script, taken, ways = pending.pop(), [], [Fraction(1)]

        def die(
            bound: int, source: Any = None, script: Any = script, taken: Any = taken, w: Any = ways
        ) -> int:
            if len(taken) >= len(script):
                pending.extend((*taken, side) for side in range(1, bound))
            taken.append(script[len(taken)] if len(taken) < len(script) else 0)
            w[0] /= bound
            return int(taken[-1])

        outcome = draw(die)
        law[outcome] += ways[0]
    return dict(law)


@pytest.fixture
def exact_law() -> Callable[[Callable[[Die], Any]], dict[Any, Fraction]]:
    """The exact law of what is drawn with dice."""
    return _exact_law
