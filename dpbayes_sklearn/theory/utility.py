"""One number for what a release of a network's counts is worth, by mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

from dpbayes_sklearn.laws.sup_norm import JointNoise, joint_varies_less
from dpbayes_sklearn.privacy.budget import exact
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.fourier import closure, sum_count
from dpbayes_sklearn.statistics.fourier_sensitivity import character_movement, largest_movement
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.theory.fourier import fourier_table_bound, joint_table_bound
from dpbayes_sklearn.theory.sampling import averaging_error
from dpbayes_sklearn.theory.updates import row_noise_bound, update_bound

__all__ = ["utility_bound"]


def utility_bound(
    mechanism: str,
    network: Network,
    epsilon: float,
    delta: float,
    unit: str = "record",
    n_draws: int = 1,
    noise: str = "independent",
    budget_split: float = 1.0,
) -> float:
    """Return the error that a release keeps within with probability at least 1 - delta.

    - ``"laplace"``: of any released count (:func:`update_bound`, or :func:`row_noise_bound` for
      ``noise="joint"``).
    - ``"fourier"``: of any table, in L1 (:func:`fourier_table_bound`, or
      :func:`joint_table_bound` for ``noise="joint"``), the public increment left out.
    - ``"sampler"``: of the average over draws of any query with values in [0, 1], against its mean
      under the tempered posterior (:func:`averaging_error`).

    >>> utility_bound("laplace", Network.star([2] * 10, 2), epsilon=1.0, delta=0.05) < 149
    True
    """
    if mechanism == "sampler":
        return averaging_error(n_draws, delta)
    if mechanism not in {"laplace", "fourier"}:
        raise ValueError(
            f"The {mechanism} mechanism has no utility bound that does not depend on the data; "
            "see theory.map_score_gap."
        )
    if math.isinf(epsilon):
        return 0.0
    rational = Fraction(exact(epsilon))
    if mechanism == "laplace":
        shared = noise if budget_split == 1 else "independent"
        law = CountTables(network, (), 0).row_noise(shared, unit, rational)
        if law is None:
            return update_bound(network, epsilon, delta, unit, budget_split)
        return row_noise_bound(law, network.sizes[-1], delta)
    nodes, supports = range(len(network.sizes)), closure(network)
    together = character_movement(network, supports, unit)
    public = sum_count(network), largest_movement(network, supports, unit)
    if noise == "auto" and joint_varies_less(*public, together, rational):
        noise = "joint"
    if noise == "joint" and together > 0:
        joint = JointNoise.of(*public, rational)
        return max(joint_table_bound(network, node, joint, delta) for node in nodes)
    return max(fourier_table_bound(network, node, together / epsilon, delta) for node in nodes)
