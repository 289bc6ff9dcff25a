r"""The choice of the temperature, with a share of the budget.

Guarantee
---------
*Precondition*: the tables were released before; given them, neighbours change the sums of clipped
losses of all candidate temperatures by numbers that lie within a range of R. *Claim*: the choice is
:math:`\varepsilon_t`-DP, and with the tables at :math:`\varepsilon - \varepsilon_t` the release is
:math:`\varepsilon`-DP. *Proof*: permute-and-flip with scores
:math:`\log w - \varepsilon_t S/R`, :math:`\varepsilon_t` less what rounding to integers can
add (a change that all scores share cancels); adaptive composition.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.posterior import NetworkPosterior, TemperedPosterior
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.counts.temperature import (
    DEFAULT,
    TEMPERINGS,
    LossSums,
    Tempering,
    stride,
    temperature_share,
    untaught,
)
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import choice_log_law, choice_loss, integer_weights
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import drawn_sample

__all__ = ["default_tempering", "table_budget", "tempered", "tempering_weights"]


def table_budget(temperature: float | str, n: int, budget: Budget) -> Budget:
    """Return the part of the budget for the tables, from public quantities only."""
    if temperature != "auto" or budget.infinite:
        return budget
    epsilon = Fraction(budget.epsilon)
    share = temperature_share(n, Fraction(budget.unit.equivalent(epsilon))) * epsilon
    return budget._replace(epsilon=Fraction(budget.epsilon) - share, pure_epsilon=share)


def tempered(
    posterior: NetworkPosterior,
    statistics: CountTables,
    prior: DirichletPrior,
    budget: Budget,
    noise: Noise,
) -> NetworkPosterior:
    """Return the posterior at its temperature: the given one, or one that is learned."""
    if prior.temperature == 1:
        return posterior
    if prior.temperature != "auto":
        return TemperedPosterior(posterior, Tempering(float(prior.temperature)), statistics.n)
    return TemperedPosterior(
        posterior, _learned(posterior, statistics, budget, noise), statistics.n
    )


def _learned(
    posterior: NetworkPosterior,
    statistics: CountTables,
    budget: Budget,
    noise: Noise,
) -> Tempering:
    records, candidates = statistics.records, [*TEMPERINGS]
    if records is None:
        return default_tempering(posterior)
    if budget.infinite:  # no privacy is asked for
        return candidates[int(np.argmin(records.loss_sums(posterior).sums))]
    share = Fraction(budget.epsilon) - Fraction(table_budget("auto", statistics.n, budget).epsilon)
    if not share:  # too few records to learn it
        return default_tempering(posterior)
    every = stride(statistics.n, float(share))
    losses = records.loss_sums(posterior, drawn_sample(statistics.n, every, budget.unit, noise))
    if budget.unit.size_is_secret:
        losses = losses.at_most(statistics.n_bound)

    def weights(scores: IntArray) -> npt.NDArray[np.uint64]:
        return tempering_weights(replace(losses, sums=-scores), float(share), budget.unit)

    most = losses.sensitivity(budget.unit)
    others = 0 if budget.unit.size_is_secret else most  # who comes or goes moves all in one way
    return candidates[noise.choose_by(-losses.sums, weights, most, others)]


def default_tempering(posterior: NetworkPosterior) -> Tempering:
    """Return the temperature that no record is asked about: a function of what was released."""
    if not posterior.network.is_star:
        return DEFAULT
    entropy = float(entr(posterior.mean()[-1]).sum())
    return untaught(float(posterior.information.sum()), entropy)


def tempering_weights(
    losses: LossSums, epsilon: float, unit: PrivacyUnit
) -> npt.NDArray[np.uint64]:
    """Return the integer weights that are drawn from, shape (1, candidates)."""
    effective = epsilon - choice_loss(len(TEMPERINGS), LossSums.magnitude(losses.n, epsilon, unit))
    scores = losses.scores(unit, max(effective, 0.0))
    return integer_weights(choice_log_law(scores[None]))
