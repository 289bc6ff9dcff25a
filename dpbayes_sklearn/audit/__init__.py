"""Tools that try to break a privacy claim: each works on this library and most on others too."""

from __future__ import annotations

from dpbayes_sklearn.audit.enumeration import Enumeration, enumerate_loss
from dpbayes_sklearn.audit.replaying import Replay, replay

__all__ = ["Enumeration", "Replay", "enumerate_loss", "replay"]
