"""What a delta buys: noise of a count and accuracy of naive Bayes, pure against Gaussian.

The first table is the standard deviation of one released count for two classes and d features of K
values, and follows from public facts alone. The second is accuracy / log loss of the default model
with ``mechanism="laplace"`` and ``mechanism="gaussian"`` on real and simulated tables.

Run ``python -m benchmarks.accuracy.gaussian [--repeats 20] [--tables splice,mushroom]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy.defaults import Score, score_of
from benchmarks.data.tables import table_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import tables_plan
from dpbayes_sklearn.mechanisms import Auto, Gaussian, Laplace
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.release import Facts

DELTA = 1e-6
EPSILONS = (0.1, 1.0)
FEATURES = (5, 10, 20, 50, 100, 200)
VALUES = (2, 4, 16)
TABLES = ("splice", "mushroom", "spambase", "marketing", "rare_items")


def deviation(mechanism: Laplace | Gaussian, d: int, values: int, epsilon: float) -> float:
    """Return the standard deviation of a released count, on average over all cells."""
    network = Network.star([values] * d, 2)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    budget = Budget(Fraction(str(epsilon)), Fraction(str(DELTA)))
    plan: Any = tables_plan(mechanism, prior, Facts(10_000), budget)
    return math.sqrt(float(plan.law.variances.mean()))


def noise_table(epsilon: float) -> list[str]:
    """Return the lines of the table of noise: pure / Gaussian, and which one "auto" takes."""
    lines = [f"| d | {' | '.join(f'K = {k}' for k in VALUES)} |", "|---" * (len(VALUES) + 1) + "|"]
    for d in FEATURES:
        cells = []
        for values in VALUES:
            found = [deviation(m, d, values, epsilon) for m in (Laplace(), Gaussian(), Auto())]
            bold = ["**{:.3g}**" if one == found[2] else "{:.3g}" for one in found[:2]]
            cells.append(" / ".join(bold).format(*found[:2]))
        lines.append(f"| {d} | {' | '.join(cells)} |")
    return lines


def split_scores(name: str, seed: int) -> dict[tuple[str, float], Score]:
    """Score both mechanisms at every epsilon on one split."""
    X, y, test_X, test_y, declared = table_split(name, seed)
    y, test_y = (np.asarray(labels).astype(str) for labels in (y, test_y))
    found = {}
    for epsilon in EPSILONS:
        for mechanism in ("laplace", "gaussian"):
            model = BayesianNaiveBayes(epsilon, delta=DELTA, mechanism=mechanism, **declared)
            model.fit(X, y)
            score = score_of(model.predict_proba(test_X), model.classes_, test_y)
            found[mechanism, epsilon] = score
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", default=",".join(TABLES))
    arguments = parser.parse_args()
    for epsilon in (1.0, 0.1):
        print(f"Standard deviation of a count, ε = {epsilon:g}, δ = {DELTA:g}: pure / Gaussian\n")
        print("\n".join(noise_table(epsilon)) + "\n")
    heads = [f"{m}, ε = {e:g}" for e in EPSILONS for m in ("laplace", "gaussian")]
    print(f"| table | {' | '.join(heads)} |\n" + "|---" * (len(heads) + 1) + "|")
    for name in filter(None, arguments.tables.split(",")):
        splits = Parallel(arguments.jobs)(
            delayed(split_scores)(name, seed) for seed in range(arguments.repeats)
        )
        means = {
            key: Score(*np.mean([split[key] for split in splits], axis=0)) for key in splits[0]
        }
        cells = [f"{s.accuracy:.3f} / {s.loss:.3f}" for s in means.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
