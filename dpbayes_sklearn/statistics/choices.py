"""Choices one after the other among candidates with scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
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


QUESTION_SHARE = Fraction(1, 4)
"""Share of the question whether a tree is worth its noise."""

Choose = Callable[[IntArray, Fraction], int]
"""Chooses one of several scores with a share of the budget."""


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
    def shares(self) -> tuple[Fraction, ...]:
        """What every choice gets of the budget; together 1, if there are any."""

    @property
    @abstractmethod
    def most_candidates(self) -> int:
        """How many candidates one choice has at most; 0 if nothing is chosen."""

    def ask(self, statistics: Scored, choose: Choose) -> tuple[Hashable, ...]:
        """Return the choices, which end early if there is nothing left to choose from."""
        chosen: tuple[Hashable, ...] = ()
        for share in self.shares:
            candidates, scores = statistics.options(chosen)
            if not candidates:
                break
            chosen = (*chosen, candidates[choose(scores, share)])
        return chosen

    def update(self, statistics: Scored) -> tuple[Hashable, ...]:
        """Return the choices with the highest scores, where no privacy is asked for."""
        return self.ask(statistics, lambda scores, share: int(np.argmax(scores)))


@dataclass(frozen=True)
class ColumnChoice(_Choices):
    """The choice of k columns."""

    k: int

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The same for each column; none if all are taken."""
        return (Fraction(1, self.k),) * self.k if self.k < self.network.target else ()

    @property
    def most_candidates(self) -> int:
        """All columns, for the first choice."""
        return self.network.target if self.shares else 0


@dataclass(frozen=True)
class TreeChoice(_Choices):
    """The choice between a tree over all columns and none, then of its edges."""

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """A quarter for the first question, the same for each edge."""
        edges = self.network.target - 1
        return (QUESTION_SHARE, *[(1 - QUESTION_SHARE) / edges] * edges) if edges > 0 else ()

    @property
    def most_candidates(self) -> int:
        """Edges between the halves of the columns, when half of them are in the tree."""
        columns = self.network.target
        return (columns // 2) * (columns - columns // 2) if self.shares else 0
