"""Choices one after the other among candidates with scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.network import Network

__all__ = ["LARGEST", "STEPS", "ColumnChoice", "Scored", "TreeChoice"]

STEPS = 1024
"""Steps of a score in one record."""

LARGEST = STEPS * 2**32
"""Larger scores count as this one: a public bound, also where the number of records is secret."""


class Scored(Protocol):
    """Exact scores of candidates: sensitive."""

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any score."""

    def options(self, chosen: tuple[Any, ...]) -> tuple[list[Any], IntArray]:
        """Return what can be chosen after earlier choices, and the scores."""


@dataclass(frozen=True)
class _Choices(ABC):
    """Public: the nodes that are chosen from, the class last."""

    network: Network

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many choices are made."""

    def update(self, statistics: Scored) -> tuple[Hashable, ...]:
        """Return the choices with the highest scores, where no privacy is asked for."""
        chosen: tuple[Hashable, ...] = ()
        for _ in range(self.rounds):
            candidates, scores = statistics.options(chosen)
            chosen = (*chosen, candidates[int(np.argmax(scores))])
        return chosen


@dataclass(frozen=True)
class ColumnChoice(_Choices):
    """The choice of k columns."""

    k: int

    @property
    def rounds(self) -> int:
        """One for each column; none if all are taken."""
        return self.k if self.k < self.network.target else 0


@dataclass(frozen=True)
class TreeChoice(_Choices):
    """The choice of the edges of a tree over all columns."""

    @property
    def rounds(self) -> int:
        """One for each edge."""
        return max(self.network.target - 1, 0)
