"""How the steps of a regression share the budget: by public facts alone."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Shares"]

_TARGET_RECORDS = 150  # the target's location gets the budget that so many records are worth
_MEAN_RECORDS = 80  # likewise for its mean in its window
_COLUMN_RECORDS = 60  # likewise for the location of a number
_LEAST_RECORDS = 350  # for each number; with fewer, locating them costs more than it gives
_RESIDUAL_RECORDS = 50  # likewise for the residuals


class Shares(NamedTuple):
    """Exact parts of the budget, in the order in which they are spent; they add up to it."""

    target: Fraction
    columns: Fraction
    mean: Fraction
    model: Fraction
    residuals: Fraction

    @property
    def epsilon(self) -> Fraction:
        """Return all parts together."""
        return sum(self, Fraction(0))

    @classmethod
    def of(
        cls, budget: Budget, n: int, numbers: int, *, mean: bool = True, residuals: bool
    ) -> Shares:
        """Share the budget: to locate target and numbers, for the target's mean, model, residuals.

        All parts but the model's shrink with n epsilon, since a few hundred records suffice to
        locate a column and to estimate the error of the model. Numbers are located if there are
        1,000 records, times epsilon, for each.

        >>> parts = Shares.of(Budget(Fraction(1)), 1000, 1, residuals=True)
        >>> [str(part) for part in parts]
        ['3/20', '3/50', '2/25', '61/100', '1/10']
        """
        epsilon = Fraction(budget.epsilon)
        records = n * epsilon
        first = _within(_TARGET_RECORDS / records, 25, 3)
        own = _within(_MEAN_RECORDS / records, 100, 12) * mean
        pays = 0 < _LEAST_RECORDS * numbers <= records
        second = _within(_COLUMN_RECORDS * numbers / records, 20, 4) * pays
        last = _within(_RESIDUAL_RECORDS / records, 33, 20) * residuals
        parts = (first, second, own, 1 - first - second - own - last, last)
        return cls(*(part * epsilon for part in parts))


def _within(share: Fraction, least: int, most: int) -> Fraction:
    """Return the share, at least 1/least and at most 1/most."""
    return min(max(share, Fraction(1, least)), Fraction(1, most))
