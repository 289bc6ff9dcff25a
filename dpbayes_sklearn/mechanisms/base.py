"""The base class of mechanisms, whose ``release`` is the only way from data to public values."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from dpbayes_sklearn._sklearn_compat import HelpfulEstimator

__all__ = ["Mechanism"]


class Mechanism(HelpfulEstimator):
    """A way to turn exact statistics into a private posterior.

    It has options only: what is done with them is the plan of a subject, such as
    :func:`dpbayes_sklearn.counts.plans.plan`. Options are constructor parameters, so an estimator's
    ``mechanism__option`` reaches them in a grid search.
    """

    walks_splits: ClassVar[bool] = False
    """Whether a many-valued variable costs one level of a tree of splits per doubling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    needs_delta: ClassVar[bool] = False
    """Whether a release must have a delta above zero."""

    knows_rho: ClassVar[bool] = False
    """Whether a release with a delta also has a known zCDP, which composes better."""

    @property
    def spends_delta(self) -> bool:
        """Whether a release spends the delta that it is given; others are purely private."""
        return self.needs_delta

    @classmethod
    def name(cls) -> str:
        """Name of the mechanism: that of its class, in lower case."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
