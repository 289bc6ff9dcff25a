"""The audit pointed at InterpretML's DP-EBM and OpenDP's regression, in an environment of its own.

``make audit-peers`` builds the environment and runs this after :mod:`benchmarks.peers.audit`. Each
row is a pair of data sets that differ in one record, at a claimed epsilon of 1, and the lower bound
that :func:`dpbayes_sklearn.audit.audit` finds; the same data twice are the control. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.base import BaseEstimator

from dpbayes_sklearn.audit import audit

DELTA = 1e-6  # Of DP-EBM; Theil-Sen has none.
PEOPLE = 100
CHANGES = 2  # Records that come or go where one is replaced.


class TheilSen(BaseEstimator):
    """OpenDP's private regression of one column, whose noise is scaled to epsilon = 1."""

    def fit(self, X: Any, y: Any) -> TheilSen:
        dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
        one = self._model(1.0).measurement.map(CHANGES)
        found = self._model(one).fit(X, y)
        self.coefficients_ = np.array([*found.coef_, found.intercept_])
        return self

    @staticmethod
    def _model(scale: float) -> Any:
        given = {"x_bounds": [(0.0, 10.0)], "y_bounds": (0.0, 10.0), "scale": scale}
        return dp.sklearn.linear_model.LinearRegression(dp.max_divergence(), **given)


def ebm(kind: str, **options: Any) -> Any:
    return DPExplainableBoostingClassifier(
        epsilon=1.0, delta=DELTA, feature_types=[kind], max_rounds=20, n_jobs=1, **options
    )


def audits(runs: int) -> Iterator[tuple[str, float]]:
    """Yield what was asked, and the lower bound."""
    many, few = ebm("continuous", privacy_bounds={0: (0.0, 10.0)}), ebm("nominal")
    X, y = np.full((PEOPLE, 1), 5.0), np.arange(PEOPLE) % 2
    label, value = y.copy(), X.copy()
    label[0], value[0] = 1, 0.0

    def scores(model: Any) -> Any:
        return model.decision_function(np.array([[0.0], [5.0], [10.0]]))

    def classes(model: Any) -> Any:
        return np.array([len(model.classes_)])

    def categories(model: Any) -> Any:
        return np.array(["rare" in str(model.bins_)])

    def told(*pair: Any, **options: Any) -> float:
        return max(audit(*pair, runs, verbose=False, **options).epsilon, 0.0)

    given = {"delta": DELTA, "observe": scores}
    yield "DP-EBM, the same data twice", told(many, X, y, X, y, **given)
    yield "DP-EBM, one label changed", told(many, X, y, X, label, **given)
    yield "DP-EBM, one value changed", told(many, X, y, value, y, **given)
    words, rare = np.full((PEOPLE, 1), "often", object), np.full((PEOPLE, 1), "often", object)
    rare[0] = "rare"
    yield (
        "DP-EBM, a category that one record has",
        told(few, words, y, rare, y, delta=DELTA, observe=categories),
    )
    alone = np.zeros(PEOPLE, int)
    alone[0] = 1
    yield (
        "DP-EBM, the last of a class changed",
        told(many, X, alone, X, np.zeros(PEOPLE, int), delta=DELTA, observe=classes),
    )
    line = np.linspace(0.0, 10.0, 20)[:, None]
    target, other = line[:, 0].copy(), line[:, 0].copy()
    other[-1] = 0.0
    yield "OpenDP Theil-Sen, the same data twice", told(TheilSen(), line, target, line, target)
    yield "OpenDP Theil-Sen, one target changed", told(TheilSen(), line, target, line, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["| what, at epsilon 1 | found |", "|---|---|"]
    for what, least in audits(options.runs):
        lines.append(f"| {what} | epsilon ≥ {least:.2f} |")
        print(lines[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("interpret-core", "opendp"))
    lines += ["", f"{versions}; {options.runs:,} runs a side, 99.9 % confidence.", ""]
    if options.write:
        options.write.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
