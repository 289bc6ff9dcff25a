"""Joint log densities of noise laws, and the same laws with half the noise.

Written down here a second time, from the definitions and apart from ``laws/``: what judges a law
should not ask it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    NoiseLaw,
    SupNorm,
    ZeroSum,
)

__all__ = ["halved", "log_density"]


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
def halved(law: Any) -> Any:
    """Return the law with half the noise."""
    return replace(law, scale=law.scale / 2)


@halved.register
def _(law: DiscreteGaussian) -> DiscreteGaussian:
    return replace(law, parameters=tuple(variance / 4 for variance in law.parameters))


@halved.register
def _(law: DiscreteLaplace) -> DiscreteLaplace:
    return replace(law, scales=tuple(scale / 2 for scale in law.scales))
