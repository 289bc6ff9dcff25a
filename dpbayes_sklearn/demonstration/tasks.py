"""What the demonstration runs: data that ship with scikit-learn, and what is public about them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.mechanisms import Laplace, Mechanism
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.schema import Categories, Interval, Schema

__all__ = ["Task", "tasks"]

# Everything here is public: ranges that the measurements can have, rounded outward, as a codebook
# would give them. The number of bins is declared too. Left to "auto", integers of a small range
# would be recognised by the dtype of their column, which would be a condition of the guarantee.
TUMOURS = Schema(
    {
        "radius": Interval(6, 30, bins=4),
        "texture": Interval(9, 40, bins=4),
        "perimeter": Interval(40, 190, bins=4),
        "area": Interval(140, 2600, bins=4),
        "smoothness": Interval(0.05, 0.17, bins=4),
        "compactness": Interval(0, 0.35, bins=4),
        "concavity": Interval(0, 0.43, bins=4),
        "concave points": Interval(0, 0.21, bins=4),
        "symmetry": Interval(0.1, 0.31, bins=4),
        "fractal dimension": Interval(0.04, 0.1, bins=4),
    },
    target=Categories(["malignant", "benign"]),
)
PATIENTS = Schema(
    {
        "body mass index": Interval(17, 45),
        "blood pressure": Interval(60, 135),
        "log triglycerides": Interval(3, 6.5),
    },
    target=Interval(20, 350),
)
DIGITS = Schema(
    {f"row {i + 1}, column {j + 1}": Interval(0, 16, bins=2) for i in range(4) for j in range(4)},
    target=Categories(range(10)),
)

OF_COUNTS = ("laplace", Laplace(noise="independent"), "fourier", "map", "sampler")


class Task(NamedTuple):
    """One predictor on one data set."""

    name: str
    title: str
    story: str
    estimator: Any
    X: Any
    y: Any
    cv: Any
    score: str
    column: str | None  # whose released table is drawn, for a classifier
    mechanisms: tuple[str | Mechanism, ...] = ("laplace", "fourier", "map", "sampler")


def tasks(repeats: int) -> list[Task]:
    """Return the tasks, each cross-validated on ``repeats`` random splits."""
    return [_tumours(repeats), _digits(repeats), _patients(repeats)]


def _tumours(repeats: int) -> Task:
    data = load_breast_cancer()
    return Task(
        "breast_tumours",
        "Naive Bayes: is a breast tumour malignant?",
        "569 tumours, ten measurements of cell nuclei, each divided into four bins.",
        BayesianNaiveBayes(schema=TUMOURS),
        data.data[:, :10],
        data.target_names[data.target],
        RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0),
        "accuracy",
        "radius",
        OF_COUNTS,
    )


def _digits(repeats: int) -> Task:
    pixels, digit = load_digits(return_X_y=True)
    tiles = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return Task(
        "digits",
        "Naive Bayes: which digit was written?",
        "1,797 scanned digits as sixteen grey tiles, each light or dark. With about 180 records in "
        "each of ten classes, accuracy falls quickly below epsilon = 1.",
        BayesianNaiveBayes(schema=DIGITS),
        tiles,
        digit,
        RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=0),
        "accuracy",
        None,
        OF_COUNTS,
    )


def _patients(repeats: int) -> Task:
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in ("bmi", "bp", "s5")]
    return Task(
        "diabetes",
        "Linear regression: how far will diabetes progress in a year?",
        "442 patients, three measurements. With so few records the noise is large: at small "
        "epsilon the model falls back to the mean of the target, and at epsilon = 0.1 that mean "
        "itself is uncertain (R² below 0).",
        BayesianLinearRegression(schema=PATIENTS),
        np.asarray(data.data)[:, columns],
        data.target,
        RepeatedKFold(n_splits=5, n_repeats=4 * repeats, random_state=0),
        "R²",
        None,
    )
