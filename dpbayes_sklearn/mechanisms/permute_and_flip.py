r"""Choices one after the other, each of a candidate with a high score.

Guarantee
---------
*Precondition*: neighbours differ in no score by more than :math:`\Delta`; what can be chosen
depends on earlier choices only. *Claim*: choices with shares :math:`s_i` of :math:`\varepsilon`,
:math:`\sum_i s_i = 1`, are :math:`\varepsilon`-DP. *Proof*: permute-and-flip (McKenna and Sheldon
2020), or above 64 candidates the exponential mechanism, with scores times
:math:`s_i\varepsilon/2\Delta`, less what rounding to integers can add; adaptive composition.

Noise law
---------
A candidate is drawn from integer weights: see :mod:`dpbayes_sklearn.noise.finite`.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.counts.dependence import LARGEST_SCORE, Scored
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.finite import (
    MAX_CHOICES,
    MAX_POINTS,
    choice_log_law,
    choice_loss,
    integer_weights,
    rounding_loss,
)
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["PermuteAndFlip", "choice_weights"]


class PermuteAndFlip(Mechanism):
    """Select candidates by their scores, one after the other.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import PermuteAndFlip
    >>> PermuteAndFlip().supports("scores"), PermuteAndFlip().supports("counts")
    (True, False)
    """

    def _preflight_scores(self, statistics: Scored, prior: Any, budget: Budget) -> None:
        if prior.most_candidates > MAX_POINTS:
            raise ValueError(
                f"One of up to {prior.most_candidates} candidates would be chosen at a time, and "
                f"exact draws are from {MAX_POINTS} at most: give fewer columns."
            )

    def _release_scores(
        self, statistics: Scored, prior: Any, budget: Budget, noise: Noise
    ) -> tuple[Hashable, ...]:
        sensitivity = statistics.sensitivity(budget.unit)

        def choose(scores: IntArray, share: Fraction) -> int:
            epsilon = float(budget.epsilon) * float(share) * (1 - 2.0**-50)  # rounded down

            def weights(scores: IntArray) -> npt.NDArray[np.uint64]:
                return choice_weights(scores, sensitivity, epsilon)

            return noise.choose_by(scores, weights, sensitivity, sensitivity)

        answers: tuple[Hashable, ...] = prior.ask(statistics, choose)
        return answers


def choice_weights(scores: IntArray, sensitivity: int, epsilon: float) -> npt.NDArray[np.uint64]:
    """Return the integer weights that are drawn from, shape (1, candidates)."""
    if sensitivity == 0:  # no record can change a score
        return np.eye(len(scores), dtype=np.uint64)[[int(np.argmax(scores))]]
    few = len(scores) <= MAX_CHOICES
    magnitude = epsilon * LARGEST_SCORE / (2.0 * sensitivity)
    loss = (choice_loss if few else rounding_loss)(len(scores), magnitude)
    nats = max(epsilon - loss, 0.0) / (2.0 * sensitivity) * scores[None].astype(float)
    return integer_weights(choice_log_law(nats) if few else nats)
