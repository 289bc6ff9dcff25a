"""Fit and predict of diffprivlib as ratios to one pass over memory; run by its own environment.

``python -m benchmarks.peers.speed GaussianNB 1000000 100`` prints two numbers.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from diffprivlib import models


def seconds(call: object) -> float:
    start = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - start


def main() -> None:
    name, rows, features = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(0)
    X = rng.random((rows, features))
    if name == "GaussianNB":
        y, model = rng.integers(0, 2, rows), models.GaussianNB(bounds=(0, 1))
    else:
        y = X.mean(axis=1)
        model = models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))
    warnings.simplefilter("ignore")
    floor = min(seconds(X.sum) for _ in range(3))
    fit = seconds(lambda: model.fit(X, y))
    print(json.dumps([fit / floor, seconds(lambda: model.predict(X)) / floor]))


if __name__ == "__main__":
    main()
