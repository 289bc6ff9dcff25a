r"""The exponential mechanism on the scale of the local sensitivity, made private by enumeration.

Guarantee
---------
*Precondition*: counts of n records in k categories; n, k and the prior are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: the scale :math:`LS(x)` depends on the data, so no theorem applies,
and for some priors the loss at nominal :math:`\varepsilon` is above it. The mechanism exists only
calibrated: the loss of the integer law that is drawn was computed for every two neighbouring data
sets and every outcome, and is at most :math:`\varepsilon`.

Noise law
---------
:math:`P(r \mid x) \propto \exp(-\varepsilon' H(x, r) / 2 LS(x))` over the posteriors r of all
count vectors of sum n, drawn exactly from integer weights.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.categories.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.mechanisms.exponential import Exponential
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["Local"]


class Local(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over local sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Must be True: without calibration the mechanism is not private in general.

    Examples
    --------
    >>> law = Local().law(50, (0.01, 5.0), Budget(1))
    >>> 1 - 1e-6 < law.worst_case().epsilon <= 1
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"calibrate": ["boolean"]}

    def __init__(self, calibrate: bool = True) -> None:
        super().__init__(calibrate)

    def _law(self, candidates: Candidates, budget: Budget) -> ScoredCandidates:
        if not self.calibrate:
            raise ValueError(
                "The 'local' mechanism with calibrate=False is not private in general: its "
                "scale depends on the data, and its exact loss can exceed epsilon. "
                "Set calibrate=True, or use mechanism='hellinger'."
            )
        return super()._law(candidates, budget)

    def _sensitivity(self, candidates: Candidates, budget: Budget, nominal: float) -> FloatArray:
        return candidates.local_sensitivity()
