r"""Discrete Laplace noise in the Fourier domain: tables that agree with each other.

Guarantee
---------
*Precondition*: replacing a record changes the character sums by at most :math:`\Delta_F` in L1
(4d for Boolean naive Bayes) and any of them by at most :math:`\Delta_\infty` (2). *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: as for ``laplace``, in the norm of the noise; the sum of the
constant character is n, which neighbours share, so it needs no noise (where records are added or
removed, n was released before). The increment is a function
of public quantities only, and so is the choice of the noise; the tables are post-processing.

Noise law
---------
Independent discrete Laplace noise of scale :math:`\Delta_F/\varepsilon` on every integer sum, or
``noise="joint"``: :math:`P(z) \propto e^{-\varepsilon\max_i|z_i|/\Delta_\infty}` on a public
lattice 1/g, g a power of two. A sum that several families hold is released once, so that all tables
agree on shared marginals.

Regression
----------
On [-1, 1] the characters are Chebyshev polynomials, x and :math:`2x^2 - 1`. All their sums, one for
each entry of the moments, are released at once; raising that of the constant raises every square,
so that the moments are positive semi-definite with probability ``stealth`` and need no repair.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Fourier"]


class Fourier(Mechanism):
    """Add discrete Laplace noise to the Fourier coefficients of the counts.

    Parameters
    ----------
    increment : {"scaled_by_residuals", "paper"}, default="scaled_by_residuals"
        How much the constant coefficient is raised so that no cell of a table is negative:
        the ``stealth`` quantile of what the public noise law needs, or the rule
        4 t N^2 / epsilon of Zhang, Rubinstein and Dimitrakakis (2016), N the number of
        coefficients. Cells that are negative all the same are set to zero.
    stealth : float in [0, 1), default=0.9
        Probability with which all cells come out non-negative.
    t : float, default=2.3
        The paper's parameter, for ``increment="paper"``.
    noise : {"auto", "joint", "independent"}, default="auto"
        For counts: independent Laplace noise on every coefficient, or joint noise whose density
        decays with its largest entry (the K-norm mechanism of the sup norm). The latter has up to
        six times less variance if one record changes most coefficients, as with Boolean features.
        "auto" takes what has less variance, by public quantities only. Regression always does.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    >>> model = BayesianNaiveBayes(mechanism=Fourier(noise="joint"), **declared).fit(X, y)
    >>> model.posterior_.released.laws
    (SupNorm(scale=Fraction(2, 1), sides=(1, 1, 1, 1, 1), grid=4),)
    """

    walks_splits: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "increment": [StrOptions({"scaled_by_residuals", "paper"})],
        "stealth": [Range(Real, 0, 1, closed="left")],
        "t": [Range(Real, 0, None, closed="left")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(
        self,
        *,
        increment: str = "scaled_by_residuals",
        stealth: float = 0.9,
        t: float = 2.3,
        noise: str = "auto",
    ) -> None:
        self.increment = increment
        self.stealth = stealth
        self.t = t
        self.noise = noise
