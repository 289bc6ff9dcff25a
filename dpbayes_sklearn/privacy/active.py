"""Which accountant and which parallel scope are in force where the code now runs."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dpbayes_sklearn._fork import hold_while_forking
from dpbayes_sklearn.privacy import relatives

if TYPE_CHECKING:
    from dpbayes_sklearn.privacy.accountant import BudgetAccountant

__all__ = [
    "active_accountant",
    "active_branch",
    "active_scope",
    "enter",
    "leave",
    "one_branch",
    "parallel_scope",
]

_HERE: ContextVar[tuple[BudgetAccountant, ...]] = ContextVar("accountants", default=())
_OPEN: list[BudgetAccountant] = []
_CHANGE = threading.RLock()  # of the two next to it, and of what child processes are told
_OUTLIVED = WeakKeyDictionary[threading.Thread, set[relatives.Written]]()  # what each has outlived
hold_while_forking(_CHANGE)
_SCOPES: ContextVar[tuple[_Scope, ...]] = ContextVar("scopes", default=())
_BRANCH: ContextVar[str | None] = ContextVar("branch", default=None)


def enter(accountant: BudgetAccountant) -> None:
    """Make ``accountant`` the one in force in this context."""
    with _CHANGE:
        relatives.publish(_written(*_OPEN, accountant))
        _OPEN.append(accountant)
    _HERE.set((*_HERE.get(), accountant))


def leave(accountant: BudgetAccountant) -> None:
    """Undo the innermost ``enter``.

    Other threads and child processes may go on with work that they were given in the block.
    """
    if (here := _HERE.get()) and here[-1] == accountant:
        _HERE.set(here[:-1])
    with _CHANGE:
        _OPEN.remove(accountant)
        if accountant not in _OPEN:
            for thread in relatives.other_threads():
                _OUTLIVED.setdefault(thread, set()).add(accountant._written)
        relatives.publish(_written(*_OPEN), left=accountant._written)


def _written(*accountants: BudgetAccountant) -> set[relatives.Written]:
    return {accountant._written for accountant in accountants}


def active_accountant() -> BudgetAccountant | None:
    """Return the accountant of the innermost ``with`` block of this process, or None.

    Worker threads do not inherit their creator's block. A thread without one of its
    own uses the one that is open elsewhere in the process, so that work handed to
    threads is charged; where several differ it is ambiguous, and refused. So is a thread that ran
    when a block was left: it may do work that it was given inside.
    """
    if here := _HERE.get():
        return here[-1]
    with _CHANGE:
        candidates = {accountant._written: accountant for accountant in _OPEN}
        outlived = _OUTLIVED.get(threading.current_thread(), set())
    block = relatives.only_block(candidates, outlived)
    return None if block is None else candidates[block]


@dataclass
class _Scope:
    """A block whose releases concern disjoint people; void once left and in other processes."""

    ledger: str
    name: str
    process: int = field(default_factory=os.getpid)
    open: bool = True


@contextmanager
def parallel_scope(ledger: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Put the charges this context makes to ``ledger`` into one scope; inner ones join outer.

    What it yields opens a branch of the scope, see :func:`one_branch`. A scope inside a branch is
    about the people of that branch, so its charges add up.
    """
    scope = _Scope(ledger, active_scope(ledger) or uuid.uuid4().hex)
    token = _SCOPES.set((*_SCOPES.get(), scope))
    try:
        yield one_branch
    finally:
        scope.open = False
        _SCOPES.reset(token)


def active_scope(ledger: str) -> str | None:
    """Return the name of the scope that charges to ``ledger`` fall into here, or None."""
    for scope in reversed(_SCOPES.get()):
        if scope.ledger == ledger and scope.open and scope.process == os.getpid():
            return scope.name
    return None


@contextmanager
def one_branch() -> Iterator[None]:
    """Let the charges that this context makes to a scope add up; an inner branch joins the outer.

    A charge outside of any such block is a branch of its own.
    """
    token = _BRANCH.set(_BRANCH.get() or uuid.uuid4().hex)
    try:
        yield
    finally:
        _BRANCH.reset(token)


def active_branch() -> str | None:
    """Return the name of the branch that charges belong to here; None is one of its own."""
    return _BRANCH.get()
