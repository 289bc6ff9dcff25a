"""Logistic regression beside naive Bayes and no privacy: AUC and log loss at several epsilons.

Eight tables chose the rule of the ridge, the shares and the threshold n·ε/p = 100 of the advice;
six others chose nothing. Targets of regressions are cut at a public value. Run ``python -m
benchmarks.accuracy.logistic [--repeats 10] [--tables adult chess] [--markdown FILE]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.data import regression
from benchmarks.data.tables import TABLES
from dpbayes_sklearn import BayesianLogisticRegression, BayesianNaiveBayes, Schema

EPSILONS = (0.1, 0.3, 1.0, 3.0)


class Binary(NamedTuple):
    """Features, labels 0 and 1, and the public domains."""

    X: pd.DataFrame
    y: np.ndarray[Any, Any]
    schema: Schema


def above(name: str, limit: float) -> Callable[[], Binary]:
    """Return a loader of a regression table whose target is whether a value is exceeded."""

    def load() -> Binary:
        X, y, schema = getattr(regression, name)()
        return Binary(X, (y > limit).astype(int), Schema(dict(schema.columns)))

    return load


def one_of(name: str, *labels: str) -> Callable[[], Binary]:
    """Return a loader of a table whose target is whether the class is one of some labels."""

    def load() -> Binary:
        X, y, schema = TABLES[name]()
        chosen = pd.Series(y).astype(str).isin(labels).to_numpy().astype(int)
        return Binary(X, chosen, Schema(dict(schema.columns)))

    return load


CHOSEN_ON = {
    "adult": one_of("adult", ">50K"),
    "k401 > 40": above("k401", 40.0),
    "injury > 6.5": above("injury", 6.5),
    "meps > 6.7": above("meps", 6.7),
    "labsup > 5": above("labsup", 5.0),
    "spambase": one_of("spambase", "1"),
    "marketing > 5": one_of("marketing", "6", "7", "8", "9"),
    "chess": one_of("chess", "won"),
}
REPORTED_ON = {
    "twoyear > 2.3": above("twoyear", 2.3),
    "fertil2 > 2": above("fertil2", 2.0),
    "census2000 > 6.6": above("census2000", 6.6),
    "airfare > 5.1": above("airfare", 5.1),
    "letter, vowels": one_of("letter", *"AEIOU"),
    "contraceptive": one_of("contraceptive", "1"),
}
MODELS: dict[str, Callable[..., Any]] = {
    "naive Bayes": BayesianNaiveBayes,
    "logistic": BayesianLogisticRegression,
}


def scores(load: Callable[[], Binary], seed: int) -> list[tuple[str, float, float, float, float]]:
    """Return (model, epsilon, AUC, log loss, n·ε/p) of one split, four fifths for training."""
    X, y, schema = load()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [len(y) * 8 // 10])
    found = []
    for name, model in MODELS.items():
        for epsilon in (*EPSILONS, np.inf) if name == "logistic" else EPSILONS:
            fitted = model(epsilon, schema=schema, classes=[0, 1])
            fitted.fit(X.iloc[train], y[train])
            p = np.clip(fitted.predict_proba(X.iloc[test])[:, 1], 1e-6, 1 - 1e-6)
            rho = parameters_ratio(fitted, len(train), epsilon) if name == "logistic" else 0.0
            auc, loss = roc_auc_score(y[test], p), log_loss(y[test], p)
            found.append((name, epsilon, float(auc), float(loss), rho))
    return found


def parameters_ratio(model: BayesianLogisticRegression, n: int, epsilon: float) -> float:
    """Return n·ε/p."""
    return n * epsilon / len(model.posterior_.parameters)


def summary(name: str, rows: list[tuple[str, float, float, float, float]]) -> str:
    """Return the lines of one table, means over splits."""
    frame = pd.DataFrame(rows, columns=["model", "epsilon", "auc", "loss", "rho"])
    mean = frame.groupby(["model", "epsilon"]).mean()
    spread = frame.groupby(["model", "epsilon"])["auc"].sem()

    def cell(model: str, epsilon: float) -> str:
        auc, loss, _ = mean.loc[(model, epsilon)]
        return f"{auc:.3f} / {loss:.3f}"

    lines = []
    for epsilon in EPSILONS:
        error = max(spread[(m, epsilon)] for m in MODELS)
        rho = mean.loc[("logistic", epsilon), "rho"]
        lines.append(
            f"| {name} | {epsilon:g} | {rho:.0f} | {cell('naive Bayes', epsilon)} | "
            f"{cell('logistic', epsilon)} | {cell('logistic', np.inf)} | {error:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="random splits")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=[*CHOSEN_ON, *REPORTED_ON])
    parser.add_argument("--markdown", type=Path, help="file that lines are appended to")
    options = parser.parse_args()
    for name in options.tables:
        load = {**CHOSEN_ON, **REPORTED_ON}[name]
        runs = Parallel(options.jobs)(delayed(scores)(load, s) for s in range(options.repeats))
        text = summary(name, [row for run in runs for row in run])
        print(text, flush=True)
        if options.markdown:
            with options.markdown.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
