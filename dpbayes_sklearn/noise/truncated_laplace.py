r"""Discrete Laplace noise within a reach: what is never there is never found.

.. math:: P(Z = z) = \frac{(1-q)\,q^{|z|}}{1 + q - 2q^{k+1}}, \qquad |z| \le k, \quad q = e^{-1/b}

A value that c records share is published if :math:`c + Z > k`: never for c = 0, always for
:math:`c > 2k`. If c changes by s, the loss is at most s/b but for outcomes that one side cannot
have, of probability :math:`P(Z > k - s)`. This is the best there is for publishing which values
occur at all (Desfontaines, Voss, Gipson and Mandayam 2022, *Differentially Private Partition
Selection*). It is no :class:`NoiseLaw`: how many values there are is a secret, so it has no public
size.

**Sampler.** Where k is at least the scale b, draws of unlimited noise that lie beyond k are left
out: fewer than :math:`e^{-1}` of them do. Otherwise numbers from -k to k, each as likely as any
other, are accepted with probability :math:`e^{-|z|/b} \ge e^{-1}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.integers import bernoulli_exp, fill, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["TruncatedLaplace", "truncated_laplace"]


_DIGITS = Context(prec=60)
_MARGIN = 1 + Fraction(1, 10**30)  # far above what 60 digits can be wrong by
_LARGEST = 2**61
_LEAST_DELTA = Fraction(1, 10**300)
_FAR = 10_000  # in scales: what is farther out is far less likely than any delta


@dataclass(frozen=True)
class TruncatedLaplace:
    """Noise of one count.

    Attributes
    ----------
    scale : Fraction
        The b.
    reach : int
        The k: the noise is between -k and k.

    Examples
    --------
    >>> law = TruncatedLaplace.calibrated(Fraction(20), Fraction(1, 10**7))
    >>> law.reach, float(law.beyond(1)) < 1e-7 < float(TruncatedLaplace(law.scale, 248).beyond(1))
    (249, True)
    """

    scale: Fraction
    reach: int

    @classmethod
    @lru_cache(maxsize=256)  # columns and repeated releases ask for the same law
    def calibrated(cls, scale: Fraction, delta: Fraction, step: int = 1) -> TruncatedLaplace:
        """Return the law of the least reach with P(Z > k - step) at most delta.

        Parameters
        ----------
        scale : Fraction
        delta : Fraction
        step : int, default=1
            How far one count can change.
        """
        if delta < _LEAST_DELTA:
            raise ValueError("delta must be above zero, and at least 1e-300 for each count.")
        too_short, enough = step - 1, step
        while cls(scale, enough).beyond(step) > delta:
            too_short, enough = enough, 2 * enough
            if enough > _LARGEST:
                raise ValueError(
                    "epsilon is too small: the noise of a count would not fit into 64 bits."
                )
        while enough - too_short > 1:
            middle = (too_short + enough) // 2
            fine = cls(scale, middle).beyond(step) <= delta
            too_short, enough = (too_short, middle) if fine else (middle, enough)
        return cls(scale, enough)

    def beyond(self, step: int) -> Fraction:
        r"""Bound :math:`P(Z > k - s) = q^{k-s+1} (1 - q^s)/(1 + q - 2q^{k+1})` from above."""
        q, d = self._power(1), _DIGITS
        whole = d.subtract(d.add(1, q), d.multiply(2, self._power(self.reach + 1)))
        part = d.multiply(self._power(self.reach - step + 1), d.subtract(1, self._power(step)))
        return Fraction(d.divide(part, whole)) * _MARGIN

    def _power(self, exponent: int) -> Decimal:
        """Return q to a power, from above where that is below exp(-10,000)."""
        b = self.scale
        exponent = min(exponent, _FAR * b.numerator // b.denominator + 1)
        return _DIGITS.exp(_DIGITS.divide(-exponent * b.denominator, b.numerator))


def truncated_laplace(law: TruncatedLaplace, size: int, source: RandomSource) -> IntArray:
    """Draw independent integers with P(z) proportional to exp(-abs(z)/b), abs(z) <= k, exactly.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> noise = truncated_laplace(TruncatedLaplace(Fraction(5), 3), 100, random_source(0))
    >>> int(noise.min()), int(noise.max())
    (-3, 3)
    """
    propose = _unlimited if law.reach >= law.scale else _even
    noise = np.zeros(size, np.int64)
    return fill(noise, math.exp(-1), lambda count: propose(law, count, source))


def _unlimited(law: TruncatedLaplace, count: int, source: RandomSource) -> IntArray:
    drawn = discrete_laplace(law.scale, count, source)
    return drawn[np.abs(drawn) <= law.reach]


def _even(law: TruncatedLaplace, count: int, source: RandomSource) -> IntArray:
    t, s, k = law.scale.numerator, law.scale.denominator, law.reach
    drawn = uniform_below(2 * k + 1, count, source, np.uint64).astype(np.int64) - k
    return drawn[bernoulli_exp((np.abs(drawn) * s).astype(np.uint64), t, source)]
