r"""Private selection: a random number of runs, of which only the best is published.

**The procedure.** A run is a draw from a private law Q over outcomes that carry a score. Make R
independent runs, R geometric and **never published**, and publish the outcome with the highest
score (Liu and Talwar, *Private selection from private candidates*, 2019).

**The claim.** If one run is :math:`\varepsilon`-private, the winner is
:math:`3\varepsilon`-private, for any mean of R and any number of outcomes.

**Proof** (after Papernot and Steinke, *Hyperparameter tuning with Rényi differential privacy*,
2022; here for pure privacy). Order the outcomes by score, ties in any fixed order. With
:math:`f(x) = E\,x^R = \gamma x / (1 - (1-\gamma)x)`, where :math:`1/\gamma` is the mean of R, and
:math:`q = Q(y)`, :math:`L = Q(\text{no higher than } y)`,

.. math:: P(\text{winner} = y) = f(L) - f(L - q) = q \int_0^1 f'(L - uq)\,du,
          \qquad f'(x) = \frac{\gamma}{(\gamma + (1-\gamma)(1-x))^2}.

For a neighbouring data set, q changes by a factor of at most :math:`e^\varepsilon`. So does
:math:`1 - x = Q(\text{higher than } y) + u\,Q(y)`, being a positive combination of probabilities,
and so does :math:`\gamma + (1-\gamma)(1-x)`, whose square makes up the other two. ∎

Ties: the runs are exchangeable, so the first of the highest is as good as any fixed order.
"""

from __future__ import annotations

from dpbayes_sklearn.noise.bernoulli import rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["PRICE", "number_of_runs"]

PRICE = 3
"""Privacy cost of the selected run, in units of one run's epsilon."""


def number_of_runs(mean: int, source: RandomSource) -> int:
    r"""Draw R with :math:`P(R = r) = \gamma(1-\gamma)^{r-1}`, :math:`\gamma` = 1/mean, exactly.

    Repeat a uniform draw from ``mean`` values until it gives the first of them.

    Examples
    --------
    >>> import os
    >>> number_of_runs(1, os.urandom)
    1
    """
    attempt, thrown = rounds(), 0
    while (shown := uniform_below(mean, mean, source)).all():
        next(attempt)
        thrown += mean
    return thrown + int(shown.argmin()) + 1
