"""Tools that try to break a privacy claim on small worlds: enumeration, replay, recorded draws."""

from __future__ import annotations

from benchmarks.audit.tools.deltas import DeltaEnumeration, enumerate_delta
from benchmarks.audit.tools.enumeration import Enumeration, enumerate_loss
from benchmarks.audit.tools.releases import audit_release
from benchmarks.audit.tools.replaying import Replay, replay

__all__ = [
    "DeltaEnumeration",
    "Enumeration",
    "Replay",
    "audit_release",
    "enumerate_delta",
    "enumerate_loss",
    "replay",
]
