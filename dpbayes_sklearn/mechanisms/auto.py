"""The mechanism with the least noise that epsilon and delta allow.

Guarantee
---------
The choice depends on public quantities only: the structure of the counts or the columns of a
regression, the number of records and the budget. So the guarantee is that of the mechanism which
is chosen; ``guarantee_.mechanism`` names it, and only "gaussian" spends delta.

Noise law
---------
That of ``laplace`` (for one variable ``geometric``) or of ``gaussian``, whichever has less variance
on average over the released counts or products. Without a delta only the former is possible.
"""

from __future__ import annotations

from typing import ClassVar

from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Auto"]


class Auto(Mechanism):
    """Add the noise with the least variance that epsilon and delta allow.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0] * 80, [1] * 80] * 50, [0, 1] * 50
    >>> model = BayesianNaiveBayes(mechanism="auto", bounds=(0, 1), classes=[0, 1], n_bins=2)
    >>> [model.set_params(delta=d).fit(X, y).guarantee_.mechanism for d in (0, 1e-6)]
    ['laplace', 'gaussian']
    """

    knows_rho: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True: what is chosen may."""
        return True
