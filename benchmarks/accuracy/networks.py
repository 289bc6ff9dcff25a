"""What a graph costs and what it buys: known networks, and trees beside naive Bayes.

Table 1: four networks of the literature, 100,000 simulated records each. How far the counts and
the Fourier coefficients of a replaced record move, the worst error of a conditional probability
without privacy (in standard errors), and the processor seconds of a fit at epsilon = 1.

Table 2: accuracy of a tree-augmented naive Bayes against naive Bayes. The tree is learned from
records that count as public and are used for nothing else.

Run ``python -m benchmarks.accuracy.networks [--repeats 10]``; it needs the data of
``make bench-data`` and takes a few minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.data.networks import CLASS_OF, FiledNetwork, read_network
from benchmarks.data.packages import package_file
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    Categories,
    Interval,
    Schema,
    tree_augmented,
)
from dpbayes_sklearn.counts.fourier import block_sensitivity, closure, l1_sensitivity
from dpbayes_sklearn.privacy.budget import RECORD

MECHANISMS = ("laplace", "fourier", "sampler", "map")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, float("inf"))
CENSUS = Schema(
    {
        "age": Interval(17, 90, bins=8),
        "education-num": Interval(1, 16, bins=8),
        "marital-status": Categories(
            [
                "Married-civ-spouse",
                "Divorced",
                "Never-married",
                "Separated",
                "Widowed",
                "Married-spouse-absent",
                "Married-AF-spouse",
            ]
        ),
        "relationship": Categories(
            ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
        ),
        "ethnicity": Categories(
            ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
        ),
        "gender": Categories(["Female", "Male"]),
        "hours-per-week": Interval(1, 99, bins=8),
    },
    Categories(["<=50K", ">50K"]),
)


class Problem(NamedTuple):
    """Records with their public domains; the first ``n_public`` are public."""

    name: str
    X: Any
    y: Any
    schema: Schema
    n_public: int


def census() -> Problem:
    """Return who earns more than 50,000 dollars, of 32,561 people."""
    frame = pd.read_csv(package_file("xai", "data/census.csv"), index_col=0, skipinitialspace=True)
    return Problem("census", frame[[*CENSUS.columns]], frame["loan"].to_numpy(), CENSUS, 5000)


def simulated(name: str, n: int = 30_000) -> Problem:
    """Return records of a known network."""
    known = read_network(name)
    X, y = known.simulate(n, seed=3)
    return Problem(f"{name} (simulated)", X, y, known.schema, 5000)


def worst_error(known: FiledNetwork, model: BayesianNetworkClassifier) -> float:
    """Return the largest |estimate - p| in standard errors, over rows of 50 records or more."""
    worst = 0.0
    rows = model.posterior_.concentrations
    for mean, counts, table in zip(model.posterior_.mean(), rows, known.tables, strict=True):
        size = counts.sum(axis=-1, keepdims=True)
        error = np.abs(mean - table) / np.sqrt(np.maximum(table * (1 - table), 1 / size) / size)
        worst = max(worst, float(error[np.broadcast_to(size >= 50, error.shape)].max()))
    return worst


def network_rows(n: int = 100_000) -> Iterator[list[str]]:
    """Yield one line of table 1 for every network."""
    for name in CLASS_OF:
        known = read_network(name)
        X, y = known.simulate(n, seed=1)
        options: dict[str, Any] = {"parents": known.parents, "schema": known.schema}
        exact = BayesianNetworkClassifier(
            float("inf"), inference="plug_in", temperature=1, **options
        ).fit(X, y)
        supports = closure(known.network)
        yield [
            name,
            str(len(known.names)),
            str(2 * len(known.names)),
            str(l1_sensitivity(known.network, supports, RECORD)),
            str(block_sensitivity(known.network, supports, RECORD)),
            f"{worst_error(known, exact):.1f}",
            *(f"{seconds(mechanism, X, y, options):.2f}" for mechanism in MECHANISMS),
        ]


def seconds(mechanism: str, X: Any, y: Any, options: dict[str, Any]) -> float:
    """Return the processor time of one fit at epsilon = 1, reading the text included."""
    start = time.process_time()
    BayesianNetworkClassifier(1.0, mechanism=mechanism, **options).fit(X, y)
    return time.process_time() - start


def accuracy_rows(problem: Problem, repeats: int) -> Iterator[list[str]]:
    """Yield one line of table 2 for every epsilon: mean accuracy on records held out."""
    X, y, n_public = problem.X, problem.y, problem.n_public
    tree = tree_augmented(X[:n_public], y[:n_public], problem.schema)
    options: dict[str, Any] = {"schema": problem.schema}
    for epsilon in EPSILONS:
        scores = np.zeros((repeats, 4))
        for repeat in range(repeats):
            train_X, test_X, train_y, test_y = train_test_split(
                X[n_public:], y[n_public:], test_size=0.3, random_state=repeat
            )
            for column, inference in enumerate(("plug_in", "noise_aware")):
                options |= {"inference": inference, "temperature": 1, "random_state": repeat}
                naive = BayesianNaiveBayes(epsilon, **options)
                augmented = BayesianNetworkClassifier(epsilon, parents=tree, **options)
                for offset, model in ((0, naive), (2, augmented)):
                    model.fit(train_X, train_y)
                    scores[repeat, column + offset] = model.score(test_X, test_y)
        yield [f"{epsilon:g}", *(f"{score:.3f}" for score in scores.mean(axis=0))]


def print_table(header: list[str], rows: Iterator[list[str]]) -> None:
    """Print a table in Markdown, a line as soon as it is known."""
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    print("Table 1: networks\n")
    moved = ["network", "nodes", "counts move", "characters move", "their bound", "worst z"]
    print_table([*moved, *(f"{m}, s" for m in MECHANISMS)], network_rows())
    trees = ["epsilon"] + [f"{g}, {i}" for g in ("star", "tree") for i in ("plug-in", "aware")]
    for problem in (census(), simulated("child"), simulated("insurance")):
        print(f"\nTable 2: {problem.name}, {len(problem.y) - problem.n_public} private records\n")
        print_table(trees, accuracy_rows(problem, repeats))


if __name__ == "__main__":
    main()
