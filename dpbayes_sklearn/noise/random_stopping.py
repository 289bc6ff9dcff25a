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

from dpbayes_sklearn.noise.integers import MAX_ROUNDS, rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["ETA", "PRICE", "Stopping", "number_of_runs"]

ETA = {"geometric": 1, "logarithmic": 0}
"""Shape of the law of the number of runs."""

PRICE = {name: 2 + eta for name, eta in ETA.items()}
"""Privacy cost of the selected run, in units of one run's pure epsilon."""


_PROPOSALS = 2 * MAX_ROUNDS  # at least a third are accepted, not half


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
    Logarithmic: see :func:`_logarithmic`.

    Examples
    --------
    >>> import os
    >>> number_of_runs(Stopping("geometric", 1), os.urandom)
    1
    """
    draw = _logarithmic if stopping.name == "logarithmic" else _geometric
    return draw(stopping.inverse, source)


def _geometric(mean: int, source: RandomSource) -> int:
    attempt, thrown = rounds(), 0
    while (shown := uniform_below(mean, mean, source)).all():
        next(attempt)
        thrown += mean
    return thrown + int(shown.argmin()) + 1


def _logarithmic(inverse: int, source: RandomSource) -> int:
    r"""Draw from the logarithmic law exactly: proposals until one is accepted.

    Let m be ``inverse``, p = 1 - 1/m and :math:`2^J` the smallest power of two that is no less
    than m. A proposal draws j from 0, ..., J, all alike, and a geometric g, of which
    :math:`P(g > r) = p^r` and :math:`P(g = r + 1) = p^r/m`.

    - If j < J, r is one of the :math:`2^j` numbers from :math:`2^j` to :math:`2^{j+1} - 1`, all
      alike. It is accepted with probability :math:`2^j/r`, if g > r also. This is r with
      probability :math:`2^{-j} (2^j/r) p^r = p^r/r`.
    - If j = J, r = g - 1. It is accepted with probability m/r, if :math:`r \ge 2^J`, which is no
      less than m. This is r with probability :math:`(p^r/m)(m/r) = p^r/r`.

    So of every r = 1, 2, ... a proposal makes, and accepts, :math:`p^r/(r(J+1))`, which is
    proportional to the law. A proposal is accepted with probability :math:`\log m/(J+1)`, more
    than 1/3 for every m, so the mean of R does not decide how many are needed. ∎

    :data:`_PROPOSALS` are rejected with probability below :math:`2^{-256}`: then the source is
    broken.
    """
    last, proposal = (inverse - 1).bit_length(), rounds(last=_PROPOSALS)
    while inverse > 1 and next(proposal):
        octave, beyond = _one_below(last + 1, source), _geometric(inverse, source)
        least = 2**octave
        runs = beyond - 1 if octave == last else least + _one_below(least, source)
        wanted = inverse if octave == last else least
        if least <= runs < beyond and _one_below(runs, source) < wanted:
            return runs
    return 1


def _one_below(bound: int, source: RandomSource) -> int:
    return int(uniform_below(bound, 1, source)[0])
