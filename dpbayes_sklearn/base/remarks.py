"""Remarks to the user: hints in the log, weak guarantees, scores that are not private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from dpbayes_sklearn._presenting import remark
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.dask import gathered
from dpbayes_sklearn.exceptions import (
    LedgerError,
    PrivacyLeakWarning,
    called_by,
    calling_self,
    warn_caller,
)
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import at_least

_TELLING = 0.2
"""No hint if the noise exceeds this share of an average class: it could hide a class."""

SEED_GIVERS = {
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._weight_boosting",
    "sklearn.linear_model._ransac",
}
"""Modules of scikit-learn that set ``random_state`` of what they fit."""


def hint_at_absent_classes(
    classes: Sequence[object], counts: FloatArray, n: int, bound: float
) -> None:
    """Log which classes have a released count that is zero within a bound of its noise."""
    absent = [c for c, count in zip(classes, counts, strict=True) if count <= bound]
    if absent and bound < _TELLING * n / len(classes):
        remark(
            "Of %d records, few or none have class %s (up to noise of %.3g records). If that is "
            "wrong, the labels are not encoded as declared: ensembles of scikit-learn encode them "
            "as 0, ..., k - 1, so that their members need classes=range(k).",
            n,
            " or ".join(map(repr, absent)),
            bound,
        )


def advise_if_noisy(ratio: float) -> None:
    """Log that the noise of a cell exceeds its count, and what helps."""
    if ratio > 1.0:
        remark(
            "The noise is %.2g times as large as the average count of a cell, so the model may be "
            "far less accurate than without privacy. Fewer columns, fewer bins or values, more "
            "records or a larger epsilon help.",
            ratio,
        )


def advise_naive_bayes(ratio: float, parameters: int, enough: int) -> None:
    """Log that a logistic regression has too many parameters.

    ``ratio`` is the number of records times epsilon, per parameter. From ``enough`` on, logistic
    regression is usually the more accurate model.
    """
    remark(
        "n * epsilon / p is %.3g for the p = %d parameters of this logistic regression: below "
        "about %d, BayesianNaiveBayes is usually more accurate at the same epsilon.",
        ratio,
        parameters,
        enough,
    )


def advise_of_steps(model: Any) -> None:
    """Name the steps before a model that learned from the records without a guarantee."""
    pipeline = calling_self(lambda own: isinstance(own, Pipeline) and own._final_estimator is model)
    if pipeline is None:
        return
    if learned := [name for name, step in pipeline.steps[:-1] if _learns_unguarded(step)]:
        remark(
            "The guarantee is that of the last step. Steps before it were fitted to the records "
            "without one: %s. Do not publish what they learned, and use steps that learn nothing "
            "or those of dpbayes_sklearn.preprocessing, if predictions are published.",
            ", ".join(map(repr, learned)),
        )


def _learns_unguarded(step: Any) -> bool:
    """Tell whether a step, or one within it, is fitted to records and has no guarantee."""
    if isinstance(step, str) or step is None or hasattr(step, "guarantee_"):
        return False
    for parts in ("steps", "transformers_", "transformer_list"):
        if hasattr(step, parts):
            return any(_learns_unguarded(part[1]) for part in getattr(step, parts))
    return bool(get_tags(step).requires_fit)


def warn_of_delta(cost: Budget, n: int, charged: bool = False) -> None:
    """Warn of a delta so large that publishing one random record of n would satisfy it.

    A number of records that was released for this was charged: then it is a remark, because a
    warning may be made an error.
    """
    if not (cost.delta and cost.delta * n >= 1):
        return
    text = (
        f"delta={at_least(cost.delta)} is not below 1/n for n={n} records: such a guarantee would "
        "permit publishing a whole record. Set delta far below 1/n."
    )
    if charged:
        remark(text)
    else:
        warn_caller(text, PrivacyLeakWarning)


def warn_of_seeds(ledger: BudgetAccountant | None) -> None:
    """Warn where a seed meets a release that is most likely meant for publication."""
    if called_by(SEED_GIVERS):
        warn_caller(
            "An ensemble has set random_state to a seed of at most 32 bits. By trying all of them "
            "the noise can be removed: do not publish this ensemble. Voting and stacking do not "
            "set seeds.",
            PrivacyLeakWarning,
        )
    elif ledger is not None and not ledger.temporary:
        warn_caller(
            "random_state is set, and the ledger is on disk: fits with the same random_state, such "
            "as folds, have the same noise, which cancels between them. Use random_state=None for "
            "releases that are published.",
            PrivacyLeakWarning,
        )


_WARNED: set[str] = set()  # Names of ledgers whose users were already warned about scoring.


def warn_about_scores(ledger: BudgetAccountant | None) -> None:
    """Warn, once for each ledger and process, that a score is neither private nor charged."""
    with suppress(LedgerError):
        if ledger is not None and ledger.path not in _WARNED:
            _WARNED.add(ledger.path)
            warn_caller(
                "Scores are computed from the data without noise and are not charged to an "
                "accountant: publish only scores on public data. For scores on private data use "
                "metrics.private_score, to select parameters PrivateSearchCV.",
                PrivacyLeakWarning,
            )


class ScoreMixin:
    """The score of a classifier or a regression; stands before scikit-learn's own mixin."""

    _metric: Any
    _ledger: Callable[[], BudgetAccountant | None]
    predict: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the R² of a regression.

        It is computed without noise and not covered by ``guarantee_``.
        """
        warn_about_scores(self._ledger())
        predicted = gathered(self.predict(X))
        return float(self._metric(gathered(y), predicted, sample_weight=sample_weight))
