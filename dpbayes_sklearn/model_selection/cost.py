r"""The privacy cost of a search, known before it is run.

**What the best of a random number of runs costs if each of them is zCDP.**

**Theorem** (Papernot and Steinke 2022, Theorem 2). Let the number of runs have the truncated
negative binomial law of shape :math:`\eta` and parameter :math:`\gamma`, with mean m. If a run has
Rényi divergence at most :math:`\tau` of order :math:`\alpha > 1` and :math:`\hat\tau` of order
:math:`\beta \ge 1`, then the best of all runs has at most, of order :math:`\alpha`,

.. math:: \tau + (1+\eta)\Big(1 - \frac1\beta\Big)\hat\tau + \frac{(1+\eta)\log(1/\gamma)}\beta
          + \frac{\log m}{\alpha - 1}.

For a :math:`\rho`-zCDP run :math:`\tau = \alpha\rho` and :math:`\hat\tau = \beta\rho`. It holds for
**every** pair of orders, so numerically found ones can only cost tightness; the sum itself is taken
in fractions, logarithms rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from scipy.optimize import minimize_scalar
from sklearn.model_selection import train_test_split

from dpbayes_sklearn.model_selection.pipelines import as_one, refuse_others, steps_of, with_params
from dpbayes_sklearn.model_selection.runs import candidates_of
from dpbayes_sklearn.noise.random_stopping import PRICE
from dpbayes_sklearn.privacy import exact
from dpbayes_sklearn.privacy.budget import Exact, round_up
from dpbayes_sklearn.privacy.composition import renyi_epsilon

__all__ = ["SearchCost", "run_rho", "search_cost", "winner_epsilon"]


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
        if model._mechanism.needs_delta:
            raise ValueError(
                "Gaussian noise needs a delta, and this is the cost of purely private "
                "candidates: set epsilon and delta of the search instead."
            )
    parts = train_test_split(range(n), test_size=test_size)
    n_runs = runs_per_candidate * len(candidates)
    total = round_up(PRICE[stopping] * per_run)
    return SearchCost(total, round_up(per_run), n_runs, *map(len, parts))


# Logarithms of numbers above one have a smaller relative error than this.
_UP = Fraction(10**12 + 1, 10**12)


def winner_epsilon(rho: Exact, delta: Exact, eta: int, inverse: int, mean: float) -> Fraction:
    """Return an epsilon at which the best of all runs is (epsilon, delta)-DP.

    Parameters
    ----------
    rho : Fraction
        Every run is rho-zCDP.
    delta : Fraction
        Above 0.
    eta, inverse, mean
        Shape of the law of the number of runs, its 1/gamma, and its mean.

    Examples
    --------
    >>> float(winner_epsilon(Fraction(1, 250), Fraction(1, 10**6), 1, 60, 60.0))
    0.961...
    """
    rho = Fraction(rho)
    log_inverse, log_mean = (_UP * Fraction(math.log(x)) for x in (inverse, mean))
    beta = max(Fraction(1), Fraction(math.sqrt(float(log_inverse / rho)))) if rho else Fraction(1)
    shared = (1 + eta) * ((beta - 1) * rho + log_inverse / beta)

    def at(order: Fraction) -> Fraction:
        return renyi_epsilon(order, rho, delta) + shared + log_mean / (order - 1)

    def floating(x: float) -> float:
        return float(at(1 + Fraction(math.exp(x))))

    best = minimize_scalar(floating, bounds=(-3.0, 25.0), method="bounded")
    return at(1 + Fraction(math.exp(float(best.x))))


@lru_cache(maxsize=64)
def run_rho(epsilon: Exact, delta: Exact, eta: int, inverse: int, mean: float) -> Fraction:
    """Return a rho, the largest to a part in a thousand, whose best run is (epsilon, delta)-DP.

    >>> float(run_rho(Fraction(1), Fraction(1, 10**6), 1, 60, 60.0))
    0.0043...
    """
    low, high = Fraction(0), Fraction(1)
    while winner_epsilon(high, delta, eta, inverse, mean) <= epsilon:
        low, high = high, 2 * high
    for _ in range(60):
        if high - low <= low / 1000:
            break
        middle = Fraction(float((low + high) / 2 if low else high / 4))
        enough = winner_epsilon(middle, delta, eta, inverse, mean) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    if not low:
        raise ValueError("epsilon and delta are too small for a search.")
    return low
