"""Released numbers lie on public lattices; floating-point noise would be seen."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from benchmarks.audit import lattice
from dpbayes_sklearn.convex.draws import REAL_ARITHMETIC
from dpbayes_sklearn.noise import Noise, made_by


@pytest.mark.parametrize("part", [lattice.moments, lattice.coefficients])
def test_no_moment_is_off_the_lattice(part):
    rows = [*part(0.002)]
    assert len(rows) > 1
    assert all(row.passed for row in rows), rows


@pytest.mark.parametrize("part", [lattice.integers, lattice.chosen, lattice.draws])
def test_no_count_is_off_the_lattice(part):
    rows = [released.row(2000) for released in part()]
    assert len(rows) > 1
    assert all(row.passed for row in rows), rows


class Continuous(Noise):
    def add(self, arrays, law):
        rng, scale = np.random.default_rng(0), np.sqrt(law.variance() / 2)
        return tuple(array + rng.laplace(scale=scale, size=array.shape) for array in arrays)


def test_floating_point_noise_on_counts_is_seen():
    with made_by(Continuous):
        assert not next(lattice.integers()).row(2000).passed


class ContinuousAndCounted(lattice.Counted, Continuous):
    pass


def test_floating_point_noise_on_moments_is_seen():
    assert not next(lattice.moments(0.002, ContinuousAndCounted)).passed


def test_draws_of_another_grid_are_seen():
    with mock.patch.object(lattice, "POINTS", 32):
        mechanism = lattice.mechanisms.Sampler(n_points=33, omega=0.2)
        with mock.patch.object(lattice.mechanisms, "Sampler", return_value=mechanism):
            assert not next(lattice.draws()).row(2000).passed


def test_a_silent_guarantee_is_seen():
    with mock.patch.object(lattice, "REAL_ARITHMETIC", "something else"):
        *_, said = lattice.coefficients(0.0001)
    assert not said.passed
    assert REAL_ARITHMETIC != "something else"
