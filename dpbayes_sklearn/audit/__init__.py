"""Tools that try to break a privacy claim: each works on this library and most on others too."""

from __future__ import annotations

from dpbayes_sklearn.audit.enumeration import Enumeration, enumerate_loss

__all__ = ["Enumeration", "enumerate_loss"]
