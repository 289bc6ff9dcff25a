"""One noise for all character sums beside a noise for each, and beside noisy counts.

Accuracy of naive Bayes on the same splits for all methods: the experiment of Zhang, Rubinstein and
Dimitrakakis (2016) with 16 Boolean features, spambase with 57, and two counterexamples whose
features have up to twelve values: mushroom and, with nine classes, marketing. The gain is that of
joint over independent noise, of the same inference, with its standard error over splits.

Run ``python benchmarks/joint_noise.py [--repeats 20] [--simulated-repeats 100]``; that takes about
twenty minutes on one core. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from datasets import CLASSIFICATION, Classification

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.mechanisms import Fourier, Laplace

FloatArray = npt.NDArray[np.float64]

N_FEATURES, N_TEST = 16, 1000
METHODS = {
    "laplace": Laplace(),
    "fourier, independent": Fourier(),
    "fourier, joint": Fourier(noise="joint"),
}
INFERENCES = ("plug_in", "noise_aware")


def accuracies(
    X: object,
    y: object,
    X_test: object,
    y_test: object,
    epsilon: float,
    seed: int,
    **public: object,
) -> FloatArray:
    """Return the accuracy without privacy, then that of every method and inference."""
    models = [BayesianNaiveBayes(np.inf, **public)]
    for mechanism in METHODS.values():
        for inference in INFERENCES:
            options = {"mechanism": mechanism, "inference": inference, "random_state": seed}
            models.append(BayesianNaiveBayes(epsilon, **options, **public))
    return np.array([model.fit(X, y).score(X_test, y_test) for model in models])


def simulated(n: int, epsilon: float, seed: int) -> FloatArray:
    """Return the accuracies on one draw of the paper's model."""
    rng = np.random.default_rng([n, seed])
    share, probabilities = rng.random(), rng.random((2, N_FEATURES))
    y = (rng.random(n + N_TEST) < share).astype(int)
    X = (rng.random((n + N_TEST, N_FEATURES)) < probabilities[y]).astype(int)
    public = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return accuracies(X[:n], y[:n], X[n:], y[n:], epsilon, seed, **public)


@lru_cache
def loaded(name: str) -> Classification:
    """Return a public table."""
    return CLASSIFICATION[name]()


def real(name: str, epsilon: float, seed: int) -> FloatArray:
    """Return the accuracies on one split of a public table, 70 % for training."""
    X, y, schema = loaded(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [len(y) * 7 // 10])
    parts = X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test]
    return accuracies(*parts, epsilon, seed, schema=schema)


def line(label: str, results: Iterable[FloatArray]) -> str:
    """Format one row: accuracies, and the gain of joint noise with its standard error."""
    table = np.stack(list(results))
    mean = table.mean(axis=0)
    cells = [f"{mean[0]:.3f}", *(f"{a:.3f} / {b:.3f}" for a, b in mean[1:].reshape(-1, 2))]
    for inference in range(len(INFERENCES)):
        gain = table[:, 5 + inference] - table[:, 3 + inference]
        cells.append(f"{gain.mean():+.3f} ±{gain.std(ddof=1) / np.sqrt(len(gain)):.3f}")
    return f"| {label} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table as its rows come in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--simulated-repeats", type=int, default=100)
    parser.add_argument("--sets", nargs="*", default=["spambase", "mushroom", "marketing"])
    options = parser.parse_args()
    print("Accuracy, plug-in / noise-aware\n")
    print(f"| data | ε | without privacy | {' | '.join(METHODS)} | gain, plug-in | noise-aware |")
    print("|---" * (5 + len(METHODS)) + "|")
    for n in (200, 1000) if options.simulated_repeats else ():
        for epsilon in (0.1, 0.3, 1.0):
            rows = (simulated(n, epsilon, s) for s in range(options.simulated_repeats))
            print(line(f"simulated, n = {n} | {epsilon:g}", rows), flush=True)
    for name in options.sets:
        for epsilon in (0.1, 0.3, 1.0):
            rows = (real(name, epsilon, s) for s in range(options.repeats))
            print(line(f"{name} | {epsilon:g}", rows), flush=True)


if __name__ == "__main__":
    main()
