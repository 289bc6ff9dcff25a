r"""Estimates and intervals from an equation whose matrix is noisy, too.

A vector :math:`\delta`, the way from a released point to the true parameters, solves

.. math:: H\delta = g + b + s, \qquad \operatorname{Var} b = V_b, \qquad \operatorname{Var} s = S

with a known g, noise b of a release and the sampling error s. Released is
:math:`\tilde H = H + E`, so :math:`r(\delta) = \tilde H\delta - g` has the variance
:math:`V(\delta) = V_b + S + \operatorname{Var} E\delta`; entries of the matrix noise E are
uncorrelated, but for those that are the same by symmetry. Estimates minimise
:math:`r^\top V^{-1}r` plus the logarithm of a wide Gaussian prior. An interval of
:math:`a^\top\delta` holds the values that a test at the level does not reject (Anderson and Rubin;
Fieller): V is that of the *hypothesis*, at the end of the interval. So where a combination is not
identified, because noise rules the matrix, its interval is that of the prior, instead of one that
trusts a matrix that happened to be large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpbayes_sklearn._typing import AnyArray, FloatArray

_LEAST_VARIANCE = 1e-9  # This is added to variances, in units of the largest eigenvalue.
# A combination is not identified if its variance is more than this part of that of the prior.
_MOST_BY_PRIOR = 0.1
SURE = 3.5
"""Nor is it if its curvature is not so many deviations of its own noise."""
_TINY = float(np.finfo(float).tiny)  # A combination of nothing has no variance.
_TURNS = 60  # The iteration for a variance that depends on itself takes at most this many turns.
_SETTLED = 1e-5  # The iteration ends when the variance changes by a smaller part.


class Effects(NamedTuple):
    """Estimates of combinations, the ends of their intervals, and the parts of their deviation.

    ``by_prior`` is the variance at the farther end, as a part of that of the prior.
    """

    estimates: FloatArray
    deviations: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    low: FloatArray
    high: FloatArray
    by_prior: FloatArray

    @property
    def identified(self) -> AnyArray:
        """Which combinations are known much better than the prior does."""
        return np.asarray(self.by_prior <= _MOST_BY_PRIOR)


class _End(NamedTuple):
    """An end of an interval, and what is known there."""

    value: float
    variance: float
    sampling: float
    by_prior: float


@dataclass(frozen=True, eq=False)
class NoisyEquation:
    r"""What a release tells about :math:`\delta` in :math:`H\delta = g + b + s`.

    Attributes
    ----------
    matrix, matrix_noise : arrays of shape (p, p)
        The released H, symmetric, and the variance of the noise in each of its entries.
    right : array of shape (p,)
        The known g.
    noise, sampling : arrays of shape (p, p)
        Variances of b and of s.
    prior_mean, prior_sd : arrays of shape (p,)
        Of a Gaussian prior of every entry of the solution.
    stretch : float
        Variance of what a matrix that is known up to a factor adds along the solution.
    bend : callable, optional
        Where the matrix depends on the solution: the R of which :math:`RHR^\top` is that at its
        argument.

    Examples
    --------
    >>> one, nothing = np.eye(1), np.zeros(1)
    >>> found = NoisyEquation(4 * one, 0.01 * one, one[0], one, 4 * one, nothing, one[0])
    >>> [round(float(each[0]), 2) for each in found.effects(one, 1.96)[:4]]
    [0.19, 0.49, 0.38, 0.31]
    """

    matrix: FloatArray
    matrix_noise: FloatArray
    right: FloatArray
    noise: FloatArray
    sampling: FloatArray
    prior_mean: FloatArray
    prior_sd: FloatArray
    bend: Callable[[FloatArray], FloatArray] | None = None
    stretch: float = 0.0

    def effects(self, combinations: FloatArray, reach: float) -> Effects:
        """Return what is known about combinations of the solution.

        Parameters
        ----------
        combinations : array of shape (m, p)
        reach : float
            Standard deviations from the estimate to the ends of an interval.
        """
        each = [(self._end(a, -reach), self._end(a, reach)) for a in combinations]
        low, high = (np.array(ends).reshape(-1, 4).T for ends in zip(*each, strict=True))
        deviations = (high[0] - low[0]) / (2 * reach) if reach else np.sqrt(low[1])
        sampling = np.minimum((low[2] + high[2]) / 2, deviations**2)
        privacy = np.sqrt(deviations**2 - sampling)
        parts = deviations, np.sqrt(sampling), privacy, low[0], high[0]
        return Effects(combinations @ self.estimate, *parts, np.maximum(low[3], high[3]))

    @cached_property
    def estimate(self) -> FloatArray:
        """The most probable solution, with the variance that it has there."""
        delta = np.zeros(len(self.right))
        for _ in range(_TURNS):
            weighted, precision = self.weighted(delta, np.outer(delta, delta))
            after = self._solution(weighted, precision)
            change, delta = float(np.abs(after - delta).max()), (after + delta) / 2
            if change <= _SETTLED * (1 + float(np.abs(delta).max())):
                break
        return delta

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the solution near the estimate."""
        _, precision = self.weighted(self.estimate, np.outer(self.estimate, self.estimate))
        return _solved(precision, np.eye(len(precision)))

    def growth(self, combinations: FloatArray) -> FloatArray:
        """Return the variance of noise in the matrix along combinations, as a part of its square.

        The variance of a combination grows by this much times its squared distance from the
        estimate.
        """
        weighted, precision = self.weighted(self.estimate, np.outer(self.estimate, self.estimate))
        along = _solved(precision, combinations.T).T
        variance = np.maximum(np.einsum("ij,ij->i", along, combinations), _TINY)
        return np.asarray(self.noise_of_matrix(along @ weighted.T, along) / variance / variance)

    def noise_of_matrix(self, weights: FloatArray, at: FloatArray) -> FloatArray:
        """Return the variance of weights'E delta, for rows of weights and of delta."""
        both = weights * at
        own = np.einsum("ij,jk,ik->i", weights**2, self.matrix_noise, at**2)
        own += np.einsum("ij,jk,ik->i", both, self.matrix_noise * self._beside, both)
        return np.asarray(own + self.stretch * both.sum(axis=1) ** 2)

    def _end(self, a: FloatArray, reach: float) -> _End:
        """Return an end of the interval of a combination."""
        end, before = self.estimate, 0.0
        squares = middle = np.outer(self.estimate, self.estimate)
        for _ in range(_TURNS):
            weighted, precision = self.weighted(end, squares)
            along = _solved(precision, a)
            variance = float(a @ along)
            way = reach * along / math.sqrt(max(variance, _TINY))
            there = self.estimate + way
            if self.bend is not None:
                there = (end + self._solution(weighted, precision) + way) / 2
            settled = abs(variance - before) <= _SETTLED * variance
            end, before, squares = there, variance, middle + np.outer(way, way)
            if settled:
                break
        back = weighted @ along
        by_prior = variance / max(float(a**2 @ self.prior_sd**2), _TINY)
        return _End(float(a @ end), variance, float(back @ self.sampling @ back), by_prior)

    def _solution(self, weighted: FloatArray, precision: FloatArray) -> FloatArray:
        return _solved(precision, weighted.T @ self.right + self._precision * self.prior_mean)

    def weighted(
        self, delta: FloatArray, squares: FloatArray, prior: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return :math:`V^{-1}\tilde H` and the precision :math:`\tilde HV^{-1}\tilde H + P`.

        ``delta`` is where the matrix is that of, ``squares`` is :math:`\delta\delta^\top`;
        :math:`E\delta` has the variance :math:`\sum_j v_{ij}\delta_j^2` and the covariance
        :math:`v_{ij}\delta_i\delta_j`.
        """
        matrix, noise = self.matrix, self.matrix_noise
        if self.bend is not None:
            turn = self.bend(delta)
            matrix, noise = turn @ matrix @ turn.T, turn**2 @ noise @ (turn**2).T
        extra = np.diag(noise @ np.diag(squares)) + noise * self._beside * squares
        weighted = _solved(self._constant + extra + self.stretch * squares, matrix)
        own = np.diag(self._precision) if prior is None else prior
        return weighted, matrix @ weighted + own

    @cached_property
    def _constant(self) -> FloatArray:
        """Variance of b + s; where there is neither, a combination is not identified."""
        largest = float(np.abs(np.linalg.eigvalsh(self.matrix)).max(initial=0.0))
        least = _LEAST_VARIANCE * max(largest, 1.0)
        return np.asarray(self.noise + np.diag(np.full(len(self.right), least)) + self.sampling)

    @cached_property
    def _beside(self) -> FloatArray:
        return 1 - np.eye(len(self.right))

    @cached_property
    def _precision(self) -> FloatArray:
        return np.asarray(self.prior_sd**-2.0)


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False))
