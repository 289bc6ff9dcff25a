"""What has to happen when a process forks; nothing on systems that cannot fork (Windows)."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock

__all__ = ["hold_while_forking", "run_in_children"]


def hold_while_forking(lock: RLock) -> None:
    """Let a fork wait for a lock: one that another thread held would stay locked in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


def run_in_children(hook: Callable[[], object]) -> None:
    """Call a function at the start of every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)
