r"""Noise of the gradient of records in windows: numbers and signs in [-1, 1], and levels.

A number or sign is the difference of two weights :math:`\frac{1 \pm x}2`, so records are blocks of
weights with one sum, and their gradients lie in the hull of all :math:`\pm hx`
(:mod:`dpbayes_sklearn.noise.gradient`). Without levels it is the cube of side 2h.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.perturbed import Body
from dpbayes_sklearn.noise import SupNorm
from dpbayes_sklearn.noise.gradient import (
    BlockShape,
    GradientNoise,
    gaussian_noise,
    in_hull,
    least_gradient_noise,
)
from dpbayes_sklearn.privacy.budget import Exact, PrivacyUnit

_NUMBER = Fraction(4)  # Weight of a number: its mean square in a window is about a quarter.
_LATTICE = 2**30  # Steps of the noise of a cube from 0 to h.


def record_squares(design: Design) -> FloatArray:
    """Return the largest squares of (constant, coordinates): one for a column, shared by levels.

    >>> from dpbayes_sklearn.schema import Categories, Interval
    >>> record_squares(Design((Interval(0, 1), Categories([*"abc"])))).round(2).tolist()
    [1.0, 1.0, 0.33, 0.33, 0.33]
    """
    each = np.where(design.single, 1.0, 1 / design.n_values)
    return np.concatenate([np.ones(int(design.intercept)), each])


def hull_body(
    design: Design, h: float, epsilon: Fraction, unit: PrivacyUnit, delta: Exact = Fraction(0)
) -> Body:
    """Return the noise of gradients h x; with a delta Gaussian noise where it is smaller."""
    gradient = _gradient_noise(design, epsilon, delta, unit)
    law, step = gradient.law, h / gradient.lattice
    if isinstance(law, SupNorm):
        inexact = math.sqrt(law.size) * step
        farthest = law.error_bound(1e-30) * step * math.sqrt(law.size)
    else:  # a linear map of norm sqrt(2 (1 + d)) makes the gradient of d blocks
        sizes = np.array(law.sizes)
        inexact = math.sqrt(len(sizes) * float((sizes + sizes**2).sum())) * step
        farthest = 2 * gradient.farthest * h * len(sizes)
    return Body(
        law, gradient.lattice, lambda *drawn: _of_records(design, gradient, *drawn) * step,
        _variances(design, gradient) * h**2, inexact, farthest,
    )  # fmt: skip


def _gradient_noise(
    design: Design, epsilon: Fraction, delta: Exact, unit: PrivacyUnit
) -> GradientNoise:
    shape = _block_shape(design)
    if design.levels.any():
        return least_gradient_noise(shape, epsilon, delta, unit)
    sides = (1,) * (design.width + design.intercept)
    pure = SupNorm.of(sides, unit.n_changed * _LATTICE, epsilon)
    variance = float(pure.variances[0]) / _LATTICE**2
    total = shape.total([variance / 2] * len(shape.sizes), variance)
    with suppress(ValueError):  # without a delta, or where there is no exact noise
        other = gaussian_noise(shape, epsilon, delta, unit)
        if other.total < total:
            return other
    return GradientNoise(pure, _LATTICE, total, math.inf)


def _block_shape(design: Design) -> BlockShape:
    first = np.searchsorted(design.column, np.arange(len(design.features)))
    sizes = np.where(design.single, 2, design.n_values)[first].astype(int).tolist()
    numbers = design.numbers[first].tolist()
    weights = (_NUMBER if one else Fraction(k) for k, one in zip(sizes, numbers, strict=True))
    constant = design.intercept or bool(design.levels.any())
    return BlockShape(tuple(sizes), tuple(weights), Fraction(1), constant=constant)


def _of_records(design: Design, gradient: GradientNoise, *drawn: AnyArray) -> FloatArray:
    """Return noise of the constant, if there is one, and of the coordinates."""
    if isinstance(gradient.law, SupNorm):
        return np.asarray(drawn[0], np.float64)
    *rows, total = in_hull(gradient.law, *drawn)
    single = design.single[np.searchsorted(design.column, np.arange(len(rows)))]
    each = [row[:1] - row[1:] if one else row for row, one in zip(rows, single, strict=True)]
    return np.concatenate([total[: int(design.intercept)], *each]).astype(np.float64)


def _variances(design: Design, gradient: GradientNoise) -> FloatArray:
    """Return the variance of every entry; a number has twice that of a contrast of its weights."""
    law, unit = gradient.law, float(gradient.lattice) ** 2
    if isinstance(law, SupNorm):
        return law.variances / unit
    blocks = len(law.sizes) - 1
    constant = law.variance(blocks)
    contrasts = np.array([law.contrast_variance(j) for j in range(blocks)])[design.column]
    k = design.n_values
    each = np.where(design.single, 2 * contrasts, (1 - 1 / k) * contrasts + constant / k**2)
    return np.concatenate([np.full(int(design.intercept), constant), each]) / unit
