"""Log messages of the library, wrapped to the width of a terminal."""

from __future__ import annotations

import logging
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["wrapped_log"]

_WIDTH = 98
_LOGGER = logging.getLogger("dpbayes_sklearn")


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
