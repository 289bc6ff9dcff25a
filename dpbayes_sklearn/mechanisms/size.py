r"""The number of records, where records may be added or removed.

Guarantee
---------
*Precondition*: neighbours differ in the records of one unit, at most k of them, so the number of
records n has sensitivity k. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: discrete Laplace noise
of scale :math:`k/\varepsilon`. It is released before anything else; all that a fit would do with a
public n it then does with the released one, which is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-\varepsilon|z|/k}` on the integers; the result is at least 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.sizes import RecordCount, ReleasedSize

__all__ = ["Size"]


class Size(Mechanism):
    """Add discrete Laplace noise to the number of records.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import Size
    >>> Size().supports("size"), Size().supports("counts")
    (True, False)
    """

    def _release_size(
        self, statistics: RecordCount, prior: Any, budget: Budget, noise: Noise
    ) -> ReleasedSize:
        law = statistics.law(budget.unit, Fraction(budget.epsilon))
        (noisy,) = noise.add([np.array([statistics.n], np.int64)], law)
        return ReleasedSize(max(int(noisy[0]), 1), (law,))
