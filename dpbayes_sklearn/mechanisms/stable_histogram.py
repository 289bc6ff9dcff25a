r"""Publish which texts are common, and nothing of those that are rare.

Guarantee
---------
*Precondition*: a replaced record takes one from the count of a text in each of d columns and adds
one to another. *Claim*: publishing the texts whose count plus noise is above the reach of the
noise is :math:`(\varepsilon, \delta)`-DP. *Proof*: the noises are independent, so only the 2d
counts that change matter. Each loses at most 1/b but for an event of probability
:math:`P(Z = k)`; they compose to :math:`(2d/b,\; 2d\,P(Z = k))`, and b and k are chosen so that
this is at most :math:`(\varepsilon, \delta)`. A text that nobody has is never published, so it
does not matter that the list of all texts is not known.

Noise law
---------
:math:`P(Z = z) \propto e^{-|z|/b}` for integers :math:`|z| \le k`: see
:mod:`dpbayes_sklearn.noise.truncated_laplace`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.columns.texts import CommonTexts, Found, TextCounts
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["StableHistogram", "common_texts"]


class StableHistogram(Mechanism):
    """Release the texts that many records share; needs a delta.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import StableHistogram
    >>> StableHistogram().supports("texts"), StableHistogram().supports("counts")
    (True, False)
    """

    needs_delta: ClassVar[bool] = True

    def _preflight_texts(self, statistics: TextCounts, prior: CommonTexts, budget: Budget) -> None:
        statistics.law(budget.unit, Fraction(budget.epsilon), Fraction(budget.delta))

    def _release_texts(
        self, statistics: TextCounts, prior: CommonTexts, budget: Budget, noise: Noise
    ) -> Found:
        law = statistics.law(budget.unit, Fraction(budget.epsilon), Fraction(budget.delta))
        return common_texts(statistics, law, noise)


def common_texts(statistics: TextCounts, law: TruncatedLaplace, noise: Noise) -> Found:
    """Draw which texts are published."""
    return noise.common(statistics.columns, law)
