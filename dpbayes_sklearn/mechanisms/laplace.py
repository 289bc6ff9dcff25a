r"""Discrete Laplace noise on exact statistics.

Guarantee
---------
*Precondition*: the statistics are integers that neighbouring data move by at most
:math:`\Delta` in L1, as their own type derives. *Claim*: pure :math:`\varepsilon`-DP. *Proof*:
:math:`P(T + Z = z)/P(T' + Z = z) = e^{(|z-T'|_1 - |z-T|_1)/b} \le e^{\Delta/b} = e^\varepsilon`.
What follows is post-processing.

Noise law
---------
Independent in every cell, :math:`P(Z = z) \propto e^{-|z|/b}` on the integers, with
:math:`b = \Delta/\varepsilon`; no floating-point number is involved. With a ``budget_split`` w
the class table, which moves by :math:`\Delta_c`, has scale b/w and the others
:math:`b = (\Delta - \Delta_c + w \Delta_c)/\varepsilon`: their losses add to :math:`\varepsilon`.

Regression
----------
Four releases share :math:`\varepsilon` exactly: the target's two sums; the means; the products
with the target and with each other; the squared residuals of the model. Each has the law
:math:`P(z) \propto e^{-\varepsilon_i\|z\|/\Delta_i}` in the L1 or the sup norm, whichever has
less variance. Later ones may use earlier ones (they clip the target to a window, say): given what
was released before, each is private by the same proof, and the losses add up.
"""

from __future__ import annotations

from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Interval, StrOptions
from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.mechanisms._finite_law import Law, noise_law
from dpbayes_sklearn.mechanisms._moment_release import (
    Shares,
    calibrated,
    grid_for,
    noisy_moments,
    three_blocks,
)
from dpbayes_sklearn.mechanisms._noisy_arrays import noise_scale, with_noise
from dpbayes_sklearn.mechanisms._row_noise import with_row_noise
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace, representable_scale
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.categories import Dirichlet, SimplexPrior
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.privacy.budget import Budget, exact
from dpbayes_sklearn.statistics.categories import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.statistics.counts import CountTables, ReleasedCounts
from dpbayes_sklearn.statistics.moments import Moments
from dpbayes_sklearn.statistics.network import Network

__all__ = ["Laplace"]


class Laplace(Mechanism):
    """Add discrete Laplace noise to the statistics that update the prior.

    For naive Bayes with d features the scale is 2(d+1)/epsilon in every cell of every table,
    whatever the number of records.

    Parameters
    ----------
    budget_split : float, default=1.0
        Share of the budget that the table of class counts gets, in units of the share of any
        other table. Noise-aware inference also learns the class counts from the other tables, so
        less than 1 can help it. Only for a class without parents; moments are not affected.
    noise : {"independent", "joint", "auto"}, default="independent"
        Of the counts of naive Bayes: a Laplace noise for every cell, or one noise for all tables,
        whose law falls with the largest row of changes. The latter has up to twelve times less
        variance for Boolean features, four times for four values and twice for eight, as a record
        moves all tables at once but only one class's rows in them. "auto" takes what has less
        variance, by public quantities only. Regression always does.

    Examples
    --------
    >>> Laplace.name()
    'laplace'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "budget_split": [Interval(Real, 0, None, closed="neither")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(self, *, budget_split: float = 1.0, noise: str = "independent") -> None:
        self.budget_split = budget_split
        self.noise = noise

    def _preflight_counts(
        self, statistics: CountTables, prior: DirichletPrior, budget: Budget
    ) -> None:
        if self._row_law(statistics, budget) is None:
            self._count_scales(statistics, budget)

    def _row_law(self, statistics: CountTables, budget: Budget) -> RowNoise | None:
        if self.budget_split == 1:
            return statistics.row_noise(self.noise, budget.unit, Fraction(budget.epsilon))
        if self.noise == "joint":
            raise ValueError("budget_split must be 1 for joint noise, which all tables share.")
        return None

    def _count_scales(self, statistics: CountTables, budget: Budget) -> tuple[Fraction, ...]:
        """Return the scale of every table; their sensitivities over scales add to epsilon."""
        network, everything = statistics.network, statistics.sensitivity(budget.unit)
        weight = Fraction(exact(self.budget_split, "budget_split"))
        if weight == 1:
            return (noise_scale(everything, budget),) * len(network.sizes)
        if network.parents[network.target]:
            raise ValueError("budget_split must be 1 for a network whose class has parents.")
        # a class without parents moves with its own label only, so its part can be taken off
        alone = Network((network.sizes[network.target],), ((),))
        classes = CountTables(alone, statistics.tables[-1:], statistics.n)
        own = classes.sensitivity(budget.unit)
        scale = (everything - own + weight * own) / Fraction(budget.epsilon)
        others = representable_scale(scale)
        return (*(others,) * network.target, representable_scale(scale / weight))

    def _release_counts(
        self,
        statistics: CountTables,
        prior: DirichletPrior,
        budget: Budget,
        source: RandomSource,
    ) -> NetworkPosterior:
        law = self._row_law(statistics, budget)
        if law is not None:
            noisy_rows = with_row_noise(statistics, law, source)
            shared = ((law,),) * len(noisy_rows)
            return prior.update(
                ReleasedCounts(statistics.network, noisy_rows, statistics.n, shared)
            )
        scales = self._count_scales(statistics, budget)
        # a table of one cell holds n, which is public
        secret = [i for i, table in enumerate(statistics.tables) if table.size > 1]
        tables = dict(enumerate(statistics.tables))
        for scale in sorted({scales[i] for i in secret}):
            same = [i for i in secret if scales[i] == scale]
            noisy = with_noise([tables[i] for i in same], scale, source)
            tables |= dict(zip(same, noisy, strict=True))
        laws = tuple((scale,) if i in secret else () for i, scale in enumerate(scales))
        released = ReleasedCounts(statistics.network, (*tables.values(),), statistics.n, laws)
        return prior.update(released)

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> Law:
        """Return the law of one variable's counts; cut to [0, n] if there are two."""
        cells = len(prior) if len(prior) > 2 else 1
        return noise_law(n, prior, cells, 2 / Fraction(budget.epsilon))

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        noise_scale(statistics.sensitivity(budget.unit), budget)

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, source: RandomSource
    ) -> Dirichlet:
        scale = noise_scale(statistics.sensitivity(budget.unit), budget)
        # of two counts that add to n, one tells everything
        cells = statistics.n_categories if statistics.n_categories > 2 else 1
        told = statistics.counts[..., :cells]
        noisy = told + discrete_laplace(scale, told.shape, source)
        return prior.update(ReleasedSimplex(noisy, statistics.n, scale))

    def _preflight_moments(self, statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
        grid_for(statistics.design, statistics.n, Fraction(budget.epsilon))

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, source: RandomSource
    ) -> GaussianPosterior:
        shares = Shares.of(
            budget, statistics.n, target=True, residuals=prior.noise_variance is None
        )
        noisy, window = noisy_moments(statistics, shares, three_blocks(statistics.design), source)
        return calibrated(prior.update(noisy.released(window)), statistics, shares, source)
