r"""The most probable tables, by the exponential mechanism on a finite grid.

Guarantee
---------
*Precondition*: the counts of n records; grid and prior are public, the grid is finite (densities
over a continuum have no bounded sensitivity). *Claim*: pure :math:`\varepsilon`-DP. *Proof*:
with ``score="log_posterior"`` the law is that of the sampler with an exponent :math:`\tau` that
may exceed 1, so the same exact loss applies. With ``score="posterior"`` every split is an
exponential mechanism of its own, whose score (the posterior mass of a grid point) changes by at
most ``mass_sensitivity`` per turn; a neighbouring change makes at most as many turns as the split
trees allow, and the budget is shared evenly among them.

Noise law
---------
``log_posterior``: :math:`P(\theta) \propto w(\theta)\,\pi(\theta)^{\max(1,\tau)}
\mathrm{lik}(\theta)^\tau` with w the spacing of the grid: the prior when
:math:`\varepsilon \to 0` and the MAP when :math:`\varepsilon \to \infty`.
``posterior``: :math:`P(\theta) \propto w\pi \exp(\varepsilon_s\,\xi(\theta) / 2\Delta)`.
Both are drawn exactly from integer weights.

Regression
----------
The mode of a robust posterior, its gradient perturbed; exact, with a proof in ``_perturbed_mode``.
With ``coef_bound``, one draw by the exponential mechanism: the law of the sampler with a
:math:`\kappa` however large; where it exceeds :math:`1/\sigma^2` the prior is sharpened alike.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["MAP"]


class MAP(Mechanism):
    """Release one draw that concentrates on the maximum a posteriori tables or coefficients.

    The parameters are those of tables.

    Parameters
    ----------
    score : {"log_posterior", "posterior"}, default="log_posterior"
        Score of the exponential mechanism: the log posterior density, or the posterior mass of a
        grid point as in Zhang, Rubinstein and Dimitrakakis (2016).
    omega : float in (0, 0.5), default=0.1
        Probabilities of splits are truncated to [omega, 1 - omega].
    n_points : int, optional
        Points of the grid per split. By default 33 for ``score="posterior"``, otherwise enough for
        a spacing below the width of the posterior.

    Examples
    --------
    >>> MAP(omega=0.2).get_params()["score"]
    'log_posterior'
    """

    walks_splits: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [StrOptions({"log_posterior", "posterior"})],
        "omega": [Range(Real, 0, 0.5, closed="neither")],
        "n_points": [Range(Integral, 2, 2**16, closed="both"), None],
    }

    def __init__(
        self, *, score: str = "log_posterior", omega: float = 0.1, n_points: int | None = None
    ) -> None:
        self.score = score
        self.omega = omega
        self.n_points = n_points
