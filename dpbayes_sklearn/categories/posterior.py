r"""Beliefs about the probabilities of categories: Dirichlet, and Beta for two of them.

A prior updated by released counts is a posterior of the same family, so one class is both.

**Distances** between Dirichlet laws, given by their concentrations in the last axis. With
:math:`B(a) = \prod_i \Gamma(a_i) / \Gamma(\sum_i a_i)` the Hellinger distance H, the total
variation V and the Kullback-Leibler divergence D satisfy

.. math:: H^2 \le V \le \sqrt2\, H, \qquad V \le \sqrt{D/2} .

V is the most that an unbounded adversary gains who must tell two laws apart, which is why a small H
is worth having. (:math:`\chi^2` has no place here: it is infinite between many posteriors of the
same number of records.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, expit, gammaln, psi, xlogy
from scipy.stats import beta as beta_law

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.categories.counts import ReleasedSimplex, ShareMoments, counts_given
from dpbayes_sklearn.counts.count_lattice import log_lattice_weight

Distance: TypeAlias = Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]


def log_beta(concentration: FloatArray) -> FloatArray:
    """Log of the multivariate beta function over the last axis."""
    return np.asarray(gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1)))


def hellinger(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the Hellinger distance.

    .. math:: H(a, b) = \sqrt{1 - \frac{B((a+b)/2)}{\sqrt{B(a)B(b)}}}

    >>> float(hellinger([1.0, 1.0], [1.0, 1.0])), round(float(hellinger([1, 1], [2, 1])), 4)
    (0.0, 0.2391)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    log_affinity = log_beta((a + b) / 2) - (log_beta(a) + log_beta(b)) / 2
    return np.asarray(np.sqrt(-np.expm1(np.minimum(log_affinity, 0.0))))


def total_variation(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the total variation of two Beta laws of the same total a + b.

    Their log ratio is linear in the log odds, so the densities cross once, at

    .. math:: \log\frac{\theta}{1-\theta} = \frac{\log B(a) - \log B(b)}{a_1 - b_1},

    and the distance is the difference of the distribution functions there.

    >>> float(total_variation([2.0, 2.0], [2.0, 2.0])), float(total_variation([1, 2], [2, 1]))
    (0.0, 0.5)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape[-1] != 2 or not np.allclose(a.sum(axis=-1), b.sum(axis=-1)):
        raise ValueError("The total variation is known for two Beta laws of the same total only.")
    apart = a[..., 0] - b[..., 0]
    log_odds = (log_beta(a) - log_beta(b)) / np.where(apart == 0, np.inf, apart)
    crossing = expit(log_odds)
    below = [betainc(law[..., 0], law[..., 1], crossing) for law in (a, b)]
    return np.asarray(np.abs(below[0] - below[1]) * (apart != 0))


def kullback_leibler(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the divergence of the law a from the law b: the mean log ratio under a.

    .. math:: D(a, b) = \log\frac{B(b)}{B(a)} +
        \sum_i (a_i - b_i)\big(\psi(a_i) - \psi(\textstyle\sum_j a_j)\big)

    >>> float(kullback_leibler([2, 3], [2, 3])), round(float(kullback_leibler([2, 3], [3, 2])), 3)
    (0.0, 0.5)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    slopes = psi(a) - psi(a.sum(axis=-1, keepdims=True))
    return np.asarray(log_beta(b) - log_beta(a) + ((a - b) * slopes).sum(axis=-1))


DISTANCES: dict[str, Distance] = {
    "hellinger": hellinger,
    "total_variation": total_variation,
    "kl": kullback_leibler,
}
"""Distances between posteriors by the names that users pass."""


class Dirichlet(ToArviz):
    """A Dirichlet law over the probabilities of k categories.

    Parameters
    ----------
    concentration : array of shape (k,)
        Positive parameters.

    Examples
    --------
    >>> belief = Dirichlet([2.0, 1.0, 1.0])
    >>> belief.mean().tolist(), belief.mode().tolist()
    ([0.5, 0.25, 0.25], [1.0, 0.0, 0.0])
    """

    _parameter: ClassVar[str] = "probabilities"

    def __init__(self, concentration: npt.ArrayLike) -> None:
        parameters = np.array(concentration, dtype=float)
        if parameters.ndim != 1 or not (np.isfinite(parameters) & (parameters > 0)).all():
            raise ValueError("The parameters of a Dirichlet must be positive and finite numbers.")
        parameters.setflags(write=False)
        self.concentration: FloatArray = parameters

    def __repr__(self) -> str:
        parameters = ", ".join(f"{c:.6g}" for c in self.concentration)
        return f"{type(self).__name__}({parameters})"

    def mean(self) -> Any:
        """Return E[theta] = c / sum(c)."""
        return self.concentration / self.concentration.sum()

    def mode(self) -> Any:
        """Return where the density is highest, (c - 1) / sum(c - 1), on the border if c_i <= 1.

        NaN where no parameter exceeds 1: then no single point is best.
        """
        excess = np.maximum(self.concentration - 1.0, 0.0)
        return excess / excess.sum() if excess.any() else np.full_like(excess, np.nan)

    def marginals(self) -> FloatArray:
        """Return the parameters of the Beta law of every probability, one row (a, b) each.

        They are Beta(c_i, sum(c) - c_i).
        """
        return np.stack([self.concentration, self.concentration.sum() - self.concentration], 1)

    def variance(self) -> Any:
        """Return the variance of every probability: that of its Beta law."""
        a, b = self.marginals().T
        return a / (a + b) * (b / (a + b)) / (a + b + 1.0)

    def credible_interval(self, level: float = 0.95) -> Any:
        """Return the equal-tailed interval of every probability, one row (low, high) each."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be a float in the range (0, 1). Got {level!r} instead.")
        tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        a, b = self.marginals().T[:, :, None]
        return np.asarray(beta_law.ppf(tails, a, b))

    def sample(self, rng: np.random.Generator, n: int) -> Any:
        """Return n independent draws, one in each row."""
        return rng.dirichlet(self.concentration, n)

    def log_pdf(self, theta: npt.ArrayLike) -> FloatArray:
        """Log density at points of the simplex, whose coordinates are in the last axis."""
        point = np.asarray(theta, dtype=float)
        with np.errstate(divide="ignore"):
            inside: FloatArray = xlogy(self.concentration - 1.0, point).sum(axis=-1)
        on_simplex = (point >= 0).all(axis=-1) & np.isclose(point.sum(axis=-1), 1.0)
        return np.where(on_simplex, inside - log_beta(self.concentration), -np.inf)

    def pdf(self, theta: npt.ArrayLike) -> FloatArray:
        """Density at points of the simplex, whose coordinates are in the last axis."""
        return np.asarray(np.exp(self.log_pdf(theta)))

    def log_predictive(self, codes: npt.NDArray[np.intp]) -> FloatArray:
        """Log probability of new records, given by the positions of their categories."""
        c = self.concentration
        return np.asarray((np.log(c) - np.log(c.sum()))[codes])

    def hellinger(self, other: Dirichlet) -> float:
        """Hellinger distance, from 0 to 1, to a belief about the same number of categories."""
        if len(other.concentration) != len(self.concentration):
            raise ValueError("Both posteriors must be about the same number of categories.")
        return float(hellinger(self.concentration, other.concentration))


class NoisyDirichlet(Dirichlet):
    """A Dirichlet law, and the spread of every probability on its own.

    Noise is as wide in a rare category as in a common one, but a Dirichlet law has a single
    precision for all of them. Here every category has its own, which ``marginals``, ``variance``
    and ``credible_interval`` use. All else is of the Dirichlet law with this ``concentration``,
    whose variances are right on average over the categories.

    Parameters
    ----------
    concentration : array of shape (k,)
        Positive parameters.
    precisions : array of shape (k,)
        Positive sums of the parameters of each category's Beta law.

    Examples
    --------
    >>> belief = NoisyDirichlet([6.0, 3.0, 1.0], [12.0, 8.0, 5.0])
    >>> belief.marginals().round(1).tolist()
    [[7.2, 4.8], [2.4, 5.6], [0.5, 4.5]]
    """

    def __init__(self, concentration: npt.ArrayLike, precisions: npt.ArrayLike) -> None:
        super().__init__(concentration)
        own = np.array(precisions, dtype=float)
        if own.shape != self.concentration.shape or not (np.isfinite(own) & (own > 0)).all():
            raise ValueError("The precisions must be positive numbers, one for each category.")
        own.setflags(write=False)
        self.precisions: FloatArray = own

    def marginals(self) -> FloatArray:
        """Return the parameters of the Beta law of every probability, one row (a, b) each."""
        share = super().marginals() / self.concentration.sum()
        return np.asarray(self.precisions[:, None] * share)


class Beta(Dirichlet):
    """A Beta law over the probability of a one.

    Parameters
    ----------
    alpha, beta : float
        Positive parameters: ones and zeros, prior and observed together.

    Examples
    --------
    >>> belief = Beta(3, 1)
    >>> belief.mean(), belief.mode(), round(belief.variance(), 4)
    (0.75, 1.0, 0.0375)
    """

    _parameter: ClassVar[str] = "probability"

    def __init__(self, alpha: float, beta: float) -> None:
        super().__init__([alpha, beta])

    @property
    def alpha(self) -> float:
        """Prior and observed ones."""
        return float(self.concentration[0])

    @property
    def beta(self) -> float:
        """Prior and observed zeros."""
        return float(self.concentration[1])

    def mean(self) -> float:
        """Return E[theta] = alpha / (alpha + beta)."""
        return float(super().mean()[0])

    def mode(self) -> float:
        """Return where the density is highest; NaN if neither parameter exceeds 1."""
        return float(super().mode()[0])

    def variance(self) -> float:
        """Return the variance of theta."""
        return float(super().variance()[0])

    def credible_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed interval (low, high)."""
        low, high = super().credible_interval(level)[0]
        return float(low), float(high)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return n independent draws."""
        return rng.beta(self.alpha, self.beta, n)

    def log_pdf(self, theta: npt.ArrayLike) -> FloatArray:
        """Log density at probabilities of a one."""
        p = np.asarray(theta, dtype=float)
        return super().log_pdf(np.stack([p, 1.0 - p], axis=-1))


class SimplexPrior:
    """What is believed before the data, and how released counts are read.

    Parameters
    ----------
    belief : Dirichlet
        A :class:`Beta` makes :meth:`update` return a Beta.
    inference : {"plug_in", "median", "noise_aware"}
        ``"plug_in"`` brings the released counts back to the simplex and takes them as they are.
        ``"median"`` takes the posterior median of every exact count, given the released ones, the
        law of their noise and the belief. ``"noise_aware"`` returns the law that has the posterior
        mean and variance of every probability.
    """

    def __init__(self, belief: Dirichlet, inference: str = "plug_in") -> None:
        self.belief = belief
        self.inference = inference

    @property
    def concentration(self) -> FloatArray:
        """Parameters of the belief."""
        return self.belief.concentration

    def update(self, released: ReleasedSimplex) -> Dirichlet:
        """Return the belief after seeing released counts."""
        if self.inference != "plug_in" and released.laws:
            found = counts_given(released.counts, released.noise, released.n, self.concentration)
            if self.inference == "noise_aware":
                return self.matched(found.moments(self.concentration))
            counts = found.medians()
        elif released.n is None:
            counts = np.maximum(released.counts, 0).astype(float)
        elif len(released.counts) == len(self.concentration):
            counts = onto_simplex(released.counts, released.n)
        else:
            counts = completed(released.counts, released.n)
        concentration = self.concentration + counts
        return Beta(*concentration) if isinstance(self.belief, Beta) else Dirichlet(concentration)

    def choice(self, counts: IntArray, chosen: IntArray, log_likelihood: FloatArray) -> Dirichlet:
        """Return the belief after one of finitely many count vectors was chosen at random.

        ``log_likelihood`` is that of the choice, for each of ``counts`` as the exact ones.
        """
        if self.inference != "noise_aware":
            return self.update(ReleasedSimplex.exact(chosen))
        columns = zip(self.concentration.tolist(), counts.T, strict=True)
        logs = log_likelihood + sum(log_lattice_weight(a, column, 1.0) for a, column in columns)
        law = np.exp(logs - logs.max())
        moments = ShareMoments.given_counts(
            law[None] / law.sum(), counts.T, float(chosen.sum()), self.concentration
        )
        return self.matched(moments)

    def matched(self, moments: ShareMoments) -> Dirichlet:
        """Return the law that has these moments; a surprise may make it wider than the belief."""
        least = min(float(self.concentration.sum()), 1.0)  # rounding makes none wider than that
        concentration = moments.concentration(least)
        if isinstance(self.belief, Beta):
            return Beta(*concentration)
        return NoisyDirichlet(concentration, moments.precisions(least))


def onto_simplex(counts: IntArray, n: int) -> FloatArray:
    """Return the nearest point (in the Euclidean sense) with no negative count and sum n.

    A constant is taken off every count and what falls below zero is cut, with the constant
    that makes the sum right.

    >>> onto_simplex(np.array([-1, 4, 5]), 8).tolist()
    [0.0, 3.5, 4.5]
    >>> onto_simplex(np.array([0, 0]), 0).tolist()
    [0.0, 0.0]
    """
    descending = -np.sort(-counts)
    excess = (np.cumsum(descending) - n) / np.arange(1, len(counts) + 1)
    constant = excess[np.flatnonzero(descending >= excess)[-1]]
    return np.asarray(np.maximum(counts - constant, 0.0))


def completed(counts: IntArray, n: int) -> FloatArray:
    """Cut counts to [0, n] and give the last category the remainder, cut to [0, n] too.

    >>> completed(np.array([-1, 5]), 8).tolist(), completed(np.array([6, 5]), 8).tolist()
    ([0.0, 5.0, 3.0], [6.0, 5.0, 0.0])
    """
    kept = np.clip(counts, 0, n)
    return np.append(kept, np.clip(n - kept.sum(), 0, n)).astype(float)
