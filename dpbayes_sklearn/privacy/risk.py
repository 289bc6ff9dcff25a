r"""What epsilon means: how much an attacker can learn about one person from a release.

The attacker knows everything but whether the data are D or a neighbour D', gives D a prior
probability p, and sees the release. Let Q be the probability that an attack accuses under D' (false
positives) and P that it does under D (true positives).

* *Pure.* :math:`P \le e^\varepsilon Q` and :math:`1 - Q \le e^\varepsilon (1 - P)`; the posterior
  probability is at most :math:`p e^\varepsilon/(1 - p + p e^\varepsilon)`.
* *With a delta.* Both bounds plus :math:`\delta`. A privacy loss above
  :math:`\varepsilon + \ln 2` has probability at most :math:`2\delta`, because on that event
  :math:`P(1 - e^{\varepsilon - L}) \le \delta`.
* *zCDP*, as Gaussian noise has. Rényi divergences of every order :math:`\alpha > 1` are at most
  :math:`\alpha\rho`, also those of the attack's two answers (data processing):

  .. math:: P^\alpha Q^{1-\alpha} + (1-P)^\alpha (1-Q)^{1-\alpha}
            \le e^{\alpha(\alpha - 1)\rho} .

  The largest P that no order refuses is the trade-off curve. A loss above
  :math:`\rho + 2\sqrt{\rho\ln(1/\eta)}` has probability at most :math:`\eta` (Bun and Steinke 2016,
  Lemma 3.5), and no attack gains more than :math:`\sqrt{\rho/2}` (Pinsker).

For continuous Gaussian noise the exact curve is
:math:`\Phi(\Phi^{-1}(Q) + \sqrt{2\rho})`, a tenth below this bound at :math:`\varepsilon = 1`,
:math:`\delta = 10^{-6}`; discrete noise only has it nearly, so it is not what is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

__all__ = ["PrivacyRisk", "privacy_risk"]

_ORDERS = 1 + np.geomspace(1e-3, 1e4, 141)


@dataclass(frozen=True)
class PrivacyRisk:
    """The most that an attacker can learn about one person, or record, from a release.

    Attributes
    ----------
    prior : float
        What the attacker believed before, as a probability.
    posterior : float
        The most that the attacker can believe after.
    exception : float
        Probability of a release for which the posterior may be larger; 0 without a delta.
    false_positive_rate, true_positive_rate : float
        An attack that accuses this share of the innocent finds at most this share of the others.
    advantage : float
        Largest difference between the two rates of any attack.
    """

    prior: float
    posterior: float
    exception: float
    false_positive_rate: float
    true_positive_rate: float
    advantage: float

    def sentence(self, unit: str = "one record") -> str:
        """Return the risk in plain words.

        >>> privacy_risk(1.0, 0.0, None, 0.5, 0.05).sentence()[:77]
        'Whoever knows all other records and is 50 % sure of a guess about one record '
        """
        rare = f" (but for {self.exception:.1g} of all releases)" if self.exception else ""
        return (
            f"Whoever knows all other records and is {_percent(self.prior)} sure of a guess about "
            f"{unit} is at most {_up(self.posterior)} sure after seeing this release{rare}. A test "
            f"of the guess with a false-positive rate of {_percent(self.false_positive_rate)} has "
            f"a true-positive rate of at most {_up(self.true_positive_rate)}."
        )

    __str__ = sentence


def privacy_risk(
    epsilon: float, delta: float, rho: float | None, prior: float, fpr: float
) -> PrivacyRisk:
    """Return the risk of a guarantee.

    >>> risk = privacy_risk(1.0, 0.0, None, 0.5, 0.05)
    >>> round(risk.posterior, 3), round(risk.true_positive_rate, 3), round(risk.advantage, 3)
    (0.731, 0.136, 0.462)
    """
    for name, value in (("prior", prior), ("false_positive_rate", fpr)):
        if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
            raise ValueError(
                f"The {name!r} parameter of risk must be a float in the range (0.0, 1.0). "
                f"Got {value!r} instead."
            )
    loss, exception = _largest_loss(epsilon, delta, rho)
    posterior = float(expit(logit(prior) + loss)) if loss < math.inf else 1.0
    found = true_positive_rate(float(fpr), epsilon, delta, rho)
    advantage = _advantage(epsilon, delta)
    if rho is not None:
        advantage = min(advantage, math.sqrt(rho / 2))
    return PrivacyRisk(float(prior), posterior, exception, float(fpr), found, advantage)


def _advantage(epsilon: float, delta: float) -> float:
    r"""Return the largest gap, :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)`."""
    return float(np.tanh(epsilon / 2) + 2 * delta * expit(-epsilon))


def _largest_loss(epsilon: float, delta: float, rho: float | None) -> tuple[float, float]:
    """Return a privacy loss, and the probability of a larger one."""
    if not delta or math.isinf(epsilon):
        return epsilon, 0.0
    if rho is not None and math.isfinite(rho):
        return rho + 2 * math.sqrt(rho * math.log(1 / delta)), delta
    return epsilon + math.log(2), 2 * delta


def true_positive_rate(fpr: float, epsilon: float, delta: float, rho: float | None) -> float:
    """Bound the share of true positives of any attack from above.

    >>> round(true_positive_rate(0.05, 1.0, 1e-6, 0.0243), 3)
    0.083
    """
    if math.isinf(epsilon):
        return 1.0
    small = math.exp(-epsilon)
    line = min(fpr / small + delta, 1 - small * (1 - delta - fpr), 1.0)
    if rho is None or not math.isfinite(rho):
        return line
    if _excess(line, fpr, rho) <= 0:
        return line
    ends = math.log(fpr), math.log(line)
    log_rate = brentq(lambda x: _excess(math.exp(x), fpr, rho), *ends, xtol=1e-12)
    return min(math.exp(float(log_rate) + 1e-9), line)  # rounded up


def _excess(tpr: float, fpr: float, rho: float) -> float:
    """Return by how much some Rényi divergence of the two answers exceeds its bound."""
    with np.errstate(divide="ignore"):
        yes = _ORDERS * np.log(tpr) + (1 - _ORDERS) * np.log(fpr)
        no = _ORDERS * np.log1p(-min(tpr, 1.0)) + (1 - _ORDERS) * np.log1p(-fpr)
    divergence = np.logaddexp(yes, no) / (_ORDERS - 1)
    return float((divergence - _ORDERS * rho).max())


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _up(share: float) -> str:
    """Return a share in percent, rounded up."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"
