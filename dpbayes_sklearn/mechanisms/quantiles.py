r"""Quantiles of columns by the exponential mechanism, drawn exactly.

Guarantee
---------
*Precondition*: the columns share the budget equally; the levels of a plan share that of a column,
and neighbours change the distances of all questions of a level by ranges that add up to at most the
level's sensitivity. *Claim*: the release is :math:`\varepsilon`-DP. *Proof*: a draw from
:math:`\mu(z)\,e^{-\eta d(z)}` loses at most :math:`\eta` times the range of the change of d,
because a constant change cancels; with :math:`\eta = (\varepsilon_l - r)/\Delta_l` a level loses at
most :math:`\varepsilon_l`, r being what rounding can add; levels and columns compose. (McSherry and
Talwar 2007; Smith 2011; the recursion is that of Kaplan, Schnapp and Stemmer 2022.)

Noise law
---------
Every quantile is a point of a public lattice, with integer weights: see
:mod:`dpbayes_sklearn.columns.lattice`.
"""

from __future__ import annotations

from fractions import Fraction

from dpbayes_sklearn.columns.lattice import ROUNDING, RankLaw, Ranks, key_at
from dpbayes_sklearn.columns.plans import Answers, Level, Plans, SortedColumns
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["Quantiles"]


class Quantiles(Mechanism):
    """Release quantiles of every column, each close in rank to the exact quantile.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import Quantiles
    >>> Quantiles().supports("quantiles"), Quantiles().supports("counts")
    (True, False)
    """

    def _release_quantiles(
        self, statistics: SortedColumns, prior: Plans, budget: Budget, noise: Noise
    ) -> Answers:
        share = Fraction(budget.epsilon) / statistics.n_columns

        def choose(ranks: Ranks, level: Level) -> float:
            return point_of(ranks.law(rate(level, share, budget.unit)), noise)

        return prior.ask(statistics, choose)


def rate(level: Level, epsilon: Fraction, unit: PrivacyUnit) -> float:
    r"""Return :math:`\eta`, in nats per rank, of a level of a column with budget ``epsilon``.

    Each record that comes, goes or is replaced changes two draws at most: r is `ROUNDING` for each.

    >>> half = Level(Fraction(1, 2), Fraction(2), Fraction(1))
    >>> units = [PrivacyUnit("person", max_records=k) for k in (1, 2)]
    >>> [round(rate(half, Fraction(1), unit), 6) for unit in units]
    [0.25, 0.125]
    """
    spent = max(level.share * epsilon - unit.max_records * ROUNDING, Fraction(0))
    return float(spent / level.sensitivity(unit))


def point_of(law: RankLaw, noise: Noise) -> float:
    """Draw a point of one of the lattices."""
    masses = [mass for part in law for mass in part.masses]
    weights = [weight for part in law for weight in part.weights]
    segment, offset = noise.point(masses, weights)
    for part in law:
        if segment < len(part.masses):
            break
        segment -= len(part.masses)
    start, stop = part.starts[segment : segment + 2].tolist()
    return part.lattice.value(key_at(part.lattice, start, stop, offset))
