"""Use up a privacy budget exactly: the nominal budget at which the true loss is the one asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpbayes_sklearn.mechanisms._finite_law import FiniteLaw, Rows

__all__ = ["calibrated"]

AnyFiniteLaw = TypeVar("AnyFiniteLaw", bound=FiniteLaw)

_TARGET = 1e-7  # the loss aimed at is so little below epsilon, or a relative 1e-5
_NEAR = 8  # rows
_LARGEST = 64.0  # a nominal budget beyond so many epsilon is not looked for


def calibrated(build: Callable[[float], AnyFiniteLaw], epsilon: float) -> AnyFiniteLaw:
    """Return the law whose exact worst-case loss is epsilon, and never above.

    ``build(nominal)`` is the mechanism run at a nominal budget, which is found by bracketing over a
    few suspected pairs of neighbours. Then all pairs are gone through, and as long as one
    of them is above epsilon, the worst joins the suspects. What is returned went through.
    """
    slack = min(_TARGET, 1e-5 * epsilon)
    target = epsilon - slack
    pairs = [np.column_stack(sides) for sides in build(epsilon).candidates.neighbours()]
    suspects = np.concatenate([some[_spread(len(some))] for some in pairs])
    while True:
        law = build(_nominal(build, suspects, target, epsilon))
        worst, pair = law.worst_rows()
        if worst <= epsilon:
            return law
        target -= slack  # so that no rounding can keep this from ending
        # as the nominal budget goes down, a pair close by may become the worst
        near = [some[_close_to(some, pair)] for some in pairs]
        suspects = np.unique(np.concatenate([suspects, [sorted(pair)], *near]), axis=0)


def _spread(length: int) -> Rows:
    """Positions in a list, denser towards both ends, where neighbours are farthest apart."""
    steps = np.geomspace(1, length, 24).astype(np.intp) - 1
    return np.unique(np.concatenate([steps, length - 1 - steps]))


def _close_to(pairs: Rows, pair: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Tell which pairs of rows are within a few rows of ``pair``."""
    return np.asarray((np.abs(pairs - sorted(pair)) <= _NEAR).all(axis=1))


def _nominal(
    build: Callable[[float], AnyFiniteLaw], pairs: Rows, target: float, epsilon: float
) -> float:
    """Nominal budget at which the worst of the suspected pairs loses ``target``."""

    def loss(nominal: float) -> float:
        return float(build(nominal).loss(pairs[:, 0], pairs[:, 1]).max())

    low, high = 0.0, epsilon
    while loss(high) <= target:
        if high >= _LARGEST * epsilon:
            return high
        low, high = high, 2.0 * high
    root = brentq(lambda nominal: loss(nominal) - target, low, high, xtol=1e-9 * epsilon)
    return float(root)
