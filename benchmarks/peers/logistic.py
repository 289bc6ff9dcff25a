"""DP-EBM and diffprivlib's LogisticRegression on prepared tables, each in its own environment.

``python -m benchmarks.peers.logistic interpret data.npz 20`` (or ``diffprivlib``) is run by
``accuracy/logistic.py``. It reads numbers, codes of categories, labels 0 and 1, public bounds and
epsilons, and prints AUC and log loss of every split as JSON. Both get the same public domains:
DP-EBM categories as text and bounds of the numbers, delta = 1e-6; diffprivlib indicators and
numbers in [0, 1], and the norm that records with so many columns can have.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

DELTA = 1e-6


def boosting(data, epsilon, seed):
    from interpret.privacy import DPExplainableBoostingClassifier

    numbers, categories = data["numbers"], data["categories"].astype(str).astype(object)
    kinds = ["continuous"] * numbers.shape[1] + ["nominal"] * categories.shape[1]
    bounds = {j: (float(low), float(high)) for j, (low, high) in enumerate(data["bounds"])}
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=DELTA,
        feature_types=kinds,
        privacy_bounds=bounds,
        random_state=seed,
        n_jobs=1,
    )
    return model, np.column_stack([numbers.astype(object), categories])


def logistic(data, epsilon, seed):
    from diffprivlib.models import LogisticRegression

    low, high = data["bounds"].reshape(-1, 2).T
    columns = [(np.clip(data["numbers"], low, high) - low) / (high - low)]
    for codes, size in zip(data["categories"].T, data["sizes"], strict=True):
        columns.append(np.eye(size)[codes])
    norm = float(np.sqrt(data["numbers"].shape[1] + data["categories"].shape[1]))
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed)
    return model, np.column_stack(columns)


MAKERS = {"interpret": boosting, "diffprivlib": logistic}


def scores(data, make, epsilon, seed):
    y = data["y"]
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) * 8 // 10])
    model, X = make(data, epsilon, seed)
    p = np.clip(model.fit(X[train], y[train]).predict_proba(X[test])[:, 1], 1e-6, 1 - 1e-6)
    return float(roc_auc_score(y[test], p)), float(log_loss(y[test], p))


def main() -> None:
    library, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warnings.simplefilter("ignore")
    with np.load(path) as file:
        data = dict(file)
    found = {
        float(epsilon): [scores(data, MAKERS[library], float(epsilon), s) for s in range(repeats)]
        for epsilon in data["epsilons"]
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
