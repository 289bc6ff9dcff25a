"""The steps of an estimator that is searched over: which are taken, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from dpbayes_sklearn._sklearn_compat import InvalidParameterError
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.privacy import BudgetAccountant, exact

__all__ = [
    "fresh",
    "named",
    "private_steps",
    "refuse_others",
    "shared_ledger",
    "step_epsilons",
    "steps_of",
    "with_params",
]

PASSES = ("passthrough", None)


def private_steps(pipeline: Pipeline) -> list[tuple[str, PrivateEstimator]]:
    """Return the steps that are fitted, by name."""
    return [(name, step) for name, step in pipeline.steps if step not in PASSES]


def steps_of(estimator: Any) -> list[PrivateEstimator]:
    """Return the fitted steps of a pipeline; any other estimator is the only step."""
    if isinstance(estimator, Pipeline):
        return [step for _, step in private_steps(estimator)]
    return [estimator]


def with_params(estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return a clone of the estimator with the parameters of every candidate."""
    return [clone(estimator).set_params(**clone(params, safe=False)) for params in candidates]


def refuse_others(estimator: Any) -> None:
    """Refuse what is not private, or predicts nothing."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            if step not in PASSES and not isinstance(step, PrivateEstimator):
                raise InvalidParameterError(
                    "The 'estimator' parameter of PrivateSearchCV may be a Pipeline of estimators "
                    f"of this library only. Its step {name!r} is a {type(step).__name__} instead."
                )
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    private = isinstance(last, SupervisedEstimator)
    if not private or not (is_classifier(last) or is_regressor(last)):
        raise InvalidParameterError(
            "The 'estimator' parameter of PrivateSearchCV must be a classifier or a regression of "
            "this library, or a Pipeline that ends with one. "
            f"Got {type(last).__name__} instead."
        )


def step_epsilons(pipeline: Pipeline, total: Any) -> dict[str, Any]:
    """Return the epsilon of every step: a total, divided in proportion to their own epsilons.

    There is no proportion to an infinite epsilon, so it is refused unless the total is infinite.
    """
    whole = exact(total)
    own = {name: exact(step.epsilon) for name, step in private_steps(pipeline)}
    if isinstance(whole, float):
        return dict.fromkeys(own, whole)
    for name, part in own.items():
        if isinstance(part, float):
            raise ValueError(
                f"The step {name!r} of a pipeline has an infinite epsilon, the whole a finite one, "
                "which its steps share in proportion to their own: give it a finite epsilon."
            )
    parts = {name: Fraction(part) for name, part in own.items()}
    return {name: whole * part / sum(parts.values()) for name, part in parts.items()}


def shared_ledger(estimators: Iterable[Any]) -> BudgetAccountant | None:
    """Return the only accountant of all steps of all estimators, None if there is none."""
    held = (getattr(step, "accountant", None) for one in estimators for step in steps_of(one))
    ledgers = {ledger for ledger in held if ledger is not None}
    if len(ledgers) > 1:
        raise ValueError(
            "The steps or candidates of a search have different accountants, but a search is "
            "charged once: set accountant of the search."
        )
    return ledgers.pop() if ledgers else None


def fresh(pipeline: Pipeline) -> Pipeline:
    """Return an unfitted pipeline of the same steps and of nothing else.

    A cache (``memory``) would repeat the noise of other fits, and keep on disk what they released.
    ``verbose`` and callbacks would tell of every fit.
    """
    return Pipeline(
        [(name, step if step in PASSES else clone(step)) for name, step in pipeline.steps]
    )


def named(steps: Sequence[tuple[str, Any]]) -> str:
    """Return the names of the steps, for the ledger.

    >>> named([("a", "passthrough"), ("b", 1)])
    'int'
    """
    return " and ".join(type(step).__name__ for _, step in steps if step not in PASSES)
