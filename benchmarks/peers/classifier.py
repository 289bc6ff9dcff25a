"""diffprivlib's naive Bayes on prepared data; run by ``accuracy/table.py`` in its own environment.

``python -m benchmarks.peers.classifier data.npz`` reads several encodings of the same records,
bounds, splits and epsilons, and prints the mean accuracy of every encoding and epsilon as JSON.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import GaussianNB


def mean_accuracy(data, encoding: str, epsilon: float) -> float:
    X, y, bounds = data[encoding], data["y"], tuple(data[f"{encoding} bounds"])
    found = []
    for seed, order in enumerate(data["orders"]):
        train, test = np.split(order, [len(y) * 7 // 10])
        model = GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed)
        found.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    return float(np.mean(found))


def main() -> None:
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as file:
        data = dict(file)
    found = {
        encoding: [mean_accuracy(data, encoding, epsilon) for epsilon in data["epsilons"]]
        for encoding in ("codes", "indicators")
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
