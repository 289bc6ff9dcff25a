"""Scores at many privacy budgets, by cross-validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpbayes_sklearn._progress import progress
from dpbayes_sklearn.exceptions import PrivacyLeakWarning
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism

__all__ = ["PrivacyUtilityCurve", "Scores", "privacy_utility_curve"]

Scores = Mapping[str, Mapping[float, Sequence[float]]]
"""For every mechanism and epsilon the scores of the folds."""

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


class PrivacyUtilityCurve(NamedTuple):
    """Scores of the folds for every mechanism and epsilon, and the mean one without privacy."""

    scores: Scores
    baseline: float


def privacy_utility_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    epsilons: Sequence[float] = EPSILONS,
    mechanisms: Sequence[str | Mechanism] | None = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> PrivacyUtilityCurve:
    """Cross-validate an estimator at every epsilon and mechanism.

    The scores are computed without noise: use public or synthetic data, or do not publish the
    result. An accountant of the estimator is charged for every fit.

    Parameters
    ----------
    estimator : estimator of this library, or a pipeline that ends in one
    X, y : data
    epsilons : sequence of float, default=(0.1, 0.3, 1, 3, 10)
    mechanisms : sequence of str or Mechanism, optional
        By default all that the estimator has but "auto"; those that need a delta only with one.
    cv, scoring, n_jobs
        As in :func:`sklearn.model_selection.cross_val_score`.
    verbose : bool, default=False
        Show a progress bar, if tqdm is installed.

    Returns
    -------
    PrivacyUtilityCurve
        ``(scores, baseline)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianNaiveBayes(bounds=(0, 8), n_bins=8, classes=[0, 1, 2])
    >>> curve = privacy_utility_curve(model, X, y, epsilons=[1, 100], mechanisms=["laplace"])
    >>> {epsilon: len(folds) for epsilon, folds in curve.scores["laplace"].items()}
    {1: 5, 100: 5}
    >>> curve.baseline > 0.9
    True
    """
    prefix = _where(estimator)

    def scores(**parameters: Any) -> list[float]:
        named = {prefix + name: value for name, value in parameters.items()}
        candidate = clone(estimator).set_params(**named)
        folds = cross_val_score(candidate, X, y, cv=cv, scoring=scoring, n_jobs=n_jobs)
        return [float(score) for score in folds]

    chosen = {_label(m): m for m in mechanisms or _all_mechanisms(estimator, prefix)}
    result: dict[str, dict[float, list[float]]] = {label: {} for label in chosen}
    baseline = float(np.mean(scores(epsilon=math.inf)))
    with warnings.catch_warnings():  # every leak was warned of by the fits above
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        steps = [(label, epsilon) for label in chosen for epsilon in epsilons]
        for label, epsilon in progress(steps, "cross-validation", verbose=verbose):
            result[label][epsilon] = scores(mechanism=chosen[label], epsilon=epsilon)
    return PrivacyUtilityCurve(result, baseline)


def _where(estimator: Any) -> str:
    """Return what stands before ``epsilon`` in the names of the parameters."""
    names: list[str] = [*estimator.get_params()]
    found = [
        prefix
        for prefix in (name.removesuffix("epsilon") for name in names if name.endswith("epsilon"))
        if prefix + "mechanism" in names
    ]
    if not found:
        raise ValueError(
            f"{type(estimator).__name__} has no parameters epsilon and mechanism. Give an "
            "estimator of dpbayes_sklearn, or a pipeline that ends in one."
        )
    return min(found, key=len)


def _all_mechanisms(estimator: Any, prefix: str) -> list[str]:
    """Return the names of all mechanisms but "auto"; those that need a delta if there is one."""
    model = estimator.get_params()[prefix.removesuffix("__")] if prefix else estimator
    names, _ = type(model)._parameter_constraints["mechanism"]
    pure = not model.get_params().get("delta", 0)
    left_out = {n for n in names.options if pure and resolve_mechanism(n).needs_delta} | {"auto"}
    return sorted(names.options - left_out, key=lambda name: (name != "laplace", name))


def _label(mechanism: str | Mechanism) -> str:
    return mechanism if isinstance(mechanism, str) else repr(mechanism)
