"""Tools that try to break a privacy claim: each works on this library and most on others too."""

from __future__ import annotations

__all__: list[str] = []
