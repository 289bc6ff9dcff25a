r"""The steps of a release, and their shares: look, mode, curvature.

1. **Look** (a tenth of epsilon, only if there are numbers). A histogram of every number on 16
   equal-width bins, with joint noise of all of them: a record adds one to one bin of each, so a
   replaced record changes :math:`\max_j \|\cdot\|_1` by at most 2, and one that is added by 1. Its
   cumulative sums, mixed with the uniform law, are a rough rank; its ends a window.
2. **Mode** (:mod:`dpbayes_sklearn.logistic.mode`).
3. **Curvature** (.3 of epsilon, or .15 where records are many, if intervals are released). The sum
   of :math:`vv^\top, v = \sqrt{\sigma(1-\sigma)}\,B^\top x` at the released mode, with
   :class:`~dpbayes_sklearn.noise.MatrixNoise` of weights a. Records whose :math:`\sum a_i^2(B^\top
   x)_i^2` exceeds a limit T, which the released histograms suggest, are scaled down to it. As
   :math:`\sigma(1-\sigma) \le \tfrac14`, m records that come or go have a weighted nuclear norm of
   at most mT/4, and the scale :math:`mT/4\varepsilon` is enough.

With ``mechanism="sampler"`` half of the budget of the mode is for draws, not for a curvature.

Each step is a function of the records given what earlier ones released, so their epsilons add up.

**Draws** of the parameters from their posterior, as sharp as epsilon allows, near a perturbed mode.
Posterior sampling (Dimitrakakis et al. 2017) needs a log-likelihood of bounded range. It has one in
a ball around a public centre c, the perturbed mode that half of the budget is spent on. With
:math:`v = w - c`, :math:`u = v^\top B^\top x` and :math:`q = \sigma(z)` at c, the score of a record
is the expansion of its log-likelihood to second order,

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.draws import REAL_ARITHMETIC, loss_of_a_draw, score_range
from dpbayes_sklearn.logistic.blocks import BINS, Blocks
from dpbayes_sklearn.logistic.curvature import (
    Curvature,
    CurvaturePlan,
    coordinates,
    half_way,
    told,
    widest_norm,
)
from dpbayes_sklearn.logistic.mode import (
    LogisticModePlan,
    exact_mode,
    perturbed_mode,
    plan_mode,
    records_per_parameter,
)
from dpbayes_sklearn.logistic.posterior import LogisticPosterior
from dpbayes_sklearn.logistic.record_sums import (
    MOST_RECORDS,
    CodedRecords,
    LabelledRecords,
    MappedRecords,
    on_lattice,
)
from dpbayes_sklearn.mechanisms import Mechanism, Sampler
from dpbayes_sklearn.noise import ClassRows, Noise
from dpbayes_sklearn.privacy.budget import Budget, Exact, PrivacyUnit
from dpbayes_sklearn.release import Expense, Facts, Plan

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
        mode: LogisticModePlan,
        n: int,
        loss: Fraction,
        unit: PrivacyUnit,
        prior: float,
        n_draws: int,
    ) -> LogisticDrawPlan:
        """Return the plan of draws around a mode, each of which may lose so much."""
        blocks, ridge = mode.blocks, mode.ridge
        usual = n * _USUAL_CURVATURE / blocks.per_parameter(np.array(blocks.sizes, float), 1.0)
        spread = np.sqrt(mode.noise / (ridge + usual) ** 2 + 1 / (usual + prior))
        radius = math.sqrt(blocks.parameters)
        worst = unit.n_changed * score_of_records(blocks, spread, radius)
        weight = min(1.0, float(loss) / worst) * _SPARE
        return cls(blocks, spread, radius, weight, prior, n_draws)

    def release(self, records: MappedRecords, centre: FloatArray, noise: Noise) -> FloatArray:
        """Return draws of the parameters, one in each row, around a released mode."""
        blocks, width = self.blocks, len(centre)
        coefficients = on_lattice(blocks.basis @ centre)
        sums, _ = records.gradient(coefficients)
        products = records.products(
            coefficients, blocks.basis, np.ones(width), math.inf, _PRODUCT_STEPS
        )
        curvature = np.zeros((width, width))
        curvature[np.triu_indices(width)] = products / _PRODUCT_STEPS**2
        curvature += np.triu(curvature, 1).T
        precision = self.weight * curvature + self.prior * np.eye(width)
        linear = -self.weight * (sums @ blocks.basis) - self.prior * centre
        scaled = self.spread[:, None] * precision * self.spread
        drawn = noise.ball(scaled, self.spread * linear, self.radius, self.n_draws)
        return np.asarray(centre + self.spread * drawn)


def score_of_records(blocks: Blocks, spread: FloatArray, radius: float) -> float:
    """Return a(b), the range of a record's score."""
    squares = np.zeros(len(blocks.sizes) + 1)  # of the blocks; that of the constant comes last
    squares[blocks.block_of] = spread**2
    corners = np.append(1 - 1 / np.array(blocks.sizes), 1.0)
    return score_range(2.0, radius * math.sqrt(float(squares @ corners)) / 2)


FEW_RECORDS = 100
"""Records times epsilon per parameter below which naive Bayes is usually more accurate."""
_LOOK_SHARE = Fraction(1, 10)  # Histograms of the numbers get this part of epsilon.
# The curvature gets the first part of epsilon, or the second if records are very many.
_CURVATURE_SHARE, _LESS_CURVATURE_SHARE = Fraction(3, 10), Fraction(3, 20)
# From this n epsilon / p on records are very many, and intervals are released unless refused.
_MANY_PER_PARAMETER = 4000.0
# More parameters than the first are refused; more than the second get no intervals by default.
_MOST_PARAMETERS, _MOST_WITH_INTERVALS = 2000, 200
_HISTOGRAM_TRUST = 0.7  # A released histogram has at most this weight beside the uniform law.
_COUNT_DOUBT = 0.5  # This many standard deviations are taken off a released count.
_WINDOW_TAIL = 0.005  # At most this share of the values lies beyond each end of a window.
_SURE_TAIL = 1.5  # A tail within a window exceeds this many standard deviations of noise.
_DRAWS_SHARE = Fraction(1, 2)  # Draws have this part of a mode's budget.
_PREDICTION_SCALE = 2.0  # Predictions multiply the mode by 1 + this / sqrt(n epsilon / p).


class Look(NamedTuple):
    """What the histograms tell: a map of every number, and the shares of bins or levels."""

    nodes: FloatArray
    shares: tuple[FloatArray, ...]
    errors: tuple[float, ...]


class LookPlan(NamedTuple):
    """The noise of the histograms."""

    blocks: Blocks
    columns: tuple[int, ...]
    law: ClassRows

    @classmethod
    def of(
        cls, blocks: Blocks, columns: tuple[int, ...], epsilon: Fraction, unit: PrivacyUnit
    ) -> LookPlan:
        """Return the plan for a share of epsilon."""
        sizes = tuple(blocks.cells(j).n_values for j in columns)
        return cls(blocks, columns, ClassRows.of(sizes, 1, unit.n_changed, epsilon))

    def release(self, records: CodedRecords, n: int, noise: Noise) -> Look:
        """Return maps and shares of all numbers; n is public, the exact number may not be."""
        exact = np.split(records.histograms(self.columns), np.cumsum(self.law.values)[:-1])
        *noisy, _ = noise.add([*exact, np.array([records.records.n])], self.law)
        deviations = [math.sqrt(self.law.variance(j)) for j in range(len(noisy))]
        return seen(self.blocks, self.columns, noisy, n, deviations)


def seen(
    blocks: Blocks,
    columns: tuple[int, ...],
    counts: Sequence[AnyArray],
    n: int,
    deviations: Sequence[float],
) -> Look:
    """Return maps and shares by counts whose noise has these standard deviations."""
    map_of = _rank if blocks.effects == "smooth" else _window
    each = [*zip(counts, deviations, strict=True)]
    numbers = [pair for j, pair in zip(columns, each, strict=True) if j in blocks.numbers]
    maps = [map_of(count, n, deviation) for count, deviation in numbers]
    shares = tuple(
        _shares(*pair) if j in blocks.numbers else _level_shares(*pair)
        for j, pair in zip(columns, each, strict=True)
    )
    errors = tuple(deviation / max(n, 1) for deviation in deviations)
    return Look(np.array(maps).reshape(-1, BINS + 1), shares, errors)


def _shares(counts: FloatArray, deviation: float) -> FloatArray:
    """Return the shares of bins; even ones if nothing is left."""
    kept = np.maximum(counts - _COUNT_DOUBT * deviation, 0.0)
    return np.asarray(kept / kept.sum()) if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))


def _level_shares(counts: FloatArray, deviation: float) -> FloatArray:
    kept = np.maximum(counts, max(_COUNT_DOUBT * deviation, 1.0))
    return np.asarray(kept / kept.sum())


def _rank(counts: FloatArray, n: int, deviation: float) -> FloatArray:
    """Return the cumulative distribution at the ends of the bins, mixed with the uniform one."""
    trust = _HISTOGRAM_TRUST * n / (n + BINS * deviation)
    mass = trust * _shares(counts[:BINS], deviation) + (1 - trust) / BINS
    return np.concatenate([[0.0], np.minimum(np.cumsum(mass[:-1]), 1.0), [1.0]])


def _window(counts: FloatArray, n: int, deviation: float) -> FloatArray:
    """Return a map that is linear between the ends of a window, and constant beyond."""
    first, last = _end(counts[:BINS], n, deviation), _end(counts[BINS - 1 :: -1], n, deviation)
    if first + last >= BINS:
        first = last = 0
    return np.clip((np.arange(BINS + 1) - first) / (BINS - last - first), 0.0, 1.0)


def _end(counts: FloatArray, n: int, deviation: float) -> int:
    """Return how many bins hold, from this side, no more than a few records and noise."""
    noise = deviation * np.sqrt(np.arange(1, BINS + 1))
    found = int(np.argmax(np.cumsum(counts) > _WINDOW_TAIL * n + _SURE_TAIL * noise))
    return max(0, found - 1)


@dataclass(frozen=True)
class LogisticPrior:
    """The model before any data."""

    blocks: Blocks
    precision: float | None = None  # Prior precision of the contrasts; None for the public rule.
    intervals: bool | None = None  # Whether the curvature is released; None for the public rule.


_REFUSED = {
    "laplace": "a noisy quadratic approximation of the loss pays for all products of two weights, "
    "and holds near one point only",
    "fourier": "the loss has no sufficient statistics that are tables",
    "gaussian": "it is for sums that are released; with a delta and many columns the mode has "
    "Gaussian noise",
}


def check_mechanism(mechanism: Mechanism | str) -> None:
    """Refuse a mechanism by name, with the reason; unknown names are left to others."""
    name = mechanism if isinstance(mechanism, str) else mechanism.name()
    if name in _REFUSED:
        raise InvalidParameterError(
            f"mechanism={name!r} is not available for BayesianLogisticRegression: "
            f"{_REFUSED[name]}. Use mechanism='map'."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticPlan(Plan[LabelledRecords, LogisticPosterior]):
    """The steps of one release; without privacy, ``mode`` is None."""

    prior: LogisticPrior
    facts: Facts
    rho: float = math.inf
    look: LookPlan | None = None
    mode: LogisticModePlan | None = None
    draws: LogisticDrawPlan | None = None
    curvature: Fraction = Fraction(0)

    def release(self, statistics: LabelledRecords, noise: Noise) -> LogisticPosterior:
        """Look, find the mode, and ask for the curvature there."""
        blocks, records, n = self.prior.blocks, statistics.read(), self.facts.n
        if self.mode is None:
            return _exact(self.prior, records)
        nothing = seen(blocks, (), [], n, [])
        look = nothing if self.look is None else self.look.release(records, n, noise)
        mapped = records.mapped(look.nodes)
        mode = perturbed_mode(mapped, self.mode, noise)
        if self.draws is not None:
            return drawn(look, self.draws, self.draws.release(mapped, mode, noise))
        scale = 1 + _PREDICTION_SCALE / math.sqrt(self.rho)
        ridge, error = self.mode.ridge, self.mode.noise
        found = Curvature.none()
        if self.curvature:
            known = coordinates(blocks, mapped.tables, look.shares, look.errors)
            point = half_way(known, n, mode, ridge)
            share, most = self.curvature, self.facts.n_bound
            of_limit = CurvaturePlan.of(blocks, most, share, self.cost.unit, known.limit)
            answer = of_limit.release(mapped, known.axes.T @ point, known.centred, noise)
            found = told(known, n, point, *answer)
        return LogisticPosterior(mode, look.nodes, ridge, error, scale, *found)

    @property
    def steps(self) -> tuple[Expense, ...]:
        """Look, mode and curvature or draws, with their shares."""
        if self.mode is None:
            return super().steps
        unit, epsilon = self.cost.unit, Fraction(self.cost.epsilon)
        look = Fraction(0) if self.look is None else _LOOK_SHARE * epsilon
        rest = epsilon - look - self.curvature
        draws = Fraction(0) if self.draws is None else _DRAWS_SHARE * rest
        spends = "draws of the posterior" if draws else "perturbed mode"
        parts = {
            "perturbed mode": rest - draws,
            "draws of the posterior": draws,
            "curvature for intervals": self.curvature,
            "histograms of columns": look,
        }
        return tuple(
            Expense(what, Budget(e, self.cost.delta * (what == spends), unit))
            for what, e in parts.items()
            if e
        )


def drawn(look: Look, plan: LogisticDrawPlan, draws: FloatArray) -> LogisticPosterior:
    """Return the posterior of draws; predictions are made with their mean."""
    p = draws.shape[1]
    ridge, error = np.full(p, plan.prior), np.zeros(p)
    mean = draws.mean(axis=0)
    return LogisticPosterior(mean, look.nodes, ridge, error, 1.0, *Curvature.none(), draws=draws)


def _exact(prior: LogisticPrior, records: CodedRecords) -> LogisticPosterior:
    """Return the posterior without noise."""
    blocks, n = prior.blocks, records.records.n
    columns = blocks.numbers
    counts = (
        np.split(
            records.histograms(columns), np.cumsum([blocks.cells(j).n_values for j in columns])[:-1]
        )
        if columns
        else []
    )
    look = seen(blocks, columns, counts, max(n, 1), [0.0] * len(columns))
    mapped, basis = records.mapped(look.nodes), blocks.basis
    ridge = np.full(blocks.parameters, 1.0 if prior.precision is None else prior.precision)
    mode = exact_mode(mapped, blocks, ridge)
    matrix = basis.T @ mapped.curvature(on_lattice(basis @ mode)) @ basis
    matrix = (matrix + matrix.T) / 2  # but for rounding it is symmetric
    nothing = np.zeros((len(mode), len(mode)))
    found = Curvature(matrix, nothing, np.eye(len(mode)), np.zeros((2, len(mode))), mode, 0.0)
    return LogisticPosterior(mode, look.nodes, ridge, nothing[0], 1.0, *found)


def plan(mechanism: Mechanism, prior: LogisticPrior, facts: Facts, budget: Budget) -> LogisticPlan:
    """Return the steps of a release, or refuse it."""
    check_mechanism(mechanism)
    blocks, n, unit = prior.blocks, facts.n, budget.unit
    if facts.n_bound > MOST_RECORDS:
        raise ValueError(f"More than {MOST_RECORDS} records are not supported.")
    if not blocks.parameters:
        raise ValueError("Without an intercept, some column needs two values or more.")
    if blocks.parameters > _MOST_PARAMETERS:
        raise ValueError(
            f"The model has {blocks.parameters} parameters, more than {_MOST_PARAMETERS}: merge "
            "categories, or use BayesianNaiveBayes."
        )
    cost, draws = budget.without_delta, isinstance(mechanism, Sampler)
    if draws and prior.intervals:
        raise ValueError("intervals=True needs mechanism='map': draws tell no curvature.")
    name = "sampler" if draws else "map"
    whole = LogisticPlan(cost=cost, mechanism=name, prior=prior, facts=facts)
    if budget.infinite:
        return whole
    epsilon = Fraction(budget.epsilon)
    rho = records_per_parameter(blocks, n, float(epsilon), unit)
    curvature = Fraction(0) if draws else _curvature_share(prior, rho) * epsilon
    columns = tuple(range(len(blocks.sizes))) if curvature else blocks.numbers
    look = LookPlan.of(blocks, columns, epsilon * _LOOK_SHARE, unit) if columns else None
    rest = epsilon - curvature - (epsilon * _LOOK_SHARE if look else 0)
    most = facts.n_bound  # of a secret number of records: sums and searches must end for all
    if isinstance(mechanism, Sampler):
        return _with_draws(replace(whole, rho=rho, look=look), rest, budget.delta, mechanism)
    mode = plan_mode(blocks, most, rest, unit, rho, prior.precision, budget.delta)
    if curvature:
        CurvaturePlan.of(blocks, most, curvature, unit, widest_norm(blocks))
    if mode.needs_delta:
        whole = replace(whole, cost=budget._replace(rho=None))
    return replace(whole, rho=rho, look=look, mode=mode, curvature=curvature)


def _with_draws(
    plan: LogisticPlan, rest: Fraction, delta: Exact, mechanism: Sampler
) -> LogisticPlan:
    """Return a plan whose mode and draws share what the look leaves."""
    (prior, facts, unit), n_draws = (plan.prior, plan.facts, plan.cost.unit), mechanism.n_samples
    share = rest * _DRAWS_SHARE
    loss = loss_of_a_draw(share, delta, n_draws)
    ratio = plan.rho * float((rest - share) / Fraction(plan.cost.epsilon))
    mode = plan_mode(prior.blocks, facts.n_bound, rest - share, unit, ratio, prior.precision)
    precision = 1.0 if prior.precision is None else prior.precision
    draws = LogisticDrawPlan.of(mode, facts.n, loss, unit, precision, n_draws)
    looked = Fraction(plan.cost.epsilon) - rest
    cost = plan.cost._replace(
        delta=delta if n_draws * loss > share else Fraction(0),
        rho=n_draws * loss**2 / 8 + sum(each**2 / 2 for each in (rest - share, looked)),
    )
    return replace(plan, cost=cost, conditions=(REAL_ARITHMETIC,), mode=mode, draws=draws)


def _curvature_share(prior: LogisticPrior, rho: float) -> Fraction:
    """Return the share of epsilon for intervals: none if not asked for, unless it costs little."""
    few = prior.blocks.parameters <= _MOST_WITH_INTERVALS
    if prior.intervals and not few:
        raise ValueError(
            f"intervals=True is available for at most {_MOST_WITH_INTERVALS} parameters; the model "
            f"has {prior.blocks.parameters}. Set intervals=False."
        )
    wanted = rho >= _MANY_PER_PARAMETER and few if prior.intervals is None else prior.intervals
    return (
        Fraction(0)
        if not wanted
        else _LESS_CURVATURE_SHARE
        if rho >= _MANY_PER_PARAMETER
        else _CURVATURE_SHARE
    )
