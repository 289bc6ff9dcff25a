"""The demonstration: every mechanism on data that ship with scikit-learn.

``python -m dpbayes_sklearn --output folder`` prints a table of scores for each predictor and
writes the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import KFold, RepeatedStratifiedKFold

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.display import PrivacyUtilityDisplay

# Ranges of the measurements as their codebooks give them, rounded outward: public knowledge.
TUMOURS = Schema(
    {
        "radius": Interval(6, 30),
        "texture": Interval(9, 40),
        "perimeter": Interval(40, 190),
        "area": Interval(140, 2600),
        "smoothness": Interval(0.05, 0.17),
        "compactness": Interval(0, 0.35),
        "concavity": Interval(0, 0.43),
        "concave points": Interval(0, 0.21),
        "symmetry": Interval(0.1, 0.31),
        "fractal dimension": Interval(0.04, 0.1),
    },
    target=Categories([0, 1]),
)
DIABETES = Schema(
    {
        "age": Interval(18, 80),
        "sex": Categories([1, 2]),
        "body mass index": Interval(17, 45),
        "blood pressure": Interval(60, 135),
        "cholesterol": Interval(90, 305),
        "low-density lipoproteins": Interval(40, 245),
        "high-density lipoproteins": Interval(20, 100),
        "cholesterol ratio": Interval(2, 10),
        "log triglycerides": Interval(3, 6.5),
        "blood sugar": Interval(55, 125),
    },
    target=Interval(20, 350),
)


class Task(NamedTuple):
    """One predictor on one data set."""

    title: str
    estimator: Any
    X: Any
    y: Any
    cv: Any
    ylabel: str


def tasks(repeats: int) -> list[Task]:
    """Return what the demonstration runs."""
    tumours, malignant = load_breast_cancer(return_X_y=True)
    patients, progression = load_diabetes(return_X_y=True, scaled=False)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    return [
        Task(
            "Naive Bayes: breast tumours (569 records, 10 features)",
            BayesianNaiveBayes(schema=TUMOURS),
            tumours[:, :10],
            malignant,
            folds,
            "accuracy",
        ),
        Task(
            "Linear regression: progression of diabetes (442 records, 10 features)",
            BayesianLinearRegression(schema=DIABETES),
            patients,
            progression,
            KFold(5, shuffle=True, random_state=0),
            "R²",
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dpbayes_sklearn", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo_output"), help="folder to fill")
    parser.add_argument("--repeats", type=int, default=4, help="repeats of the cross-validation")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for task in tasks(options.repeats):
        print(f"\n{task.title}: {task.ylabel} in cross-validation")
        display = PrivacyUtilityDisplay.from_estimator(
            task.estimator, task.X, task.y, cv=task.cv, verbose=sys.stderr.isatty()
        )
        print(display.table())
        model = task.estimator.fit(task.X, task.y)
        print(f"A model fitted with the defaults is {model.guarantee_}")
        name = task.title.partition(":")[0].lower().replace(" ", "_")
        (options.output / f"{name}.txt").write_text(display.table() + "\n", encoding="utf-8")
        _save_figure(display, task, options.output / f"{name}.png")
    return 0


def _save_figure(display: PrivacyUtilityDisplay, task: Task, path: Path) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("No figure: install matplotlib with pip install 'dpbayes_sklearn[plot]'.")
        return
    plt.switch_backend("Agg")  # no screen is needed
    figure, ax = plt.subplots()
    display.plot(ax, ylabel=task.ylabel)
    ax.set_title(task.title, fontsize=10)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    print(f"Figure: {path}")


if __name__ == "__main__":
    sys.exit(main())
