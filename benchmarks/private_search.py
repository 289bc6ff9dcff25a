"""Does a private search find a good model? At a total epsilon of 1, on census data.

For each data set: the test scores of every fixed candidate, fitted to all training people with the
whole budget, which nobody can choose without looking; their mean, which a random choice gets; and
the score of the model that PrivateSearchCV returns for the same budget.

    python benchmarks/private_search.py --repeats 10
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from network_experiment import census
from regression_data import labsup
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, train_test_split

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.model_selection import PrivateSearchCV

EPSILON = 1.0
MECHANISMS = ["laplace", "fourier", "sampler", "map"]


class Problem(NamedTuple):
    name: str
    estimator: Any
    grid: dict[str, list[Any]]
    X: Any
    y: Any


def problems() -> list[Problem]:
    adult, women = census(), labsup()
    return [
        Problem(
            "adult (accuracy)",
            BayesianNaiveBayes(EPSILON, schema=adult.schema),
            {"mechanism": MECHANISMS, "alpha": [0.1, 1.0, 10.0]},
            adult.X,
            adult.y,
        ),
        Problem(
            "labsup (R2)",
            BayesianLinearRegression(EPSILON, schema=women.schema),
            {"mechanism": MECHANISMS, "prior_precision": [0.1, 1.0, 10.0]},
            women.X,
            women.y,
        ),
    ]


def repeat(problem: Problem, seed: int) -> tuple[list[float], float]:
    """Return the test scores of all fixed candidates and of the search."""
    train_X, test_X, train_y, test_y = train_test_split(problem.X, problem.y, random_state=seed)
    fixed = [
        clone(problem.estimator).set_params(**params).fit(train_X, train_y).score(test_X, test_y)
        for params in ParameterGrid(problem.grid)
    ]
    accountant = BudgetAccountant(EPSILON)
    search = PrivateSearchCV(
        problem.estimator, problem.grid, epsilon=EPSILON, accountant=accountant
    ).fit(train_X, train_y)
    assert accountant.total().epsilon == search.guarantee_.epsilon == EPSILON
    return fixed, search.score(test_X, test_y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    head = ("best fixed", "random choice", "search", "+-", "of the way")
    print(f"{'':<18}" + "".join(f"{title:>15}" for title in head))
    for problem in problems():
        results = Parallel(n_jobs=options.jobs)(
            delayed(repeat)(problem, seed) for seed in range(options.repeats)
        )
        fixed, searched = (np.array(part) for part in zip(*results, strict=True))
        best, chance, found = fixed.mean(0).max(), fixed.mean(), searched.mean()
        error = searched.std(ddof=1) / np.sqrt(options.repeats)
        way = (found - chance) / (best - chance)
        row = "".join(f"{value:15.4f}" for value in (best, chance, found, error))
        print(f"{problem.name:<18}{row}{way:15.0%}", flush=True)


if __name__ == "__main__":
    main()
