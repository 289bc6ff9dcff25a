r"""A posterior whose predictions raise the features' probabilities to powers.

.. math:: p(c \mid x) \propto p(c) \exp\Big(\sum_j w_j \ln p(x_j \mid c)\Big)

Features are not independent given the class, so naive Bayes counts some evidence several times. The
weights :math:`w_j` follow from a temperature and from each feature's mutual information with the
class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.posteriors.scores import Scores
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Tempering

__all__ = ["TemperedPosterior"]


@dataclass(frozen=True)
class TemperedPosterior(NetworkPosterior):
    """A posterior of tables, with the weights of the features in predictions.

    Attributes
    ----------
    posterior : NetworkPosterior
        The belief about the tables, which a temperature does not change.
    tempering : Tempering
    n : int
        Number of records of the batch that the temperature was chosen for.
    weights : array of shape (n_features,)
        The weight of every feature's log probabilities.
    """

    posterior: NetworkPosterior
    tempering: Tempering
    n: int
    weights: FloatArray = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        weights = self.tempering.weights(self.posterior.information)
        object.__setattr__(self, "weights", weights)

    @property
    def network(self) -> Network:  # type: ignore[override]
        """The graph."""
        return self.posterior.network

    @property
    def untempered(self) -> NetworkPosterior:
        """The belief that takes the features' evidence in full."""
        return self.posterior

    @property
    def released(self) -> Any:
        """What was released about the tables; None for draws."""
        return getattr(self.posterior, "released", None)

    @property
    def exact(self) -> bool:
        """True if the belief about the tables is the exact posterior."""
        return bool(getattr(self.posterior, "exact", False))

    def mean(self) -> Tables:
        """Return the expected tables."""
        return self.posterior.mean()

    @property
    def information(self) -> FloatArray:
        """Mutual information of every feature and the class."""
        return self.posterior.information

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws of the tables."""
        return self.posterior.sample(rng, n)

    def scores(self, weights: FloatArray | None = None) -> Scores:
        """Return the function from codes to log p(c) plus the features' weighted log tables."""
        return self.posterior.scores(self.weights if weights is None else weights)

    def merge(self, other: TemperedPosterior) -> TemperedPosterior:
        """Return the belief after both batches, with the temperature of the larger one."""
        larger = max(other, self, key=lambda one: one.n)
        merged = self.posterior.merge(other.posterior)
        return TemperedPosterior(merged, larger.tempering, larger.n)
