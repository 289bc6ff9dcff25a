"""Steps of releases of tables: within their claim for all neighbours, and using it up."""

from __future__ import annotations

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import MAP, Laplace, Sampler
from tests.contracts import NoisyStepContract, StepContract

STAR = Network.star([2, 2], 2)
NETWORKS = [STAR, Network.star([3], 2), Network((2, 2, 2), ((), (), (0, 1)))]


class TestLaplace(NoisyStepContract):
    mechanism, universes = "laplace", NETWORKS
    units = ("record", "feature")


class TestLaplaceOfShares(NoisyStepContract):
    mechanism, universes = Laplace(budget_split=0.25), [STAR]
    units = ("record", "feature")


class TestFourier(NoisyStepContract):
    mechanism, universes = "fourier", NETWORKS
    units = ("record", "feature")


class TestSampler(StepContract):
    mechanism, universes, n = Sampler(2, n_points=2), [Network.star([2], 2)], 3
    units, least = ("feature",), 0.9


class TestMAP(StepContract):
    mechanism, universes, n = MAP(), [Network.star([2], 2)], 3
    units, least = ("feature",), 0.9
