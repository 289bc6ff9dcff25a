"""What the user is told: log messages, warnings and progress bars, or silence."""

from __future__ import annotations

import logging
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["is_heard", "progress", "remark", "silence", "withheld", "wrapped_log"]

_WIDTH = 98  # Characters in a line of a terminal.
_LOGGER = logging.getLogger("dpbayes_sklearn")

Withheld = list[tuple[type[Warning], str]]
_withheld: ContextVar[Withheld | None] = ContextVar("dpbayes_sklearn_withheld", default=None)


def withheld() -> Withheld | None:
    """Return the list of the warnings that are not given in this context; None outside of one."""
    return _withheld.get()


def is_heard() -> bool:
    """Tell whether a remark would be logged, so that it can be made once in a process."""
    return withheld() is None and not _LOGGER.disabled


def remark(text: str, *facts: object) -> None:
    """Log a message, unless this context is silent."""
    if is_heard():
        _LOGGER.warning(text, *facts, stacklevel=2)


class _WhereSilent(type):
    """The type of a class that all warnings are of, in a silent context; none in any other."""

    def __subclasscheck__(cls, category: type) -> bool:
        return withheld() is not None


class _AnyWarning(Warning, metaclass=_WhereSilent): ...


_IGNORED = ("ignore", None, _AnyWarning, None, 0)  # An entry of warnings.filters.


@contextmanager
def silence() -> Iterator[Withheld]:
    """Suppress warnings and log messages in this context; yield the library's own warnings.

    A context is that of a thread or a task (``contextvars``). A switch of the process, such as
    ``Logger.disabled`` or ``warnings.catch_warnings``, would be turned back by the first of two
    threads that ends, and left on for good by the second. So nothing is turned back but the
    context. For warnings of other libraries a filter stays that matches in silent contexts only.
    A worker, and a thread that is started within, have contexts of their own.
    """
    # from Python 3.14 on a context may have filters of its own, which cannot be looked at
    if sys.version_info >= (3, 14) or warnings.filters[:1] != [_IGNORED]:
        warnings.simplefilter("ignore", category=_AnyWarning)
    said: Withheld = []
    before = _withheld.set(said)
    try:
        yield said
    finally:
        _withheld.reset(before)


class _Wrapped(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return textwrap.fill(super().format(record), _WIDTH, subsequent_indent="  ")


@contextmanager
def wrapped_log() -> Iterator[None]:
    """Print the library's remarks on standard error, wrapped, as long as the block lasts.

    A log that the caller has configured is left as it is.
    """
    if _LOGGER.hasHandlers():
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Wrapped("note: %(message)s"))
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)


_T = TypeVar("_T")


def progress(
    steps: Iterable[_T],
    description: str = "",
    *,
    total: int | None = None,
    verbose: bool = True,
    delay: float = 0.0,
) -> Iterator[_T]:
    """Yield the steps one by one, with a progress bar on standard error.

    Parameters
    ----------
    steps : iterable
        The steps; a lazy iterator is possible, such as the results of joblib.
    description : str, default=""
        Text in front of the bar.
    total : int, optional
        Number of steps, if they have no length.
    verbose : bool, default=True
        Whether to show the bar. It is not shown without tqdm, or if standard error is not a
        terminal.
    delay : float, default=0.0
        Seconds before the bar is shown, for operations that are usually short.

    Examples
    --------
    >>> [step**2 for step in progress(range(3), "squares")]
    [0, 1, 4]
    """
    if verbose:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            name, options = description or None, {"leave": False, "disable": None, "delay": delay}
            steps = tqdm(steps, desc=name, total=total, **options)
    yield from steps
