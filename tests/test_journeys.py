"""Three journeys of a new user: a file, a schema, a model, its evaluation and its card.

The journeys are examples of the gallery. Here they run as a user would run them.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
JOURNEYS = ("visits", "wages", "baskets")


def steps(name: str) -> dict[str, int]:
    """Return how many lines of code a journey has in Python, and how many commands."""
    text = (EXAMPLES / f"plot_journey_{name}.py").read_text("utf-8")
    python = re.search(r"# -+\n((?:#[^\n]*\n)*)(.*?)\n# %%", text, re.S)
    commands = re.search(r'commands = r?"""\n(.*?)"""', text, re.S)
    assert python
    assert commands
    return {
        "python": sum(bool(line.strip()) for line in python[2].splitlines()),
        "commands": len(commands[1].splitlines()),
    }


@pytest.fixture(scope="module")
def journey() -> Any:
    """Return a function that runs a journey once, and its names."""
    done: dict[str, dict[str, Any]] = {}

    def run(name: str) -> dict[str, Any]:
        if name not in done:
            with pytest.MonkeyPatch.context() as patch:
                patch.syspath_prepend(str(EXAMPLES))
                patch.setattr("matplotlib.pyplot.show", lambda: None)
                done[name] = runpy.run_path(str(EXAMPLES / f"plot_journey_{name}.py"))
        return done[name]

    return run


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey_is_short(name: str) -> None:
    for lines in steps(name).values():
        assert 3 < lines < 15


@pytest.mark.parametrize("name", JOURNEYS)
def test_both_ways_end_with_a_card_that_has_the_evaluation(name: str, journey: Any) -> None:
    ran = journey(name)
    assert ran["ledger"].total().epsilon == 2
    by_python = ran["model"].card(evaluation=ran["found"])
    by_commands = (ran["here"] / "card.html").read_text("utf-8")
    for card in (by_python, by_commands):
        assert "epsilon = 1" in card
        assert next(iter(ran["found"])) in card  # the first metric


def test_visits_without_an_outcome_are_left_out(journey: Any) -> None:
    ran = journey("visits")
    assert "not counted: the record is left out" in ran["model"].card()
    assert "at most 2" in str(ran["model"].guarantee_)
    risk, age = ran["model"].predict_proba(ran["later"])[:, 1], ran["later"]["age"]
    assert risk[age > 80].mean() > risk[age < 40].mean()
    assert 0.5 < ran["found"]["accuracy"].low < ran["found"]["accuracy"].high < 0.95


def test_wages_have_one_total(journey: Any) -> None:
    ran = journey("wages")
    total = "in total epsilon = 1, which makes no result more than 2.72 times"
    assert total in str(ran["model"].guarantee_)
    assert ran["model"].coefficients()["school"].low > 0
    wage = ran["others"]["wage"]
    assert abs(ran["model"].predict(ran["others"]).mean() - wage.mean()) < 1.5
    assert ran["found"]["r2"].high > 0.2


def test_baskets_are_told_apart(journey: Any) -> None:
    ran = journey("baskets")
    assert ran["model"].guarantee_.mechanism == "gaussian"
    assert ran["found"]["accuracy"].low > 0.8
