r"""Domains of the columns of a data frame: ranges or bins of numbers, categories of texts.

Guarantee
---------
*Precondition*: that of both mechanisms that it is made of. *Claim*: with m columns of numbers and t
columns of texts, quantiles that are :math:`\varepsilon m/(m+t)`-DP and categories that are
:math:`(\varepsilon t/(m+t), \delta)`-DP are :math:`(\varepsilon, \delta)`-DP together. *Proof*:
composition.

Noise law
---------
See :mod:`dpbayes_sklearn.mechanisms.quantiles` and
:mod:`dpbayes_sklearn.mechanisms.stable_histogram`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpbayes_sklearn.columns.plans import Answers
from dpbayes_sklearn.columns.texts import Contents, Found, Questions
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.mechanisms.quantiles import Quantiles
from dpbayes_sklearn.mechanisms.stable_histogram import StableHistogram
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Domains"]


class Domains(Mechanism):
    """Release quantiles of columns of numbers, and the common texts of others.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import Domains
    >>> Domains().supports("contents"), Domains().supports("quantiles")
    (True, False)
    """

    @property
    def spends_delta(self) -> bool:
        """True: texts need it."""
        return True

    def cost(self, statistics: Any, prior: Any, budget: Budget) -> Budget:
        """Return the budget, without delta if there are no texts."""
        return budget if statistics.texts.n_columns else budget._replace(delta=Fraction(0))

    def _preflight_contents(self, statistics: Contents, prior: Questions, budget: Budget) -> None:
        if not statistics.texts.n_columns:
            return
        if not budget.delta:
            raise ValueError("Columns of text need a delta above zero, or declared categories.")
        _, rest = _shares(statistics, budget)
        StableHistogram()._preflight_texts(statistics.texts, prior.texts, rest)

    def _release_contents(
        self, statistics: Contents, prior: Questions, budget: Budget, noise: Noise
    ) -> tuple[Answers, Found]:
        numbers, texts = _shares(statistics, budget)
        answers: Answers = ()
        found: Found = ()
        if statistics.numbers.n_columns:
            answers = Quantiles()._release_quantiles(
                statistics.numbers, prior.numbers, numbers, noise
            )
        if statistics.texts.n_columns:
            found = StableHistogram()._release_texts(statistics.texts, prior.texts, texts, noise)
        return answers, found


def _shares(statistics: Contents, budget: Budget) -> tuple[Budget, Budget]:
    """Return the budgets of numbers and of texts: every column has as much as any other."""
    numbers, texts = (share * Fraction(budget.epsilon) for share in statistics.shares)
    return budget._replace(epsilon=numbers, delta=Fraction(0)), budget._replace(epsilon=texts)
