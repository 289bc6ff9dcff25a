"""Tools that try to break a privacy claim: they work on this library and on others."""

from __future__ import annotations

from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.audit.statistical import EpsilonBound, audit, bound_from_outcomes

__all__ = ["EpsilonBound", "audit", "bound_from_outcomes", "leaks"]
