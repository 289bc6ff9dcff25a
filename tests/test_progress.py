"""A bar for people who wait, and never more than a bar."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr

import pytest

from dpbayes_sklearn._progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_the_bar() -> None:
    with redirect_stderr(Terminal()) as screen:
        assert list(progress(iter("abc"), "letters", total=3)) == ["a", "b", "c"]
    assert "letters" in screen.getvalue()
    assert "/3" in screen.getvalue()


def test_who_asks_for_silence_has_it() -> None:
    with redirect_stderr(Terminal()) as screen:
        assert list(progress("abc", verbose=False)) == ["a", "b", "c"]
    assert screen.getvalue() == ""


def test_a_file_sees_nothing() -> None:
    with redirect_stderr(io.StringIO()) as file:
        assert list(progress(range(3), "steps")) == [0, 1, 2]
    assert file.getvalue() == ""


def test_without_tqdm_the_work_is_done_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with redirect_stderr(Terminal()) as screen:
        assert list(progress(range(3), "steps")) == [0, 1, 2]
    assert screen.getvalue() == ""


def test_an_error_of_a_step_is_the_callers() -> None:
    def steps() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    with redirect_stderr(Terminal()), pytest.raises(KeyError, match="mine"):
        list(progress(steps()))
