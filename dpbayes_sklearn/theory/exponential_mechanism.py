r"""The exponential mechanism: error of its release (Zhang et al., section 4.2).

It draws θ with probability proportional to :math:`e^{\lambda u(\theta)}` times a base measure;
:math:`\lambda = \varepsilon/(2\Delta)` makes it ε-private for a score that neighbouring data
change by at most Δ.
"""

from __future__ import annotations

import math

__all__ = ["map_failure_bound", "map_score_gap", "mass_change_bound"]


def map_failure_bound(exponent: float, t: float, good_mass: float) -> float:
    r"""Return a bound on the probability of a score more than 2t below the best.

    .. math:: P(S_{2t}^c) \le e^{-\lambda t} / \mu(S_t), \qquad
        S_t = \{\theta : u(\theta) > u^* - t\}

    Zhang et al., Lemma 4, with the exponent λ that the mechanism really uses; the paper writes ε
    in its place.

    >>> round(map_failure_bound(exponent=10.0, t=0.5, good_mass=0.2), 4)
    0.0337
    """
    return min(1.0, math.exp(-exponent * t) / good_mass)


def map_score_gap(exponent: float, best_mass: float, delta: float) -> float:
    r"""Return g with :math:`P(u(\theta) \le u^* - g) \le \delta`.

    .. math:: g = \frac1\lambda \ln\frac1{\mu(\theta^*)\,\delta}

    where the finitely many best points have base mass :math:`\mu(\theta^*)`, or more.

    >>> round(map_score_gap(exponent=10.0, best_mass=1 / 257, delta=0.05), 3)
    0.854
    """
    return math.log(1 / (best_mass * delta)) / exponent


def mass_change_bound(lipschitz: float, distance: float) -> float:
    r"""Return :math:`\min(1, \sqrt{L r})`, which bounds the change of a *set*'s probability.

    From :math:`\mathrm{KL} \le 2Lr` by Pinsker's inequality. Zhang et al., Algorithm 3, use it for
    *densities*, which it does not bound.

    >>> mass_change_bound(0.04, distance=1.0)
    0.2
    """
    return min(1.0, math.sqrt(lipschitz * distance))
