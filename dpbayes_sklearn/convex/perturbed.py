r"""The minimum of a convex loss, its gradient perturbed before it is sought.

Released is the minimum of

.. math:: J(w) = \sum_i \ell_i(w) + \tfrac12 (w - c)^\top \Lambda (w - c) - u^\top w

with a public centre c, a diagonal :math:`\Lambda \succeq \lambda > 0` and noise u (Chaudhuri,
Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012).

**Claim.** Let every gradient :math:`\nabla\ell_i(w)` lie in a symmetric convex body K, let every
:math:`\nabla^2\ell_i(w)` have a rank of at most r and
:math:`\operatorname{tr}\Lambda^{-1}\nabla^2\ell_i(w) \le q`, and let u have the density
:math:`\propto e^{-\|u\|_K/s}`. If m records come or go, k of them at most at a time (a replaced
record goes, and another comes: m = 2, k = 1), then w is private with
:math:`\varepsilon_1 = m/s + kr\ln(1 + q/r)`.

*Proof.* The minimum solves :math:`u = F(w) = \Lambda(w - c) + \sum_i\nabla\ell_i(w)`. F is strongly
monotone and Lipschitz, so it is one to one, and w has the density :math:`p(F(w))\,|\det DF(w)|`.
F(w) of neighbours differ by at most m in the norm of K: the first term. Their :math:`DF` are
:math:`A + \sum\nabla^2\ell_i` over at most k records, with the same :math:`A \succeq \Lambda`, so
each determinant is that of A times k factors :math:`\det(I + A^{-1}\nabla^2\ell_i)`, A growing
by one record after the other. A factor is the product of at most r numbers above 1, whose
excesses over 1 add up to at most q: at least 1, and at most :math:`(1 + q/r)^r`. ∎

**Bodies.** A *ball* of radius B: every gradient is at most as long as B
(:class:`~dpbayes_sklearn.noise.ball.BallNoise`, whose real noise is rounded). A *hull* of all
:math:`\pm hx`, for records of blocks that have the same sum (:mod:`dpbayes_sklearn.noise.gradient`,
also for Gaussian noise, which needs a delta): its noise is a point of a lattice, spread evenly over
its cell.

**Exactly.** On a computer noise is known up to a step of a lattice, and the minimum is found only
nearly. Both are repaired by noise on what is released, at the price of :math:`\varepsilon_2`. The
minimum :math:`w^*` for the real u, which nobody computes, is private. A computed w whose gradient
is g has :math:`\|w - w^*\| \le (\|g\| + \eta)/\lambda`, where :math:`\eta` bounds the step of the
lattice and the rounding of gradients. The search goes on until this is at most one step of a
public lattice. So w and :math:`w^*`, rounded to it, differ by one step at most. Noise in the sup
norm of scale :math:`2/\varepsilon_2` steps changes probabilities by :math:`e^{\varepsilon_2/2}`
between the two, on either data set: together :math:`\varepsilon_1 + \varepsilon_2`. ∎

The lattice is made for a public number that the number of records does not exceed. A secret number
exceeds it with a chance of 1e-20; the search then ends farther from the minimum, so that it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.data.records import blas_for
from dpbayes_sklearn.noise import NoiseLaw, SupNorm
from dpbayes_sklearn.noise.ball import BallNoise
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit
from dpbayes_sklearn.release import Step

_SEARCH = Fraction(1, 64)  # The noise that hides where the search ends gets this share.
_MOST_SEARCH = Fraction(64)  # From this budget on the jitter is far below any other error.
_FINEST = -30  # The finest lattice of what is released is two to this power.
_FLOATS = 2.0**-46  # Relative error, at most, of adding up a few terms in floats.
# Relative error of parameters near a centre that is not 0: K of them that are sums of K products
# each err by sqrt(K) (K + 5) 2^-53, and K is at most 128.
_AT_CENTRE = 2.0**-40
_NARROW = 2.0**-40  # Parts of a step smaller than this are not distinguished: steps may be long.
_CUT = 1e-3  # Parameters farther from those asked for than this were cut at their reach.
_UPWARD = 1 + 2.0**-40  # This factor covers the rounding of floats.
_NEAR = 1e-6  # The least ridge is found up to this part of it.
_START_RECORDS = 10_000  # Among very many records a search starts with this many.
_MORE_RECORDS = 4  # Second derivatives of the start use this many times as many records.
_START_GRADIENT = 0.01  # The start ends at a gradient of this part of the smallest ridge.
_SLOW = 0.3  # If a step leaves more of the gradient, second derivatives are computed anew.
_BALL_LATTICE = 2**20  # Steps of the noise of a ball from 0 to its radius.
_UNLIKELY = 1e-30  # Chance that noise exceeds the bound which the search relies on.


class Body(NamedTuple):
    """Noise of a gradient."""

    law: NoiseLaw
    steps: int  # Of the law's lattice: the largest gradient of a record, in the norm of the body.
    gradient: Callable[..., FloatArray]  # Makes the integers that are drawn a vector.
    variance: FloatArray  # (p,): of every entry.
    inexact: float  # Norm of the way to the real noise, at most.
    farthest: float  # A norm that the noise practically never reaches.


def ball_body(dimension: int, radius: float, epsilon: Fraction, unit: PrivacyUnit) -> Body:
    """Return the noise of gradients that are at most as long as a radius.

    >>> from dpbayes_sklearn.privacy.budget import RECORD
    >>> body = ball_body(3, 1.0, Fraction(1), RECORD)
    >>> body.variance.tolist()
    [16.0, 16.0, 16.0]
    """
    lattice = _BALL_LATTICE
    law = BallNoise(laplace_scale(Fraction(unit.n_changed * lattice), epsilon), dimension)
    step = radius / lattice
    return Body(
        law,
        lattice,
        lambda drawn: np.asarray(drawn, np.float64) * step,
        law.variances * step**2,
        step * math.sqrt(dimension),
        law.error_bound(_UNLIKELY) * step * math.sqrt(dimension),
    )


class Loss(Protocol):
    """**Sensitive:** a sum over records, as a function of p parameters."""

    @property
    def n(self) -> int:
        """Number of records that it is asked of."""

    @property
    def n_parameters(self) -> int:
        """The p."""

    def at(self, w: FloatArray) -> FloatArray:
        """Return the nearest parameters at which gradients can be asked for."""

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient."""

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives, in floats: they only guide the search."""

    def some(self, most: int) -> Self:
        """Return the loss of some of very many records, from which a search may start."""


class Shape(NamedTuple):
    """What is public about a loss."""

    n: int  # A number that the number of records does not exceed.
    # (p,): the largest second derivatives of a record, or the largest sum of them.
    squares: FloatArray
    together: bool  # Whether it is the latter.
    lattice: float  # Parameters at which gradients can be asked for are multiples of this.
    rounding: float  # Error of the gradient of one record.
    slope: float  # The largest length of a record's gradient.
    rank: int = 1  # The r: no record's second derivatives have a larger one.

    def determinant(self, ridge: FloatArray) -> float:
        """Return the q: the largest trace of a record's second derivatives over the ridge."""
        over = self.squares / ridge
        return float(over.max() if self.together else over.sum()) * _UPWARD

    @property
    def steepest(self) -> float:
        """The largest second derivative."""
        return self.n * float(self.squares.max() if self.together else self.squares.sum())

    def slack(self, inexact: float, farthest: float, pulled: float = 0.0) -> float:
        """Return what is not exact about a gradient, with noise that is inexact and so far out.

        Floats add up terms, each at most as long as all of them together. ``pulled`` is the length
        of the ridge times its centre.
        """
        largest = self.n * self.slope + farthest
        floats = _FLOATS * math.sqrt(len(self.squares)) * largest + _AT_CENTRE * pulled
        return self.n * self.rounding + inexact + floats

    def reachable(self, ridge: FloatArray, slack: float) -> float:
        """Return a norm of the gradient, what is not exact included, that a search goes below."""
        steepest = self.steepest + float(ridge.max())
        return 4 * (math.sqrt(len(ridge)) * steepest * self.lattice + slack)


@dataclass(frozen=True)
class PerturbedPlan:
    """Public choices of one release."""

    body: Body
    ridge: FloatArray  # (p,): the diagonal of the regulariser.
    centre: FloatArray  # (p,): the c.
    error: float  # The norm that the gradient may have at the end, its rounding included.
    slack: float  # What is not exact about a gradient.
    step: float  # What is released is a multiple of it, or of a part of it.
    jitter: SupNorm  # The noise of what is released, in steps.
    shape: Shape  # A secret number of records exceeds its n with a chance of 1e-20.

    @property
    def gradient_noise(self) -> NoiseLaw:
        """Noise of the gradient, in steps."""
        return self.body.law

    @classmethod
    def of(
        cls,
        shape: Shape,
        epsilon: Fraction,
        volume: Fraction,
        unit: PrivacyUnit,
        body_of: Callable[[Fraction], Body],
        ridge_of: Callable[[Body], FloatArray],
        centre: FloatArray | None = None,
    ) -> PerturbedPlan:
        """Share epsilon: a part for the determinants, which sets the least ridge, and the noise.

        ``ridge_of`` wants a ridge for the noise; it is raised to the least one where it is smaller.
        """
        search = search_share(epsilon)
        body = body_of(epsilon - search - volume)
        ridge = raised(ridge_of(body), shape, volume, unit)
        centre = np.zeros(len(ridge)) if centre is None else centre
        pulled = float(np.linalg.norm(ridge * centre))
        slack = shape.slack(body.inexact, body.farthest, pulled)
        error = shape.reachable(ridge, slack)
        step = 2.0 ** max(math.ceil(math.log2(error / float(ridge.min()))), _FINEST)
        jitter = SupNorm.of((1,) * len(ridge), 2, search)
        return cls(body, ridge, centre, error, slack, step, jitter, shape)


def search_share(epsilon: Fraction) -> Fraction:
    """Return the part of epsilon for the noise that hides where the search ends."""
    return min(epsilon * _SEARCH, _MOST_SEARCH)


def volume_of(shape: Shape, ridge: FloatArray, unit: PrivacyUnit) -> Fraction:
    """Return what the determinants cost."""
    r = shape.rank
    return Fraction(unit.max_records * r * math.log1p(shape.determinant(ridge) / r) * _UPWARD)


def raised(ridge: FloatArray, shape: Shape, volume: Fraction, unit: PrivacyUnit) -> FloatArray:
    r"""Return a ridge with which the determinants cost at most this epsilon.

    Where it is smaller than some number it becomes that number, which is the smallest that does.
    """
    each = unit.max_records * shape.rank
    most = shape.rank * math.expm1(min(float(volume) / each, 700.0))
    if shape.determinant(ridge) <= most:
        return ridge
    low, high = 0.0, shape.determinant(np.ones(len(ridge))) / most * _UPWARD
    while high - low > _NEAR * high:
        middle = (low + high) / 2
        enough = shape.determinant(np.maximum(ridge, middle)) <= most
        low, high = (low, middle) if enough else (middle, high)
    return np.maximum(ridge, high)


@dataclass(frozen=True)
class PerturbedLoss:
    """**Sensitive:** a loss and the plan by which its minimum is released."""

    loss: Loss
    plan: PerturbedPlan

    @property
    def gradient_noise(self) -> NoiseLaw:
        """Noise of the gradient, in steps."""
        return self.plan.gradient_noise

    @property
    def jitter(self) -> SupNorm:
        """Noise of what is released, in steps."""
        return self.plan.jitter

    @property
    def step(self) -> float:
        """Lattice of what is released."""
        return self.plan.step

    def minimum(self, *noise: IntArray) -> FloatArray:
        """Return the minimum, tilted by noise."""
        plan = self.plan
        tilt = plan.body.gradient(*noise)
        if not float(np.linalg.norm(tilt)) <= plan.body.farthest:
            raise RuntimeError("The source of random bytes cannot be used for noise.")
        error = plan.error * max(1.0, self.loss.n / max(plan.shape.n, 1))  # a search always ends
        return Search(self.loss, plan.ridge, plan.centre, tilt, plan.slack).minimum(error)


def perturbed_mode(cost: Budget, law: Any, ask: Any, read: Any, **structure: Any) -> Step[Any, Any]:
    """Return the step of a release that finds a minimum with exponential noise of its gradient."""
    return Step(
        "perturbed mode", cost, law, "exponential noise of the gradient",
        structure={"kind": "gradients", **structure},
        ask=ask, read=read, draw=lambda loss, law, noise: noise.minimum(loss),
    )  # fmt: skip


class _Point(NamedTuple):
    """Parameters, the negative gradient, and its norm with all that is not exact."""

    w: FloatArray
    descent: FloatArray
    error: float


class Search:
    """The search for the minimum of a tilted and regularised loss.

    It starts in a part of very many records. Its steps are Newton's with a matrix of second
    derivatives that each step corrects by what it saw (BFGS) and that is computed anew where that
    does not make the gradient small fast. A step that leads to the far side of the valley is
    shortened, so that the objective falls with every step.
    """

    def __init__(
        self, loss: Loss, ridge: FloatArray, centre: FloatArray, tilt: FloatArray, slack: float
    ) -> None:
        self.loss, self.ridge, self.centre = loss, ridge, centre
        self.tilt, self.slack = tilt, slack

    def minimum(self, error: float) -> FloatArray:
        """Return parameters at which the gradient, with its errors, is at most so large."""
        start, inverse = self.centre, None
        with blas_for(self.loss.n_parameters):
            some = self.loss.some(_START_RECORDS)
            if some is not self.loss:
                rough = float(self.ridge.min()) * _START_GRADIENT
                start = self._found(some, start, None, max(error, rough))
                more = self.loss.some(_MORE_RECORDS * _START_RECORDS)
                inverse = self._inverse(more, self._point(some, start))
            return self._found(self.loss, start, inverse, error)

    def _found(
        self, loss: Loss, start: FloatArray, inverse: FloatArray | None, error: float
    ) -> FloatArray:
        here = self._point(loss, start)
        while here.error > error:
            if inverse is None:
                inverse = self._inverse(loss, here)
            there = self._along(loss, here, inverse @ here.descent, error)
            moved, bent = there.w - here.w, here.descent - there.descent
            slow = there.error > _SLOW * here.error or not moved @ bent > 0
            inverse = None if slow and there.error > error else _corrected(inverse, moved, bent)
            here = there
        return here.w

    def _along(self, loss: Loss, here: _Point, step: FloatArray, error: float) -> _Point:
        """Return a point along a step where the objective has fallen enough."""
        near, far, part = 0.0, 1.0, 1.0
        there, before = self._point(loss, here.w + step), float(here.descent @ step)
        while there.error > error and far - near > _NARROW:
            left = float(there.descent @ step)
            cut = float(np.abs(there.w - here.w - part * step).max()) > _CUT
            if not cut and left >= -before / 2 and (left >= 0 or -left <= before / 2):
                break
            near, far = (part, far) if left > 0 and not cut else (near, part)
            part = (near + far) / 2
            there = self._point(loss, here.w + part * step)
        return there

    def _point(self, loss: Loss, w: FloatArray) -> _Point:
        w = loss.at(w)
        gradient = self.loss.n / max(loss.n, 1) * loss.gradient(w)
        descent = self.tilt - gradient - self.ridge * (w - self.centre)
        return _Point(w, descent, float(np.linalg.norm(descent)) + self.slack)

    def _inverse(self, loss: Loss, here: _Point) -> FloatArray:
        many = self.loss.n / max(loss.n, 1)
        matrix = many * loss.curvature(here.w) + np.diag(self.ridge)
        factor = cho_factor(matrix, check_finite=False)
        return np.asarray(cho_solve(factor, np.eye(len(matrix)), check_finite=False))


def _corrected(inverse: FloatArray, moved: FloatArray, bent: FloatArray) -> FloatArray:
    r"""Return the inverse second derivatives that explain a step (BFGS).

    :math:`H + (1 + \frac{y^\top Hy}{s^\top y})\frac{ss^\top}{s^\top y}
    - \frac{Hys^\top + sy^\top H}{s^\top y}` for the step s and the change y of the gradient.
    """
    curved, turned = float(moved @ bent), inverse @ bent
    outer: AnyArray = np.outer(turned, moved) / curved
    along = (1 + float(bent @ turned) / curved) / curved
    return np.asarray(inverse + along * np.outer(moved, moved) - outer - outer.T)
