"""Tools that try to break a privacy claim: each works on this library and most on others too."""

from __future__ import annotations

from dpbayes_sklearn.audit.deltas import DeltaEnumeration, enumerate_delta
from dpbayes_sklearn.audit.enumeration import Enumeration, enumerate_loss
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.audit.releases import audit_release
from dpbayes_sklearn.audit.replaying import Replay, replay
from dpbayes_sklearn.audit.statistical import EpsilonBound, audit, bound_from_outcomes

__all__ = [
    "DeltaEnumeration",
    "Enumeration",
    "EpsilonBound",
    "Replay",
    "audit",
    "audit_release",
    "bound_from_outcomes",
    "enumerate_delta",
    "enumerate_loss",
    "leaks",
    "replay",
]
