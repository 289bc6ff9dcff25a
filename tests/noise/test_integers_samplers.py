"""What the discrete Laplace and the discrete Gaussian sampler have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpbayes_sklearn.noise.discrete_gaussian import (
    MAX_VARIANCE,
    discrete_gaussian,
    representable_variance,
)
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import MAX_TERM, representable_scale

DRAWS = 500_000
Sampler = Callable[..., npt.NDArray[np.int64]]

each_sampler = pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])


@each_sampler
def test_successive_draws_are_uncorrelated(sampler: Sampler) -> None:
    draws = sampler(Fraction(100, 3), DRAWS, random_source(24)).astype(np.float64)

    def correlation(values: npt.NDArray[np.float64], lag: int) -> float:
        return float(np.corrcoef(values[:-lag], values[lag:])[0, 1])

    for lag in (1, 2, 8, 16):
        for values in (draws, np.abs(draws)):
            assert abs(correlation(values, lag)) < 4.5 / math.sqrt(DRAWS)
            drifting = values + 0.01 * np.roll(values, lag)
            assert abs(correlation(drifting, lag)) > 4.5 / math.sqrt(DRAWS)


@each_sampler
@pytest.mark.parametrize(
    "parameter", [Fraction(0), Fraction(1, 1000), Fraction(1, 2**54), Fraction(1, 10**40)]
)
def test_tiny_parameters_give_no_noise(sampler: Sampler, parameter: Fraction) -> None:
    assert not sampler(parameter, (50, 2), random_source(26)).any()


@each_sampler
def test_the_shape_does_not_change_the_draws(sampler: Sampler) -> None:
    flat = sampler(Fraction(5, 2), 24, random_source(27))
    for shape in ((24,), (4, 6), (2, 3, 4), (24, 1)):
        drawn = sampler(Fraction(5, 2), shape, random_source(27))
        assert drawn.shape == shape
        assert drawn.dtype == np.int64
        assert (drawn.ravel() == flat).all()
    assert sampler(Fraction(5, 2), (), random_source(27)).shape == ()
    assert sampler(Fraction(5, 2), (0, 3), random_source(27)).shape == (0, 3)


@each_sampler
@pytest.mark.parametrize("byte", [0, 255])
def test_a_source_that_repeats_itself_is_refused_rather_than_waited_for(
    sampler: Sampler, byte: int
) -> None:
    with pytest.raises(RuntimeError, match="keeps repeating itself"):
        sampler(Fraction(100, 3), 5, lambda count: bytes([byte]) * count)


@pytest.mark.parametrize(
    ("sampler", "largest"), [(discrete_laplace, MAX_TERM), (discrete_gaussian, MAX_VARIANCE)]
)
def test_parameters_out_of_range(sampler: Sampler, largest: int) -> None:
    for parameter in (Fraction(-1), Fraction(largest) + 1):
        with pytest.raises(ValueError, match="between 0 and 2"):
            sampler(parameter, 1, random_source())


@pytest.mark.parametrize(
    ("sampler", "representable"),
    [(discrete_laplace, representable_scale), (discrete_gaussian, representable_variance)],
)
def test_a_float_is_not_exact(sampler: Sampler, representable: Callable[[Any], Fraction]) -> None:
    with pytest.raises(TypeError, match=r"Got float instead\."):
        sampler(0.5, 1, random_source())
    assert representable(np.int64(3)) == 3
