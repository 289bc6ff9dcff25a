"""Remarks and warnings, wrapped on a terminal and silenced by context; what is printed."""

from __future__ import annotations

import io
import logging
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr

import pytest

import dpbayes_sklearn
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, Categories, Interval, Schema
from dpbayes_sklearn._presenting import remark, silence, wrapped_log
from dpbayes_sklearn.convex.coefficients import Coefficient, CoefficientTable
from dpbayes_sklearn.data.records import in_threads
from dpbayes_sklearn.exceptions import PrivacyLeakWarning, warn_caller
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import exact
from dpbayes_sklearn.release import Expense

LOGGER = logging.getLogger("dpbayes_sklearn")
REMARK = "The noise is 3 times as large as the average count of a cell. " * 4


def told(handlers: list[logging.Handler]) -> list[str]:
    """Return what standard error shows where only these handlers are configured."""
    with pytest.MonkeyPatch.context() as without_pytest, redirect_stderr(io.StringIO()) as screen:
        without_pytest.setattr(logging.getLogger(), "handlers", [])
        without_pytest.setattr(LOGGER, "handlers", list(handlers))
        with wrapped_log():
            LOGGER.warning(REMARK)
            LOGGER.warning(REMARK)
        assert LOGGER.handlers == handlers
    return screen.getvalue().splitlines()


def test_a_long_remark_is_wrapped_and_printed_once() -> None:
    lines = told([])
    assert sum(line.startswith("note:") for line in lines) == 1
    assert len(lines) > 2
    assert max(map(len, lines)) <= 98
    assert lines[0].startswith("note: The noise")


def test_a_log_that_was_configured_is_left_alone() -> None:
    own = io.StringIO()
    assert told([logging.StreamHandler(own)]) == []
    assert own.getvalue() == (REMARK + "\n") * 2


# ------------------------------------------------------------------ silence


class Heard(logging.Handler):
    """Notes what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def everything(text: str) -> None:
    """Log, warn, and let another library warn."""
    remark(text)
    warn_caller(text, PrivacyLeakWarning)
    warnings.warn(text, DeprecationWarning, stacklevel=2)


@pytest.fixture
def heard(recwarn: pytest.WarningsRecorder) -> Iterator[Callable[[], list[str]]]:
    """Return what was logged or warned of, whatever filters there are."""
    ear = Heard()
    LOGGER.addHandler(ear)
    warnings.simplefilter("always")
    yield lambda: [*ear.texts, *(str(warning.message) for warning in recwarn)]
    LOGGER.removeHandler(ear)


def test_a_thread_that_ends_first_unmutes_no_other(heard: Callable[[], list[str]]) -> None:
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with silence():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(60)
    everything("no silence was asked for here")
    with silence() as kept:
        leave.set()
        thread.join()
        everything("still silent")
    everything("no silence any more")
    assert kept == [(PrivacyLeakWarning, "still silent")]
    assert sorted(heard()) == sorted(
        3 * ["no silence was asked for here"] + 3 * ["no silence any more"]
    )


def test_threads_that_share_the_work_of_a_silent_one_are_silent(
    heard: Callable[[], list[str]],
) -> None:
    with silence():
        in_threads(everything, ["a", "b", "c"], 2)
    assert heard() == []
    in_threads(everything, ["a", "b", "c"], 2)
    assert sorted(heard()) == [*"aaabbbccc"]


def test_a_filter_that_asks_for_errors_raises_none_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with silence():
            everything("silent")
            warnings.warn("silent", UserWarning, stacklevel=1)
        with pytest.raises(DeprecationWarning):
            warnings.warn("heard", DeprecationWarning, stacklevel=1)


def test_completion_shows_public_names_alone() -> None:
    assert dir(dpbayes_sklearn) == sorted([*dpbayes_sklearn.__all__, "__version__"])


def test_a_large_schema_is_one_line_of_a_model() -> None:
    columns = dict.fromkeys([f"question {j}" for j in range(300)], Interval(0, 1))
    model = BayesianNaiveBayes(schema=Schema(columns, target=Categories([0, 1])))
    assert repr(model) == (
        "BayesianNaiveBayes(schema=Schema(300 columns: 'question 0', 'question 1', 'question 2', "
        "..., target=Categories(values=(0, 1), unseen=0)))"
    )
    small = Schema({"a": Interval(0, 1)}, target=Categories([0, 1]))
    assert eval(repr(small)) == small


def test_a_printed_ledger_says_what_is_left() -> None:
    ledger = BudgetAccountant(3.0)
    ledger.spend(1.0)
    ledger.allotment("anna", 0.5)
    first, anna, last = str(ledger).splitlines()
    assert first.startswith("all releases  spent epsilon=1.0")
    assert "left epsilon=2.0" in first
    assert anna.startswith("anna          spent epsilon=0.0, delta=0.0; left epsilon=0.5")
    assert last == "1 release, unit: none yet"


def test_steps_whose_noise_follows_from_others_say_so() -> None:
    half = Budget(exact(0.5))
    assert Expense("a", half, law=lambda known: known).expected.startswith("follows from earlier")
    assert Expense("a", half).expected == "none"


def test_many_coefficients_that_are_not_identified_are_counted() -> None:
    unknown = (math.nan, math.inf, -math.inf, math.inf, math.nan, math.inf, math.nan)
    rows = [Coefficient(f"x{j}", *unknown) for j in range(44)]
    known = [Coefficient("k", *[1.0] * 7)] * 4
    table = CoefficientTable((*rows, *known), 0.95)
    assert table.remark == "44 of 48 are not identified, because of the noise."
    assert CoefficientTable((*rows[:2], *known), 0.95).remark.endswith("noise: x0, x1.")
