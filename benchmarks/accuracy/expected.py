"""What accuracy to expect: the share that remains, by the noise of an average cell.

Accuracies are those of ``docs/benchmarks/defaults.md``; the noise comes from the declared domains
and the number of records alone, as ``planning.expected_error`` finds it before any data are read.

Run ``python -m benchmarks.accuracy.expected``; it prints Markdown.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data.tables import TABLES
from dpbayes_sklearn import BayesianNaiveBayes, planning

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "defaults.md"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
EDGES = (0.0, 0.1, 0.3, 1.0, 3.0, np.inf)
TRAINING = 0.7


class Row(NamedTuple):
    """Accuracies of one table: without privacy, of a constant guess, and by epsilon."""

    name: str
    exact: float
    guess: float
    private: tuple[float, ...]


def accuracies(text: str) -> list[Row]:
    """Read the first table of the page."""
    first = text.partition("\n## ")[0]
    lines = re.findall(r"^\| (\w+)[^|]*\| \d+ \|(.*)\|$", first, re.M)
    rows = [(name, [float(cell.split("/")[0]) for cell in row.split("|")]) for name, row in lines]
    return [Row(name, exact, guess, (*private,)) for name, (exact, guess, *private) in rows]


def noise_of_a_cell(name: str, epsilon: float) -> float:
    """Return the mean error of a count in units of an average count."""
    X, _, schema = TABLES[name]()
    n = int(TRAINING * len(X))
    shares = [1 / domain.n_values for domain in schema.columns.values()]
    average_count = n / schema.classes.n_values * np.mean(shares)
    error = planning.expected_error(BayesianNaiveBayes(schema=schema), n=n, epsilon=epsilon)
    return float(error.mean / average_count)


def main() -> None:
    """Group tables and budgets by their noise."""
    found = [
        (noise_of_a_cell(row.name, epsilon), (score - row.guess) / (row.exact - row.guess))
        for row in accuracies(PAGE.read_text("utf-8"))
        for epsilon, score in zip(EPSILONS, row.private, strict=True)
    ]
    noise, kept = np.array(found).T
    heads = "| error of a count / average count | cases | median | middle half |"
    print(heads + "\n|---|---|---|---|")
    for low, high in pairwise(EDGES):
        inside = kept[(noise >= low) & (noise < high)]
        if len(inside):
            lower, median, upper = np.quantile(inside, (0.25, 0.5, 0.75))
            middle = f"{lower:.0%} to {upper:.0%}"
            print(f"| {low:g} to {high:g} | {len(inside)} | {median:.0%} | {middle} |")


if __name__ == "__main__":
    main()
