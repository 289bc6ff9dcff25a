r"""Discrete Gaussian noise: less than Laplace noise where a record changes much, for a delta.

Guarantee
---------
*Precondition*: counts that neighbours change by the integer vectors v which their own type derives,
and noise of variance :math:`\sigma^2/w_i` in cell i. *Claim*: :math:`(\varepsilon, \delta)`-DP, and
:math:`\rho`-zCDP with :math:`\rho = \sum_i w_i v_i^2/2\sigma^2`. *Proof*: :math:`\sigma^2` is the
smallest for which the exact privacy loss of these shifts is within :math:`(\varepsilon, \delta)`
(:mod:`dpbayes_sklearn.privacy.gaussian`). A learned temperature is a pure release of
:math:`\varepsilon_t` that looks at the tables. It is post-processing of them and of a randomised
response, so both together have the exact loss of Gaussian noise and an independent loss of
:math:`\pm\varepsilon_t`, within :math:`(\varepsilon, \delta)`; and
:math:`\rho + \tfrac12\varepsilon_t^2`. What follows is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-wz^2/2\sigma^2}` on the integers, independent in every cell. All cells
of a table have one weight w, larger in larger tables, by which the sum of all variances is least
(:mod:`dpbayes_sklearn.counts.tables`). For naive Bayes with d features and equal weights
the L2 sensitivity is :math:`\sqrt{2(d+1)}`, so the noise grows with the square root of d.
Differences within a row could not have less: two records of one class change them by
:math:`\sqrt{2d}` already.

Regression
----------
The steps of :mod:`~dpbayes_sklearn.mechanisms.laplace` share :math:`\rho` exactly: each adds
Gaussian noise to sums in fine steps, of variance :math:`\Delta_2^2/2\rho_i`, and :math:`\rho` is
the largest for which all of them together are :math:`(\varepsilon, \delta)`-DP, by exact
composition (:mod:`dpbayes_sklearn.privacy.gaussian`).
"""

from __future__ import annotations

from typing import ClassVar

from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Gaussian"]


class Gaussian(Mechanism):
    """Add discrete Gaussian noise to every count or sum; needs a delta.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2, "temperature": 1}
    >>> model = BayesianNaiveBayes(1.0, delta=1e-6, mechanism="gaussian", **declared).fit(X, y)
    >>> model.guarantee_.epsilon, model.guarantee_.delta, round(model.guarantee_.rho, 4)
    (1.0, 1e-06, 0.028)
    >>> round(float(model.posterior_.released.laws[0].parameters[0]) ** 0.5, 2)
    9.76
    """

    needs_delta: ClassVar[bool] = True
    knows_rho: ClassVar[bool] = True
