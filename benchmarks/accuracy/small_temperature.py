"""Which temperature a release should have that is too small to learn one.

Naive Bayes with default parameters but for a fixed temperature, on so few records of each table
that n times epsilon is below 500: accuracy and log loss. Run ``python -m
benchmarks.accuracy.small_temperature [--repeats 10] [--all]``.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.accuracy.defaults import score_of
from benchmarks.data.classification import TrainTestSplit
from benchmarks.data.tables import SMALL, small_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts.plans import default_tempering
from dpbayes_sklearn.counts.posterior import TemperedPosterior
from dpbayes_sklearn.counts.temperature import Tempering

TEMPERATURES = (1.0, 0.65, 0.5, 0.4, 0.3, 0.2, 0.12, 0.06)
SIMULATED = {
    **{f"copies of one cause, d = {d}": ("copies", d) for d in (5, 10, 20, 40, 80)},
    **{f"blocks of four, d = {d}": ("blocks", d) for d in (8, 40)},
    **{f"a chain, d = {d}": ("chain", d) for d in (12, 40)},
    **{f"independent, d = {d}": ("independent", d) for d in (10, 40)},
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


def scores(split: TrainTestSplit, epsilon: float, n: int, seed: int):
    """Return (accuracy, log loss) at each temperature and the default, and the default."""
    X, y, test_X, test_y, declared = split
    few = np.random.default_rng(seed).permutation(len(y))[:n]
    model = BayesianNaiveBayes(epsilon, temperature=0.5, random_state=seed, **declared)
    model.fit(X[few], y[few])
    inner = model.posterior_.posterior
    found, used = [], default_tempering(inner).temperature
    for t in (*TEMPERATURES, used):
        model.posterior_ = TemperedPosterior(inner, Tempering(t), len(few))
        score = score_of(model.predict_proba(test_X[:2000]), model.classes_, test_y[:2000])
        found.append((score.accuracy, score.loss))
    return np.array(found), used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="random splits")
    parser.add_argument("--all", action="store_true", help="print every temperature")
    options = parser.parse_args()
    print("| table | n | epsilon | t | default | t = 1 | t = 0.65 |\n|---|---|---|---|---|---|---|")
    for title in (*SMALL, *SIMULATED):
        for epsilon, n_epsilon in ((0.3, 150), (1.0, 490), (3.0, 490)):
            runs, size = [], 0
            for seed in range(options.repeats):
                small = title in SMALL
                split = small_split(title, seed) if small else simulated(*SIMULATED[title], seed)
                size = min(len(split.y), int(n_epsilon / epsilon))
                runs.append(scores(split, epsilon, size, seed))
            mean, used = (np.mean([run[i] for run in runs], axis=0) for i in (0, 1))
            cells = (" / ".join(f"{v:.3f}" for v in mean[i]) for i in (-1, 0, 1))
            print(f"| {title} | {size} | {epsilon:g} | {used:.2f} | {' | '.join(cells)} |")
            if options.all:
                for t, (accuracy, loss) in zip(TEMPERATURES, mean, strict=False):
                    print(f"    {t:5.2f}  {accuracy:.3f} {loss:.3f}")


if __name__ == "__main__":
    main()
