"""Noise-aware inference beside plug-in, on the same releases of naive Bayes.

Both read the same noisy counts; only what is made of them differs. The first table is the
experiment of Zhang, Rubinstein and Dimitrakakis (2016): 16 Boolean features, class probability and
feature probabilities uniform. The second is six public tables, 70 % of the records for training.
Calibration error is the mean gap between confidence and accuracy over ten bins of confidence.

Run ``python -m benchmarks.accuracy.noise_aware [--repeats 200] [--real-repeats 20]``; that takes
about ten minutes on one core. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from benchmarks.data.simulated import simulated_split
from benchmarks.data.tables import PUBLIC, table_split
from dpbayes_sklearn import BayesianNaiveBayes, mechanisms

FloatArray = npt.NDArray[np.float64]

METHODS = ("non-private", "plug-in", "noise-aware")


OPTIONS = argparse.Namespace(alpha=1.0, budget_split=1.0)


def fitted(
    X: object,
    y: object,
    epsilon: float,
    seed: int,
    noises: Sequence[str] = ("independent",),
    **options: object,
) -> Iterator[BayesianNaiveBayes]:
    """Yield the exact model, and two readings of the same release for every kind of noise."""
    options |= {"alpha": OPTIONS.alpha, "temperature": 1}
    yield BayesianNaiveBayes(np.inf, inference="plug_in", **options).fit(X, y)
    for noise, inference in product(noises, ("plug_in", "noise_aware")):
        model = BayesianNaiveBayes(
            epsilon,
            inference=inference,
            random_state=seed,
            mechanism=mechanisms.Laplace(budget_split=OPTIONS.budget_split, noise=noise),
            **options,
        )
        yield model.fit(X, y)


def scores(model: BayesianNaiveBayes, X: object, y: npt.NDArray[np.object_]) -> list[float]:
    """Return accuracy, log loss and calibration error."""
    log_proba = model.predict_log_proba(X)
    true = np.searchsorted(model.classes_, y)
    right = log_proba.argmax(axis=1) == true
    confidence = np.exp(log_proba.max(axis=1))
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, confidence - right, minlength=10)
    log_loss = -np.maximum(log_proba[np.arange(len(true)), true], np.log(1e-15)).mean()
    return [right.mean(), log_loss, np.abs(gaps).sum() / len(true)]


def simulated(n: int, epsilon: float, seed: int) -> FloatArray:
    """Return the scores of the methods on one draw of the paper's model."""
    X, y, X_test, y_test, public = simulated_split(n, seed)
    return np.array([scores(m, X_test, y_test) for m in fitted(X, y, epsilon, seed, **public)])


def real(
    name: str, epsilon: float, seed: int, noises: Sequence[str] = ("independent",)
) -> FloatArray:
    """Return the scores of the methods on one split of a public table."""
    X, y, X_test, y_test, public = table_split(name, seed)
    models = fitted(X, y, epsilon, seed, noises, **public)
    return np.array([scores(m, X_test, y_test.to_numpy()) for m in models])


def line(label: str, results: Iterable[FloatArray]) -> str:
    """Format one row: accuracies, the gain with its standard error, loss and calibration."""
    table = np.stack(list(results))
    accuracy, log_loss, calibration = np.moveaxis(table.mean(axis=0), 1, 0)
    gain = table[:, 2, 0] - table[:, 1, 0]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    regret = accuracy[0] - accuracy
    ratio = f"{regret[2] / regret[1]:5.2f}" if regret[1] > 0.01 else "    -"
    columns = (
        " ".join(f"{a:.3f}" for a in accuracy),
        f"{gain.mean():+.3f} ±{error:.3f}",
        ratio,
        " ".join(f"{v:6.3f}" for v in log_loss),
        " ".join(f"{v:.3f}" for v in calibration),
    )
    return f"| {label} | " + " | ".join(columns) + " |"


def table(title: str, rows: Iterable[str]) -> None:
    """Print a table as its rows come in; three numbers are for the three methods in order."""
    print(f"\n{title}; three numbers: {', '.join(METHODS)}\n")
    print(
        "| data | ε | accuracy | gain over plug-in | regret ratio | log loss | calibration error |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(row, flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--real-repeats", type=int, default=20)
    parser.add_argument("--sets", nargs="*", default=PUBLIC)
    parser.add_argument("--alpha", type=float, default=OPTIONS.alpha)
    parser.add_argument("--budget-split", type=float, default=OPTIONS.budget_split)
    options = parser.parse_args(namespace=OPTIONS)
    table(
        f"Simulated, {options.repeats} repeats",
        (
            line(
                f"n = {n} | {epsilon:g}", (simulated(n, epsilon, s) for s in range(options.repeats))
            )
            for n in (50, 200, 1000)
            for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0)
            if options.repeats
        ),
    )
    table(
        f"Public tables, {options.real_repeats} repeats",
        (
            line(
                f"{name} | {epsilon:g}",
                (real(name, epsilon, s) for s in range(options.real_repeats)),
            )
            for name in options.sets
            for epsilon in (0.1, 0.3, 1.0)
        ),
    )


if __name__ == "__main__":
    main()
