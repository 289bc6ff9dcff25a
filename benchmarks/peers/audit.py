"""The audit pointed at another library: diffprivlib 0.6.6, in an environment of its own.

``make audit-peers`` builds that environment and runs this. Three questions are asked of its
GaussianNB and LinearRegression, each at epsilon 1 on a pair of data sets of the same size that
differ in one record: which epsilon does :func:`dpbayes_sklearn.audit.audit` find, what tells the
two apart when all noise is frozen (:func:`benchmarks.audit.tools.replay`), and which epsilons do
the mechanisms that are called add up to. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import diffprivlib
import numpy as np
import sklearn
from diffprivlib import BudgetAccountant, mechanisms
from diffprivlib.models import GaussianNB, LinearRegression

from benchmarks.audit.tools import replay
from dpbayes_sklearn.audit import audit

NOISE = [
    (cls, "randomise")
    for cls in vars(mechanisms).values()
    if isinstance(cls, type) and "randomise" in vars(cls)
]
# what GaussianNB calls; what these call in turn must not be frozen as well
OUTERMOST = [
    (cls, "randomise")
    for cls in (
        mechanisms.GeometricTruncated,
        mechanisms.LaplaceTruncated,
        mechanisms.LaplaceBoundedDomain,
    )
]


def counts_and_sums(model: Any) -> Any:
    """Return what GaussianNB publishes: counts, sums (count times mean) and variances."""
    count = model.class_count_[:, None]
    return np.concatenate([count.ravel(), (count * model.theta_).ravel(), model.var_.ravel()])


def label_changed() -> tuple[Any, ...]:
    """Return 100 people of whom one changes class; all have the value 105."""
    X, y = np.full((100, 1), 105.0), np.arange(100) % 2
    other = y.copy()
    other[0] = 1
    return X, y, X, other


def value_changed() -> tuple[Any, ...]:
    """Return two people of whom one goes from 1 to 100; all targets are 0."""
    X, y = np.array([[1.0], [0.0]]), np.zeros(2)
    return X, y, np.array([[100.0], [0.0]]), y


def last_of_a_class() -> tuple[Any, ...]:
    """Return ten people of whom the only member of class 1 changes to class 0."""
    X, y = np.full((10, 1), 5.0), np.zeros(10, int)
    other = y.copy()
    other[0] = 1
    return X, other, X, y


def epsilon_called(model: Any, X: Any, y: Any) -> float:
    """Return the sum of the epsilons of all mechanisms that a fit calls."""
    spent, inside = [], []

    def watched(randomise: Any) -> Any:
        def called(self: Any, value: Any) -> Any:
            if not inside:  # a mechanism may use another for its noise
                spent.append(self.epsilon)
            inside.append(self)
            try:
                return randomise(self, value)
            finally:
                inside.pop()

        return called

    patches = [mock.patch.object(cls, name, watched(getattr(cls, name))) for cls, name in NOISE]
    for patch in patches:
        patch.start()
    try:
        model.fit(X, y)
    finally:
        for patch in patches:
            patch.stop()
    return float(sum(spent))


def audits(runs: int) -> Iterator[tuple[str, str, str]]:
    naive = GaussianNB(epsilon=1.0, bounds=(100, 110))
    X, y, *_ = label_changed()
    bound = audit(naive, X, y, X, y, runs, observe=counts_and_sums)
    yield "GaussianNB, the same data twice", "audit", f"epsilon ≥ {max(bound.epsilon, 0.0):.2f}"
    bound = audit(naive, *label_changed(), runs, observe=counts_and_sums)
    yield (
        "GaussianNB, one label changed, bounds (100, 110)",
        "audit",
        f"epsilon ≥ {bound.epsilon:.2f}",
    )
    linear = LinearRegression(epsilon=1.0, bounds_X=(0, 100), bounds_y=(-1, 1), fit_intercept=False)
    bound = audit(linear, *value_changed(), runs)
    what = "LinearRegression without intercept, one value changed, bounds_X (0, 100)"
    yield what, "audit", f"epsilon ≥ {bound.epsilon:.2f}"


def replays() -> Iterator[tuple[str, str, str]]:
    model, (X, y, X2, y2) = GaussianNB(epsilon=1.0, bounds=(0, 10)), last_of_a_class()
    for what, second in (
        ("the same data twice", (X, y)),
        ("the last of a class changed", (X2, y2)),
    ):
        found = replay(model, X, y, *second, freeze=OUTERMOST)
        differs = ", ".join(text.split(" ")[0].strip(":") for text in found.divergences)
        yield f"GaussianNB, {what}", "replay", f"different: {differs or 'nothing'}"


def budgets() -> Iterator[tuple[str, str, str]]:
    rng = np.random.default_rng(0)
    for d in (1, 2, 4):
        model = LinearRegression(
            epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), accountant=BudgetAccountant()
        )
        total = epsilon_called(model, rng.random((50, d)), rng.random(50))
        charged = model.accountant.total()[0]
        what = f"LinearRegression, {d} feature{'s' * (d > 1)}"
        yield what, "budget", f"mechanisms use {total:.2f}, accountant says {charged:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [*audits(options.runs), *replays(), *budgets()]
    lines = ["| what, at epsilon 1 | asked by | found |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    versions = f"diffprivlib {diffprivlib.__version__}, scikit-learn {sklearn.__version__}"
    lines += ["", f"{versions}; {options.runs:,} runs a side, 99.9 % confidence.", ""]
    print("\n".join(lines))
    if options.write:
        options.write.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
