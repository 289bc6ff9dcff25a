r"""Noise of the gradient of an objective whose minimum is released (objective perturbation).

A record is :math:`x = (1, x_1, \dots, x_d)` with blocks :math:`x_j \ge 0` of :math:`K_j` weights
that add to one: levels of a category, hats of a number, or a number x in [-1, 1] as the two weights
:math:`\frac{1 \pm x}2`. It adds :math:`a\,x` to the gradient, :math:`|a| \le h`, where a
depends on the parameters (of a known sign, for a logistic loss). So m records that come or go
change the gradient at given parameters by :math:`v = \sum_i a_ix_i`. The minimum w solves :math:`u
= F(w)` for the noise u, and has the density :math:`p(F(w))\,|\det DF(w)|`. If the determinants of
neighbours differ by a factor of at most :math:`e^{\varepsilon_0}`, the release loses at most
:math:`\varepsilon_0 + L`, :math:`L = \ln p(u)/p(u + v)` with v at w.

**Hull** (pure). The noise has the norm whose unit ball is the convex hull of all :math:`\pm x`:
blocks have the same sum as the entry of the constant, and L1 norm at most 1
(:class:`~dpbayes_sklearn.noise.ClassRows` with one class). v has norm at most mh, so noise
:math:`\propto e^{-\|u\|/s}` has :math:`L \le mh/s`. It is drawn from a lattice of step 1/l and, in
thought, spread evenly over its cell: a point of a cell is at most :math:`c = (\max_j K_j -
\tfrac12)/l` from its lattice point, so :math:`s = (mh + 2c)/\varepsilon` is enough.

**Gaussian** (with a delta; Kifer, Smith and Thakurta 2012; Redberg, Koskela and Wang 2023). Weigh
the contrasts of block j by :math:`w_j`: :math:`\|x\|^2 = w_0 + \sum_j w_j|x_j - 1/K_j|^2 \le R^2 =
w_0 + \sum_j w_j(1 - 1/K_j)`. The noise is Gaussian with variance :math:`\sigma^2/w_j` along them,
and :math:`\mu = mhR/\sigma`. Let :math:`f(s)` be the delta, at :math:`\varepsilon`, of two normals
at distance :math:`\sqrt s`.

*Claim*: L exceeds :math:`\varepsilon` no more than :math:`(\varepsilon, 2f(\mu^2))`-privacy
allows, if m is 1 or 2 and :math:`\mu^2 \le 2(\sqrt{1 + \varepsilon^2} - 1)`, and no more than
:math:`f(\mu^2) + 2f(\mu^2/4)` if signs are known; for any m it has the moments of
:math:`\tfrac12\mu^2`-zCDP, doubled: delta is at most twice that of zCDP.

*Proof.* v depends on the noise, through w, but lies among all :math:`\sum a_ix_i` with
:math:`|a_i| \le h`. :math:`L = (2\langle u, v\rangle + \|v\|^2)/2\sigma^2` is convex in v, hence at
most the largest of its values at the :math:`2^m` corners :math:`v_c = h\sum \pm x_i`, and so
:math:`E(1 - e^{\varepsilon - L})_+ \le \sum_c f(\|v_c\|^2/\sigma^2)`. For m = 1 these are two of
:math:`\|v_c\| \le hR`. For m = 2 they are two of :math:`s_+ = h^2\|x + x'\|^2/\sigma^2` and two of
:math:`s_- = h^2\|x - x'\|^2/\sigma^2`, with :math:`s_+ + s_- \le \mu^2`. As :math:`f'(s) =
\varphi(\tfrac12\sqrt s - \varepsilon/\sqrt s)/2\sqrt s` grows while :math:`\tfrac14s^2 + s \le
\varepsilon^2`, f is convex there, and :math:`f(s_+) + f(s_-) \le f(\mu^2)`. With known signs the
corners are 0, :math:`\pm hx`, :math:`\pm hx'` and one sum of these. For any m,
:math:`\langle u, v\rangle \le h\sum_i|\langle u, x_i\rangle|`, so by Hölder's inequality
:math:`Ee^{\lambda L} \le e^{\lambda\mu^2/2} \prod_i (E e^{\lambda mh|\langle
u, x_i\rangle|/\sigma^2})^{1/m} \le 2e^{\lambda(\lambda + 1)\mu^2/2}`. ∎

*Exactly.* u is a linear image of independent integers z with discrete Gaussian noise of deviations
:math:`\tau_i \ge \tau` steps, spread evenly over cubes. Where :math:`|z_i| \le 44\tau_i`, their
density is within :math:`e^{\pm\eta}` of the continuous one, :math:`\eta = 45M/2\tau` for M numbers,
since :math:`|z^2 - (z + r)^2| \le |z| + \tfrac14` for :math:`|r| \le \tfrac12`; elsewhere both laws
have a mass below :math:`2Me^{-968}`. So a set of probability P under one has at most
:math:`e^\eta P + 10^{-400}` under the other, and the release with z is
:math:`(\varepsilon + 2\eta, e^\eta\delta + 10^{-300})`-private for :math:`\varepsilon \le 64`. ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.noise.class_rows import ClassRows
from dpbayes_sklearn.noise.discrete_gaussian import DiscreteGaussian, representable_variance
from dpbayes_sklearn.noise.law import NoiseLaw
from dpbayes_sklearn.privacy.budget import Exact, PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.gaussian import continuous_delta

__all__ = [
    "BlockShape",
    "GradientNoise",
    "gaussian_noise",
    "hull_noise",
    "in_hull",
    "largest_ratio",
    "least_gradient_noise",
    "search_delta",
]

_FINEST = 40  # The lattice has at most two to this power steps from 0 to 1.
_WIDEST = 39  # Gaussian noise has a deviation of about two to this power steps.
_THEOREM_REACH = 45  # The 44 + 1 of the theorem.
_MOST_EPSILON = 64  # Gaussian noise is offered up to this epsilon.
_ROUNDING = Fraction(1, 2**13)  # Share of epsilon for the difference from continuous noise.
# The term and the factor that cover the error of floats in the bound of Gaussian noise.
_TAIL, _UPWARD = 1e-300, 1 + 1e-9
# The norm of the hull's noise is never seen this many scales beyond twice its mean.
_HULL_REACH = 256


class BlockShape(NamedTuple):
    """The blocks of a record.

    Attributes
    ----------
    sizes : tuple of int
        Number of weights of every block.
    weights : tuple of Fraction
        How much the noise of a block matters: its w with Gaussian noise.
    largest_slope : Fraction
        The h: the largest derivative of a record's loss.
    signed : bool
        Whether the sign of a is the same for all parameters.
    constant : bool
        Whether the constant, of weight 1, is part of the gradient, or sums of blocks are.
    """

    sizes: tuple[int, ...]
    weights: tuple[Fraction, ...]
    largest_slope: Fraction = Fraction(1)
    signed: bool = False
    constant: bool = True

    @property
    def norm(self) -> Fraction:
        """The largest squared norm of a record, R²."""
        pairs = zip(self.sizes, self.weights, strict=True)
        return sum((w * (1 - Fraction(1, k)) for k, w in pairs), Fraction(int(self.constant)))

    def total(self, contrasts: Sequence[float], constant: float) -> float:
        r"""Return the variance of what is predicted: :math:`v_0 + \sum_j w_j^2(1 - 1/K_j)v_j`.

        With :math:`w_j = K_j` this is the sum of the variances of all contrasts over the mean
        squares 1/K of levels that are equally frequent.
        """
        each = zip(self.sizes, self.weights, contrasts, strict=True)
        own = self.constant * constant
        return own + sum(float(w) ** 2 * (1 - 1 / k) * v for k, w, v in each)


class GradientNoise(NamedTuple):
    """Noise of a gradient: of every block, then of the constant.

    Attributes
    ----------
    law : NoiseLaw
        Its arrays are the blocks, and the constant last.
    lattice : int
        Steps from 0 to 1.
    total : float
        The variance of what is predicted, in units.
    farthest : float
        L1 norm that the noise of a block reaches with a probability below 1e-80, in units.
    """

    law: NoiseLaw
    lattice: int
    total: float
    farthest: float


def least_gradient_noise(
    shape: BlockShape, epsilon: Fraction, delta: Exact, unit: PrivacyUnit
) -> GradientNoise:
    """Return the noise with the smaller variance of what is predicted; pure without a delta."""
    pure = hull_noise(shape, epsilon, unit)
    with suppress(ValueError):  # without a delta, or where there is no exact noise
        other = gaussian_noise(shape, epsilon, delta, unit)
        return min(pure, other, key=lambda noise: noise.total)
    return pure


def hull_noise(
    shape: BlockShape, epsilon: Fraction, unit: PrivacyUnit, copies: int = 1
) -> GradientNoise:
    r"""Return pure noise on the finest lattice that fits 64 bits.

    Several copies, which are independent, hide a record that moves all of them by h in all.

    In units of its scale the norm is Gamma(k) with k - 1 dimensions, and exceeds 2k + 256 with a
    probability below :math:`e^{-200}`: by Chernoff, :math:`e^{-(k + 256) + k\ln(2 + 256/k)}`.
    """
    dimension = 1 + sum(size - 1 for size in shape.sizes)
    room = 2.0**50 * float(epsilon) / (unit.n_changed * (dimension + 1))
    lattice = 2 ** min(_FINEST, max(0, math.floor(math.log2(room))))
    cells = 2 * copies * max(shape.sizes, default=1)
    sensitivity = math.ceil(unit.n_changed * shape.largest_slope * lattice) + cells
    law = ClassRows.of(shape.sizes, copies, sensitivity, epsilon)
    farthest = (2 * (dimension + 1) + _HULL_REACH) * float(law.scale) / lattice
    return GradientNoise(law, lattice, _total(shape, law, lattice), farthest)


def gaussian_noise(
    shape: BlockShape, epsilon: Fraction, delta: Exact, unit: PrivacyUnit
) -> GradientNoise:
    """Return Gaussian noise; refuse what cannot be drawn, or is not proven.

    >>> from dpbayes_sklearn.privacy.budget import RECORD
    >>> shape, one = BlockShape((2,) * 99, (Fraction(2),) * 99), Fraction(1)
    >>> pure = hull_noise(shape, one, RECORD)
    >>> other = gaussian_noise(shape, one, Fraction(1, 10**6), RECORD)
    >>> [f"{math.sqrt(noise.total):.0f}" for noise in (pure, other)]
    ['1172', '873']
    """
    if not (0 < delta < 1 and epsilon <= _MOST_EPSILON):
        raise ValueError("Gaussian noise needs a delta, and an epsilon of at most 64.")
    ratio = largest_ratio(epsilon, delta, unit.n_changed, shape.signed)
    sigma = float(unit.n_changed * shape.largest_slope) * math.sqrt(shape.norm) / ratio * _UPWARD
    lattice = 2 ** max(0, _WIDEST - math.ceil(math.log2(sigma)))
    variance = math.ceil(Fraction(sigma) ** 2 * lattice**2)
    each = tuple(representable_variance(variance / w) for w in (*shape.weights, Fraction(1)))
    law = DiscreteGaussian(each, (*shape.sizes, 1))
    if _THEOREM_REACH * law.size / math.sqrt(min(each)) > epsilon * _ROUNDING:  # twice the eta
        raise ValueError("epsilon is too small for exact Gaussian noise on so many numbers.")
    farthest = _THEOREM_REACH * max(shape.sizes, default=1) * math.sqrt(max(each)) / lattice
    return GradientNoise(law, lattice, _total(shape, law, lattice), farthest)


def _total(shape: BlockShape, law: NoiseLaw, lattice: int) -> float:
    blocks = len(shape.sizes)
    contrasts = [law.contrast_variance(j) / lattice**2 for j in range(blocks)]
    return shape.total(contrasts, law.variance(blocks) / lattice**2)


@lru_cache(maxsize=256)
def largest_ratio(epsilon: Fraction, delta: Exact, changed: int, signed: bool = False) -> float:
    r"""Return the largest :math:`\mu` for m changed records that is proven.

    >>> [round(1 / largest_ratio(Fraction(1), Fraction(1, 10**6), 2, is_), 2) for is_ in (0, 1)]
    [4.37, 4.23]
    """
    left = float(epsilon * (1 - _ROUNDING)) / _UPWARD
    most = (float(delta) - _TAIL) / math.exp(float(epsilon * _ROUNDING)) / _UPWARD
    if most <= 0:
        raise ValueError("delta is too small for Gaussian noise.")
    if changed > 2:
        return math.sqrt(2 * zcdp_rho(Fraction(left), Fraction(most) / 2)) / _UPWARD
    corners = ((1, 1.0), (2, 0.5)) if signed else ((2, 1.0),)

    def beyond(ratio: float) -> float:
        return sum(k * continuous_delta(part * ratio, left) for k, part in corners)

    low, high = 0.0, math.sqrt(2 / (1 + math.sqrt(1 + left**2))) * left / _UPWARD
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        enough = beyond(middle * _UPWARD) <= most
        low, high = (middle, high) if enough else (low, middle)
    if not low:
        raise ValueError("delta is too small for Gaussian noise.")
    return low


def search_delta(delta: Exact, search: Fraction) -> Fraction:
    r"""Return the delta of the exact minimum, if noise that hides a search costs this epsilon.

    The noise changes probabilities by :math:`e^{\varepsilon_2/2}` on either data set, so a delta of
    the minimum becomes :math:`e^{\varepsilon_2/2}\delta`.
    """
    return Fraction(float(delta) * math.exp(-float(search) / 2) * (1 - 1e-12))


def in_hull(law: NoiseLaw, *drawn: AnyArray) -> list[AnyArray]:
    """Return the noise of the blocks and of the constant, which is the sum of every block.

    Of independent noise a block has the contrasts.
    """
    *rows, total = drawn
    if law.independent:
        rows = [row + (total[0] - row.sum()) / len(row) for row in rows]
    return [*rows, total]
