r"""Exact draws from finite laws and their loss by rounding; choices, and the best of some runs.

**The laws.** A row of log weights :math:`\ell` stands for the ideal law
:math:`p_j = e^{\ell_j} / \sum_i e^{\ell_i}` over J points. Its integer law is
:math:`q_j = W_j / \sum_i W_i` with :math:`W_j = \mathrm{round}(2^{62} \max(f, p_j))` and
the floor :math:`f = 2^{-31-h}`, :math:`4^{h-1} < J \le 4^h`; points with
:math:`\ell_j = -\infty` keep weight 0.

**The claim.** For any two rows, and any :math:`c \ge 0` with :math:`p_j \le e^{c} p'_j` for all
j, the integer laws obey :math:`q_j \le e^{c + r} q'_j` with r = ``rounding_loss(J)``.

**Proof.** Write :math:`b_j = \max(f, p_j)` on the support.

1. *Floor.* :math:`p_j \le e^c p'_j` gives :math:`b_j \le e^c b'_j`, since max with a constant
   is 1-Lipschitz in the logarithm. The floor is set on the **normalised** law, so the sums
   :math:`\sum_j b_j` lie in :math:`[1, 1 + Jf]` for both rows, wherever their maxima are:
   normalising again costs at most :math:`\log(1 + Jf) \le J f \le 2^{h-31}`.
2. *Integers.* :math:`2^{62} b_j \ge 2^{31-h}` and h <= 9, so rounding to the nearest integer
   changes :math:`\log W_j` by at most :math:`2^{h-32}(1 + 2^{-20})`.
3. *Floats.* The subtraction of the maximum (which matters only above the floor), exp, the
   sum of at most 2**18 terms and its logarithm change :math:`\log b_j` by less than 2**-33.
4. Steps 2 and 3 enter :math:`\log q_j` once through :math:`W_j` and once through the sum, for
   each of the two rows, four times: :math:`r = 2^{h-31} + 4(2^{h-32}(1 + 2^{-20}) + 2^{-33})`. ∎

**Log weights that are rounded themselves.** If the caller's analysis is about exact log
weights and the floats are off by at most :math:`\eta`, each :math:`\log p_j` is off by at most
:math:`2\eta`, and the claim holds with :math:`c + 4\eta` for c: `rounding_loss` adds it.

The total of a row stays below :math:`2^{62}(1 + 2^{-20}) < 2^{63}`.

**Permute-and-flip** (McKenna and Sheldon 2020) chooses a candidate by its noisy score. Candidates
come in random order, and each is taken with probability
:math:`p_r = e^{q_r - \max q}`; the first that is taken is the result. With q the scores times
:math:`\varepsilon/2\Delta` that is :math:`\varepsilon`-DP, and never worse than the exponential
mechanism in expected score. Adding public log weights to q changes nothing about that.

**The law.** Let candidates come at independent uniform times. One that comes at time u is chosen
if it is taken, and no other came before and was taken:

.. math:: P(r) = p_r \int_0^1 \prod_{s \ne r} (1 - u p_s)\, du,

a polynomial of degree R - 1, so Gauss-Legendre quadrature with R/2 nodes is exact. All of its
terms are positive: floats err by a relative :math:`2^{-40}` at most for up to 64 candidates, which
`choice_loss` counts in the privacy loss.

**The best of a random number of runs** (:class:`Stopping`). A run is a draw from a private law Q
over outcomes that carry a score. Make R independent runs, R random and **never published**, and
publish the outcome with the highest score (Liu and Talwar, *Private selection from private
candidates*, 2019). *Claim*: if one run is :math:`\varepsilon`-private and R has the truncated
negative binomial law of shape :math:`\eta \ge 0`, the winner is
:math:`(2+\eta)\varepsilon`-private, for any mean of R and any number of outcomes: three times for
the geometric law (:math:`\eta = 1`), twice for the logarithmic one (:math:`\eta = 0`), which makes
few runs more often.

*Proof* (after Papernot and Steinke, *Hyperparameter tuning with Rényi differential privacy*,
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
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.integers import MAX_ROUNDS, RandomSource, rounds, uniform_below

TOTAL_BITS = 62  # The weights of a row add up to about two to this power.
MAX_POINTS = 2**18  # A finite distribution has at most this many points.

MAX_CHOICES = 64  # Permute-and-flip chooses among at most this many candidates.
ETA = {"geometric": 1, "logarithmic": 0}
"""Shape of the law of the number of runs."""
# At least a third of the proposals is accepted, so twice as many may be needed.
_PROPOSALS = 2 * MAX_ROUNDS


def _half_bits(points: int) -> int:
    """h, the smallest integer with points <= 4**h."""
    return -(-(points - 1).bit_length() // 2)


def rounding_loss(points: int, magnitude: float = 0.0) -> float:
    r"""Bound what `integer_weights` adds to the privacy loss between two laws of J points.

    ``magnitude`` is a public bound on the terms that were added up to a log weight, for instance
    ``n * log(1/omega)``. A log weight is then taken to be off by at most :math:`\eta = 2^{-50}` of
    it (eight half-ulp roundings). The result is r such that :math:`|\log(q_j/q'_j)| \le \max_i
    |\log(p_i/p'_i)| + r` for any two rows.

    >>> rounding_loss(257, 1e6) < 1e-7
    True
    >>> rounding_loss(2**18, 2**25) < 1e-5
    True
    """
    if not 1 <= points <= MAX_POINTS:
        raise ValueError("A finite law has from 1 to 2**18 points.")
    h = _half_bits(points)
    integers, floats, eta = 2.0 ** (h - 32) * (1 + 2.0**-20), 2.0**-33, magnitude * 2.0**-50
    return 2.0 ** (h - 31) + 4 * (integers + floats + eta)


def integer_weights(log_weights: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Turn rows of log weights (..., J) into integer weights for `finite_draw`.

    Every supported point keeps a weight of at least 2**22, so its relative rounding error is
    at most 2**-23, and the loss between two rows grows by at most `rounding_loss`
    (statement and proof at the top of this module).

    >>> weights = integer_weights([0.0, -np.log(3), -np.inf, -1e9])
    >>> (weights / 2.0**62).round(6).tolist()
    [0.75, 0.25, 0.0, 0.0]
    >>> (weights > 0).tolist()
    [True, True, False, True]
    """
    rows = np.asarray(log_weights, dtype=np.float64)
    if rows.ndim == 0 or not 1 <= rows.shape[-1] <= MAX_POINTS:
        raise ValueError("log_weights must have rows of 1 to 2**18 points.")
    highest = rows.max(axis=-1, keepdims=True)
    if not np.isfinite(highest).all():
        raise ValueError("Every row of log_weights needs a finite maximum and no NaN.")
    with np.errstate(over="ignore"):  # a difference of -inf is simply at the floor
        shifted = rows - highest
    log_law = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    floor = 2.0 ** -(TOTAL_BITS // 2 + _half_bits(rows.shape[-1]))
    law = np.where(np.isneginf(rows), 0.0, np.maximum(np.exp(log_law), floor))
    return np.rint(np.ldexp(law, TOTAL_BITS)).astype(np.uint64)


def finite_draw(weights: npt.NDArray[np.uint64], source: RandomSource) -> npt.NDArray[np.intp]:
    """Draw one index from each row of integer weights (..., J): P(j) = w_j / sum(w), exactly.

    A uniform integer below the row's total is looked up in its cumulative sums.

    >>> import os
    >>> finite_draw(np.array([[0, 7, 0], [1, 0, 0]], dtype=np.uint64), os.urandom)
    array([1, 0])
    """
    weights = np.asarray(weights)
    if weights.dtype != np.uint64 or weights.ndim == 0 or weights.shape[-1] == 0:
        raise TypeError("weights must be an array of uint64 with at least one column.")
    totals = weights.sum(axis=-1, dtype=np.float64)  # cannot wrap around
    if not ((totals > 0) & (totals < 2.0**63)).all():
        raise ValueError("The weights of every row must sum to a number in [1, 2**63).")
    cumulative = np.cumsum(weights, axis=-1)
    below = cumulative[..., -1]
    at = uniform_below(below.reshape(-1), below.size, source).reshape(below.shape)
    return np.asarray(np.count_nonzero(cumulative <= at[..., None], axis=-1))


class Choice(NamedTuple):
    """A candidate by its integer score, of weight exp(epsilon score / spread), or permute-and-flip.

    ``spread`` is the range of the changes of all scores, from the lowest to the highest.
    """

    epsilon: Fraction | float
    spread: int


def choice_log_law(scores: FloatArray) -> FloatArray:
    """Return the log probabilities of up to 64 candidates (..., R), from their scores in nats.

    >>> np.exp(choice_log_law(np.log([1.0, 0.5]))).round(3)
    array([0.75, 0.25])
    >>> np.exp(choice_log_law(np.zeros(4))).round(3)
    array([0.25, 0.25, 0.25, 0.25])
    """
    scores = np.asarray(scores, np.float64)
    R = scores.shape[-1]
    if not 1 <= R <= MAX_CHOICES:
        raise ValueError(f"There must be from 1 to {MAX_CHOICES} candidates.")
    behind = scores - scores.max(axis=-1, keepdims=True)
    nodes, weights = np.polynomial.legendre.leggauss(R // 2 + 1)
    times = 0.5 * (nodes + 1.0)
    survive = np.log1p(-times[:, None] * np.exp(behind)[..., None, :])  # (..., nodes, R)
    others = survive.sum(axis=-1, keepdims=True) - survive
    integral = (0.5 * weights[:, None] * np.exp(others)).sum(axis=-2)
    return np.asarray(behind + np.log(integral))


def choice_loss(candidates: int, magnitude: float) -> float:
    """Bound what rounding adds to the privacy loss of a draw from `choice_log_law`.

    ``magnitude`` bounds the scores, in nats. A log probability errs by half-ulps of the scores,
    and by 2**-40 for the quadrature.

    >>> choice_loss(30, 1e5) < 1e-6
    True
    """
    return rounding_loss(candidates, magnitude + 2.0**10)


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
    Logarithmic: see :func:`_logarithmic`.

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
