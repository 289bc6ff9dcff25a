"""Noise laws: the public distribution of the noise of a release, one file for each.

A law is a frozen value without data or randomness. It is the only source of facts about the noise:
``variance``, ``log_weight``, ``error_bound(delta)``, ``privacy_loss(shift)``.
"""

from dpbayes_sklearn.laws.base import Marginal, NoiseLaw
from dpbayes_sklearn.laws.choice import least_noise
from dpbayes_sklearn.laws.class_rows import ClassRows
from dpbayes_sklearn.laws.discrete_gaussian import DiscreteGaussian
from dpbayes_sklearn.laws.discrete_laplace import DiscreteLaplace
from dpbayes_sklearn.laws.matrix import MatrixNoise
from dpbayes_sklearn.laws.sup_norm import SupNorm
from dpbayes_sklearn.laws.zero_sum import ZeroSum

__all__ = [
    "ClassRows",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Marginal",
    "MatrixNoise",
    "NoiseLaw",
    "SupNorm",
    "ZeroSum",
    "least_noise",
]
