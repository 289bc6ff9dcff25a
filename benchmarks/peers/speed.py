"""Fit and predict of diffprivlib, and one pass over memory; run by its own environment.

``python -m benchmarks.peers.speed GaussianNB 1000000 100`` prints wall-clock and processor
seconds of each as JSON.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib import models

from benchmarks.speed.clock import in_turns, one_pass


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
    calls = {"fit": lambda: model.fit(X, y), "predict": lambda: model.predict(X)}
    print(json.dumps(in_turns({"floor": one_pass(X), **calls}, repeats=1)))


if __name__ == "__main__":
    main()
