"""Every error and warning of the library, with when it is raised."""

from __future__ import annotations

__all__ = ["BudgetError", "LedgerError", "PrivacyLeakWarning"]


class BudgetError(ValueError):
    """A release would cross the accountant's ceiling; nothing was spent or released.

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
    """Something public was not declared, so it was read from the private data."""
