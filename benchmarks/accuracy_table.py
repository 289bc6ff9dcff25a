"""Naive Bayes on six public tables: what noise-aware inference saves, and diffprivlib beside it.

Regret is the accuracy that privacy costs: that of exact Bayes less that of the private model. The
aims are, at epsilon 1, a regret of at most half of plug-in Laplace's wherever that exceeds 0.01,
and an accuracy above diffprivlib's on every table. diffprivlib gets the columns as numbers (codes
of categories) and as indicators, and the better of both is shown.

Run ``python benchmarks/accuracy_table.py [--repeats 20] [--output figure.png]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from datasets import CLASSIFICATION
from joblib import Parallel, delayed
from noise_aware_accuracy import real
from regression_accuracy import foreign_python

from dpbayes_sklearn import Categories

EPSILONS = (0.1, 0.3, 1.0)
AIM = 1.0  # the epsilon that the aims are about
PEER_REPEATS = 5
FloatArray = npt.NDArray[np.float64]


class Row(NamedTuple):
    """Mean accuracies on one table at one epsilon."""

    name: str
    epsilon: float
    exact: float
    plug_in: float
    aware: float
    error: float  # standard error of aware - plug_in
    peer: float | None

    @property
    def ratio(self) -> float | None:
        """Regret in units of plug-in Laplace's, where that is above 0.01."""
        regret = self.exact - self.plug_in
        return (self.exact - self.aware) / regret if regret > 0.01 else None

    def cells(self) -> list[str]:
        halved = "" if self.ratio is None else _verdict(self.ratio <= 0.5)
        above = "" if self.peer is None else _verdict(self.aware > self.peer)
        return [
            self.name,
            f"{self.epsilon:g}",
            f"{self.exact:.3f}",
            f"{self.plug_in:.3f}",
            f"**{self.aware:.3f}** ±{self.error:.3f}",
            "–" if self.peer is None else f"{self.peer:.3f}",
            "–" if self.ratio is None else f"{self.ratio:.2f}",
            halved if self.epsilon == AIM else "",
            above if self.epsilon == AIM else "",
        ]


HEADS = (
    "table", "ε", "no privacy", "plug-in Laplace", "noise-aware (± over plug-in)", "diffprivlib",
    "regret ratio", "half the regret", "above diffprivlib",
)  # fmt: skip


def _verdict(met: bool) -> str:
    return "yes" if met else "**no**"


def rows_of(name: str, repeats: int, jobs: int, python: Path | None) -> list[Row]:
    """Return the rows of one table."""
    peers = [None] * len(EPSILONS) if python is None else peer_accuracies(python, name, repeats)
    rows = []
    for epsilon, peer in zip(EPSILONS, peers, strict=True):
        found = Parallel(n_jobs=jobs)(delayed(real)(name, epsilon, s) for s in range(repeats))
        accuracy = np.stack(found)[:, :, 0]
        gain = accuracy[:, 2] - accuracy[:, 1]
        error = float(gain.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else float("nan")
        rows.append(Row(name, epsilon, *map(float, accuracy.mean(axis=0)), error, peer))
    return rows


def peer_accuracies(python: Path, name: str, repeats: int) -> list[float]:
    """Return diffprivlib's mean accuracy at every epsilon, by its better encoding."""
    X, y, schema = CLASSIFICATION[name]()
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
        script = Path(__file__).parent / "peer_classifier.py"
        command = [str(python), str(script), str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return [max(both) for both in zip(*found.values(), strict=True)]


def _encoding(name: str, columns: list[tuple[FloatArray, float, float]]) -> dict[str, FloatArray]:
    values, low, high = zip(*columns, strict=True)
    # a constant column would have no variance to add noise to
    bounds = np.array([low, np.maximum(high, np.array(low) + 1e-6)], float)
    return {name: np.column_stack(values).astype(float), f"{name} bounds": bounds}


def summary(rows: list[Row]) -> str:
    """Return on how many tables the aims are met."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    above = [row.aware > row.peer for row in rows if row.peer is not None]
    return (
        f"At ε = {AIM:g} plug-in Laplace loses more than 0.01 on {len(ratios)} tables, and "
        f"noise-aware inference at most half of that on {sum(r <= 0.5 for r in ratios)} of them. "
        f"It is above diffprivlib on {sum(above)} of {len(above)}."
    )


def save_figure(rows: list[Row], path: str) -> None:
    """Draw the accuracies at the epsilon of the aims, a line of dots for each table."""
    from matplotlib.figure import Figure

    from dpbayes_sklearn.display._axes import COLOURS, tidy

    shown = [row for row in rows if row.epsilon == AIM]
    ax = tidy(Figure(figsize=(7, 0.9 + 0.45 * len(shown)), layout="constrained").subplots())
    y = np.arange(len(shown))
    ends = np.array([[row.aware, row.exact] for row in shown])
    ax.hlines(y, ends.min(axis=1), ends.max(axis=1), color="0.75", lw=1.5, zorder=1)
    marks = {"no privacy": ("exact", "|", "0.3"), "noise-aware": ("aware", "o", COLOURS[0])}
    marks |= {"plug-in Laplace": ("plug_in", "s", COLOURS[1])}
    marks |= {"diffprivlib": ("peer", "^", COLOURS[3])}
    for label, (field, marker, colour) in marks.items():
        values = [getattr(row, field) for row in shown]
        known = [(v, i) for i, v in enumerate(values) if v is not None]
        if known:
            ax.scatter(*zip(*known, strict=True), marker=marker, s=46, color=colour, label=label)
    ax.set_yticks(y, [row.name for row in shown])
    ax.invert_yaxis()
    ax.set_xlabel(f"accuracy at ε = {AIM:g}")
    ax.grid(axis="x", alpha=0.35, lw=0.7)
    ax.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ax.figure.savefig(path, dpi=130, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--sets", nargs="*", default=list(CLASSIFICATION))
    parser.add_argument("--output", help="file of the figure")
    options = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    python = foreign_python(cache / "dpbayes_sklearn" / "diffprivlib")
    print(f"Mean accuracy of {options.repeats} splits, seven tenths of the records for training.\n")
    print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
    rows = []
    for name in options.sets:
        for row in rows_of(name, options.repeats, options.jobs, python):
            print("| " + " | ".join(row.cells()) + " |", flush=True)
            rows.append(row)
    print("\n" + summary([row for row in rows if row.epsilon == AIM]))
    if python is None:
        print("\ndiffprivlib could not be installed: its column is empty.")
    if options.output:
        save_figure(rows, options.output)


if __name__ == "__main__":
    main()
