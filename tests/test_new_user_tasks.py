"""Tasks of a new user: the guide leads to a page whose code does them; other tests run it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"
DONE_BY = {
    "fit a private model to my own CSV file": ["read_csv(", ".fit(", "to_json("],
    "choose an estimator, a unit, ε and δ": ["planning.report("],
    "use dates, ordered answers, codes with many values; predict a rare class": [
        "date(2023",
        'unseen="other"',
        ".map(",
        "FixedThresholdClassifier(",
        "class_prior_",
    ],
    "handle missing values, and rows without a target": ["np.nan", 'missing="indicator"'],
    "use the weights of a survey": ["max_weight=", "sample_weight="],
    "start without knowing the bounds": ["Schema.learn(", "PrivateKBinsDiscretizer("],
    "publish odds ratios, or the slopes of a regression": [
        "BayesianLogisticRegression(",
        "coefficients(",
    ],
    "say that an effect is significant": ["coefficients("],
    "have interactions, squares or logarithms; compare means of groups; use free text": [
        "square=",
        'coefficients()["sex=m"]',
    ],
    "see why a slope is not that of R's lm": ["coefficients()"],
    "explain counts and rates, with rate ratios": ["BayesianCountRegression("],
    "publish survival curves and compare groups": ["LifeTable(", "logrank("],
    "make many regressions, or correlations, of one release": [
        "PrivateMoments(",
        "regress(",
        "correlations(",
    ],
    "combine what several hospitals, or offices, have released": ["pool("],
    "publish means, medians and cross tables": ["NormalMean(", "bin_edges_", "credible_interval("],
    "publish how good a model is on private records": ["private_score("],
    "fit a table with very many columns": ["delta", "* 200"],
    "protect persons who have several records, or hide who took part": [
        "max_records",
        "groups=",
        'neighbours="add_remove"',
    ],
    "make one budget last a week, or give everybody a part of it": [
        '"Friday"',
        "existing=True",
        "BudgetError",
        "allotment(",
    ],
    "go on next year, when people have joined and left": ["for year in"],
    "choose parameters by a search": ["PrivateSearchCV(", 'error_score="raise"'],
    "say what ε means as a risk; which ε others use": [".risk("],
    "convince a data protection officer": [".risk(", ".card("],
    "publish the model, or move it to another machine": ["to_json(", "from_json(", ".card("],
    "draw from the posterior, or use ArviZ": ["sample("],
    "explain a prediction": ["contributions("],
    "fit a file of several gigabytes": ["duckdb.sql(", ".lazy()"],
    "use several cores; silence the messages": ["parallel_config(", "getLogger("],
}


def tasks() -> dict[str, list[str]]:
    """Return the tasks that the guide lists, each with the pages it leads to."""
    index = (GUIDE / "index.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (.*(?:\{doc\}|\.md#).*) \|$", index, re.M)
    links = re.compile(r"(?:\{doc\}`|\]\()([\w./]+?)(?:`|\.md#)")
    return {task: links.findall(pages) for task, pages in rows}


def code(page: str) -> str:
    """Return the Python of a page: lines with prompts, and blocks without."""
    blocks = re.findall(r"^```(?:python|pycon)\n(.*?)^```$", page, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    prompts = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    return "\n".join(prompts or lines)


def test_the_guide_lists_the_tasks():
    assert {*tasks()} == {*DONE_BY}


@pytest.mark.parametrize("task", DONE_BY)
def test_the_code_of_its_page_does_the_task(task):
    first, *others = ((GUIDE / f"{page}.md").read_text("utf-8") for page in tasks()[task])
    assert [call for call in DONE_BY[task] if call not in code(first)] == []
    assert all(others)
