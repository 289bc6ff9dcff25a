"""Joint noise of all counts, or of all their Fourier coefficients, beside independent noise.

Accuracy of naive Bayes on the same splits for all methods: the experiment of Zhang, Rubinstein and
Dimitrakakis (2016) with 16 Boolean features, spambase with 57, and two tables whose features have
up to twelve values: mushroom and, with nine classes, marketing. The gain is that of the best joint
noise over the best independent one, both read by noise-aware inference, with its standard error
over splits.

Run ``python -m benchmarks.accuracy.joint_noise [--repeats 20]``; that takes about ten
minutes on two cores. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from benchmarks.data.classification import TrainTestSplit
from benchmarks.data.simulated import simulated_split
from benchmarks.data.tables import table_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.mechanisms import Fourier, Laplace

FloatArray = npt.NDArray[np.float64]

METHODS = {
    "laplace": Laplace(noise="independent"),
    "fourier": Fourier(noise="independent"),
    "laplace, joint": Laplace(noise="joint"),
    "fourier, joint": Fourier(noise="joint"),
}
INFERENCES = ("plug_in", "noise_aware")


def accuracies(split: TrainTestSplit, epsilon: float, seed: int) -> FloatArray:
    """Return the accuracy without privacy, then that of every method and inference."""
    X, y, X_test, y_test, public = split
    models = [BayesianNaiveBayes(np.inf, temperature=1, **public)]
    for mechanism in METHODS.values():
        for inference in INFERENCES:
            options = {"mechanism": mechanism, "inference": inference}
            options |= {"temperature": 1, "random_state": seed}
            models.append(BayesianNaiveBayes(epsilon, **options, **public))
    return np.array([model.fit(X, y).score(X_test, y_test) for model in models])


def simulated(n: int, epsilon: float, seed: int) -> FloatArray:
    """Return the accuracies on one draw of the paper's model."""
    return accuracies(simulated_split(n, seed), epsilon, seed)


def real(name: str, epsilon: float, seed: int) -> FloatArray:
    """Return the accuracies on one split of a public table, 70 % for training."""
    return accuracies(table_split(name, seed), epsilon, seed)


def line(label: str, results: Iterable[FloatArray]) -> str:
    """Format one row: accuracies, and the gain of joint noise with its standard error."""
    table = np.stack(list(results))
    mean = table.mean(axis=0)
    cells = [f"{mean[0]:.3f}", *(f"{a:.3f} / {b:.3f}" for a, b in mean[1:].reshape(-1, 2))]
    aware = table[:, 2::2]  # without privacy, then plug-in and noise-aware of every method
    independent, joint = (part[:, part.mean(axis=0).argmax()] for part in np.split(aware, 2, 1))
    gain = joint - independent
    cells.append(f"{gain.mean():+.3f} ±{gain.std(ddof=1) / np.sqrt(len(gain)):.3f}")
    return f"| {label} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table as its rows come in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="of tables; simulated: five times")
    parser.add_argument("--sets", nargs="*", default=["spambase", "mushroom", "marketing"])
    options = parser.parse_args()
    print("Accuracy, plug-in / noise-aware\n")
    print(f"| data | ε | without privacy | {' | '.join(METHODS)} | gain, noise-aware |")
    print("|---" * (4 + len(METHODS)) + "|")
    tasks = [(f"simulated, n = {n}", simulated, n, 5 * options.repeats) for n in (200, 1000)]
    tasks += [(name, real, name, options.repeats) for name in options.sets]
    with Parallel(n_jobs=-1) as parallel:
        for label, experiment, data, repeats in tasks:
            for epsilon in (0.1, 0.3, 1.0):
                rows = parallel(delayed(experiment)(data, epsilon, s) for s in range(repeats))
                print(line(f"{label} | {epsilon:g}", rows), flush=True)


if __name__ == "__main__":
    main()
