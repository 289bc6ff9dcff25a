r"""The exponential mechanism on the scale of the smooth sensitivity of the Hellinger distance.

Guarantee
---------
*Precondition*: counts of n records in k categories; n, k and the prior are public. *Claim*: pure
:math:`\varepsilon`-DP with ``calibrate=True``, :math:`(\varepsilon, \delta)`-DP with
``calibrate=False``. *Proof*: by enumeration in both cases. The loss of the integer law that is
drawn is computed for every two neighbouring data sets; a law whose loss exceeds the claim is
adjusted (calibrated) or refused.

Noise law
---------
:math:`P(r \mid x) \propto \exp(-\varepsilon' H(x, r) / 2 S(x))` with the smooth sensitivity
:math:`S(x) = \max_{x'} LS(x') e^{-\gamma d(x, x')}`, :math:`\gamma = \log(1 + \varepsilon' /
2\log(2m/\delta))`, over the posteriors r of all m count vectors of sum n; drawn exactly from
integer weights. :math:`\varepsilon'` is :math:`\varepsilon`, or the nominal budget that
calibration finds: at 1000 records it is about twice as large.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.categories.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.mechanisms.exponential import Exponential
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Hellinger"]


class Hellinger(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over smooth sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the nominal budget until the exact worst-case loss equals epsilon; the
        guarantee is then pure. Otherwise the mechanism is that of the paper and needs a delta.
    smoothing : float in (0, 1), default=1e-8
        The delta in the formula of gamma if ``calibrate=True``, where it shapes the law but is
        not part of the guarantee. With ``calibrate=False`` the guarantee's delta is used.

    Examples
    --------
    >>> uncalibrated = Hellinger(calibrate=False).law(100, (1.0, 1.0), Budget(1, 1e-8))
    >>> round(uncalibrated.worst_case().epsilon, 2)
    0.53
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "smoothing": [Range(Real, 0, 1, closed="neither")],
    }

    def __init__(self, calibrate: bool = True, smoothing: float = 1e-8) -> None:
        super().__init__(calibrate)
        self.smoothing = smoothing

    @property
    def spends_delta(self) -> bool:
        """True if the guarantee needs a delta above zero."""
        return not self.calibrate

    def _law(self, candidates: Candidates, budget: Budget) -> ScoredCandidates:
        if not self.calibrate and not budget.delta:
            raise ValueError(
                "The 'hellinger' mechanism with calibrate=False needs a delta in the range (0, 1). "
                "Got 0 instead. Set delta, or calibrate=True, which makes it purely private."
            )
        law = super()._law(candidates, budget)
        claim = float(budget.epsilon)
        within = self.calibrate or law.worst_case().epsilon <= claim
        if not within and law.worst_case(float(budget.delta)).epsilon > claim:
            raise ValueError(
                "The exact loss of the 'hellinger' mechanism is above epsilon for this prior and "
                "number of records. Set calibrate=True, which brings it down to epsilon."
            )
        return law

    def _sensitivity(self, candidates: Candidates, budget: Budget, nominal: float) -> FloatArray:
        delta = self.smoothing if self.calibrate else float(budget.delta)
        gamma = math.log1p(nominal / (2 * math.log(2 * len(candidates) / delta)))
        return candidates.smooth_sensitivity(gamma)
