r"""Samples of the records, where so many are more than a step needs.

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

from dpbayes_sklearn.noise.integers import Positions, random_positions
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["drawn_sample"]


def drawn_sample(n: int, every: int, unit: PrivacyUnit, source: RandomSource) -> Positions | None:
    """Draw the positions of one of ``every`` records, in increasing order; None asks all."""
    if every == 1 or unit.size_is_secret:
        return None
    return random_positions(n, -(-n // every), source)
