"""Which temperature a release should have that is too small to learn one.

Naive Bayes with default parameters but for a fixed temperature, on so few records of each table
that n times epsilon is below 500: accuracy, log loss, and by how much the mean confidence exceeds
the accuracy. Run ``python -m benchmarks.accuracy.small_temperature [--tables chosen]
[--repeats 4]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks.accuracy.defaults import score_of
from benchmarks.data.classification import TrainTestSplit
from benchmarks.data.tables import CHOSEN_ON, REPORTED_ON, table_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts.plans import default_tempering
from dpbayes_sklearn.counts.posterior import TemperedPosterior
from dpbayes_sklearn.counts.temperature import Tempering

TEMPERATURES = (1.0, 0.65, 0.5, 0.4, 0.3, 0.2, 0.12, 0.06)
BEFORE = 0.65  # a default that does not look at the release
SIMULATED = {
    "chosen": {f"copies of one cause, d = {d}": ("copies", d) for d in (5, 10, 20, 40, 80)},
    "reported": {
        **{f"blocks of four, d = {d}": ("blocks", d) for d in (8, 40)},
        **{f"a chain, d = {d}": ("chain", d) for d in (12, 40)},
        **{f"independent, d = {d}": ("independent", d) for d in (10, 40)},
    },
}
"""Boolean columns whose dependence given the class differs."""


def simulated(kind: str, d: int, seed: int, n: int = 8000) -> TrainTestSplit:
    """Return records of two classes with d Boolean columns."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    right = {"copies": 1, "blocks": d // 4, "chain": 1, "independent": d}[kind]
    causes = y[:, None] ^ (rng.random((n, right)) < (0.25 if right == 1 else 0.4))
    X = np.repeat(causes, d // right, axis=1)
    if kind == "chain":
        X = np.logical_xor.accumulate(np.hstack([X[:, :1], rng.random((n, d - 1)) < 0.05]), axis=1)
    elif kind != "independent":
        X = X ^ (rng.random(X.shape) < 0.1)
    cut, classes = n * 7 // 10, y.astype(int).astype(str)
    declared = {"bounds": (0, 1), "n_bins": 2, "classes": ["0", "1"]}
    values = X.astype(int)
    return TrainTestSplit(values[:cut], classes[:cut], values[cut:], classes[cut:], declared)


def split_of(table: str | tuple[str, int], seed: int) -> TrainTestSplit:
    return table_split(table, seed) if isinstance(table, str) else simulated(*table, seed)


def scores(table: str | tuple[str, int], epsilon: float, n_epsilon: float, seed: int):
    """Return (accuracy, log loss, excess of confidence) at each temperature and the default."""
    X, y, test_X, test_y, declared = split_of(table, seed)
    y, test_y = np.asarray(y).astype(str), np.asarray(test_y).astype(str)
    few = np.random.default_rng(seed).permutation(len(y))[: int(n_epsilon / epsilon)]
    model = BayesianNaiveBayes(epsilon, temperature=0.5, random_state=seed, **declared)
    model.fit(X.iloc[few] if hasattr(X, "iloc") else X[few], y[few])
    inner, d = model.posterior_.posterior, model.n_features_in_
    found, used = [], default_tempering(inner).temperature
    for t in (*TEMPERATURES, used):
        model.posterior_ = TemperedPosterior(inner, Tempering(t), len(few))
        probabilities = model.predict_proba(test_X[:2000])
        score = score_of(probabilities, model.classes_, test_y[:2000])
        gap = probabilities.max(axis=1).mean() - score[0]
        found.append((score[0], score[1], gap))
    return np.array(found), d, len(few), used


def tables_of(which: str) -> Iterator[tuple[str, str | tuple[str, int]]]:
    names = CHOSEN_ON if which == "chosen" else REPORTED_ON
    yield from ((name, name) for name in names)
    yield from SIMULATED[which].items()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", choices=["chosen", "reported"], default="chosen")
    parser.add_argument("--repeats", type=int, default=4, help="random splits")
    parser.add_argument("--all", action="store_true", help="print every temperature")
    options = parser.parse_args()
    before, real, made = TEMPERATURES.index(BEFORE), [], []
    print(
        "| table | columns | n | epsilon | t | t = 0.65 | default |\n|---|---|---|---|---|---|---|"
    )
    for title, table in tables_of(options.tables):
        for epsilon, n_epsilon in ((0.1, 100), (0.1, 490), (0.3, 150), (0.3, 490)):
            runs = [scores(table, epsilon, n_epsilon, seed) for seed in range(options.repeats)]
            mean, (_, d, n, _) = np.mean([run[0] for run in runs], axis=0), runs[0]
            if n * epsilon < 0.8 * n_epsilon:  # the table has too few records
                continue
            (real if isinstance(table, str) else made).append(mean)
            one, other = (" / ".join(f"{v:.3f}" for v in mean[i]) for i in (before, -1))
            used = np.mean([run[3] for run in runs])
            print(f"| {title} | {d} | {n} | {epsilon} | {used:.2f} | {one} | {other} |", flush=True)
            if options.all:
                for t, row in zip(TEMPERATURES, mean, strict=False):
                    print(f"    {t:5.2f}  {row[0]:.3f} {row[1]:.3f} {row[2]:+.3f}", flush=True)
    for kind, rows in (("tables", real), ("simulations", made)):
        for label, row in (("t = 0.65", before), ("default", -1)):
            accuracy, loss, gap = np.mean(rows, axis=0)[row]
            gaps = np.array(rows)[:, row, 2]
            print(
                f"{kind}, {label}: accuracy {accuracy:.4f}, log loss {loss:.4f}, too sure by "
                f"{gap:+.3f} ({np.abs(gaps).mean():.3f} without the sign, {gaps.max():+.3f} most)"
            )


if __name__ == "__main__":
    main()
