r"""Linear regression: the steps of one release, and what its answers tell.

The estimand is least squares within the declared bounds. In turned coordinates z, in which records
have about unit second records, the least-squares solution lies a step away from any w:

.. math:: w_{LS} - w = C^{-1} S, \qquad C = \sum zz^\top, \quad S = \sum z\,(t - w^\top z)

1. **Look.** Even histograms of the target and of every number: where they lie.
2. **Shape.** C of records shortened to a usual length; its root turns the coordinates.
3. **Mode.** The perturbed minimum of Huber's loss (:mod:`~dpbayes_sklearn.convex.perturbed`): a
   start near the solution. How near, matters only to second order.
4. **Tails.** Histograms of the scores' lengths and of the records' lengths: how far out the next
   two steps have to reach.
5. **Score.** S at the mode, a record's part shortened to a limit. What lies beyond it is estimated
   from step 4, and is part of the interval.
6. **Curvature.** C, records shortened to a limit.
7. **Middle.** :math:`\sum r^2zz^\top`: the sampling error of S, whatever the residuals are.

Noise of C multiplies the small step only. With few records for each coefficient there are but look
and mode, and the level of the residuals in place of 4 to 7.

*Guarantee.* *Precondition*: design and bounds are public, and so is the number of records, or it
was released before. *Claim*: pure :math:`\varepsilon`-DP, :math:`\varepsilon` being the sum of the
steps' shares. *Proof*: given what was released before, a step is a function of the records, private
by :mod:`~dpbayes_sklearn.convex.record_sums`, the mode by :mod:`~dpbayes_sklearn.convex.perturbed`.
Costs of such steps add up, also where earlier answers decide what is asked. ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.coordinates import first_map, n_coordinates
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.estimates import (
    Limits,
    Measured,
    Tails,
    choose_limits,
    posterior_of,
    posterior_of_mode,
)
from dpbayes_sklearn.convex.losses import HuberLoss, Turned, least_ridge
from dpbayes_sklearn.convex.perturbed import (
    Body,
    PerturbedLoss,
    PerturbedPlan,
    ball_body,
    perturbed_mode,
    search_share,
)
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.record_sums import (
    BINS,
    STEPS,
    UNIT_TARGET,
    Coordinates,
    Histograms,
    ProductSum,
    Residuals,
    Target,
    VectorSum,
    count_evenly,
    count_tails,
    sum_products,
    sum_scores,
    symmetric,
)
from dpbayes_sklearn.convex.records import LinearRecords, SumsPlan
from dpbayes_sklearn.convex.tails import EDGES, MIDDLES, Counts, Place, place
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts, Step


class Shares(NamedTuple):
    """Parts of epsilon that the steps get."""

    look: Fraction
    shape: Fraction
    mode: Fraction
    tails: Fraction
    score: Fraction
    curvature: Fraction
    middle: Fraction


_WHOLE = Shares(*map(Fraction, ("0.07", "0.08", "0.12", "0.17", "0.42", "0.10", "0.04")))
"""Where records are many."""
_LENGTHS_SHARE = Fraction(1, 2)  # Part of the share of the tails that lengths of records get.
_VOLUME = Fraction(3, 20)  # The determinants of a mode cost this part of its share.
_LEAST_RHO, _RHO_EACH = 400.0, 100.0  # The whole recipe needs so many n epsilon/p, and times p.
_EXPLAINED = 0.2  # Share of the target's variance that features usually explain.
_LEVEL = 0.1  # Prior variance of the constant, in that of the target.
_USUAL_LENGTH = 2.0  # Squared lengths usually exceed p by so many deviations of a normal law.
_SEEN = 3.5  # A number of missing targets is believed if it is so many deviations above 0.


def least_records(design: Design) -> float:
    """Return how many records, times epsilon, the whole recipe needs."""
    p = n_coordinates(design)
    return p * max(_LEAST_RHO, _RHO_EACH * p)


@dataclass(frozen=True)
class Known:
    """What earlier steps have released: all of it public."""

    n: int = 0  # Records with a target.
    target: Target = UNIT_TARGET
    target_place: Place | None = None
    first: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (p, width + 1).
    shape: Measured | None = None  # Mean products of the first coordinates.
    turn: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (p, p): the W.
    ridge: FloatArray = field(default_factory=lambda: np.zeros(0))
    mode_noise: FloatArray = field(default_factory=lambda: np.zeros(0))  # Variances.
    mode: FloatArray = field(default_factory=lambda: np.zeros(0))
    tails: Tails | None = None
    limits: Limits = field(default_factory=lambda: Limits(1.0, 1.0, 1.0))
    usual_length: float = 1.0  # To which records are shortened for shape and mode.
    score: FloatArray = field(default_factory=lambda: np.zeros(0))
    score_variance: float = 0.0  # Of the noise in every entry.
    curvature: Measured | None = None
    middle: Measured | None = None

    @property
    def matrix(self) -> FloatArray:
        """The map (p, width + 1) of (1, x) to turned coordinates."""
        return self.turn @ self.first

    @property
    def residuals(self) -> Residuals:
        """The residuals of the mode."""
        return Residuals.of(self.matrix, self.mode, self.target)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPlan(SumsPlan[GaussianPosterior]):
    """The whole recipe."""

    prior: GaussianPrior

    start = Known()

    @classmethod
    def suits(cls, prior: GaussianPrior, facts: Facts, budget: Budget) -> bool:
        """Tell whether there are enough records for each coefficient."""
        return facts.n * float(budget.unit.equivalent(budget.epsilon)) >= least_records(
            prior.design
        )

    @cached_property
    def p(self) -> int:
        """Number of coefficients, the constant included."""
        return n_coordinates(self.prior.design)

    @cached_property
    def usual_length(self) -> float:
        """The T: the length to which records are shortened for shape and mode."""
        return math.sqrt(self.p + _USUAL_LENGTH * math.sqrt(2 * self.p))

    @cached_property
    def shares(self) -> Shares:
        """The steps' epsilons."""
        return Shares(*(Fraction(self.cost.epsilon) * share for share in _WHOLE))

    @cached_property
    def steps(self) -> tuple[Step[LinearRecords, Known], ...]:
        """Look, shape, mode, tails, score, curvature, middle."""
        numbers, own = int(self.prior.design.numbers.sum()), self.shares
        bins, lengths = len(EDGES) + 1, own.tails * _LENGTHS_SHARE
        evenly = Histograms(1 + numbers, (BINS + 1, *(BINS,) * numbers))
        vectors, products = VectorSum(self.p), ProductSum(self.p)
        return (
            self._step("where target and columns lie", evenly, own.look, ask_look, self.read_look),
            self._step("shape of columns", products, own.shape, self.ask_shape, self.read_shape),
            perturbed_mode(
                self._part(own.mode), self.mode_law, self.ask_mode, self.read_mode, signed=False
            ),
            self._step(
                "sizes of scores", Histograms(1, (bins, bins)), own.tails - lengths,
                ask_scores, self.read_scores,
            ),
            self._step(
                "lengths of records", Histograms(1, (bins,)), lengths,
                ask_lengths, self.read_lengths,
            ),
            self._step("score", vectors, own.score, self.ask_score, self.read_score),
            self._step(
                "curvature", products, own.curvature, self.ask_curvature, self.read_curvature
            ),
            self._step("squared scores", products, own.middle, self.ask_middle, self.read_middle),
        )  # fmt: skip

    # Look

    def read_look(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return where the target lies, and the first coordinates."""
        n, own, *columns = places(self.facts, noisy, law)
        first = first_map(
            self.prior.design,
            np.array([each.centre for each in columns]),
            np.array([each.spread for each in columns]),
        )
        centre = own.centre if self.prior.design.intercept else 0.0
        units = Target(centre, own.spread)
        return replace(known, n=n, target=units, target_place=own, first=first)

    # Shape

    def ask_shape(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the products of the first coordinates, shortened to a usual length."""
        nobody = Residuals.of(known.first, np.zeros(self.p), known.target)
        return [records.asked(sum_products, residuals=nobody, limit=self.usual_length)]

    def read_shape(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the shape's inverse square root; no eigenvalue is below half of its noise."""
        unit = (self.usual_length / STEPS) ** 2 / known.n
        shape = Measured(symmetric(noisy[0] * unit), symmetric(law.variances * unit**2))
        least = math.sqrt(float(shape.variance[0, 0]) / 2 * self.p)
        values, vectors = np.linalg.eigh(shape.matrix)
        turn = (vectors / np.sqrt(np.maximum(values, least))) @ vectors.T
        return replace(known, shape=shape, turn=turn, usual_length=self.usual_length)

    # Mode

    def problem(self, known: Known) -> tuple[Turned, PerturbedPlan]:
        """Return how records are read, and the noise and ridge of the mode: all public."""
        unit, share, n = self.cost.unit, self.shares.mode, known.n
        volume, radius = share * _VOLUME, math.sqrt(self.p)
        assert known.target_place is not None
        noise = float(self._body(radius).variance[0])
        h = mode_limit(known.target_place, known.target, n, self.p, noise)
        coordinates = Coordinates.of(known.matrix)
        rows = Turned(coordinates, known.target, self.usual_length, h, radius)
        prior = np.full(self.p, _EXPLAINED / self.p)
        prior[0] += _LEVEL
        shape = rows.shape(self.facts.n_bound)
        far = known.target.farthest

        def ridge(body: Body) -> FloatArray:
            least = least_ridge(shape, far, body)
            return np.asarray(np.maximum(body.variance / (n * prior), least))

        return rows, PerturbedPlan.of(
            shape, share, volume, unit, lambda _: self._body(h * radius), ridge
        )

    def mode_law(self, known: Known) -> PerturbedPlan:
        """Return the noise and ridge of the mode."""
        return self.problem(known)[1]

    def _body(self, radius: float) -> Body:
        share = self.shares.mode
        left = share - search_share(share) - share * _VOLUME
        return ball_body(self.p, radius, left, self.cost.unit)

    def ask_mode(self, records: LinearRecords, known: Known) -> PerturbedLoss:
        """Return Huber's loss of records shortened to a usual length."""
        rows, plan = self.problem(known)
        return PerturbedLoss(HuberLoss(records, rows, self.p), plan)

    def read_mode(self, known: Known, mode: FloatArray) -> Known:
        """Return the mode, and the law of its error."""
        _, plan = self.problem(known)
        return replace(known, mode=mode, ridge=plan.ridge, mode_noise=plan.body.variance)

    # Tails

    def read_scores(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the sizes of scores."""
        sd = math.sqrt(law.variance(0))
        up, down = (Counts.of(np.asarray(each, np.float64), sd) for each in noisy)
        lengths = np.abs(known.matrix[:, 0]) + np.abs(known.matrix[:, 1:]).sum(axis=1)
        farthest = math.sqrt(float(lengths @ lengths) / self.p)
        far = known.target.farthest
        far_fitted = float(np.abs(known.mode @ known.matrix).sum())
        top = (far + far_fitted) * farthest
        return replace(known, tails=Tails(up, down, up, sd, top, farthest))

    def read_lengths(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the lengths of records, and the limits of what follows."""
        assert known.tails is not None
        sd = math.sqrt(law.variance(0))
        tails = replace(known.tails, lengths=Counts.of(np.asarray(noisy[0], np.float64), sd))
        root, own = math.sqrt(self.p), self.steps
        score = math.sqrt(own[5].law.variance(0)) * root / STEPS
        curvature = (
            math.sqrt(float(own[6].law.variances[1 if self.p > 1 else 0])) * self.p / STEPS**2
        )
        middle = math.sqrt(float(own[7].law.variances[min(1, self.p - 1)])) * self.p / STEPS**2
        limits = choose_limits(tails, known.n, self.p, score, curvature, middle)
        return replace(known, tails=tails, limits=limits)

    # Score, curvature and middle

    def ask_score(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the sum of z r."""
        limit = known.limits.score * math.sqrt(self.p)
        return [records.asked(sum_scores, residuals=known.residuals, limit=limit)]

    def read_score(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the score."""
        unit = known.limits.score * math.sqrt(self.p) / STEPS
        return replace(
            known, score=np.asarray(noisy[0] * unit), score_variance=law.variance(0) * unit**2
        )

    def ask_curvature(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the sum of zz'."""
        limit = known.limits.length * math.sqrt(self.p)
        return [records.asked(sum_products, residuals=known.residuals, limit=limit)]

    def read_curvature(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the curvature."""
        return replace(known, curvature=self._measured(noisy, law, known.limits.length))

    def ask_middle(self, records: LinearRecords, known: Known) -> list[IntArray]:
        """Return the sum of r² zz'."""
        limit = known.limits.middle * math.sqrt(self.p)
        residuals = known.residuals
        return [records.asked(sum_products, residuals=residuals, limit=limit, weighted=True)]

    def read_middle(self, known: Known, noisy: list[IntArray], law: NoiseLaw) -> Known:
        """Return the middle."""
        return replace(known, middle=self._measured(noisy, law, known.limits.middle))

    def _measured(self, noisy: list[IntArray], law: NoiseLaw, limit: float) -> Measured:
        unit = limit**2 * self.p / STEPS**2
        return Measured(symmetric(noisy[0] * unit), symmetric(law.variances * unit**2))

    def posterior(self, known: Known) -> GaussianPosterior:
        """Return least squares with intervals, and a shrunk model for predictions.

        Where what was released is so far out that floats cannot tell, the mode alone is read.
        """
        with quiet_numpy(), suppress(np.linalg.LinAlgError):
            found = posterior_of(known, self.prior)
            if all(np.isfinite(each).all() for each in (*found.believed, found.covariance)):
                return found
        return posterior_of_mode(known, self.prior)


def places(facts: Facts, noisy: Sequence[IntArray], law: NoiseLaw) -> tuple[Any, ...]:
    """Return how many records have a target, and where the target and numbers lie."""
    sd, (target, *numbers) = math.sqrt(law.variance(0)), noisy
    missing = float(target[-1])
    n = max(1, facts.n - round(missing * (missing > _SEEN * sd)))
    return n, *(place(np.asarray(each, np.float64), n, sd) for each in (target[:-1], *numbers))


def ask_look(records: LinearRecords, known: Known) -> list[IntArray]:
    """Return the counts of targets, with missing ones last, and of all numbers."""
    counts = records.asked(count_evenly)
    return [np.append(counts[0], records.n_missing), *counts[1:]]


def ask_scores(records: LinearRecords, known: Known) -> list[IntArray]:
    """Return the counts of positive and of negative scores by size."""
    return [*records.asked(count_tails, residuals=known.residuals, edges=EDGES)[:2]]


def ask_lengths(records: LinearRecords, known: Known) -> list[IntArray]:
    """Return the counts of records by length."""
    return [records.asked(count_tails, residuals=known.residuals, edges=EDGES)[2]]


_LIMITS = np.geomspace(0.7, 6.0, 14)
"""Limits of a mode, in spreads of the target."""
_MODE_NOISE, _MODE_SAMPLING = 0.05, 0.02  # Weights of errors of the start beside its level.


def mode_limit(at: Place, target: Target, n: float, p: int, noise: float) -> float:
    """Return the h with the least predicted error; the noise of the gradient is that of h = 1."""
    away = target.map(MIDDLES)

    def cost(h: float) -> float:
        cut = np.clip(away, -h, h)
        inside = max(float(at.shares @ (np.abs(away) <= h)), 0.1)
        level = float(at.shares @ (away - cut))
        sampling = float(at.shares @ cut**2) / (n * inside**2)
        return (
            _MODE_NOISE * p * noise * (h / (inside * n)) ** 2
            + level**2
            + _MODE_SAMPLING * p * sampling
        )

    return float(min(_LIMITS, key=cost))
