"""What ``BayesianClassifier`` chooses, beside the model that would have been better.

Every table is fitted by naive Bayes and by logistic regression; the regret is the AUC of the better
one (over all splits) less that of the one that public facts choose. The rule was chosen on every
other table by the alphabet, and is reported on the others.

Run ``python -m benchmarks.accuracy.front_door [--repeats 5] [--csv FILE]``; it prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.accuracy.logistic import CHOSEN_ON, REPORTED_ON, Binary
from benchmarks.data.keel import RARE, SMALL, keel
from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    Categories,
    Schema,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0)
MOST = 20_000  # Records of a table that are used.


def _binary(name: str) -> Binary:
    X, y, schema = keel(name)
    second = schema.classes.values[1]
    return Binary(X, (y.astype(str) == str(second)).astype(int).to_numpy(), schema)


_SMALL = [name for name in SMALL if len(keel(name).schema.classes.values) == 2]
TABLES: dict[str, Callable[[], Binary]] = {
    **CHOSEN_ON,
    **REPORTED_ON,
    **{name: lambda name=name: _binary(name) for name in (*RARE, *_SMALL)},
}


def runs(name: str, seed: int) -> list[dict[str, Any]]:
    """Return AUC and log loss of both models at every epsilon, and which one is chosen."""
    X, y, schema = TABLES[name]()
    order = np.random.default_rng(seed).permutation(len(y))[:MOST]
    train, test = np.split(order, [len(order) * 7 // 10])
    if len({*y[train]}) < 2 or len({*y[test]}) < 2:
        return []
    public = {"schema": Schema(dict(schema.columns), Categories([0, 1]))}
    found = []
    for epsilon in EPSILONS:
        chosen = BayesianClassifier(epsilon, **public).model_for(len(train))
        row = {"table": name, "seed": seed, "epsilon": epsilon, "n": len(train)}
        row["chosen"] = type(chosen).__name__
        for model in (BayesianNaiveBayes, BayesianLogisticRegression):
            fitted = model(epsilon, random_state=seed, **public).fit(X.iloc[train], y[train])
            p = np.clip(fitted.predict_proba(X.iloc[test])[:, 1], 1e-6, 1 - 1e-6)
            row[model.__name__] = float(roc_auc_score(y[test], p))
            row[f"{model.__name__} log loss"] = float(log_loss(y[test], p))
        found.append(row)
    return found
