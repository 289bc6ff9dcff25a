r"""Mean and variance of the probabilities of categories, and the Dirichlet that has them.

Given the exact counts x, a probability has the law Beta(:math:`a_i + x_i`, ...). The counts are not
known: what is known is their law given what was released. With :math:`p_i = (a_i + x_i)/(A + n)`,

.. math:: m_i = E[p_i], \qquad
          v_i = E\left[\frac{p_i(1 - p_i)}{A + n + 1}\right] + \mathrm{Var}[p_i],

and Beta(:math:`\kappa_i m_i, \kappa_i(1 - m_i)`) with :math:`\kappa_i = m_i(1 - m_i)/v_i - 1` has
this mean and variance. A Dirichlet has a single precision for all categories: the one for which the
sum of the variances is right. For two categories it is that of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["ShareMoments"]


@dataclass(frozen=True)
class ShareMoments:
    """Mean and variance of every probability, given what was released.

    Attributes
    ----------
    mean : array of shape (k,)
        Positive numbers that sum to one.
    variance : array of shape (k,)
        Not below what exact counts would leave.
    """

    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, variance: FloatArray, total: float) -> ShareMoments:
        """Correct rounding: means sum to one, and a variance is one that ``total`` allows.

        Parameters
        ----------
        mean, variance : array of shape (k,)
        total : float
            Records and pseudo-counts together.
        """
        mean = mean / mean.sum()
        return cls(mean, np.maximum(variance, mean * _of_others(mean) / (total + 1.0)))

    @classmethod
    def given_counts(
        cls, laws: FloatArray, counts: FloatArray | IntArray, n: float, alpha: FloatArray
    ) -> ShareMoments:
        """Return the moments if the sum n is public.

        Parameters
        ----------
        laws : array of shape (k, m) or (1, m)
            Probability of every count of each category.
        counts : array of shape (k, m)
        n : float
            Sum of the counts.
        alpha : array of shape (k,)
            Prior pseudo-counts.

        Examples
        --------
        >>> laws, counts = np.array([[0.5, 0.5]]), np.array([[0, 1], [1, 0]])
        >>> ShareMoments.given_counts(laws, counts, 1, np.ones(2)).concentration().tolist()
        [1.0, 1.0]
        """
        total = float(alpha.sum()) + n
        expected = (laws * counts).sum(axis=1)
        spread = (laws * (counts - expected[:, None]) ** 2).sum(axis=1) / total**2
        mean = (alpha + expected) / total
        between = spread * total / (total + 1.0)
        return cls.of(mean, mean * _of_others(mean) / (total + 1.0) + between, total)

    def precisions(self, least: float = 0.0) -> FloatArray:
        """Return the precision of the Beta law of every category on its own."""
        found = self.mean * _of_others(self.mean) / self.variance - 1.0
        return np.maximum(found, least)

    def concentration(self, least: float = 0.0) -> FloatArray:
        """Return the parameters of the Dirichlet, whose precision is not below ``least``."""
        possible = float((self.mean * _of_others(self.mean)).sum())
        return self.mean * max(possible / float(self.variance.sum()) - 1.0, least)


def _of_others(mean: FloatArray) -> FloatArray:
    """Return the sum of all other means; a difference from one would lose small ones."""
    before, after = np.cumsum(mean[:-1]), np.cumsum(mean[:0:-1])[::-1]
    return np.asarray(np.append(0.0, before) + np.append(after, 0.0))
