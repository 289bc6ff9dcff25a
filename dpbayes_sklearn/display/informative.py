"""Mutual information of each feature of naive Bayes with the class."""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.posteriors.adaptive.information import mutual_information

__all__ = ["informative_features"]

_DRAWS = 400


def informative_features(model: BayesianNaiveBayes, n_features: int) -> dict[str, FloatArray]:
    """Return posterior draws of I(feature; class) in nats, for the most informative features.

    They are chosen by ``feature_importances_`` and sorted by the mean of their draws.
    """
    names = [*model.schema_.columns]
    chosen = np.argsort(-model.feature_importances_, kind="stable")[:n_features]
    rng = np.random.default_rng(0)  # what is released may be looked at with any
    *tables, classes = model.posterior_.sample(rng, _DRAWS)
    draws = {
        names[j]: np.array(
            [mutual_information(*pair) for pair in zip(classes, tables[j], strict=True)]
        )
        for j in chosen
    }
    return dict(sorted(draws.items(), key=lambda item: -item[1].mean()))
