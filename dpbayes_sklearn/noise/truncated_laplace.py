r"""Exact sampler of discrete Laplace noise within a reach k.

Where k is at least the scale b, draws of unlimited noise that lie beyond k are left out: fewer than
:math:`e^{-1}` of them do. Otherwise numbers from -k to k, each as likely as any other, are accepted
with probability :math:`e^{-|z|/b} \ge e^{-1}`.
"""

from __future__ import annotations

import math

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.noise.bernoulli import bernoulli_exp, fill, uniform_below
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["truncated_laplace"]


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
