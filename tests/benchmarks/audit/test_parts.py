"""Parts of a release: recorded at the samplers, lost between neighbours, and added up."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit._parts import (
    BITS,
    Neighbourhood,
    added_up,
    frame,
    judged,
    reached,
    recordings,
    worlds,
)
from benchmarks.audit.tools.recording import (
    Part,
    Texts,
    covered,
    lost,
    together,
    worst_of_choice,
)
from benchmarks.audit.tools.steps import Added, Placed
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.columns.plans import choice_weights
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace


def test_pure_parts_add_up() -> None:
    parts = [Part(0.25, 0.25**2 / 2)] * 4
    assert together(parts).pure == 1.0
    assert covered(parts, 1.0, 0.0)
    assert not covered(parts, 0.99, 0.0)
    assert covered([Part(0.01, 0.01**2 / 2)] * 1000, 2.0, 1e-6)  # by zCDP


def test_gaussian_parts_need_a_delta() -> None:
    parts = [Part(math.inf, 0.0244)]
    assert covered(parts, 1.0, 1e-6)
    assert not covered(parts, 1.0, 0.0)
    assert not covered([*parts, Part(0.15, 0.15**2 / 2)], 1.0, 1e-6)


def test_gaussian_noise_loses_rho_and_laplace_noise_epsilon() -> None:
    gaussian, laplace = DiscreteGaussian((Fraction(8),), (2,)), DiscreteLaplace.of(Fraction(4), [2])
    one, other = np.array([1, 0]), np.array([0, 1])
    assert lost(Added(one, gaussian), Added(other, gaussian)) == Part(math.inf, 0.125)
    assert lost(Added(one, laplace), Added(other, laplace)) == Part(0.5, 0.125)
    assert lost(Added(one, laplace), Added(one, gaussian)).delta == 1.0


def test_points_of_a_lattice_are_compared_one_by_one() -> None:
    one, other = Placed((2, 10), (4, 1)), Placed((3, 10), (4, 1))
    assert lost(one, other).pure == pytest.approx(math.log(4 * 16 / 19))
    assert lost(one, Placed((2, 11), (4, 1))).pure == math.inf


def test_texts_lose_what_their_noise_hides() -> None:
    law = TruncatedLaplace(Fraction(2), 12)
    one, other = (Texts(((law, (("a", c),)),)) for c in (13, 14))
    assert one.loss_beyond(other, 0.0) == pytest.approx(0.5, abs=0.02)
    alone, nobody = Texts(((law, (("a", 1),)),)), Texts(((law, ()),))
    assert alone.loss_beyond(nobody, 0.0) == math.inf
    assert alone.loss_beyond(nobody, float(law.beyond(1)) * 1.001) == pytest.approx(0.0, abs=1e-3)


def test_a_choice_loses_its_epsilon_at_worst() -> None:
    worst = worst_of_choice(lambda scores: choice_weights(scores, 3, 1.0), 4, 3, 3)
    assert 0.99 < worst <= 1.0


def _counts() -> Neighbourhood:
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2, inference="plug_in")
    others = frame(np.random.default_rng(0).integers(0, 2, (600, 4)).tolist())
    return Neighbourhood("counts", model, others, BITS, least=0.99)


def test_neighbours_are_fitted_along_the_same_answers() -> None:
    world = _counts()
    found, fitted = recordings(world)
    assert len({tuple(type(step) for step in own.steps) for own in found}) == 1
    tables = [model.posterior_.released.tables for model, _ in fitted]
    assert all(np.array_equal(a, b) for a, b in zip(tables[0], tables[1], strict=True))
    assert together(added_up(found, world.pairs)).pure == pytest.approx(1.0, abs=1e-6)


def test_what_was_drawn_is_compared_with_what_was_charged() -> None:
    world = _counts()
    assert list(judged(world)) == []
    assert reached(world) == pytest.approx(1.0, abs=1e-6)


def test_every_world_has_a_name_of_its_own() -> None:
    names = [world.name for world in worlds()]
    assert len({*names}) == len(names)
