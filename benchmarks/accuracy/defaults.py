"""Naive Bayes with default parameters on fifteen tables: accuracy, log loss, calibration error.

Beside the default stand naive Bayes without privacy (that of scikit-learn), the papers' plug-in
Laplace with independent and with joint noise at the same epsilon, and a constant guess. Which
tables defaults were chosen on stands in ``benchmarks.data.tables``.

Run ``python -m benchmarks.accuracy.defaults [--repeats 20] [--tables adult,chess]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.metrics import log_loss

from benchmarks.data.tables import CHOSEN_ON, REPORTED_ON, table_split
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.mechanisms import Laplace

EPSILONS = (0.1, 0.3, 1.0, 3.0)
PLUG_IN = {"inference": "plug_in", "temperature": 1}
MODELS = {
    "default": {},
    "plug-in, independent": {**PLUG_IN, "mechanism": Laplace(noise="independent")},
    "plug-in, joint": {**PLUG_IN, "mechanism": Laplace(noise="joint")},
}
FloatArray = npt.NDArray[np.float64]


class Score(NamedTuple):
    """Accuracy, log loss and expected calibration error of the predicted class."""

    accuracy: float
    loss: float
    calibration: float

    def __str__(self) -> str:
        return f"{self.accuracy:.3f} / {self.loss:.3f} / {self.calibration:.3f}"


def calibration_error(confidence: FloatArray, right: npt.NDArray[np.bool_]) -> float:
    """Mean distance between confidence and accuracy over ten bins of confidence."""
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [abs((right[bins == b] - confidence[bins == b]).sum()) for b in range(10)]
    return float(np.sum(gaps) / len(right))


def score_of(probabilities: FloatArray, classes: FloatArray, y: FloatArray) -> Score:
    chosen = probabilities.argmax(axis=1)
    right = classes[chosen] == y
    error = calibration_error(probabilities[np.arange(len(y)), chosen], right)
    loss = log_loss(y, np.clip(probabilities, 1e-15, 1.0), labels=classes)
    return Score(float(right.mean()), float(loss), error)


def split_scores(name: str, seed: int, models: list[str]) -> dict[tuple[str, float], Score]:
    """Score every model at every epsilon on one split."""
    X, y, test_X, test_y, declared = table_split(name, seed)
    y, test_y = (np.asarray(labels).astype(str) for labels in (y, test_y))
    found = {}

    def add(title: str, epsilon: float, **options: object) -> None:
        model = BayesianNaiveBayes(epsilon, **declared, **options).fit(X, y)
        found[title, epsilon] = score_of(model.predict_proba(test_X), model.classes_, test_y)

    add("no privacy", np.inf, **PLUG_IN)
    classes, counts = np.unique(y, return_counts=True)
    guess = np.tile(counts / counts.sum(), (len(test_y), 1))
    found["constant guess", np.inf] = score_of(guess, classes, test_y)
    for epsilon in EPSILONS:
        for title in models:
            add(title, epsilon, **MODELS[title])
    return found


def mean_scores(
    name: str, repeats: int, jobs: int, models: list[str]
) -> dict[tuple[str, float], Score]:
    """Average over splits."""
    splits = Parallel(jobs)(delayed(split_scores)(name, seed, models) for seed in range(repeats))
    return {key: Score(*np.mean([split[key] for split in splits], axis=0)) for key in splits[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", default=",".join([*CHOSEN_ON, *REPORTED_ON]))
    parser.add_argument("--models", default=",".join(MODELS), help="separated by ','")
    arguments = parser.parse_args()
    models = [title for title in MODELS if title in arguments.models]
    heads = ("table", "no privacy", "constant guess", "ε", *models)
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for name in arguments.tables.split(","):
        scores = mean_scores(name, arguments.repeats, arguments.jobs, models)
        title = f"{name} (chosen on)" if name in CHOSEN_ON else name
        for epsilon in EPSILONS:
            cells = [str(scores[model, epsilon]) for model in models]
            first = (title, scores["no privacy", np.inf], scores["constant guess", np.inf])
            rest = first if epsilon == EPSILONS[0] else ("", "", "")
            print("| " + " | ".join([*map(str, rest), f"{epsilon:g}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
