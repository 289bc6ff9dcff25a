"""Noise: one file a law, with its density, privacy loss and exact sampler.

A law is a frozen value without data or randomness, the only source of facts about its noise:
``variance``, ``log_weight``, ``error_bound(delta)``, ``privacy_loss(shift)``. `Noise` draws it:
integer arithmetic on random bytes from one source, without rounding.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from dpbayes_sklearn.noise.class_rows import ClassRows
from dpbayes_sklearn.noise.discrete_gaussian import DiscreteGaussian
from dpbayes_sklearn.noise.discrete_laplace import DiscreteLaplace
from dpbayes_sklearn.noise.joint import SupNorm, ZeroSum
from dpbayes_sklearn.noise.law import Marginal, NoiseLaw, add, least_noise
from dpbayes_sklearn.noise.matrix import MatrixNoise
from dpbayes_sklearn.noise.noise import Noise, made_by

__all__ = [
    "ClassRows",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Marginal",
    "MatrixNoise",
    "Noise",
    "NoiseLaw",
    "SupNorm",
    "ZeroSum",
    "add",
    "least_noise",
    "made_by",
]


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
