"""The exact delta of Gaussian noise in small worlds, and what it refuses to call private."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_delta
from benchmarks.audit.tools.deltas import gaussian_shift_delta
from dpbayes_sklearn.counts import tables
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import NoisyTables, tables_plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Gaussian, Laplace, Sampler
from dpbayes_sklearn.noise import DiscreteGaussian
from tests.hockey_stick import enumerated_delta

PAIR = Network.star([2], 2)


@pytest.mark.parametrize(
    "cells", [[(1, 1)], [(1, 1)] * 3, [(2, 1)], [(1, 1), (1, 1), (3, 1)], [(1, 2), (1, 3)]]
)
def test_delta_is_that_of_listing_every_outcome(cells: list[tuple[int, int]]) -> None:
    variance = 2.5
    pattern = tuple((variance / weight, size, 1) for size, weight in cells)
    for epsilon in (0.1, 1.0, 3.0):
        listed = enumerated_delta(variance, epsilon, cells)
        assert gaussian_shift_delta(pattern, epsilon) == pytest.approx(listed, rel=1e-9)


def test_what_does_not_change_costs_nothing_and_variances_have_small_ratios() -> None:
    assert gaussian_shift_delta((), 1.0) == 0.0
    with pytest.raises(ValueError, match="ratios of the variances"):
        gaussian_shift_delta(((1.0, 1, 1), (2.0**0.5, 1, 1)), 1.0)


def test_pure_noise_spends_no_delta_but_for_what_exceeds_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pure = Laplace(noise="independent")
    assert enumerate_delta(pure, PAIR, 1).delta == 0.0
    real = tables.laplace_scale
    monkeypatch.setattr(tables, "laplace_scale", lambda *a: real(*a) * Fraction(9, 10))
    found = enumerate_delta(pure, PAIR, 1)
    assert found.delta > 0.05
    assert not found.within


def test_draws_are_gone_through_outcome_by_outcome() -> None:
    assert enumerate_delta(Sampler(n_points=3), PAIR, 1).within


class ByData(Gaussian):
    """A planted fault: the variance depends on the data."""


class NoisyByData(NoisyTables):
    """A release that changes its law when it sees the counts."""

    def release(self, statistics: CountTables, noise: Any) -> Any:
        more = Fraction(1 + int(np.ravel(statistics.tables[0])[0]))
        law = DiscreteGaussian(tuple(more * s for s in self.law.parameters), self.law.sizes)  # type: ignore[attr-defined]
        return replace(tables_plan(Gaussian(), *self.public), law=law).release(statistics, noise)

    @property
    def public(self) -> tuple[Any, ...]:
        return self.prior, self.facts, self.cost


@tables_plan.register(ByData)
def _(mechanism: ByData, *public: Any) -> Any:
    plan = tables_plan(Gaussian(), *public)
    return NoisyByData(
        cost=plan.cost, mechanism="gaussian", prior=plan.prior, facts=plan.facts, law=plan.law
    )


def test_a_variance_that_depends_on_the_data_is_seen() -> None:
    assert enumerate_delta(ByData(), PAIR, 1).delta == 1.0


def test_the_worst_pair_is_told() -> None:
    found = enumerate_delta("gaussian", 3, 2, epsilon=0.5, delta=1e-3)
    one, other = found.worst_pair
    assert len(one) == len(other) == 2
    assert one != other
    assert (found.epsilon, found.claim) == (0.5, 1e-3)
