"""Logistic regression beside naive Bayes, other libraries and no privacy: AUC and log loss.

Eight tables chose the rule of the ridge, the shares and the threshold n·ε/p = 100 of the advice;
seven others chose nothing. Targets of regressions are cut at a public value. Run ``python -m
benchmarks.accuracy.logistic [--repeats 10] [--tables adult chess] [--markdown FILE]``. With
``--peers interpret diffprivlib`` DP-EBM and diffprivlib run too, in environments of their own; they
are left out, with a message, where these cannot be made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.data import regression
from benchmarks.data.tables import TABLES
from benchmarks.peers.environment import diffprivlib_python, interpret_python
from dpbayes_sklearn import BayesianLogisticRegression, BayesianNaiveBayes, Interval, Schema
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS

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


def savers() -> Binary:
    """Return households of ``k401`` by whether they own anything; their income is a feature."""
    X, income, schema = regression.k401()
    domains = dict(schema.columns)
    del domains["nettfa"]
    features = X.drop(columns="nettfa").assign(inc=income)
    owns = (X["nettfa"].to_numpy() > 0).astype(int)
    return Binary(features, owns, Schema(domains | {"inc": Interval(0, 200)}))


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
    "k401, assets > 0": savers,
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
PEERS: dict[str, Callable[[], Path | None]] = {
    "interpret": interpret_python,
    "diffprivlib": diffprivlib_python,
}
ROOT = Path(__file__).parents[2]
Scores = list[tuple[str, float, float, float, float]]


def scores(load: Callable[[], Binary], seed: int, mechanism: str = "map") -> Scores:
    """Return (model, epsilon, AUC, log loss, n·ε/p) of one split, four fifths for training."""
    X, y, schema = load()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [len(y) * 8 // 10])
    found = []
    for name, model in MODELS.items():
        for epsilon in (*EPSILONS, np.inf) if name == "logistic" else EPSILONS:
            options = {"mechanism": mechanism} if name == "logistic" else {}
            fitted = model(epsilon, schema=schema, classes=[0, 1], **options)
            fitted.fit(X.iloc[train], y[train])
            p = np.clip(fitted.predict_proba(X.iloc[test])[:, 1], 1e-6, 1 - 1e-6)
            rho = parameters_ratio(fitted, len(train), epsilon) if name == "logistic" else 0.0
            auc, loss = roc_auc_score(y[test], p), log_loss(y[test], p)
            found.append((name, epsilon, float(auc), float(loss), rho))
    return found


def peer_scores(load: Callable[[], Binary], repeats: int, pythons: dict[str, Path]) -> Scores:
    """Return the same of other libraries, on the same splits, each by its own Python."""
    X, y, schema = load()
    numbers = {c: d for c, d in schema.columns.items() if isinstance(d, Interval)}
    others = {c: d for c, d in schema.columns.items() if c not in numbers}
    columns = [as_numbers(X[c].to_numpy(), d) for c, d in numbers.items()]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(
            file,
            numbers=np.array(columns).reshape(-1, len(y)).T,
            categories=np.array([d.encode(X[c].to_numpy()) for c, d in others.items()])
            .reshape(-1, len(y))
            .T.astype(int),
            y=y,
            bounds=[(d.low, d.high) for d in numbers.values()],
            sizes=np.array([d.n_values for d in others.values()], int),
            epsilons=EPSILONS,
        )
        found = []
        for library, python in pythons.items():
            command = [str(python), "-m", "benchmarks.peers.logistic", library, str(file)]
            done = subprocess.run(
                [*command, str(repeats)], cwd=ROOT, check=True, stdout=subprocess.PIPE
            )
            for epsilon, runs in json.loads(done.stdout).items():
                found += [(library, float(epsilon), auc, loss, 0.0) for auc, loss in runs]
    return found


def as_numbers(values: Any, domain: Interval) -> Any:
    """Return numbers within their bounds, in the middle if missing."""
    numbers = np.asarray(values, float)
    middle = (domain.low + domain.high) / 2
    return np.clip(np.where(np.isnan(numbers), middle, numbers), domain.low, domain.high)


def scale_losses(load: Callable[[], Binary], epsilon: float, seed: int) -> dict[str, float]:
    """Return log losses of one split for several ways to make probabilities of a released mode.

    *averaged* is the mean over the mode's noise in normal approximation (MacKay 1992), with even
    shares of levels and a mean of .1 of σ(1-σ) for the curvature, which is not released; *best* has
    the scale that is the best for the test records.
    """
    X, y, schema = load()
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) * 8 // 10])
    model = BayesianLogisticRegression(epsilon, schema=schema, classes=[0, 1], intervals=False)
    posterior = model.fit(X.iloc[train], y[train]).posterior_
    blocks = model._blocks(model.schema_)
    codes = blocks.encode(model._read_rows(X.iloc[test]))
    x = blocks.weights(codes, blocks.tables(posterior.nodes)) / WEIGHT_STEPS @ blocks.basis
    curvature = 0.1 * len(train) / blocks.per_parameter(np.array(blocks.sizes, float), 1.0)
    variance = x**2 @ (posterior.noise / (posterior.ridge + curvature) ** 2)
    z = x @ posterior.parameters

    def loss(z: Any) -> float:
        return float(np.mean(np.logaddexp(0, z) - y[test] * z))

    best = minimize_scalar(lambda t: loss(t * z), bounds=(0.1, 6), method="bounded")
    averaged = posterior.scale * z / np.sqrt(1 + np.pi / 8 * variance)
    found = {"mode": loss(z), "scaled": loss(posterior.scale * z), "averaged": loss(averaged)}
    return {**found, "best": float(best.fun), "rho": len(train) * epsilon / blocks.parameters}


def parameters_ratio(model: BayesianLogisticRegression, n: int, epsilon: float) -> float:
    """Return n·ε/p."""
    return n * epsilon / len(model.posterior_.parameters)


def summary(name: str, rows: Scores) -> str:
    """Return the lines of one table, means over splits."""
    frame = pd.DataFrame(rows, columns=["model", "epsilon", "auc", "loss", "rho"])
    mean = frame.groupby(["model", "epsilon"]).mean()
    spread = frame.groupby(["model", "epsilon"])["auc"].sem()

    def cell(model: str, epsilon: float) -> str:
        if (model, epsilon) not in mean.index:
            return "-"
        auc, loss, _ = mean.loc[(model, epsilon)]
        return f"{auc:.3f} / {loss:.3f}"

    lines = []
    for epsilon in EPSILONS:
        error = max(spread[(m, epsilon)] for m in MODELS)
        rho = mean.loc[("logistic", epsilon), "rho"]
        each = [cell(model, epsilon) for model in (*MODELS, *PEERS)]
        cells = [name, f"{epsilon:g}", f"{rho:.0f}", *each, cell("logistic", np.inf)]
        lines.append("| " + " | ".join([*cells, f"{error:.3f}"]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="random splits")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=[*CHOSEN_ON, *REPORTED_ON])
    parser.add_argument("--mechanism", default="map", help="of the logistic regression")
    parser.add_argument("--scales", action="store_true", help="ways to make probabilities")
    parser.add_argument("--peers", nargs="*", default=[], choices=[*PEERS], help="others to run")
    parser.add_argument("--markdown", type=Path, help="file that lines are appended to")
    options = parser.parse_args()
    pythons = {name: python for name in options.peers if (python := PEERS[name]()) is not None}
    for name in options.tables:
        load = {**CHOSEN_ON, **REPORTED_ON}[name]
        if options.scales:
            for epsilon in EPSILONS:
                losses = [scale_losses(load, epsilon, seed) for seed in range(options.repeats)]
                mean = pd.DataFrame(losses).mean()
                print(f"| {name} | {epsilon:g} | {mean['rho']:.0f} | ", end="")
                print(" | ".join(f"{mean[way]:.4f}" for way in mean.index[:-1]), "|", flush=True)
            continue
        seeds, how = range(options.repeats), options.mechanism
        runs = Parallel(options.jobs)(delayed(scores)(load, seed, how) for seed in seeds)
        runs.append(peer_scores(load, options.repeats, pythons))
        text = summary(name, [row for run in runs for row in run])
        print(text, flush=True)
        if options.markdown:
            with options.markdown.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
