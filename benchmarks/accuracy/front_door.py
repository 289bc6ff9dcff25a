"""What ``BayesianClassifier`` chooses, beside the model that would have been better.

Every table is fitted by naive Bayes and by logistic regression; the regret is the AUC of the better
one less that of the one that public facts choose. The rule was chosen on every
other table by the alphabet, and is reported on the others.

Run ``python -m benchmarks.accuracy.front_door [--repeats 5]``; it prints Markdown.
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


def regrets(found: pd.DataFrame) -> pd.DataFrame:
    """Return, by table and epsilon, the AUC of both models and what the choice loses.

    The better model of a split is that of the other splits: their best is not the best by luck.
    """
    models = [BayesianNaiveBayes.__name__, BayesianLogisticRegression.__name__]
    groups = found.groupby(["table", "epsilon"])
    others = groups[models].transform("sum") - found[models]
    better = np.where(others[models[0]] >= others[models[1]], *(found[name] for name in models))
    chosen = np.where(found["chosen"] == models[0], *(found[name] for name in models))
    rows = found.assign(regret=better - chosen, logistic=found["chosen"] == models[1])
    return rows.groupby(["table", "epsilon"])[[*models, "logistic", "regret"]].mean().reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="random splits")
    options = parser.parse_args()
    rows = [row for name in TABLES for seed in range(options.repeats) for row in runs(name, seed)]
    table = regrets(pd.DataFrame(rows))
    names = sorted(table["table"].unique())
    table["chosen on"] = [names.index(name) % 2 == 0 for name in table["table"]]
    print("| table | ε | naive Bayes | logistic | chosen | regret |\n" + "|---" * 6 + "|")
    for row in table.itertuples(index=False):
        title = f"{row.table} (chosen on)" if row[-1] else row.table
        chosen = "logistic" if row.logistic > 0.5 else "naive Bayes"
        cells = f"{row[2]:.3f} | {row[3]:.3f} | {chosen} | {row.regret:+.3f}"
        print(f"| {title} | {row.epsilon:g} | {cells} |")
    for title, part in (
        ("chosen on", table[table["chosen on"]]),
        ("other", table[~table["chosen on"]]),
    ):
        print(f"\nMean regret on {title} tables: {part['regret'].mean():+.4f}.")


if __name__ == "__main__":
    main()
