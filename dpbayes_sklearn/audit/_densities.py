"""Joint log densities of noise laws, and the same laws with half the noise.

Written down here a second time, from the definitions and apart from ``noise/``: what judges a law
should not ask it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import kve

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    MatrixNoise,
    NoiseLaw,
    SupNorm,
    ZeroSum,
)

__all__ = ["halved", "log_density", "log_ratio"]


@singledispatch
def log_density(law: NoiseLaw, noise: IntArray) -> FloatArray:
    """Return the log probability of noises, up to a constant.

    ``noise`` has one row for each release, in steps of the law's grid.
    """
    raise TypeError(f"No density is known for {type(law).__name__}.")


@log_density.register
def _(law: DiscreteLaplace, noise: IntArray) -> FloatArray:
    rates = [0.0 if scale == 0 else float(1 / scale) for scale in law.scales]
    return np.asarray(-np.abs(noise) @ np.repeat(rates, law.numbers))


@log_density.register
def _(law: DiscreteGaussian, noise: IntArray) -> FloatArray:
    halves = [0.0 if variance == 0 else float(1 / (2 * variance)) for variance in law.parameters]
    return np.asarray(-np.square(noise.astype(float)) @ np.repeat(halves, law.numbers))


@log_density.register
def _(law: ZeroSum, noise: IntArray) -> FloatArray:
    return np.asarray(-np.abs(noise).sum(axis=1) / float(law.scale))


@log_density.register
def _(law: SupNorm, noise: IntArray) -> FloatArray:
    norms = np.ceil(np.abs(noise) / np.array(law.sides)).max(axis=1)
    return np.asarray(-norms / float(law.scale * law.grid))


@log_density.register
def _(law: ClassRows, noise: IntArray) -> FloatArray:
    parts = np.split(np.abs(noise), np.cumsum(law.sizes)[:-1], axis=1)
    rows = [part.reshape(len(noise), law.n_classes, -1).sum(axis=2) for part in parts]
    return np.asarray(-np.max(rows, axis=0).sum(axis=1) / float(law.scale * law.grid))


@singledispatch
def log_ratio(law: NoiseLaw, noise: IntArray, shift: IntArray) -> FloatArray:
    """Return the log ratio of the densities at ``noise`` and at ``noise + shift``."""
    return log_density(law, noise) - log_density(law, noise + shift)


@log_ratio.register
def _(law: MatrixNoise, noise: IntArray, shift: IntArray) -> FloatArray:
    """Return that of the noise along the axes of the shift, as if they were independent.

    The joint density has no closed form. Any order of the outcomes gives a bound from below.
    """
    p = len(law.weights)
    a = np.array([float(weight) for weight in law.weights])
    upper = np.triu_indices(p)
    matrices = np.zeros((len(noise) + 1, p, p))
    matrices[(slice(None), *upper)] = np.vstack([noise, shift])
    full = (matrices + np.triu(matrices, 1).swapaxes(1, 2)) * np.outer(a, a) / float(law.scale)
    values, axes = np.linalg.eigh(full[-1])
    along = np.einsum("ik,rij,jk->rk", axes, full[:-1], axes)
    return np.asarray((_log_bessel(along, p) - _log_bessel(along + values, p)).sum(axis=1))


def _log_bessel(x: FloatArray, p: int) -> FloatArray:
    """Log density of the difference of two Gamma variables of order (p + 1)/2 and scale 1."""
    v, y = p / 2, np.maximum(np.abs(x), 1e-9)
    return np.asarray(v * np.log(y) + np.log(kve(v, y)) - y)


@singledispatch
def halved(law: Any) -> Any:
    """Return the law with half the noise."""
    return replace(law, scale=law.scale / 2)


@halved.register
def _(law: DiscreteGaussian) -> DiscreteGaussian:
    return replace(law, parameters=tuple(variance / 4 for variance in law.parameters))


@halved.register
def _(law: DiscreteLaplace) -> DiscreteLaplace:
    return replace(law, scales=tuple(scale / 2 for scale in law.scales))
