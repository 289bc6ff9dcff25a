"""Bugs in planning: what public numbers decide fails only after the charge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.categories import noise_aware
from dpbayes_sklearn.columns import plans
from dpbayes_sklearn.counts import lattice
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.discrete_laplace import DiscreteLaplace, integer_allowance
from dpbayes_sklearn.privacy import gaussian
from dpbayes_sklearn.regression import plans as regressions
from dpbayes_sklearn.regression import step_noise
from dpbayes_sklearn.release import carry_out

Replacements = Iterator[tuple[Any, str, Any]]


def _nothing_remembered() -> Replacements:
    """Compute again what is cached with the bug, or without it."""
    for name in ("_shared_mass", "_split_mass"):
        yield lattice, name, getattr(lattice, name).__wrapped__


@fault(
    "planning",
    "plans",
    "The share of the signs has no lower bound, so that their noise cannot be drawn",
    "signs, many records",
)
def signs_without_bounds() -> Replacements:
    yield step_noise, "_LEAST_OF_SIGNS", 10**30


@fault(
    "planning",
    "plans",
    "A grid without room for exact composition is divided by",
    "signs, a coarse grid",
)
def coarse_grid() -> Replacements:
    rounding = gaussian.grid_rounding_loss

    def composes(rho: Fraction, epsilon: Any, delta: Any, numbers: int, smallest: int) -> bool:
        if not 0 < 2 * rho <= gaussian._LARGEST_MU**2:
            return False
        eta = rounding(numbers, Fraction(smallest**2) / (2 * rho))
        enough = eta <= epsilon * gaussian._ROUNDING
        return bool(enough and gaussian.composed_delta(rho, epsilon) <= delta)

    yield gaussian, "_composes", composes
    yield regressions, "composed_rho", gaussian.composed_rho.__wrapped__


@fault(
    "planning",
    "plans",
    "A tree over too many features is refused in the middle of its release",
    "too many candidates",
)
def unchecked_candidates() -> Replacements:
    yield plans, "MAX_POINTS", 10**9


@fault(
    "planning",
    "plans",
    "The masses of tiny pseudo-counts are differences of rounding errors",
    "tiny pseudo-counts",
)
def tiny_masses() -> Replacements:
    wrong = lattice.log_dirichlet_weight
    yield lattice, "_log_mass", lambda alpha, x: wrong(alpha + 1.0, x)
    yield from _nothing_remembered()


@fault(
    "planning",
    "plans",
    "Weights of huge pseudo-counts overflow",
    "weights of pseudo counts",
)
def overflowing_weights() -> Replacements:
    def sharing(alpha: float, index: Any, step: float) -> Any:
        slope = step * np.log((alpha + index * step) / (1.0 + index * step))
        half = np.maximum(np.abs(slope) / 2.0, 1e-9)
        return 2.0 * np.log(np.sinh(half) / half) - (alpha - 1.0) / (12.0 * index**2)

    yield lattice, "_log_sharing", sharing
    yield from _nothing_remembered()


@fault(
    "planning",
    "plans",
    "The bound of errors is searched where rounding leaves no crossing",
    "shares that differ",
)
def no_crossing() -> Replacements:
    def error_bound(self: DiscreteLaplace, delta: float) -> float:
        noisy: dict[float, int] = {}
        for scale, size in zip(self.scales, self.sizes, strict=True):
            noisy[float(scale)] = noisy.get(float(scale), 0) + size
        alone = [b * math.log(m / delta) + integer_allowance(b) for b, m in noisy.items()]
        if len(alone) < 2:
            return max(alone)

        def excess(z: float) -> float:
            return (
                sum(m * math.exp((integer_allowance(b) - z) / b) for b, m in noisy.items()) - delta
            )

        largest = max(b * math.log(len(noisy)) + z for b, z in zip(noisy, alone, strict=True))
        return float(brentq(excess, max(alone), largest + 1.0))

    yield DiscreteLaplace, "error_bound", error_bound


@fault(
    "planning",
    "plans",
    "Memory grows with the noise of counts whose sum is secret",
    "memory of wide noise",
)
def a_point_for_every_integer() -> Replacements:
    yield noise_aware, "_least_step", lambda sharpness, categories: 1


@fault(
    "planning",
    "plans",
    "A ledger is asked to charge a rho of 0, which it refuses",
    "nothing can change",
)
def no_rho() -> Replacements:
    def charged(self: Any, plan: Any, statistics: Any, stream: int) -> Any:
        cost = plan.cost
        self._ledger().spend(cost.epsilon, cost.delta, rho=cost.rho, unit=cost.unit)
        return carry_out(plan, statistics, Noise.of(self.random_state, stream))

    yield PrivateEstimator, "_charged", charged
