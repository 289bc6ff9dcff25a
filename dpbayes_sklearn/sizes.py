r"""The number of records where it is secret, and random samples of records.

**Samples of the records, where so many are more than a step needs.**

Guarantee
---------
*Precondition*: neighbours are of the same size n, and list their records in any order; a step that
looks at m of the records is :math:`\varepsilon`-private for data sets of m records. *Claim*: asked
of m = n/s records that are drawn at random, m by a public rule, it is :math:`\varepsilon`-private.
*Proof*: let a bijection map the positions of one data set to those of its neighbour, such that
records that are in both are mapped to themselves. It maps the sets of m positions onto each other,
and all of them have the same probability. So let both neighbours draw sets that belong together:
given these, the records that are asked are themselves neighbours, or the same, and outcomes differ
in probability by a factor of at most :math:`e^\varepsilon`. What holds given every set holds for
the mixture (of Rényi divergences because they are quasi-convex). ∎

The proof holds for k records of a person: at most k are asked, for which the step is calibrated. It
holds for several steps that share one sample, given which their losses add up. It does not hold for
records by their positions, such as every s-th: in a table that is kept in order, one record that is
replaced shifts others. The sample itself stays secret. That it hides who was asked (amplification)
is not claimed.

With a secret number of records the size of a sample would tell it, so all records are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.noise import DiscreteLaplace, Marginal, Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import Positions
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["GUESS", "RecordCount", "ReleasedSize", "bound_of", "drawn_sample", "size_share"]


GUESS = 10_000
"""Stands for a secret number of records before it is released: a public constant."""

_SHARE = Fraction(1, 25)  # of the budget
_UNLIKELY = 1e-20  # the released number is farther off, which costs accuracy, never privacy


def size_share(epsilon: Fraction) -> Fraction:
    """Return the part of epsilon that the number of records gets.

    Its noise then has a standard deviation of 35 records at epsilon 1. All other noise is half of
    that with a public number, which more than makes up for it.

    >>> size_share(Fraction(1))
    Fraction(1, 25)
    """
    return _SHARE * epsilon


@dataclass(frozen=True)
class RecordCount:
    """**Sensitive:** the number of records, if records may be added or removed."""

    n: int

    kind: ClassVar[str] = "size"

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return by how much neighbours differ: the records of one unit; 0 if n is public."""
        return unit.n_changed if unit.size_is_secret else 0

    def law(self, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return discrete Laplace noise."""
        return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit), epsilon), [1])

    def without_noise(self) -> ReleasedSize:
        """Return the number itself, where no privacy is asked for."""
        return ReleasedSize(self.n, ())


@dataclass(frozen=True)
class ReleasedSize:
    """The number of records after noise, at least 1: public, with the law of the noise."""

    n: int
    laws: tuple[NoiseLaw, ...]

    @property
    def noise(self) -> Marginal:
        """The distribution of the noise."""
        return sum_of([law.marginal() for law in self.laws])


def bound_of(n: int, laws: tuple[NoiseLaw, ...]) -> int:
    """Return a public number that the secret one does not exceed, up to a chance of 1e-20.

    What must not exceed it is cut there, so that privacy does not rest on chance.
    """
    return n + sum(int(law.error_bound(_UNLIKELY)) + 1 for law in laws)


def drawn_sample(n: int, every: int, unit: PrivacyUnit, noise: Noise) -> Positions | None:
    """Draw the positions of one of ``every`` records, in increasing order; None asks all."""
    if every == 1 or unit.size_is_secret:
        return None
    return noise.positions(n, -(-n // every))
