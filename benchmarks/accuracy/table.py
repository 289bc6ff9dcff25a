"""Naive Bayes on six public tables: the default, what its parts save, and diffprivlib.

Regret is the accuracy that privacy costs: that of exact Bayes less that of the private model. The
aims are, at epsilon 1, a regret of at most half of plug-in Laplace's wherever that exceeds 0.01,
and an accuracy above diffprivlib's on every table. diffprivlib gets the columns as numbers (codes
of categories) and as indicators, and the better of both is shown.

Run ``python -m benchmarks.accuracy.table [--repeats 20] [--output figure.png]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from benchmarks.accuracy.noise_aware import real
from benchmarks.accuracy.units import on_table
from benchmarks.data.tables import PUBLIC, TABLES
from benchmarks.peers.environment import diffprivlib_python
from dpbayes_sklearn import Categories

EPSILONS = (0.1, 0.3, 1.0)
AIM = 1.0  # the epsilon that the aims are about
PEER_REPEATS = 5
ROOT = Path(__file__).parents[2]
NOISES = ("independent", "joint")
FloatArray = npt.NDArray[np.float64]


class Row(NamedTuple):
    """Mean accuracies on one table at one epsilon."""

    name: str
    epsilon: float
    exact: float
    plug_in: float
    others: dict[str, float]  # by reading and noise
    peer: float | None

    @property
    def ratios(self) -> dict[str, float]:
        """Regrets in units of plug-in Laplace's, where that is above 0.01."""
        regret = self.exact - self.plug_in
        if regret <= 0.01:
            return {}
        return {name: (self.exact - value) / regret for name, value in self.others.items()}

    def cells(self) -> list[str]:
        default, *parts = self.others.values()
        accuracies = [self.exact, default, self.peer, self.plug_in, *parts]
        best = max(default, self.plug_in, *parts)
        marked = [f"**{a:.3f}**" if a == best else _number(a) for a in accuracies]
        return [self.name, f"{self.epsilon:g}", *marked]


METHODS = ("default", "noise-aware", "joint noise, plug-in", "joint noise, noise-aware")
HEADS = ("table", "ε", "no privacy", METHODS[0], "diffprivlib", "plug-in Laplace", *METHODS[1:])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def rows_of(name: str, repeats: int, jobs: int, python: Path | None) -> list[Row]:
    """Return the rows of one table."""
    peers = [None] * len(EPSILONS) if python is None else peer_accuracies(python, name, repeats)
    rows = []
    for epsilon, peer in zip(EPSILONS, peers, strict=True):
        splits = (delayed(real)(name, epsilon, s, NOISES) for s in range(repeats))
        accuracy = np.stack(Parallel(n_jobs=jobs)(splits))[:, :, 0].mean(axis=0)
        own = (delayed(on_table)(name, s, epsilon, "replace") for s in range(repeats))
        default = float(np.mean([found[0] for found in Parallel(n_jobs=jobs)(own)]))
        exact, plug_in, *others = map(float, accuracy)
        found = dict(zip(METHODS, [default, *others], strict=True))
        rows.append(Row(name, epsilon, exact, plug_in, found, peer))
    return rows


def peer_accuracies(python: Path, name: str, repeats: int) -> list[float]:
    """Return diffprivlib's mean accuracy at every epsilon, by its better encoding."""
    X, y, schema = TABLES[name]()
    codes, indicators = [], []
    for column, domain in schema.columns.items():
        values = X[column].to_numpy()
        if isinstance(domain, Categories):
            code = domain.encode(values)
            codes.append((code, 0, domain.n_values - 1))
            indicators += [(code == k, 0, 1) for k in range(domain.n_values)]
        else:
            codes.append((domain.clip(values), domain.low, domain.high))
            indicators.append(codes[-1])
    orders = [
        np.random.default_rng(s).permutation(len(y)) for s in range(min(repeats, PEER_REPEATS))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(
            path, y=schema.classes.encode(y.to_numpy()), orders=orders, epsilons=EPSILONS,
            **_encoding("codes", codes), **_encoding("indicators", indicators),
        )  # fmt: skip
        command = [str(python), "-m", "benchmarks.peers.classifier", str(path)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return [max(both) for both in zip(*found.values(), strict=True)]


def _encoding(name: str, columns: list[tuple[FloatArray, float, float]]) -> dict[str, FloatArray]:
    values, low, high = zip(*columns, strict=True)
    # a constant column would have no variance to add noise to
    bounds = np.array([low, np.maximum(high, np.array(low) + 1e-6)], float)
    return {name: np.column_stack(values).astype(float), f"{name} bounds": bounds}


def summary(rows: list[Row]) -> str:
    """Return on how many tables the aims are met."""
    ratios = [row.ratios for row in rows if row.ratios]
    compared = [row for row in rows if row.peer is not None]
    lines = [f"At ε = {AIM:g} plug-in Laplace loses more than 0.01 on {len(ratios)} tables."]
    for name in METHODS:
        halved = sum(found[name] <= 0.5 for found in ratios)
        mean = np.mean([found[name] for found in ratios]) if ratios else float("nan")
        above = sum(row.others[name] > (row.peer or 0.0) for row in compared)
        lines.append(
            f"- {name}: loses at most half of that on {halved} of them, {mean:.2f} of it on "
            f"average; above diffprivlib on {above} of {len(compared)}."
        )
    return "\n".join(lines)


def save_figure(rows: list[Row], path: str) -> None:
    """Draw the accuracies at the epsilon of the aims, a line of dots for each table."""
    from matplotlib.figure import Figure

    from dpbayes_sklearn._presenting import COLOURS, tidy

    shown = [row for row in rows if row.epsilon == AIM]
    ax = tidy(Figure(figsize=(7, 0.9 + 0.45 * len(shown)), layout="constrained").subplots())
    y = np.arange(len(shown))
    default = METHODS[0]
    ends = np.array([[row.others[default], row.exact] for row in shown])
    ax.hlines(y, ends.min(axis=1), ends.max(axis=1), color="0.75", lw=1.5, zorder=1)
    marks = {
        "no privacy": ([row.exact for row in shown], "|", "0.3"),
        default: ([row.others[default] for row in shown], "D", COLOURS[2]),
        METHODS[1]: ([row.others[METHODS[1]] for row in shown], "o", COLOURS[0]),
        "plug-in Laplace": ([row.plug_in for row in shown], "s", COLOURS[1]),
        "diffprivlib": ([row.peer for row in shown], "^", COLOURS[3]),
    }
    for label, (values, marker, colour) in marks.items():
        known = [(v, i) for i, v in enumerate(values) if v is not None]
        if known:
            ax.scatter(*zip(*known, strict=True), marker=marker, s=46, color=colour, label=label)
    ax.set_yticks(y, [row.name for row in shown])
    ax.invert_yaxis()
    ax.set_xlabel(f"accuracy at ε = {AIM:g}")
    ax.grid(axis="x", alpha=0.35, lw=0.7)
    ax.legend(
        frameon=False, ncols=5, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0)
    )
    ax.figure.savefig(path, dpi=130, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--sets", nargs="*", default=PUBLIC)
    parser.add_argument("--output", help="file of the figure")
    options = parser.parse_args()
    python = diffprivlib_python()
    print(f"Mean accuracy of {options.repeats} splits, seven tenths of the records for training.\n")
    print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
    rows = []
    for name in options.sets:
        for row in rows_of(name, options.repeats, options.jobs, python):
            print("| " + " | ".join(row.cells()) + " |", flush=True)
            rows.append(row)
    print("\n" + summary([row for row in rows if row.epsilon == AIM]))
    if options.output:
        save_figure(rows, options.output)


if __name__ == "__main__":
    main()
