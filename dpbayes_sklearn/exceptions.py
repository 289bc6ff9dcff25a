"""All exceptions and warnings of the library."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import Any

import joblib
import sklearn

from dpbayes_sklearn._presenting import withheld

__all__ = [
    "NOTHING_SPENT",
    "BudgetError",
    "LedgerError",
    "PrivacyLeakWarning",
    "called_by",
    "calling_self",
    "warn_caller",
]

# Folders whose code is not the caller's: warnings point to the first line outside of them.
_INSIDE = tuple(
    str(Path(module).parent) + os.sep for module in (__file__, sklearn.__file__, joblib.__file__)
)

NOTHING_SPENT = "Nothing was spent or released."
"""In the message of a refusal, unless a part of a fit was released before."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the user's line: the innermost one outside of here, scikit-learn and joblib.

    In a silent context the warning is kept for whoever asked for silence.
    """
    kept = withheld()
    if kept is not None:
        kept.append((category, text))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def called_by(modules: Collection[str]) -> bool:
    """Tell whether a function of one of these modules is among the callers."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in modules:
            return True
        frame = frame.f_back
    return False


def calling_self(wanted: Callable[[Any], bool]) -> Any:
    """Return the object of the innermost method among the callers that is wanted, or None."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        own = frame.f_locals.get("self")
        if wanted(own):
            return own
        frame = frame.f_back
    return None


class BudgetError(ValueError):
    """A release would cross the accountant's ceiling; the message says if anything was spent.

    Attributes
    ----------
    requested, remaining : tuple (epsilon, delta)
        What was asked for and what the ledger still holds.
    """

    def __init__(self, message: str, requested: object = None, remaining: object = None) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.args[0], self.requested, self.remaining)


class LedgerError(RuntimeError):
    """The budget ledger cannot be read or written; nothing was released."""


class PrivacyLeakWarning(UserWarning):
    """The guarantee does not cover something that was read from the private data, or done."""
