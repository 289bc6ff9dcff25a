r"""Draws of the parameters of a logistic regression from their posterior, near a perturbed mode.

They are as sharp as epsilon allows. Posterior sampling (Dimitrakakis et al. 2017) needs a
log-likelihood of bounded range. It has one in a ball around a public centre c, the perturbed mode
that half of the budget is spent on. With :math:`v = w - c`, :math:`u = v^\top B^\top x` and
:math:`q = \sigma(z)` at c, the score of a record is the expansion of its log-likelihood to second
order,

.. math:: s(v) = (y - q)\,u - \tfrac12 q(1-q)\,u^2,

and w is drawn from :math:`\pi(w)\,e^{\kappa\sum s}` with :math:`\sum_j |v_j|^2/\tau_j^2 \le B^2`:
a Gaussian in a ball, drawn by rejection (:mod:`dpbayes_sklearn.noise.discrete_gaussian`), without a
Markov chain. Spreads :math:`\tau_j` of the blocks and B are public.

*Claim*: N draws are private with :math:`N\kappa\,m\,a(b)`, where m records come or go,

.. math:: a(b) = 2b \text{ if } b \le 4, \text{ else } \tfrac18(b + 4)^2, \qquad
    b = B\Big(\tau_0^2 + \sum_j \tau_j^2(1 - 1/K_j)\Big)^{1/2} .

*Proof.* In the ball :math:`|u| \le b` (Cauchy and Schwarz; the norm of a block is largest at its
corners). With :math:`r = |y - q| \le 1` both terms lie in ranges of :math:`2rb` and
:math:`\tfrac12 r(1-r)b^2`, whose sum is largest at r = 1, or at :math:`r = \tfrac12 + 2/b` if
b > 4. So the score of a record has a range of at most a(b). A record that comes or goes changes the
exponent of every w by :math:`\kappa s`, and the logarithm of the normalisation by a number within
its range. ∎

The two terms may be rounded apart, as they are: residuals to :math:`2^{-44}`, and entries of
:math:`\sqrt{q(1-q)}\,B^\top x` towards zero, which lets no norm grow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.draws import score_range
from dpbayes_sklearn.convex.perturbed import PerturbedPlan
from dpbayes_sklearn.convex.record_sums import symmetric
from dpbayes_sklearn.logistic.blocks import Blocks
from dpbayes_sklearn.logistic.record_sums import MappedRecords, on_lattice
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit

# Mean of q(1 - q) that the spreads of draws suppose, with even shares of the levels.
_USUAL_CURVATURE = 0.1
_PRODUCT_STEPS = 2**15  # Entries have this many steps from 0 to 1 in products.
_SPARE = 1 - 2.0**-24  # This factor covers the rounding of residuals, contrasts and floats.


class LogisticDrawPlan(NamedTuple):
    """Public choices of the draws."""

    blocks: Blocks
    # (parameters,): the tau: nominal errors of the mode, and of the maximum of the likelihood.
    spread: FloatArray
    radius: float  # The B.
    weight: float  # The kappa: 1 is the posterior itself.
    prior: float  # Precision of the Gaussian prior of every contrast.
    n_draws: int

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        mode: PerturbedPlan,
        n: int,
        loss: Fraction,
        unit: PrivacyUnit,
        prior: float,
        n_draws: int,
    ) -> LogisticDrawPlan:
        """Return the plan of draws around a mode, each with the given privacy loss."""
        usual = n * _USUAL_CURVATURE / blocks.per_parameter(np.array(blocks.sizes, float), 1.0)
        spread = np.sqrt(mode.body.variance / (mode.ridge + usual) ** 2 + 1 / (usual + prior))
        radius = math.sqrt(blocks.parameters)
        worst = unit.n_changed * score_of_records(blocks, spread, radius)
        weight = min(1.0, float(loss) / worst) * _SPARE
        return cls(blocks, spread, radius, weight, prior, n_draws)

    @property
    def law(self) -> dict[str, object]:
        """What the loss of a draw follows from."""
        known = {"sizes": self.blocks.sizes, "spread": self.spread, "radius": self.radius}
        return {**known, "weight": self.weight, "draws": self.n_draws}

    def ask(self, records: MappedRecords, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return precision and linear term of the law of draws, in spreads around a centre."""
        blocks, width = self.blocks, len(centre)
        coefficients = on_lattice(blocks.basis @ centre)
        sums, _ = records.gradient(coefficients)
        products = records.products(
            coefficients, blocks.basis, np.ones(width), math.inf, _PRODUCT_STEPS
        )
        curvature = symmetric(products / _PRODUCT_STEPS**2)
        precision = self.weight * curvature + self.prior * np.eye(width)
        linear = -self.weight * (sums @ blocks.basis) - self.prior * centre
        return self.spread[:, None] * precision * self.spread, self.spread * linear

    def draw(self, asked: tuple[FloatArray, FloatArray], law: object, noise: Noise) -> FloatArray:
        """Return the draws, one in each row."""
        return np.asarray(self.spread * noise.ball(*asked, self.radius, self.n_draws))


def score_of_records(blocks: Blocks, spread: FloatArray, radius: float) -> float:
    """Return a(b), the range of a record's score."""
    squares = np.zeros(len(blocks.sizes) + 1)  # of the blocks; that of the constant comes last
    squares[blocks.block_of] = spread**2
    corners = np.append(1 - 1 / np.array(blocks.sizes), 1.0)
    return score_range(2.0, radius * math.sqrt(float(squares @ corners)) / 2)
