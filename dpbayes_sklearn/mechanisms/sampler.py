r"""Draws from the posterior itself: truncated, tempered, on a public grid.

Guarantee
---------
*Precondition*: the counts of n records; the grid, the tempering :math:`\tau` and the number N of
draws are public. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: every table is a tree of
independent splits, and a change of one turn at a split costs at most
``SplitGrid.loss_of_adding``, the exact worst case over all reachable counts, which is never above
:math:`\tau L`, :math:`L = \ln((1-\omega)/\omega)`. Summed over what a neighbouring change can
touch and over N draws that is at most :math:`2 N \tau D L` for a record, D the sum of the
nodes' depths; :math:`\tau` is the largest that keeps the exact sum within :math:`\varepsilon`,
the rounding of weights to integers counted in.

With a delta, :math:`(\varepsilon, \delta)`-DP where that allows a larger :math:`\tau`: a split
whose log ratio has a range of w is :math:`w^2/8`-zCDP, which adds up over splits and draws
(``release_rho``). So N draws cost :math:`\sqrt N` times one, and d tables :math:`\sqrt d`.

Noise law
---------
:math:`\theta_s \propto \theta^{a+\tau k}(1-\theta)^{b+\tau m}` over the grid, drawn exactly from
integer weights.

Regression
----------
:math:`p(w) \propto \pi(w) e^{-\frac\kappa2\sum(t - w^\top x)^2}` on a ball around a perturbed mode,
which has half of the budget, with :math:`\kappa \le 1/\sigma^2`: the posterior, tempered as far as
needed, with :math:`\varepsilon_1` for each of N draws. The proof is in ``_coefficient_draws``; the
draws are of real numbers, which the guarantee names as a condition.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range
from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Sampler"]


class Sampler(Mechanism):
    """Release draws from the truncated and tempered posterior.

    Parameters
    ----------
    n_samples : int, default=1
        Number N of joint draws, which share the budget equally.
    omega : float in (0, 0.5), optional
        Probabilities of splits are truncated to [omega, 1 - omega]. By default 0.2, or less if the
        budget is more than enough for the posterior without tempering.
    n_points : int, optional
        Points of the grid per split; by default enough for a spacing below the width of the
        posterior.

    Examples
    --------
    >>> Sampler(n_samples=2).get_params()["n_samples"]
    2
    """

    walks_splits: ClassVar[bool] = True
    knows_rho: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True: many draws, or of many tables, need less tempering with a delta."""
        return True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Range(Integral, 1, None, closed="left")],
        "omega": [Range(Real, 0, 0.5, closed="neither"), None],
        "n_points": [Range(Integral, 2, 2**16, closed="both"), None],
    }

    def __init__(
        self, n_samples: int = 1, *, omega: float | None = None, n_points: int | None = None
    ) -> None:
        self.n_samples = n_samples
        self.omega = omega
        self.n_points = n_points
