"""Remarks on a terminal: wrapped, and only where nobody has configured the log."""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stderr

import pytest

from dpbayes_sklearn._log import wrapped_log

LOGGER = logging.getLogger("dpbayes_sklearn")
REMARK = "The noise is 3 times as large as the average count of a cell. " * 4


def told(handlers: list[logging.Handler]) -> list[str]:
    """Return what standard error shows where only these handlers are configured."""
    with pytest.MonkeyPatch.context() as without_pytest, redirect_stderr(io.StringIO()) as screen:
        without_pytest.setattr(logging.getLogger(), "handlers", [])
        without_pytest.setattr(LOGGER, "handlers", list(handlers))
        with wrapped_log():
            LOGGER.warning(REMARK)
        assert LOGGER.handlers == handlers
    return screen.getvalue().splitlines()


def test_a_long_remark_is_wrapped() -> None:
    lines = told([])
    assert len(lines) > 2
    assert max(map(len, lines)) <= 98
    assert lines[0].startswith("note: The noise")


def test_a_log_that_was_configured_is_left_alone() -> None:
    own = io.StringIO()
    assert told([logging.StreamHandler(own)]) == []
    assert own.getvalue() == REMARK + "\n"
