"""Mechanisms for one variable; what they do is in :mod:`dpbayes_sklearn.categories.plans`."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn.mechanisms.base import Mechanism

__all__ = ["Exponential", "Geometric", "Hellinger", "LaplaceImproved", "Local"]


class Geometric(Mechanism):
    """Add noise that sums to zero to the counts of all categories.

    Any number of records and categories is possible.
    """


class LaplaceImproved(Mechanism):
    """Add discrete Laplace noise to all counts but the last, which completes the public total."""


class Exponential(Mechanism):
    """Exponential mechanism over posteriors: Hellinger distance over global sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the exponent until the exact worst-case loss equals epsilon. Takes
        seconds for thousands of candidates; the result is cached, by public facts only.
    distance : {"hellinger", "total_variation", "kl"}, default="hellinger"
        The distance of a candidate from the exact posterior by which it is scored: choose the one
        in which you measure the error. The guarantee of the others is by enumeration alone, so they
        need ``calibrate=True``. "total_variation" is for two categories.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "distance": [StrOptions({"hellinger", "total_variation", "kl"})],
    }

    def __init__(self, calibrate: bool = True, distance: str = "hellinger") -> None:
        self.calibrate = calibrate
        self.distance = distance


class Hellinger(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over smooth sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the nominal budget until the exact worst-case loss equals epsilon; the
        guarantee is then pure. Otherwise the mechanism is that of the paper and needs a delta.
    smoothing : float in (0, 1), default=1e-8
        The delta in the formula of gamma if ``calibrate=True``, where it shapes the law but is
        not part of the guarantee. With ``calibrate=False`` the guarantee's delta is used.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "smoothing": [Range(Real, 0, 1, closed="neither")],
    }

    def __init__(self, calibrate: bool = True, smoothing: float = 1e-8) -> None:
        super().__init__(calibrate)
        self.smoothing = smoothing

    @property
    def spends_delta(self) -> bool:
        """True if the guarantee needs a delta above zero."""
        return not self.calibrate


class Local(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over local sensitivity.

    The scale depends on the data, so it is always calibrated: otherwise it would not be private in
    general.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self) -> None:
        super().__init__()
