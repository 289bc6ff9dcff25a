"""Statistical audit of linear regression: a lower confidence bound on epsilon.

Two data sets differ in one record that goes from a corner of the domain to its middle, which
moves the sums nearly as far as any change. Laplace
and Fourier are judged by the exact log-likelihood ratio of everything they release, the sampler
and the MAP mechanism by a projection of their draw. The bound must not exceed the claim, and a
planted lack of noise must be caught. (A draw says little about its own
law, so for draws only a gross lack shows here; the tests bound their law exactly.)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.audit._table import Row
from dpbayes_sklearn.audit import bound_from_outcomes
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.mechanisms import _coefficient_draws, _moment_release
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.mechanisms.fourier import Fourier
from dpbayes_sklearn.mechanisms.laplace import Laplace
from dpbayes_sklearn.mechanisms.map import MAP
from dpbayes_sklearn.mechanisms.sampler import Sampler
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.schema import Interval
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.moments import Moments

EPSILON = Fraction(1)
DESIGN = Design((Interval(-1, 1),))
PRIOR = GaussianPrior(DESIGN, noise_variance=0.01, coef_bound=0.5)
add_noise, ball_gaussian = _moment_release.add_noise, _coefficient_draws.ball_gaussian


def records(corner: float) -> Moments:
    X, y = np.array([[corner], [0.2], [-0.4]]), np.array([corner, 0.1, 0.3])
    return Moments(DESIGN, Table(X), y, Scale(0.0, 1.0))


def sums_of(here: Moments, block: Any, grid: int, window: Any) -> npt.NDArray[Any]:
    if window is None:
        return here.target_sums(grid) / grid**2
    exact: npt.NDArray[Any] = here.gram(grid, window)[block.rows, block.columns] / grid**2
    return exact


def log_ratios(mechanism: Mechanism, corner: float, runs: int, fault: int) -> npt.NDArray[Any]:
    """Return log p(release | corner) - log p(release | middle) of Laplace noise."""
    ratios = []
    source, plus, minus = random_source(), records(1.0), records(0.0)

    def watched(sums: Any, block: Any, grid: int, epsilon: Fraction, source: Any) -> Any:
        noisy, variance = add_noise(sums, block, grid, fault * epsilon, source)
        window = windows[-1] if windows else None
        other = [sums_of(s, block, grid, window) for s in (plus, minus)]
        scale = float(block.together / epsilon)
        distance = [np.abs(noisy - o).sum() for o in other]
        ratios[-1] += (distance[1] - distance[0]) / scale
        return noisy, variance

    gram = Moments.gram

    def remembered(self: Moments, grid: int, window: Any) -> Any:
        if not windows:
            windows.append(window)
        return gram(self, grid, window)

    here = plus if corner > 0 else minus
    with (
        mock.patch.object(_moment_release, "add_noise", watched),
        mock.patch.object(Moments, "gram", remembered),
    ):
        for _ in range(runs):
            ratios.append(0.0)
            windows: list[Any] = []
            mechanism.release(here, PRIOR, Budget(EPSILON), source)
    return np.array(ratios)


def projections(mechanism: Mechanism, corner: float, runs: int, fault: int) -> npt.NDArray[Any]:
    """Return the drawn constant plus slope, the direction that the record pulls most."""
    values: list[float] = []

    def watched(precision: Any, linear: Any, *rest: Any) -> Any:
        draws = ball_gaussian(fault * precision, fault * linear, *rest)
        values.append(float(draws[0].sum()))
        return draws

    with mock.patch.object(_coefficient_draws, "ball_gaussian", watched):
        source, here = random_source(), records(corner)
        for _ in range(runs):
            mechanism.release(here, PRIOR, Budget(EPSILON), source)
    return np.array(values)


def run(scale: float) -> Iterator[Row]:
    """Audit every mechanism, as it is and with a planted lack of noise."""
    runs = max(1_500, int(5_000 * scale))
    for mechanism, statistic, fault in (
        (Laplace(), log_ratios, 4),
        (Fourier(), log_ratios, 4),
        (Sampler(), projections, 100),
        (MAP(), projections, 100),
    ):
        sound, faulty = (
            bound_from_outcomes(
                *(statistic(mechanism, corner, runs, f) for corner in (1.0, 0.0))
            ).epsilon
            for f in (1, fault)
        )
        what = f"linear regression, {mechanism.name()}, {runs:,} runs a side"
        yield Row("regression", what, f"epsilon >= {sound:.3f}", "<= 1", sound <= EPSILON)
        worse = f"the same with {fault} times too little noise"
        yield Row("regression", worse, f"epsilon >= {faulty:.3f}", "> 1", faulty > EPSILON)
