"""Bugs of noise laws as values: what they say of themselves, how they are chosen and split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteLaplace,
    SupNorm,
    ZeroSum,
    ball_gaussian,
    discrete_gaussian,
    finite,
    law,
    sup_norm,
)
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.law import draw
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression.moments import Block

Replacements = Iterator[tuple[Any, str, Any]]


@fault("laws", "enumeration of counts", "Independent noise tells half of its privacy loss")
def half_a_loss() -> Replacements:
    real = DiscreteLaplace.privacy_loss
    yield DiscreteLaplace, "privacy_loss", lambda self, shift: real(self, shift) / 2


@fault(
    "laws",
    "enumeration of counts",
    "Noise of the sup norm tells the loss of the mean of its entries",
    "fourier, Network",
)
def a_mean_for_a_maximum() -> Replacements:
    def mean(self: Any, shift: Any) -> Fraction:
        return Fraction(int(np.abs(shift).sum()) * self.grid, len(shift)) / self.steps

    yield SupNorm, "privacy_loss", mean


@fault(
    "laws", "enumeration of counts", "Noise of the rows of a class tells the loss of one class only"
)
def one_class_of_two() -> Replacements:
    real = ClassRows.privacy_loss
    yield ClassRows, "privacy_loss", lambda self, shift: real(self, shift) / 2


@fault(
    "laws",
    "enumeration of counts",
    "Noise that adds to zero tells the loss of one count only",
    "geometric",
)
def one_count_of_two() -> Replacements:
    real = ZeroSum.privacy_loss
    yield ZeroSum, "privacy_loss", lambda self, shift: real(self, shift) / 2


@fault("laws", "sampler laws", "The law that is told with the counts is not the one that was drawn")
def another_law_is_told() -> Replacements:
    real = plans.ReleasedCounts

    def telling(network: Any, tables: Any, n: int, laws: Any, *size_laws: Any) -> Any:
        sizes = [table.size for table in tables]
        return real(network, tables, n, (DiscreteLaplace.of(Fraction(1), sizes),), *size_laws)

    yield plans, "ReleasedCounts", telling


@fault(
    "laws",
    "enumeration of counts",
    "The class table's scale is multiplied by its weight, not divided",
)
def class_scale_inverted() -> Replacements:
    real = CountTables._independent_noise

    def inverted(self: Any, unit: str, epsilon: Fraction, weight: Fraction) -> Any:
        law = real(self, unit, epsilon, weight)
        own = law.scales[-1] * weight**2
        return replace(law, scales=(*law.scales[:-1], own))

    yield CountTables, "_independent_noise", inverted


@fault(
    "laws",
    "enumeration of counts",
    "Noise on a finer grid is drawn with the scale of the coarse one",
    "fourier, Network",
)
def grid_forgotten() -> Replacements:
    yield SupNorm, "steps", property(lambda self: self.scale)


@fault(
    "laws",
    "enumeration of counts",
    "Rows of noise on a grid are drawn with one step less than they have",
)
def grid_off_by_one() -> Replacements:
    yield ClassRows, "steps", property(lambda self: self.scale * max(self.grid - 1, 1))


@fault(
    "laws",
    "enumeration of counts",
    "Every array gets the first numbers of the noise, so they share it",
)
def arrays_share_noise() -> Replacements:
    def overlapping(arrays: Any, law: Any, source: Any) -> Any:
        noise = draw(law, 1, source)[0]
        return tuple(law.grid * a + noise[: a.size].reshape(a.shape) for a in arrays)

    yield drawing, "add", overlapping


@fault(
    "laws",
    "enumeration of counts",
    "The noise is split one number too early, so that one cell gets none",
    "fourier, Network",
)
def split_too_early() -> Replacements:
    def shifted(arrays: Any, law: Any, source: Any) -> Any:
        noise = draw(law, 1, source)[0]
        noise = np.append(noise[1:], 0)
        ends = np.cumsum([0, *(a.size for a in arrays)])
        parts = zip(arrays, ends, strict=False)
        return tuple(a + noise[e : e + a.size].reshape(a.shape) for a, e in parts)

    yield drawing, "add", shifted


@fault(
    "laws",
    "enumeration of moments",
    "All sides of the moments' box are 1, though some sums move by 2",
    "laplace, Design(domains=(Categories",
)
def sides_forgotten() -> Replacements:
    def square(self: Any, scale: Fraction) -> SupNorm:
        return SupNorm(law.laplace_scale(scale, Fraction(1)), (1,) * len(self))

    yield Block, "_sup_norm", square


@fault(
    "laws",
    "enumeration of counts",
    "A scale that cannot be drawn exactly is rounded down",
    "laplace, epsilon=0.12",
)
def scales_rounded_down() -> Replacements:
    real = law.representable_scale

    def less(scale: Any) -> Fraction:
        drawn = real(scale)
        return drawn if drawn == scale else drawn * (1 - Fraction(1, 2**50))

    yield law, "representable_scale", less


@fault(
    "laws",
    "enumeration of counts",
    "Class counts get no noise, since the rows that sum to them have it",
)
def class_counts_without_noise() -> Replacements:
    real = drawing.add

    def bare(arrays: Any, law: Any, source: Any) -> Any:
        noisy = real(arrays, law, source)
        return (*noisy[:-1], arrays[-1] * 1.0) if isinstance(law, ClassRows) else noisy

    yield drawing, "add", bare


@fault(
    "laws",
    "enumeration of counts",
    "A large epsilon is taken for an infinite one",
    "laplace, epsilon=40",
)
def large_is_infinite() -> Replacements:
    yield Budget, "infinite", property(lambda self: self.epsilon > 30)


@fault("laws", "sampler laws", "Discrete Gaussian noise has half of its variance")
def half_a_variance() -> Replacements:
    real = discrete_gaussian.discrete_gaussian
    yield discrete_gaussian, "discrete_gaussian", lambda v, *rest: real(v / 2, *rest)


@fault("laws", "sampler laws", "Radii of a box are taken as proposed, whatever their coins say")
def radii_as_proposed() -> Replacements:
    def proposed(sides: Any, scale: Any, count: int, source: Any) -> Any:
        sums = sup_norm.one_sided_laplace(scale, count * len(sides), source)
        return sums.reshape(count, len(sides)).sum(axis=1)

    yield sup_norm, "_radii", proposed


@fault("laws", "sampler laws", "A Gaussian in a ball is drawn with twice its precision")
def half_a_ball() -> Replacements:
    real = ball_gaussian._unit_ball
    yield ball_gaussian, "_unit_ball", lambda a, b, *rest: real(2 * a, 2 * b, *rest)


@fault("laws", "sampler laws", "The last point of a finite law is never drawn")
def the_last_is_never_drawn() -> Replacements:
    real = finite.finite_draw
    yield finite, "finite_draw", lambda weights, source: real(weights[..., :-1], source)
