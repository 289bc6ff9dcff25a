"""Running a task: curves by cross-validation, and one fitted model of every mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from dpbayes_sklearn.demonstration.figures import Picture, draw
from dpbayes_sklearn.demonstration.tasks import Task
from dpbayes_sklearn.display import (
    PosteriorDisplay,
    PrivacyUtilityCurve,
    PrivacyUtilityDisplay,
    privacy_utility_curve,
)
from dpbayes_sklearn.privacy import BudgetAccountant

__all__ = ["Result", "run"]


@dataclass(frozen=True)
class Result:
    """Scores, models, ledger and figures of a task."""

    task: Task
    epsilon: float  # of the fitted models
    curve: PrivacyUtilityCurve
    models: dict[str, Any]
    accountant: BudgetAccountant
    pictures: list[Picture]

    @property
    def epsilons(self) -> list[float]:
        """The budgets that were tried."""
        return sorted({e for scores in self.curve.scores.values() for e in scores})

    def mean(self, mechanism: str, epsilon: float) -> float:
        """Return the mean score."""
        return float(np.mean(self.curve.scores[mechanism][epsilon]))


def run(task: Task, epsilons: Sequence[float], verbose: bool = True) -> Result:
    """Cross-validate a task, fit every mechanism on one ledger and draw what was released."""
    curve = privacy_utility_curve(
        task.estimator,
        task.X,
        task.y,
        epsilons=epsilons,
        mechanisms=task.mechanisms,
        cv=task.cv,
        verbose=verbose,
    )
    epsilon = sorted(epsilons)[len(epsilons) // 2]
    accountant = BudgetAccountant(epsilon=epsilon * len(curve.scores))
    models = {
        name: clone(task.estimator)
        .set_params(mechanism=mechanism, epsilon=epsilon, accountant=accountant)
        .fit(task.X, task.y)
        for name, mechanism in zip(curve.scores, task.mechanisms, strict=True)
    }
    return Result(task, epsilon, curve, models, accountant, _pictures(task, curve, models))


def _pictures(task: Task, curve: PrivacyUtilityCurve, models: dict[str, Any]) -> list[Picture]:
    scores = partial(PrivacyUtilityDisplay(*curve).plot, ylabel=task.score)
    posterior = partial(_posterior, next(iter(models.values())), task.column)
    shown = "the most informative features" if task.column is None else task.column
    what = shown if task.score == "accuracy" else "the coefficients"
    drawn = [
        draw(task.name, f"{task.score} against epsilon", scores, (6.4, 4.0)),
        draw(f"{task.name}_posterior", f"released posterior of {what}", posterior, (6.4, 4.0)),
    ]
    return [picture for picture in drawn if picture is not None]


def _posterior(model: Any, column: str | None, ax: Any) -> PosteriorDisplay:
    return PosteriorDisplay.from_estimator(model, column=column, ax=ax)
