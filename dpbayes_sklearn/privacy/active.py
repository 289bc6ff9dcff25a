"""Which accountant is in force here, also in threads and child processes of a block.

**What processes and threads learn about a ``with accountant:`` block.** Its process publishes which
blocks are open, in a file of a private folder. Processes find it in two ways. Those that are
started in a block inherit an environment variable with the block and the file: if the file does not
confirm that the block is open, they refuse to fit without an accountant of their own. Those that
were there before (idle workers) look for the folders of the processes that have started them.

Work that was given to a thread or a process inside a block may begin after the block was left, when
nobody can tell it from other work. So threads and processes that were there when a block was left
refuse. What such threads start is not known of.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from dpbayes_sklearn._compat import hold_while_forking, run_in_children
from dpbayes_sklearn.exceptions import LedgerError

if TYPE_CHECKING:
    from dpbayes_sklearn.privacy.accountant import BudgetAccountant


SEVERAL = (
    "Several accountants are active in this process or in the one that has started it, and none of "
    "them in this thread, so nothing can be charged or released. Pass accountant= to the estimator."
)
OUTLIVED = (
    "A `with accountant:` block was left while this thread or process went on, so it cannot be "
    "known whether this fit belongs to the block. Nothing was charged or released. Pass "
    "accountant= to the estimator (BudgetAccountant() for no limit), or wait inside the block "
    "until all work is done."
)


class Written(NamedTuple):
    """How to charge a ledger from another process."""

    path: str
    identity: str
    epsilon: str
    delta: str
    durable: bool
    allotment: str = ""


def other_threads() -> list[threading.Thread]:
    """Return the threads that may have been given work by this one."""
    bars = getattr(getattr(sys.modules.get("tqdm"), "tqdm", None), "monitor", None)
    aside = {threading.main_thread(), threading.current_thread(), *_idle_loky()[0], bars}
    return [thread for thread in threading.enumerate() if thread not in aside]


def _idle_loky() -> tuple[list[threading.Thread], set[int]]:
    """Return the threads and worker processes that joblib keeps for later, if all work is done."""
    module = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor: Any = getattr(module, "_executor", None)
    if executor is None or getattr(executor, "_pending_work_items", True):
        return [], set()
    queue = getattr(executor, "_call_queue", None)
    threads = getattr(executor, "_executor_manager_thread", None), getattr(queue, "_thread", None)
    workers = getattr(executor, "_processes", None) or {}
    return [thread for thread in threads if thread is not None], set(workers)


# The environment variable that tells child processes which blocks are open.
_VARIABLE = "DPBAYES_SKLEARN_BLOCKS"
_INHERITED = os.environ.get(_VARIABLE)  # What the process that started this one has written for it.
run_in_children(lambda: globals().update(_INHERITED=os.environ.get(_VARIABLE)))
# Names of folders in which processes tell each other about blocks begin with this.
_BLOCK_PREFIX = "dpbayes-block-"
# Folders by process: that of this one and, in a forked child, also that of its parent.
_FOLDERS: dict[int, Path] = {}
# Blocks that were left while a child process was there, by the name of the child.
_CHILDREN: dict[str, set[Written]] = {}


def publish(blocks: Collection[Written], *, left: Written | None = None) -> None:
    """Tell child processes which blocks are open, and which ones they have outlived.

    ``left`` is the block that was just left, after which only ``blocks`` are open.
    """
    children = {_name(child.pid) for child in multiprocessing.active_children() if child.pid}
    for gone in _CHILDREN.keys() - children:
        del _CHILDREN[gone]
    if left is not None and left not in blocks:
        idle = {_name(worker) for worker in _idle_loky()[1]}
        for child in children:
            _CHILDREN.setdefault(child, set()).update(() if child in idle else (left,))
    said = {"open": sorted(blocks), "children": {n: sorted(b) for n, b in _CHILDREN.items()}}
    _write(json.dumps(said))
    tell_new_processes(blocks)


def tell_new_processes(blocks: Collection[Written]) -> None:
    """Let processes that are started from now on inherit the blocks that they may work for."""
    folder = next(reversed(_FOLDERS.values()), Path())
    said = json.dumps([str(folder / "blocks"), sorted(blocks)]) if blocks else _INHERITED
    if said is None:
        os.environ.pop(_VARIABLE, None)
    elif os.environ.get(_VARIABLE) != said:  # other threads may read it
        os.environ[_VARIABLE] = said


def _write(text: str) -> None:
    """Replace the file of this process in one step."""
    try:
        if os.getpid() not in _FOLDERS:
            folder = tempfile.mkdtemp(prefix=f"{_BLOCK_PREFIX}{_name(os.getpid())}-")
            Finalize(None, shutil.rmtree, (folder, True), exitpriority=-100)
            _FOLDERS[os.getpid()] = Path(folder)
        draft = _FOLDERS[os.getpid()] / "new"
        draft.write_text(text)
        draft.replace(draft.with_name("blocks"))
    except OSError as error:
        raise LedgerError(
            f"Other processes cannot be told of the block: {error}. Nothing was released."
        ) from None


def block_of_ancestors() -> Written | None:
    """Return the block that is open in a process that has started this one, None if none is."""
    file, inherited = _inherited()
    ancestors = [_name(process) for process in _ancestors()]
    texts = [_read(file), *map(_read, _files(ancestors))]
    found = {Written(*block) for said in texts for block in said["open"]}
    names = (_name(os.getpid()), *ancestors)
    lists = [said["children"].get(name, ()) for said in texts for name in names]
    if names[0] not in texts[0]["children"]:  # which would know better: it may have been idle
        lists.append(inherited)
    return only_block(found, {Written(*block) for blocks in lists for block in blocks})


def _inherited() -> tuple[Path | None, list[list[Any]]]:
    """Return the file of the process that has started this one in blocks, and these blocks."""
    if _INHERITED is None:
        return None, []
    try:
        file, blocks = json.loads(_INHERITED)
        return Path(file), [[*Written(*block)] for block in blocks]
    except (ValueError, TypeError):
        raise LedgerError(OUTLIVED) from None


def _files(processes: Collection[str]) -> Iterator[Path]:
    """Return what processes have published that do not say so in the environment."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_BLOCK_PREFIX}*"):
        if folder.name.removeprefix(_BLOCK_PREFIX).rpartition("-")[0] in processes and _is_own(
            folder
        ):
            yield folder / "blocks"


def only_block(candidates: Collection[Written], outlived: set[Written]) -> Written | None:
    """Return the block that work belongs to; LedgerError if it could be several, or one and none.

    Work that was given before one of ``outlived`` was left could belong to it.
    """
    if outlived.difference(candidates):
        raise LedgerError(OUTLIVED)
    if len(candidates) > 1:
        raise LedgerError(SEVERAL)
    return next(iter(candidates), None)


def _read(file: Path | None) -> dict[str, Any]:
    """Return what a process has published; nothing if it cannot be read."""
    with suppress(OSError, ValueError):
        if file is not None:
            said: dict[str, Any] = json.loads(file.read_text())
            return said
    return {"open": [], "children": {}}


def _ancestors() -> Iterator[int]:
    """Return the processes that have started this one; without /proc, only the nearest."""
    process, creator = os.getppid(), multiprocessing.parent_process()
    if creator is not None and creator.pid != process:
        yield creator.pid or 0
    while process > 0:  # 1 in a container may be any program
        yield process
        found = _stat(process)
        process = 0 if found is None else found[1]


def _stat(process: int) -> tuple[str, int] | None:
    """Return when a process was started, and its parent, if the system tells."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[19], int(fields[1])


def _name(process: int) -> str:
    """Return the number of a process, and its start: numbers are used again, also in containers."""
    found = _stat(process)
    return f"{process}-{None if found is None else found[0]}"


def _user() -> int:
    """Return the number of this user; 0 on Windows, where temporary folders are the user's own."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_own(folder: Path) -> bool:
    """Tell whether a folder is there and only this user can write to it."""
    with suppress(OSError):
        found = folder.lstat()
        return os.name == "nt" or (found.st_uid == _user() and not found.st_mode & 0o022)
    return False


# The accountants of blocks that are open in this thread or task.
_HERE: ContextVar[tuple[BudgetAccountant, ...]] = ContextVar("accountants", default=())
_OPEN: list[BudgetAccountant] = []  # The accountants of blocks that are open in this process.
# Held while _OPEN, _OUTLIVED, or what child processes are told, are changed.
_CHANGE = threading.RLock()
# The blocks that each thread has outlived.
_OUTLIVED = WeakKeyDictionary[threading.Thread, set[Written]]()
hold_while_forking(_CHANGE)
# The scopes that are open in this thread or task, and the branch that it is in.
_SCOPES: ContextVar[tuple[_Scope, ...]] = ContextVar("scopes", default=())
_BRANCH: ContextVar[str | None] = ContextVar("branch", default=None)


def enter(accountant: BudgetAccountant) -> None:
    """Make ``accountant`` the one in force in this context."""
    with _CHANGE:
        publish({one._written for one in (*_OPEN, accountant)})
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
            for thread in other_threads():
                _OUTLIVED.setdefault(thread, set()).add(accountant._written)
        publish({one._written for one in _OPEN}, left=accountant._written)


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
        outlived = {*_OUTLIVED.get(threading.current_thread(), ())}
    block = only_block(candidates, outlived)
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
