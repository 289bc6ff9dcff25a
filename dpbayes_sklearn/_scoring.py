"""Scores are computed without noise, which users of a ledger are warned about once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from dpbayes_sklearn.data.dask import gathered
from dpbayes_sklearn.exceptions import LedgerError, PrivacyLeakWarning, warn_caller
from dpbayes_sklearn.privacy import BudgetAccountant

__all__ = ["ScoreMixin", "warn_about_scores"]

_WARNED: set[str] = set()  # ledgers already warned about scoring


def warn_about_scores(ledger: BudgetAccountant | None) -> None:
    """Warn, once for each ledger and process, that a score is neither private nor charged."""
    with suppress(LedgerError):
        if ledger is not None and ledger.path not in _WARNED:
            _WARNED.add(ledger.path)
            warn_caller(
                "Scores are computed from the data without noise and are not charged to an "
                "accountant: publish only scores on public data. To select parameters on "
                "private data, use PrivateSearchCV.",
                PrivacyLeakWarning,
            )


class Predictor(Protocol):
    """An estimator whose predictions scikit-learn can compare with the truth."""

    @property
    def _metric(self) -> Callable[..., float]: ...

    def _ledger(self) -> BudgetAccountant | None: ...

    def predict(self, X: Any) -> Any:
        """Return a prediction for every row."""


class ScoreMixin:
    """The score of a classifier or a regression; stands before scikit-learn's own mixin."""

    def score(self: Predictor, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the R² of a regression.

        It is computed without noise and not covered by ``guarantee_``.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The true classes or targets.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        warn_about_scores(self._ledger())
        predicted = gathered(self.predict(X))
        return float(self._metric(gathered(y), predicted, sample_weight=sample_weight))
