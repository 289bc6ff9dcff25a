r"""Private selection: a random number of runs, of which only the best is published.

**The procedure.** A run is a draw from a private law Q over outcomes that carry a score. Make R
independent runs, R random and **never published**, and publish the outcome with the highest score
(Liu and Talwar, *Private selection from private candidates*, 2019).

**The claim.** If one run is :math:`\varepsilon`-private and R has the truncated negative binomial
law of shape :math:`\eta \ge 0`, the winner is :math:`(2+\eta)\varepsilon`-private, for any mean
of R and any number of outcomes: three times for the geometric law (:math:`\eta = 1`), twice for
the logarithmic one (:math:`\eta = 0`), which makes few runs more often.

**Proof** (after Papernot and Steinke, *Hyperparameter tuning with Rényi differential privacy*,
2022; here for pure privacy). Order the outcomes by score, ties in any fixed order. With
:math:`f(x) = E\,x^R`, :math:`q = Q(y)`, :math:`L = Q(\text{no higher than } y)`,

.. math:: P(\text{winner} = y) = f(L) - f(L - q) = q \int_0^1 f'(L - uq)\,du,
          \qquad f'(x) \propto (\gamma + (1-\gamma)(1-x))^{-\eta-1}.

For a neighbouring data set, q changes by a factor of at most :math:`e^\varepsilon`. So does
:math:`1 - x = Q(\text{higher than } y) + u\,Q(y)`, being a positive combination of probabilities,
and so does :math:`\gamma + (1-\gamma)(1-x)`, whose power makes up the other :math:`1+\eta`. ∎

Ties: the runs are exchangeable, so the first of the highest is as good as any fixed order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from dpbayes_sklearn.noise.bernoulli import rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["ETA", "PRICE", "Stopping", "number_of_runs"]

ETA = {"geometric": 1, "logarithmic": 0}
"""Shape of the law of the number of runs."""

PRICE = {name: 2 + eta for name, eta in ETA.items()}
"""Privacy cost of the selected run, in units of one run's pure epsilon."""


@dataclass(frozen=True)
class Stopping:
    r"""The law of the number of runs.

    Attributes
    ----------
    name : {"geometric", "logarithmic"}
        :math:`P(R = r) = \gamma(1-\gamma)^{r-1}`, or
        :math:`(1-\gamma)^r / (r \log\frac1\gamma)`.
    inverse : int
        :math:`1/\gamma`.
    """

    name: str
    inverse: int

    @classmethod
    def of_mean(cls, name: str, mean: int) -> Stopping:
        """Return the law whose mean is this, or for "logarithmic" the next larger one there is.

        >>> Stopping.of_mean("geometric", 60).inverse, Stopping.of_mean("logarithmic", 60).inverse
        (60, 353)
        """
        return cls(name, mean if name == "geometric" else _logarithmic_inverse(mean))

    @property
    def eta(self) -> int:
        """Shape of the truncated negative binomial law."""
        return ETA[self.name]

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        if self.name == "geometric" or self.inverse == 1:
            return float(self.inverse)
        return (self.inverse - 1) / math.log(self.inverse)


@lru_cache(maxsize=64)
def _logarithmic_inverse(mean: int) -> int:
    """Return the smallest m with (m - 1)/log m at least ``mean``."""
    low, high = 1, 2
    while (high - 1) / math.log(high) < mean:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = (middle - 1) / math.log(middle) >= mean
        low, high = (low, middle) if enough else (middle, high)
    return high if mean > 1 else 1


def number_of_runs(stopping: Stopping, source: RandomSource) -> int:
    """Draw R exactly, in integers.

    Geometric: repeat a uniform draw from ``inverse`` values until it gives the first of them.
    Logarithmic: accept a geometric r with probability 1/r.

    Examples
    --------
    >>> import os
    >>> number_of_runs(Stopping("geometric", 1), os.urandom)
    1
    """
    runs, attempt = _geometric(stopping.inverse, source), rounds()
    while stopping.name == "logarithmic" and uniform_below(runs, 1, source)[0]:
        next(attempt)
        runs = _geometric(stopping.inverse, source)
    return runs


def _geometric(mean: int, source: RandomSource) -> int:
    attempt, thrown = rounds(), 0
    while (shown := uniform_below(mean, mean, source)).all():
        next(attempt)
        thrown += mean
    return thrown + int(shown.argmin()) + 1
