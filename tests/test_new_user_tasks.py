"""Tasks of a new user: the guide leads to a page whose code does them; other tests run it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"
DONE_BY = {
    "fit a private model to my own CSV file": ["read_csv(", ".fit(", "to_json("],
    "use dates, ordered answers and codes with many values": [
        "date(2023",
        'unseen="other"',
        ".map(",
    ],
    "handle missing values, and rows without a target": ["np.nan", 'missing="indicator"'],
    "publish odds ratios": ["BayesianLogisticRegression(", "coefficients("],
    "predict a rare class": ["FixedThresholdClassifier(", "class_prior_"],
    "start without knowing the bounds": ["Schema.learn(", "PrivateKBinsDiscretizer("],
    "fit a table with very many columns": ["delta", "* 200"],
    "make one budget last a week": ['"Friday"', "existing=True", "BudgetError"],
    "protect persons who have several records, or hide who took part": [
        "max_records",
        "groups=",
        'neighbours="add_remove"',
    ],
    "choose parameters by a search": ["PrivateSearchCV(", 'error_score="raise"'],
    "publish how good a model is on private records": ["private_score("],
    "move the model to another machine": ["to_json(", "from_json("],
    "say what ε means as a risk": [".risk("],
    "draw from the posterior, or use ArviZ": ["sample("],
    "explain a prediction": ["contributions("],
    "publish a card with the model": [".card("],
}


def tasks() -> dict[str, list[str]]:
    """Return the tasks that the guide lists, each with the pages it leads to."""
    index = (GUIDE / "index.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (.*\{doc\}.*) \|$", index, re.M)
    return {task: re.findall(r"\{doc\}`([\w./]+)`", pages) for task, pages in rows}


def code(page: str) -> str:
    """Return the Python of a page: lines with prompts, and blocks without."""
    blocks = re.findall(r"^```(?:python|pycon)\n(.*?)^```$", page, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    prompts = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    return "\n".join(prompts or lines)


def test_the_guide_lists_the_tasks():
    assert [*tasks()] == [*DONE_BY]


@pytest.mark.parametrize("task", DONE_BY)
def test_the_code_of_its_page_does_the_task(task):
    first, *others = ((GUIDE / f"{page}.md").read_text("utf-8") for page in tasks()[task])
    assert [call for call in DONE_BY[task] if call not in code(first)] == []
    assert all(others)
