"""Measurements of one library, in its own environment; ``readme_table.py`` compares them.

Run ``python -m benchmarks.peers.measurements dpbayes_sklearn`` (or ``diffprivlib``, or
``interpret`` for its DP-EBM, where these are installed). All get the same data, splits, public
bounds and epsilon; delta is each library's default. Prints JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.estimator_checks import check_estimator

EPSILON = 1.0
REPEATS = 20
# Ranges as codebooks give them, rounded outward.
TUMOURS = (
    [6, 9, 40, 140, 0.05, 0, 0, 0, 0.1, 0.04],
    [30, 40, 190, 2600, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1],
)
PATIENTS = ([18, 1, 17, 60, 90, 40, 20, 2, 3, 55], [80, 2, 45, 135, 305, 245, 100, 10, 6.5, 125])


def per_feature(bounds):
    """Bounds as DP-EBM takes them: one pair for each feature number."""
    return {j: (float(low), float(high)) for j, (low, high) in enumerate(zip(*bounds, strict=True))}


def classifier(library, bounds, classes, **options):
    if library == "diffprivlib":
        from diffprivlib.models import GaussianNB

        return GaussianNB(bounds=bounds, **options)
    if library == "interpret":
        from interpret.privacy import DPExplainableBoostingClassifier

        return DPExplainableBoostingClassifier(privacy_bounds=per_feature(bounds), **options)
    from dpbayes_sklearn import BayesianNaiveBayes

    return BayesianNaiveBayes(bounds=bounds, classes=classes, **options)


def regression(library, bounds_X, bounds_y, **options):
    if library == "diffprivlib":
        from diffprivlib.models import LinearRegression

        return LinearRegression(bounds_X=bounds_X, bounds_y=bounds_y, **options)
    if library == "interpret":
        from interpret.privacy import DPExplainableBoostingRegressor

        return DPExplainableBoostingRegressor(
            privacy_bounds=per_feature(bounds_X),
            privacy_target_min=bounds_y[0],
            privacy_target_max=bounds_y[1],
            **options,
        )
    from dpbayes_sklearn import BayesianLinearRegression

    return BayesianLinearRegression(bounds_X=bounds_X, bounds_y=bounds_y, **options)


def accountant(library, epsilon):
    if library == "diffprivlib":
        from diffprivlib import BudgetAccountant

        return BudgetAccountant(epsilon, 0.0)
    from dpbayes_sklearn import BudgetAccountant

    return BudgetAccountant(epsilon)


def median_score(model, X, y):
    """Median score on the third of the records that is left out, over splits."""
    scores = []
    for seed in range(REPEATS):
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=seed)
        model.set_params(random_state=seed)
        scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    return float(np.median(scores))


def scores(library, epsilon=EPSILON):
    tumours, malignant = load_breast_cancer(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    patients, progression = load_diabetes(return_X_y=True, scaled=False)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 10))
    y = X @ np.linspace(-0.2, 0.2, 10) + rng.normal(0, 0.2, 20_000)
    low, high = (np.array(side, float) for side in PATIENTS)
    plain = {"epsilon": epsilon}
    found = {
        "breast cancer": median_score(
            classifier(library, TUMOURS, [0, 1], **plain), tumours[:, :10], malignant
        ),
        "diabetes": median_score(
            regression(library, (low, high), (20, 350), **plain), patients, progression
        ),
        "simulated": median_score(
            regression(library, (-np.ones(10), np.ones(10)), (-2, 2), **plain), X, y
        ),
    }
    if library != "interpret":  # which refuses more than two classes
        ten = classifier(library, (np.zeros(64), np.full(64, 16.0)), range(10), **plain)
        found["digits"] = median_score(ten, digits, digit)
    return found


def budget_after_cross_validation(library):
    """Epsilon that the ledger shows after ten folds of a tenth each; None if there is no ledger."""
    if library == "interpret":
        return None
    ledger = accountant(library, 10.0)
    rng = np.random.default_rng(0)
    X, y = rng.random((500, 2)), rng.integers(0, 2, 500)
    model = classifier(library, ([0, 0], [1, 1]), [0, 1], epsilon=0.1, accountant=ledger)
    cross_val_score(model, X, y, cv=10)
    return float(ledger.total()[0])


def failed_checks(library):
    """Numbers of scikit-learn's estimator checks that fail, and that were run."""
    if library == "diffprivlib":
        from diffprivlib.models import GaussianNB as Classifier
    elif library == "interpret":
        from interpret.privacy import DPExplainableBoostingClassifier as Classifier
    else:
        from dpbayes_sklearn import BayesianNaiveBayes as Classifier
    results = check_estimator(Classifier(), on_fail=None, on_skip=None)
    status = [result["status"] for result in results]
    return status.count("failed"), len(status) - status.count("skipped")


def seconds_of_a_fit(library):
    rng = np.random.default_rng(0)
    X, y = rng.random((200_000, 20)), rng.integers(0, 2, 200_000)
    model = classifier(library, (np.zeros(20), np.ones(20)), [0, 1], epsilon=EPSILON)
    times = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return float(np.median(times))


def main() -> None:
    library = sys.argv[1]
    warnings.simplefilter("ignore")
    module = __import__(library)
    failed, checks = failed_checks(library)
    found = {
        "version": module.__version__,
        "scikit-learn": sklearn.__version__,
        "failed checks": failed,
        "checks": checks,
        "budget": budget_after_cross_validation(library),
        "seconds": seconds_of_a_fit(library),
        "scores": scores(library),
    }
    if library == "dpbayes_sklearn":
        found["scores without privacy"] = scores(library, math.inf)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
