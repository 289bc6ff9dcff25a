r"""Discrete Laplace noise on exact statistics.

Guarantee
---------
*Precondition*: the statistics are integers of sensitivity :math:`\Delta` in a norm K, which their
own type derives. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: with b the scale
:math:`\Delta/\varepsilon`,
:math:`P(T + Z = z)/P(T' + Z = z) = e^{(\|z-T'\|_K - \|z-T\|_K)/b} \le e^{\Delta/b}
= e^\varepsilon`. What follows is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-\|z\|_K/b}` on the integers or a lattice, without floating-point
numbers. For naive Bayes, K is by default the norm of
:class:`~dpbayes_sklearn.noise.class_rows.ClassRows` (joint noise). Otherwise it is the L1 norm:
independent noise in every cell. There, with a ``budget_split`` w, the class table, of sensitivity
:math:`\Delta_c`, has scale b/w and the others
:math:`b = (\Delta - \Delta_c + w \Delta_c)/\varepsilon`: their losses add to :math:`\varepsilon`.

Regression
----------
These releases share :math:`\varepsilon` exactly: where target and numbers lie (sums and counts of
shells); the sums of the signs; all products; the target's sum in its window; the squared residuals
of the model. Each has the law
:math:`P(z) \propto e^{-\varepsilon_i\|z\|/\Delta_i}` in the L1 or the sup norm, or matrix noise,
whichever has less variance; for matrix noise the norm of a record is bounded too. Later ones may
use earlier ones (they clip the target to a window, say): given what was released before, each is
private by the same proof, and the losses add up. With many records for each column a perturbed mode
comes first, and the products are those of its residuals; with few there is nothing but the mode
(``regression/release.py``).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Laplace"]


class Laplace(Mechanism):
    """Add discrete Laplace noise to the statistics that update the prior.

    The noise does not depend on the number of records. Independent noise of naive Bayes with d
    features has scale 2(d+1)/epsilon in every cell of every table.

    Parameters
    ----------
    budget_split : float, default=1.0
        Share of the budget that the table of class counts gets, in units of the share of any
        other table. Noise-aware inference also learns the class counts from the other tables, so
        less than 1 can help it. A value other than 1 implies independent noise. Only for a class
        without parents; moments are not affected.
    noise : {"auto", "joint", "independent"}, default="auto"
        For the counts of naive Bayes: independent Laplace noise in every cell, or joint noise of
        all tables whose density decays with the largest per-table L1 change (a K-norm mechanism).
        The latter has up to twelve times less variance for Boolean features, four times for four
        values and twice for eight, because a record changes all tables at once but only the rows
        of its class. "auto" takes what has less variance, by public quantities only. Regression
        always does.

    Examples
    --------
    >>> Laplace.name()
    'laplace'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "budget_split": [Range(Real, 0, None, closed="neither")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(self, *, budget_split: float = 1.0, noise: str = "auto") -> None:
        self.budget_split = budget_split
        self.noise = noise
