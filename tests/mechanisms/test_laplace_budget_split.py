"""The class table's share of the budget: derived, exact, and never more than epsilon in all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, exact
from tests.releasing import carried_out

STAR = Network.star([2, 3, 2], 2)
TREE = Network((2, 3, 2), ((2,), (2, 0), ()))
CLASS_WITH_PARENT = Network((2, 2), ((), (0,)))


def counts(network, codes):
    return CountTables.count(network, [(codes[:, :-1], codes[:, -1])])


def all_records(network):
    return np.stack([grid.ravel() for grid in np.indices(network.sizes)], axis=1)


def scales(network, split, epsilon=0.7, unit=RECORD):
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes), "noise_aware")
    budget = Budget(exact(epsilon), unit=unit)
    statistics = counts(network, all_records(network))
    mechanism = Laplace(budget_split=split, noise="independent")
    release = carried_out(mechanism, statistics, prior, budget, Noise.of(0))
    (law,) = release.posterior.released.laws
    return law.scales


@pytest.mark.parametrize("network", [STAR, TREE])
@pytest.mark.parametrize("split", [0.1, 0.25, 1.0, 3.0])
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_no_neighbouring_record_loses_more_than_epsilon(network, split, unit):
    """Try every replacement of one record against the scales that were used."""
    b = scales(network, split, unit=unit)
    everyone = all_records(network)
    tables = [counts(network, record[None]).tables for record in everyone]
    worst = 0
    for i, one in enumerate(everyone):
        for j, other in enumerate(everyone):
            differs = one != other
            if unit == FEATURE and (differs.sum() != 1 or differs[-1]):
                continue
            moved = [np.abs(s - t).sum() for s, t in zip(tables[i], tables[j], strict=True)]
            worst = max(worst, sum(Fraction(int(m)) / s for m, s in zip(moved, b, strict=True)))
    assert worst <= Fraction(7, 10)
    assert worst > Fraction(69, 100)  # and the budget is used


def test_the_class_table_has_its_share():
    b = scales(STAR, 0.25)
    assert b[0] == b[1] == b[2]
    assert b[3] == 4 * b[0]
    assert b[0] < scales(STAR, 1.0)[0]


def test_equal_shares_are_the_default():
    assert Laplace().budget_split == 1.0
    assert len(set(scales(STAR, 1.0))) == 1


def test_a_class_with_parents_is_refused_before_anything_is_released():
    with pytest.raises(ValueError, match="whose class has parents"):
        scales(CLASS_WITH_PARENT, 0.5)


@pytest.mark.parametrize("split", [0.0, -1.0, "half"])
def test_a_share_that_is_none_is_refused(split):
    model = BayesianNaiveBayes(
        mechanism=Laplace(budget_split=split), classes=[0, 1], bounds=(0, 1), n_bins=2
    )
    with pytest.raises(ValueError, match="'budget_split' parameter"):
        model.fit(np.zeros((10, 2)), np.arange(10) % 2)
