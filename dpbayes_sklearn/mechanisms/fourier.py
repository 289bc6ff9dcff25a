r"""Discrete Laplace noise in the Fourier domain: tables that agree with each other.

Guarantee
---------
*Precondition*: replacing a record changes the character sums by at most :math:`\Delta_F` in L1
(4d for Boolean naive Bayes) and any of them by at most :math:`\Delta_\infty` (2). *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: as for ``laplace``, in the norm of the noise; the sum of the
constant character is n, which neighbours share, so it needs no noise (where records are added or
removed, n was released before). The increment is a function
of public quantities only, and so is the choice of the noise; the tables are post-processing.

Noise law
---------
Independent discrete Laplace noise of scale :math:`\Delta_F/\varepsilon` on every integer sum, or
``noise="joint"``: :math:`P(z) \propto e^{-\varepsilon\max_i|z_i|/\Delta_\infty}` on a public
lattice 1/g, g a power of two. A sum that several families hold is released once, so that all tables
agree on shared marginals.

Regression
----------
On [-1, 1] the characters are Chebyshev polynomials, x and :math:`2x^2 - 1`. All their sums, one for
each entry of the moments, are released at once; raising that of the constant raises every square,
so that the moments are positive semi-definite with probability ``stealth`` and need no repair.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import (
    Blocks,
    CharacterSums,
    ReleasedCharacters,
    closure,
    sum_count,
    tables_from_characters,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import NetworkPosterior
from dpbayes_sklearn.counts.splits import leaf_levels
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.mechanisms.laplace import moment_shares
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.release import (
    NoisyMoments,
    Products,
    noisy_moments,
    scaled_by_residuals,
)
from dpbayes_sklearn.regression.sensitivity import whole_block
from dpbayes_sklearn.regression.shares import Shares
from dpbayes_sklearn.regression.step_noise import widening
from dpbayes_sklearn.theory.bounds import table_bound

__all__ = ["Fourier", "paper_increment", "simulated_noise", "stealth_increment"]

_MOST_DRAWS = 1_000_000  # of the public simulation
_MATRICES = 200  # likewise, of moments


class Fourier(Mechanism):
    """Add discrete Laplace noise to the Fourier coefficients of the counts.

    Parameters
    ----------
    increment : {"scaled_by_residuals", "paper"}, default="scaled_by_residuals"
        How much the constant coefficient is raised so that no cell of a table is negative:
        the ``stealth`` quantile of what the public noise law needs, or the rule
        4 t N^2 / epsilon of Zhang, Rubinstein and Dimitrakakis (2016), N the number of
        coefficients. Cells that are negative all the same are set to zero.
    stealth : float in [0, 1), default=0.9
        Probability with which all cells come out non-negative.
    t : float, default=2.3
        The paper's parameter, for ``increment="paper"``.
    noise : {"auto", "joint", "independent"}, default="auto"
        For counts: independent Laplace noise on every coefficient, or joint noise whose density
        decays with its largest entry (the K-norm mechanism of the sup norm). The latter has up to
        six times less variance if one record changes most coefficients, as with Boolean features.
        "auto" takes what has less variance, by public quantities only. Regression always does.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    >>> model = BayesianNaiveBayes(mechanism=Fourier(noise="joint"), **declared).fit(X, y)
    >>> model.posterior_.released.laws
    (SupNorm(scale=Fraction(2, 1), sides=(1, 1, 1, 1, 1), grid=4),)
    """

    walks_splits: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "increment": [StrOptions({"scaled_by_residuals", "paper"})],
        "stealth": [Range(Real, 0, 1, closed="left")],
        "t": [Range(Real, 0, None, closed="left")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(
        self,
        *,
        increment: str = "scaled_by_residuals",
        stealth: float = 0.9,
        t: float = 2.3,
        noise: str = "auto",
    ) -> None:
        self.increment = increment
        self.stealth = stealth
        self.t = t
        self.noise = noise

    def _preflight_counts(
        self, statistics: CountTables, prior: DirichletPrior, budget: Budget
    ) -> None:
        self._sum_law(CharacterSums.of(statistics), budget)

    def _sum_law(self, sums: CharacterSums, budget: Budget) -> NoiseLaw:
        return sums.law(self.noise, budget.unit, Fraction(budget.epsilon))

    def _release_counts(
        self,
        statistics: CountTables,
        prior: DirichletPrior,
        budget: Budget,
        noise: Noise,
    ) -> NetworkPosterior:
        network, sums = statistics.network, CharacterSums.of(statistics)
        law = self._sum_law(sums, budget)
        noisy = noise.add([*sums.blocks.values()], law)
        blocks: Blocks = dict(zip(sums.blocks, noisy, strict=True))
        increment = self._increment(network, law, float(budget.epsilon))
        return prior.update_fourier(
            ReleasedCharacters(
                network, blocks, statistics.n, (law,), increment, statistics.size_laws
            )
        )

    def _increment(self, network: Network, law: NoiseLaw, epsilon: float) -> float:
        if self.increment == "paper":
            # whole, so that tables stay exact in floating point and agree bit for bit
            return math.ceil(paper_increment(network, epsilon, self.t))
        return stealth_increment(network, law, self.stealth)

    def simulated_count_errors(
        self, network: Network, n: int, budget: Budget, at_least: int
    ) -> FloatArray:
        """Return noises of all cells in many releases, the public increment left out."""
        law = self._sum_law(CharacterSums(network, {}, n), budget)
        cells = sum(math.prod(shape) for shape in network.shapes)
        blocks = simulated_noise(network, law, 1 + at_least // cells, Noise(random_source(0)))
        tables = tables_from_characters(network, blocks, 0)
        return np.concatenate([np.abs(table).ravel() for table in tables])

    def utility_bound(self, network: Network, n: int, budget: Budget, delta: float) -> float:
        """(1 - delta) bound on the L1 error of any table, the public increment left out."""
        if budget.infinite:
            return 0.0
        law = self._sum_law(CharacterSums(network, {}, n), budget)
        return max(table_bound(network, node, law, delta) for node in range(len(network.sizes)))

    def _preflight_moments(self, statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
        _shares(statistics, prior, budget).grid(statistics.design, statistics.n)

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
    ) -> GaussianPosterior:
        design, shares = statistics.design, _shares(statistics, prior, budget)
        block = whole_block(design).protecting(budget.unit)
        products = Products(lambda _: block, widening(statistics.n * float(shares.per_record)))
        noisy, places = noisy_moments(statistics, shares, products, noise)
        increment = moment_increment(design, self.stealth, budget.unit) / float(shares.model)
        released = noisy.released(places.window, increment)
        return scaled_by_residuals(prior.update(released, places), statistics, shares, noise)


def _shares(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    """Share epsilon as for Laplace; only matrix noise gains if signs are centred."""
    return moment_shares(statistics, prior, budget, centre_signs=False)


def paper_increment(network: Network, epsilon: float, t: float) -> float:
    """Return 4 t N^2 / epsilon, N the number of coefficients of the network's closure.

    >>> paper_increment(Network.star([2] * 16, 2), 1.0, t=2.3)
    10635.2
    """
    return 4 * t * (1 + sum_count(network)) ** 2 / epsilon


@lru_cache(maxsize=256)
def stealth_increment(network: Network, law: NoiseLaw, stealth: float) -> float:
    """Return the ``stealth`` quantile of the largest max over cells of -noise * 2^h.

    Raising the constant coefficient by s raises a cell by s * 2^-h. The quantile is found by
    simulating the public noise law with a fixed generator: no data, so no cost.
    """
    if sum_count(network) == 0:  # every variable has a single value
        return 0.0
    repeats = int(np.clip(_MOST_DRAWS // sum_count(network), 200, 2000))
    noise = simulated_noise(network, law, repeats, Noise(random_source(0)))
    needed = np.zeros(repeats)
    for table in tables_from_characters(network, noise, 0):
        lack = -table * 2.0 ** leaf_levels(table.shape[1:])
        needed = np.maximum(needed, lack.reshape(repeats, -1).max(axis=1))
    return float(np.quantile(needed, stealth, method="higher"))


def simulated_noise(network: Network, law: NoiseLaw, repeats: int, noise: Noise) -> Blocks:
    """Return noises of all sums, ``repeats`` of each."""
    shapes = {s: (repeats, *(network.sizes[u] - 1 for u in s)) for s in closure(network)}
    nothing = [np.zeros(shape, np.int64) for shape in shapes.values()]
    return dict(zip(shapes, noise.add(nothing, law), strict=True))


@lru_cache(maxsize=64)
def moment_increment(design: Design, stealth: float, unit: PrivacyUnit = RECORD) -> float:
    """Return the ``stealth`` quantile of max(0, -smallest eigenvalue of the noise) at epsilon 1.

    On [-1, 1] the characters are Chebyshev polynomials, x and 2x² - 1. Raising the constant's
    coefficient by 2s raises every sum of squares by s, so moments plus noise plus s times the
    identity are positive semi-definite with this probability. Found by simulating the public
    noise law with a fixed generator: no data, so no cost. Noise shrinks as 1/epsilon.
    """
    block, simulated, grid = whole_block(design).protecting(unit), Noise(random_source(0)), 2**10
    law, smallest = block.law(Fraction(1), grid), list[float]()
    while len(smallest) < _MATRICES:  # several at a time, of wide tables few
        many = min(_MATRICES - len(smallest), 1 + _MOST_DRAWS // law.size)
        for sums in simulated.draw(law, many) / (law.grid * grid**2):
            noise = NoisyMoments.of(design, 0)
            noise.put(block, sums, law.variances / grid**4)
            smallest.append(float(np.linalg.eigvalsh(noise.gram)[0]))
    return max(0.0, float(np.quantile(-np.array(smallest), stealth, method="higher")))
