r"""The geometric mechanism: discrete Laplace noise that keeps the public total.

Guarantee
---------
*Precondition*: counts of n records in k categories; n and k are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: neighbours differ by :math:`e_i - e_j`, of L1 norm 2, so by the
triangle inequality :math:`P(y \mid x) / P(y \mid x') \le e^{\varepsilon \|x - x'\|_1 / 2} =
e^\varepsilon`. What follows is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-\varepsilon \|z\|_1 / 2}` over integer vectors of sum zero: discrete
Laplace noise of scale :math:`2/\varepsilon` in every count, given that it cancels. For two
categories this is the two-sided geometric law of scale :math:`1/\varepsilon`, which is optimal for
every prior and every monotone loss (Ghosh, Roughgarden and Sundararajan 2009). The noisy counts
keep the public sum, so for more categories there is less noise than with independent noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.categories.candidates import ReleaseLaw, noise_law
from dpbayes_sklearn.mechanisms._noisy_categories import AddsNoiseToCategories
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Geometric"]


class Geometric(AddsNoiseToCategories):
    """Add noise that sums to zero to the counts of all categories.

    Any number of records and categories is possible.

    Examples
    --------
    >>> Geometric().law(20, (1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """

    category_noise: ClassVar[str] = "zero_sum"

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> ReleaseLaw:
        """Return the law of the release; of the counts cut to [0, n] if there are two."""
        cells = len(prior) if len(prior) > 2 else 1
        return noise_law(n, prior, cells, min(2, cells) / Fraction(budget.epsilon))
