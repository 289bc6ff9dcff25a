"""The boundary: what is charged, what is refused, what is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpbayes_sklearn import mechanisms
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import (
    MAP,
    Fourier,
    Laplace,
    Mechanism,
    Sampler,
    resolve_mechanism,
)
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, exact
from tests.releasing import carried_out, plan_for

STAR = Network.star([2], 2)
COUNTS = CountTables(STAR, (np.array([[3, 1], [0, 2]]), np.array([4, 2])), 6)
PRIOR = DirichletPrior(STAR, (np.ones(2), np.ones(2)))
ALL = [Laplace(), Fourier(), Sampler(), MAP(), MAP(score="posterior")]


class Unknown(Mechanism):
    """A mechanism that no subject has a plan for."""


def test_statistics_that_a_mechanism_cannot_release_are_refused() -> None:
    for epsilon in (1, math.inf):
        with pytest.raises(ValueError, match="unknown mechanism cannot release counts"):
            plan_for(Unknown(), COUNTS, PRIOR, Budget(exact(epsilon)))


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_every_mechanism_claims_the_budget_it_was_given(mechanism: Mechanism) -> None:
    for unit in (RECORD, FEATURE):
        budget = Budget(exact(0.3), unit=unit)
        guarantee = carried_out(mechanism, COUNTS, PRIOR, budget, Noise()).guarantee
        assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (0.3, 0, unit.name)
        assert guarantee.mechanism == mechanism.name()


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_the_counts_are_left_as_they_were(mechanism: Mechanism) -> None:
    before = [t.copy() for t in COUNTS.tables]
    posterior = carried_out(mechanism, COUNTS, PRIOR, Budget(exact(1)), Noise()).posterior
    assert all((a == b).all() for a, b in zip(before, COUNTS.tables, strict=True))
    # and nothing that was released is the exact table itself
    held = posterior.draws if hasattr(posterior, "draws") else posterior.released.tables
    assert not any(np.shares_memory(h, t) for h, t in zip(held, COUNTS.tables, strict=True))


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_a_seed_repeats_a_release_and_no_seed_does_not(mechanism: Mechanism) -> None:
    def mean(seed: int | None) -> Any:
        release = carried_out(mechanism, COUNTS, PRIOR, Budget(exact(1)), Noise.of(seed))
        return np.concatenate([t.ravel() for t in release.posterior.mean()])

    assert (mean(1) == mean(1)).all()
    assert len({tuple(mean(None)) for _ in range(10)}) > 1


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_options_are_parameters(mechanism: Mechanism) -> None:
    assert clone(mechanism).get_params() == mechanism.get_params()
    assert set(mechanism._parameter_constraints) == set(mechanism.get_params())
    mechanism._validate_params()


@pytest.mark.parametrize(
    "mechanism",
    [
        Sampler(0),
        Sampler(1.5),  # type: ignore[arg-type]
        Sampler(omega=0.5),
        Sampler(omega=0),
        Sampler(n_points=1),
        MAP(score="loud"),
        MAP(omega=0.7),
        MAP(n_points=2**17),
        Fourier(stealth=1),
        Fourier(stealth=-0.1),
        Fourier(increment="none"),
        Fourier(t=-1),
    ],
    ids=str,
)
def test_bad_options_are_refused(mechanism: Mechanism) -> None:
    with pytest.raises(ValueError, match=f"parameter of {type(mechanism).__name__} must be"):
        mechanism._validate_params()


# -------------------------------------------------------------------- discovery


def test_names_are_those_of_classes() -> None:
    assert plans.mechanism_names() == {
        *("laplace", "fourier", "sampler", "map", "gaussian", "auto")
    }
    for name in plans.mechanism_names():
        mechanism = resolve_mechanism(name)
        assert mechanism.name() == name
        assert resolve_mechanism(mechanism) is mechanism
        assert type(mechanism).__name__ in mechanisms.__all__
