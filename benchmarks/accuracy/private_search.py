"""Does a private search find a good model? At a total epsilon of 1, on census data.

For each data set: the mean test score of the best fixed candidate, fitted to all training people
with the whole budget, which nobody can choose without looking; that of a random candidate; and of
what three plans choose for the same budget:

- the search of the library (random stopping);
- every candidate once with its share of the budget, the best of them by permute-and-flip;
- the same with half of the budget, the other half for fitting the best again to everybody.

    python -m benchmarks.accuracy.private_search --repeats 10
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, train_test_split

from benchmarks.accuracy.networks import census
from benchmarks.data.regression import labsup
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.model_selection import PrivateSearchCV
from dpbayes_sklearn.model_selection.runs import points, sensitivity

EPSILON = 1.0
PLANS = ("PrivateSearchCV", "each once", "... and again")
MECHANISMS = ["laplace", "fourier", "sampler", "map"]


class Problem(NamedTuple):
    name: str
    estimator: Any
    grid: dict[str, list[Any]]
    X: Any
    y: Any

    def fits(self, epsilon: float, X: Any, y: Any) -> list[Any]:
        """Fit every candidate."""
        candidates = ParameterGrid(self.grid)
        return [
            clone(self.estimator).set_params(**p, epsilon=epsilon).fit(X, y) for p in candidates
        ]


def problems() -> list[Problem]:
    adult, women = census(), labsup()
    return [
        Problem(
            "adult (accuracy)",
            BayesianNaiveBayes(schema=adult.schema),
            {"mechanism": MECHANISMS, "alpha": [0.1, 1.0, 10.0]},
            adult.X,
            adult.y,
        ),
        Problem(
            "labsup (R2)",
            BayesianLinearRegression(schema=women.schema),
            {"mechanism": MECHANISMS, "prior_precision": [0.1, 1.0, 10.0]},
            women.X,
            women.y,
        ),
    ]


def random_stopping(problem: Problem, X: Any, y: Any) -> Any:
    accountant = BudgetAccountant(EPSILON)
    search = PrivateSearchCV(
        problem.estimator, problem.grid, epsilon=EPSILON, accountant=accountant
    ).fit(X, y)
    assert accountant.total().epsilon == search.guarantee_.epsilon == EPSILON
    return search.best_estimator_


def each_once(problem: Problem, X: Any, y: Any, epsilon: float, seed: int) -> Any:
    """Fit each candidate with its share of epsilon; permute-and-flip (McKenna, Sheldon 2020)."""
    train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.2, random_state=seed)
    models = problem.fits(epsilon / len(ParameterGrid(problem.grid)), train_X, train_y)
    scores = np.array([points(m, test_X, test_y).sum() / sensitivity(m) for m in models])
    rng = np.random.default_rng(seed)
    accepted = rng.random(len(models)) < np.exp(epsilon / 2 * (scores - scores.max()))
    return models[rng.choice(np.flatnonzero(accepted))]


def repeat(problem: Problem, seed: int) -> tuple[list[float], list[float]]:
    """Return the test scores of all fixed candidates and of the three plans."""
    X, test_X, y, test_y = train_test_split(problem.X, problem.y, random_state=seed)
    half = EPSILON / 2
    again = clone(each_once(problem, X, y, half, seed)).set_params(epsilon=half).fit(X, y)
    plans = [
        random_stopping(problem, X, y),
        each_once(problem, X, y, EPSILON, seed),
        again,
    ]
    fixed = problem.fits(EPSILON, X, y)
    return [m.score(test_X, test_y) for m in fixed], [m.score(test_X, test_y) for m in plans]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"epsilon = {EPSILON:g}, {options.repeats} repeats")
    for problem in problems():
        results = Parallel(n_jobs=options.jobs)(
            delayed(repeat)(problem, seed) for seed in range(options.repeats)
        )
        fixed, plans = (np.array(part) for part in zip(*results, strict=True))
        best, chance = fixed.mean(0).max(), fixed.mean()
        print(f"\n{problem.name}\n{'best fixed choice':<22}{best:8.4f}")
        print(f"{'random choice':<22}{chance:8.4f}")
        for name, scores in zip(PLANS, plans.T, strict=True):
            error = scores.std(ddof=1) / np.sqrt(options.repeats)
            way = (scores.mean() - chance) / (best - chance)
            row = f"{scores.mean():8.4f} +- {error:.4f}  {way:5.0%} of the way to the best"
            print(f"{name:<22}{row}", flush=True)


if __name__ == "__main__":
    main()
