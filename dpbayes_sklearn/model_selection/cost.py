"""What a search costs, before it is run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from sklearn.model_selection import train_test_split

from dpbayes_sklearn.model_selection.pipelines import as_one
from dpbayes_sklearn.model_selection.runs import candidates_of
from dpbayes_sklearn.model_selection.steps import refuse_others, steps_of, with_params
from dpbayes_sklearn.noise.random_stopping import PRICE
from dpbayes_sklearn.privacy import exact
from dpbayes_sklearn.privacy.guarantee import round_up

__all__ = ["SearchCost", "search_cost"]


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


def search_cost(
    estimator: Any,
    param_grid: Any,
    n: int,
    runs_per_candidate: int,
    stopping: str,
    test_size: float,
) -> SearchCost:
    """Return the cost of a search whose winner has the epsilon of the estimator.

    Refuses what a search without a delta refuses.
    """
    refuse_others(estimator)
    per_run = sum((exact(step.epsilon) for step in steps_of(estimator)), Fraction(0))
    candidates = with_params(estimator, candidates_of(param_grid))
    for model in map(as_one, candidates):
        model.set_params(epsilon=per_run)._validate_params()
        if model._resolve_mechanism().needs_delta:
            raise ValueError(
                "Gaussian noise needs a delta, and this is the cost of purely private "
                "candidates: set epsilon and delta of the search instead."
            )
    parts = train_test_split(range(n), test_size=test_size)
    n_runs = runs_per_candidate * len(candidates)
    total = round_up(PRICE[stopping] * per_run)
    return SearchCost(total, round_up(per_run), n_runs, *map(len, parts))
