"""A bar for people who wait, and never more than a bar."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr

import numpy as np
import pytest

from dpbayes_sklearn import BayesianNaiveBayes, PrivateSearchCV
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.conjugate import certify
from dpbayes_sklearn.papers import candidates


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_the_bar() -> None:
    with redirect_stderr(Terminal()) as screen:
        assert list(progress(iter("abc"), "letters", total=3)) == ["a", "b", "c"]
    assert "letters" in screen.getvalue()
    assert "/3" in screen.getvalue()


def test_short_work_is_done_before_its_bar_is_shown() -> None:
    with redirect_stderr(Terminal()) as screen:
        assert list(progress("abc", "letters", delay=60.0)) == ["a", "b", "c"]
    assert "letters" not in screen.getvalue()


@pytest.mark.parametrize("verbose", [False, True])
def test_a_search_shows_its_candidates_and_never_its_runs(verbose: bool) -> None:
    y = np.arange(200) % 2
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1])
    search = PrivateSearchCV(model, {"alpha": [0.5, 1.0, 2.0]}, verbose=verbose)
    with redirect_stderr(Terminal()) as screen:
        search.fit(y[:, None], y)
    bars = set(re.findall(r"(\w+): +\d+%.*?/(\d+)", screen.getvalue()))
    assert bars == ({("candidates", "3")} if verbose else set())


def test_a_long_certification_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_PATIENCE", 0.0)
    with redirect_stderr(Terminal()) as screen:
        certify("hellinger", 20, (1, 1))
    assert "certification" in screen.getvalue()


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
