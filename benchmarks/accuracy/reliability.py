"""Reliability curves of naive Bayes at epsilon = 1: accuracy among records of like confidence.

The default, the papers' plug-in with independent noise, and naive Bayes without privacy, on the
six public tables, several splits together. Run ``python -m benchmarks.accuracy.reliability
[--repeats 5] [--out docs/benchmarks/figures/reliability.png]``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from benchmarks.accuracy.defaults import MODELS, PLUG_IN
from benchmarks.data.tables import PUBLIC, table_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.display import reliability_curve

FloatArray = npt.NDArray[np.float64]
CURVES: dict[str, tuple[float, dict[str, Any], str]] = {
    "default, ε = 1": (1.0, {}, "#2a6f97"),
    "plug-in, ε = 1": (1.0, MODELS["plug-in, independent"], "#d1495b"),
    "no privacy": (np.inf, PLUG_IN, "#5c6770"),
}
GROUPS = 12


def predictions(name: str, seed: int, title: str) -> tuple[FloatArray, FloatArray]:
    """Return the confidence of every test record, and whether the prediction was right."""
    X, y, test_X, test_y, declared = table_split(name, seed)
    epsilon, options, _ = CURVES[title]
    model = BayesianNaiveBayes(epsilon, **declared, **options).fit(X, np.asarray(y).astype(str))
    probabilities = model.predict_proba(test_X)
    right = model.classes_[probabilities.argmax(axis=1)] == np.asarray(test_y).astype(str)
    return probabilities.max(axis=1), right.astype(np.float64)


def main() -> None:
    """Draw one panel a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="random splits")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/figures/reliability.png"))
    options = parser.parse_args()
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9, 6), sharex=True, sharey=True)
    for ax, name in zip(axes.ravel(), PUBLIC, strict=True):
        ax.plot([0, 1], [0, 1], color="0.8", lw=1, zorder=0)
        for title, (_, _, colour) in CURVES.items():
            found = Parallel(options.jobs)(
                delayed(predictions)(name, seed, title) for seed in range(options.repeats)
            )
            confidence, right = map(np.concatenate, zip(*found, strict=True))
            stated, accuracy, _ = reliability_curve(confidence, right, GROUPS)
            ax.plot(stated, accuracy, "o-", ms=3, color=colour, label=title)
        ax.set(title=name, xlim=(0, 1.02), ylim=(0, 1.02))
    for ax in axes[1]:
        ax.set_xlabel("confidence")
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
