"""Which noise to add: the one rule of ``noise="auto"``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from dpbayes_sklearn.laws.base import NoiseLaw

__all__ = ["least_noise"]


def least_noise(noise: str, laws: Mapping[str, Callable[[], NoiseLaw]]) -> NoiseLaw:
    """Return the law of this name; of ``"auto"``, the one whose numbers vary least on average.

    Laws depend on public quantities only, and so does the choice. A law that does not exist for
    them (a ValueError) is not considered, unless it was requested by name.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.laws.discrete_laplace import DiscreteLaplace
    >>> laws = {b: lambda b=b: DiscreteLaplace.of(Fraction(b), [3]) for b in ("2", "5")}
    >>> least_noise("auto", laws).scales, least_noise("5", laws).scales
    ((Fraction(2, 1),), (Fraction(5, 1),))
    """
    if noise != "auto":
        return laws[noise]()
    possible = []
    for law in laws.values():
        with suppress(ValueError):
            possible.append(law())
    if not possible:
        return next(iter(laws.values()))()  # raises its own error
    return min(possible, key=lambda law: float(law.variances.sum()))
