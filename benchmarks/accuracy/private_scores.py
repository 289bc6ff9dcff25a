"""Coverage and width of the intervals of ``private_score``, against the metrics of a population.

A naive Bayes model and a linear regression are fitted once; a million further records are the
population, whose exact metrics are the truth. Test sets of n records are drawn from it, and every
metric is asked for alone (``--together``: all at once, with a shared budget). The population: two
classes, 30 % positive, eight dependent features; a target with errors of Student's t, 5 degrees of
freedom. On it two rules were adjusted; with ``--unseen`` the population is another, made once and
never used to choose anything: 10 % positive, five skewed numbers of which three count; a target
whose errors are skewed and grow with a feature. Run ``python -m benchmarks.accuracy.private_scores
[--repeats 1000] [--together] [--unseen]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.metrics.plan import plan
from dpbayes_sklearn.metrics.statistics import Classification, Labelled, Measured, Regression
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit

POPULATION, TRAINING = 1_000_000, 5_000
CLASSIFIER = ("accuracy", "balanced_accuracy", "log_loss", "brier_score", "roc_auc")
CURVES = ("calibration_curve", "confusion_matrix")
REGRESSION = ("r2", "rmse", "mae")
ADDED = PrivacyUnit("record", neighbours="add_remove")


def classified(rng: np.random.Generator) -> tuple[Classification, Labelled]:
    """Return what a naive Bayes model says about the population."""
    n = POPULATION + TRAINING
    y = (rng.random(n) < 0.3).astype(int)
    shared = rng.normal(size=(n, 1))
    X = (0.6 * shared + rng.normal(size=(n, 8)) + 0.5 * y[:, None] > 0.4).astype(int)
    model = BayesianNaiveBayes(np.inf, classes=[0, 1], bounds=(0, 1), temperature=0.7)
    model.fit(X[:TRAINING], y[:TRAINING])
    proba = model.predict_proba(X[TRAINING:])
    return Classification(2, 0.01), Labelled(y[TRAINING:], proba.argmax(axis=1), proba)


def measured(rng: np.random.Generator) -> tuple[Regression, Measured]:
    """Return what a linear regression says about the population."""
    n = POPULATION + TRAINING
    X = rng.uniform(-1, 1, (n, 4))
    y = X @ [1.0, -0.5, 0.3, 0.0] + 0.4 * rng.standard_t(5, n)
    model = BayesianLinearRegression(np.inf, bounds_X=(-1, 1), bounds_y=(-4, 4))
    model.fit(X[:TRAINING], y[:TRAINING])
    target = model.schema_.target
    predicted = target.clip(model.predict(X[TRAINING:]))
    return Regression(-4.0, 4.0, 2.0), Measured(target.clip(y[TRAINING:]), predicted)


def classified_unseen(rng: np.random.Generator) -> tuple[Classification, Labelled]:
    """Return what a naive Bayes model says about the other population."""
    n = POPULATION + TRAINING
    X = rng.lognormal(0.0, 0.7, (n, 5))
    odds = -3.9 + X[:, 0] + 0.5 * X[:, 1] - 0.3 * X[:, 0] * (X[:, 2] > 1)
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    model = BayesianNaiveBayes(np.inf, classes=[0, 1], bounds=(0, 8), n_bins=8, temperature=1.0)
    model.fit(X[:TRAINING], y[:TRAINING])
    proba = model.predict_proba(X[TRAINING:])
    return Classification(2, 0.01), Labelled(y[TRAINING:], proba.argmax(axis=1), proba)


def measured_unseen(rng: np.random.Generator) -> tuple[Regression, Measured]:
    """Return what a linear regression says about the other population."""
    n = POPULATION + TRAINING
    X = rng.uniform(0, 1, (n, 3))
    errors = (0.5 + X[:, 0]) * (rng.exponential(1.0, n) - 1)
    y = 3 + X @ [2.0, -1.0, 0.5] + X[:, 0] * X[:, 1] + errors
    model = BayesianLinearRegression(np.inf, bounds_X=(0, 1), bounds_y=(0, 10))
    model.fit(X[:TRAINING], y[:TRAINING])
    target = model.schema_.target
    predicted = target.clip(model.predict(X[TRAINING:]))
    return Regression(0.0, 10.0, 5.0), Measured(target.clip(y[TRAINING:]), predicted)


def evaluations(
    task: Any, records: Any, asked: tuple[str, ...], budget: Budget, n: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Yield the scores of test sets of n records from the population."""
    seed = [n, int(1000 * budget.epsilon), *"".join(asked).encode()]
    rng, planned = np.random.default_rng(seed), plan(task, asked, budget, n)
    for _ in range(repeats):
        rows = rng.integers(0, len(records.truth), n)
        released = planned.release(
            type(records)(*(part[rows] for part in records[:-1])), Noise.of()
        )
        yield {name: released.score(name, 0.95) for name in asked}


def figures(truth: Any, found: list[Any]) -> tuple[float, float, float]:
    """Return coverage, mean width and root mean squared error."""
    low, high, value = (
        np.array([getattr(score, name) for score in found]) for name in ("low", "high", "value")
    )
    covered = ((low <= truth) & (truth <= high)).mean()
    finite = np.isfinite(high - low)
    width = (high - low)[finite].mean() if finite.any() else np.inf
    return float(covered), float(width), float(np.sqrt(np.mean((value - truth) ** 2)))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--unseen", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    made = (classified_unseen, measured_unseen) if options.unseen else (classified, measured)
    print("| metric | n | ε | unit | coverage | width | error |\n|---|---|---|---|---|---|---|")
    for (task, records), metrics in (
        (made[0](rng), CLASSIFIER),
        (made[1](rng), REGRESSION),
    ):
        exact_plan = plan(task, metrics, Budget(float("inf")), len(records.truth))
        released = exact_plan.release(records, Noise.of())
        truth = {name: released.score(name, 0.95).value for name in metrics}
        groups = [metrics] if options.together else [(name,) for name in metrics]
        for n in (500, 20_000):
            for epsilon, unit in ((0.1, PrivacyUnit()), (1, PrivacyUnit()), (1, ADDED)):
                budget = Budget(Fraction(exact(epsilon)), unit=unit)
                for asked in groups:
                    found = list(evaluations(task, records, asked, budget, n, options.repeats))
                    for name in asked:
                        covered, width, error = figures(truth[name], [f[name] for f in found])
                        print(
                            f"| {name} | {n:,} | {epsilon} | {unit.neighbours} | {covered:.3f} | "
                            f"{width:.3g} | {error:.2g} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
