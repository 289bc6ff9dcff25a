"""What a search costs, before it is run."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SearchCost"]


class SearchCost(NamedTuple):
    """The privacy cost of a search, known before any data are read.

    Attributes
    ----------
    epsilon : float
        Of the whole search.
    epsilon_per_run : float
        Of each of its fits, the winner included.
    n_runs : int
        How many fits to expect; the actual number is random, and secret.
    n_train, n_test : int
        People that the candidates are fitted to, and people that they are scored on.
    """

    epsilon: float
    epsilon_per_run: float
    n_runs: int
    n_train: int
    n_test: int
