r"""What a single sum sees of a noise that it shares with others: a plateau with soft edges.

Noise with density proportional to :math:`e^{-\max_i|z_i|/b}` on m entries is even in a cube of
half side R, where R/b has the Gamma law of order m + 1. One entry therefore has density

.. math:: p(x) \propto \int_{|x|}^\infty r^{m-1} e^{-r/b} dr \propto Q(m, |x|/b)

with the regularised upper incomplete Gamma function. On the lattice the sum over cubes is the
midpoint rule for this integral.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, gammainccinv, gammaln

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.laws.sup_norm import JointNoise

__all__ = ["MarginalLaw", "log_upper_gamma"]


_SAFE = 1e-250  # above, the logarithm of Q itself is accurate
_LEVELS = 40  # of the continued fraction, which is only used far out
_EDGE = 4.5  # standard deviations of the radius over which a plateau ends


class MarginalLaw:
    """Law of the noise in one sum under joint noise.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = MarginalLaw(JointNoise(Fraction(2), 33, 32))
    >>> law.log_weight(np.array([0.0, 60.0, -200.0])).round(2).tolist()
    [0.0, -0.38, -33.81]
    """

    def __init__(self, joint: JointNoise) -> None:
        self._size, self._scale = joint.size, float(joint.scale)
        self.variance = joint.variance

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log probability of noise ``x``, up to a constant."""
        return log_upper_gamma(self._size, np.abs(x) / self._scale)

    def half_width(self, terms: int, nats: float) -> float:
        """Bound that the sum of ``terms`` such noises crosses with probability below exp(-nats).

        Each of them stays within the radius, and all of them within the largest.
        """
        if np.isinf(nats):
            return np.inf
        radius = float(gammainccinv(self._size + 1.0, np.exp(-nats) / terms))
        return terms * self._scale * radius

    @property
    def sharpness(self) -> float:
        """Distance over which the law falls: its width, or that of its edges if it is less."""
        edge = _EDGE * self._scale * np.sqrt(self._size)
        return float(min(np.sqrt(self.variance / 2.0), edge))


def log_upper_gamma(order: float, x: npt.ArrayLike) -> FloatArray:
    r"""Log of Q(order, x), also where Q is too small for a float.

    There :math:`\Gamma(m, x) = x^m e^{-x} / (x + 1 - m - \frac{1 - m}{x + 3 - m - \dots})`.

    >>> log_upper_gamma(1.0, [0.5, 5000.0]).tolist()
    [-0.5, -5000.0]
    """
    x = np.asarray(x, dtype=float)
    direct = np.asarray(gammaincc(order, x))
    log_q = np.array(np.log(np.maximum(direct, _SAFE)))
    far = direct < _SAFE
    if far.any():
        log_q[far] = _far_out(order, x[far])
    return log_q


def _far_out(order: float, x: FloatArray) -> FloatArray:
    fraction = x + 2.0 * _LEVELS + 1.0 - order
    for k in range(_LEVELS, 0, -1):
        fraction = x + 2.0 * k - 1.0 - order - k * (k - order) / fraction
    log_q: FloatArray = order * np.log(x) - x - gammaln(order) - np.log(fraction)
    return log_q
