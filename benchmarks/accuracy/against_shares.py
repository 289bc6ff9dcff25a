"""Naive Bayes with default parameters, never worse than class shares: rare classes, small tables.

Log loss of the default, of ``temperature=1``, and of the class shares that the default released, on
tables with a rare class or many columns, on small tables with n times epsilon below 500, and on
simulated tables of which the dependence of the columns is known. Rules were chosen on every other
table, marked; the number in brackets is the worst split's loss less that of its class shares.

Run ``python -m benchmarks.accuracy.against_shares [--repeats 5] [--group rare]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.data.classification import TrainTestSplit
from benchmarks.data.keel import RARE, SMALL, chosen_on, keel
from dpbayes_sklearn import BayesianNaiveBayes

SIMULATED = {
    **{f"copies of one cause, d = {d}": ("copies", d) for d in (5, 10, 20, 40, 80)},
    **{f"blocks of four, d = {d}": ("blocks", d) for d in (8, 40)},
    **{f"a chain, d = {d}": ("chain", d) for d in (12, 40)},
    **{f"independent, d = {d}": ("independent", d) for d in (10, 40)},
}
"""Boolean columns whose dependence given the class differs."""
REPEATED = {"60 copies of one cause, 4 % in a class": ("rare copies", 60)}
"""Of these all records are used: what is clipped when a temperature is chosen matters here."""


def simulated(kind: str, d: int, seed: int, n: int = 8000) -> TrainTestSplit:
    """Return records of two classes with d Boolean columns."""
    rng = np.random.default_rng(seed)
    if kind == "rare copies":
        y = rng.random(n) < 0.04
        cause = np.where(rng.random(n) < 0.8, y, rng.random(n) < 0.1)
        return _split(cause[:, None] ^ (rng.random((n, d)) < 0.05), y)
    y = rng.random(n) < 0.5
    right = {"copies": 1, "blocks": d // 4, "chain": 1, "independent": d}[kind]
    causes = y[:, None] ^ (rng.random((n, right)) < (0.25 if right == 1 else 0.4))
    X = np.repeat(causes, d // right, axis=1)
    if kind == "chain":
        X = np.logical_xor.accumulate(np.hstack([X[:, :1], rng.random((n, d - 1)) < 0.05]), axis=1)
    elif kind != "independent":
        X = X ^ (rng.random(X.shape) < 0.1)
    return _split(X, y)


def _split(X: np.ndarray, y: np.ndarray) -> TrainTestSplit:
    cut, classes = len(y) * 7 // 10, y.astype(int).astype(str)
    declared = {"bounds": (0, 1), "n_bins": 2, "classes": ["0", "1"]}
    values = X.astype(int)
    return TrainTestSplit(values[:cut], classes[:cut], values[cut:], classes[cut:], declared)


MOST = 2500  # Records that predictions are tested with.
GROUPS = ("rare", "small", "simulated", "repeated")


def cases(group: str) -> Iterator[tuple[str, float, float]]:
    """Yield the title of a table, epsilon, and the largest number of records times epsilon."""
    if group == "rare":
        yield from ((name, epsilon, np.inf) for name in RARE for epsilon in (0.1, 0.3, 1.0, 3.0))
    if group == "repeated":
        yield from ((name, epsilon, np.inf) for name in REPEATED for epsilon in (1.0, 3.0, 10.0))
    names = {"small": SMALL, "simulated": tuple(SIMULATED)}.get(group, ())
    yield from ((name, epsilon, 490.0) for name in names for epsilon in (0.3, 1.0, 3.0))


def split_of(name: str, seed: int) -> TrainTestSplit:
    """Return a random split, seven tenths for training."""
    if name in SIMULATED | REPEATED:
        return simulated(*(SIMULATED | REPEATED)[name], seed)
    X, y, schema = keel(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [len(y) * 7 // 10])
    y = y.astype(str)
    public = {"schema": schema}
    return TrainTestSplit(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], public)


def losses(name: str, epsilon: float, most: float, seed: int) -> tuple[float, float, float]:
    """Return the log loss of the default, of temperature 1, and of the released class shares."""
    X, y, test_X, test_y, public = split_of(name, seed)
    few = np.random.default_rng(seed).permutation(len(y))[: int(min(len(y), most / epsilon))]
    X, y = (X.iloc[few], y.iloc[few]) if hasattr(X, "iloc") else (X[few], y[few])
    fits = [
        BayesianNaiveBayes(epsilon, temperature=t, random_state=seed, **public).fit(X, y)
        for t in ("auto", 1)
    ]
    labels, test_y = fits[0].classes_.astype(str), np.asarray(test_y)[:MOST].astype(str)
    shares = np.tile(fits[0].class_prior_, (len(test_y), 1))
    guesses = [*(fit.predict_proba(test_X[:MOST]) for fit in fits), shares]
    default, plain, constant = (
        float(log_loss(test_y, np.clip(p, 1e-15, 1), labels=labels)) for p in guesses
    )
    return default, plain, constant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="random splits")
    parser.add_argument("--group", choices=GROUPS, action="append")
    options = parser.parse_args()
    for group in options.group or GROUPS:
        names = {"rare": RARE, "small": SMALL}.get(group, tuple(SIMULATED))
        print(f"\n| {group} | ε | default (worst) | temperature 1 | class shares |")
        print("|---" * 5 + "|")
        for name, epsilon, most in cases(group):
            found = np.array([losses(name, epsilon, most, s) for s in range(options.repeats)])
            worst, mean = (found[:, 0] - found[:, 2]).max(), found.mean(axis=0)
            chosen = group != "repeated" and chosen_on(name, names)
            title = f"{name} (chosen on)" if chosen else name
            cells = f"{mean[0]:.3f} ({worst:+.3f}) | {mean[1]:.3f} | {mean[2]:.3f}"
            print(f"| {title} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
