r"""Discrete Laplace noise on all counts but the last, scaled to their sensitivity.

Guarantee
---------
*Precondition*: counts of n records in k categories; n and k are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: a replaced record changes the first k - 1 counts by at most
:math:`\Delta = \min(2, k - 1)` in L1, and the noise has scale :math:`\Delta/\varepsilon`. The last
count is what remains of the public n; bringing all of them back to [0, n] is post-processing.

Noise law
---------
Independent in each of the first k - 1 counts, :math:`P(Z = z) \propto e^{-|z|/b}` on the integers,
:math:`b = 1/\varepsilon` for two categories and :math:`2/\varepsilon` for more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.categories.candidates import ReleaseLaw, noise_law
from dpbayes_sklearn.mechanisms._noisy_categories import AddsNoiseToCategories
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["LaplaceImproved"]


class LaplaceImproved(AddsNoiseToCategories):
    """Add discrete Laplace noise to all counts but the last, which completes the public total.

    Examples
    --------
    >>> LaplaceImproved().law(20, (1.0, 1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """

    category_noise: ClassVar[str] = "all_but_last"

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> ReleaseLaw:
        """Return the law of the release; of the counts cut to [0, n] if there are two."""
        cells = len(prior) - 1
        return noise_law(n, prior, cells, min(2, cells) / Fraction(budget.epsilon))
