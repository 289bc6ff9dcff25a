r"""Gaussian linear regression: what one record can change (Zhang et al., appendix D).

Targets lie in [-1, 1], features in a ball of radius R, weights in a ball of radius B, and the noise
has variance σ².
"""

from __future__ import annotations

__all__ = ["likelihood_range", "regression_sampler_epsilon"]


def likelihood_range(radius: float, weight_bound: float, noise_variance: float) -> float:
    r"""Return :math:`\Delta = \frac{(1 + BR)^2}{2\sigma^2}`.

    The log-likelihood of a record, up to its constant, is
    :math:`-\frac{(y - w^\top x)^2}{2\sigma^2} \in [-\Delta, 0]`, so replacing a record changes that
    of the data by at most Δ. The paper's L(w) lacks a factor of 2 in its gradient and carries the
    number of records, of which neighbours change only one.

    >>> likelihood_range(radius=1.0, weight_bound=1.0, noise_variance=0.5)
    4.0
    """
    return (1 + weight_bound * radius) ** 2 / (2 * noise_variance)


def regression_sampler_epsilon(
    radius: float,
    weight_bound: float,
    noise_variance: float,
    temper: float = 1.0,
    n_draws: int = 1,
) -> float:
    r"""Return :math:`\varepsilon = 2 N \tau \Delta`, the cost of N draws at temperature τ.

    >>> regression_sampler_epsilon(1.0, 1.0, noise_variance=0.5, temper=0.125)
    1.0
    """
    return 2 * n_draws * temper * likelihood_range(radius, weight_bound, noise_variance)
