"""Units of privacy, and models of few declared values, that many layers audit."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def person(max_records: int = 2, **options: Any) -> PrivacyUnit:
    """Return a person with so many records; whose they are need not be told to a fit."""
    return PrivacyUnit("person", max_records=max_records, by_construction=True, **options)


RECORD, FEATURE = PrivacyUnit(), PrivacyUnit("feature")
ADDED, PERSON = PrivacyUnit("record", neighbours="add_remove"), PrivacyUnit("person", max_records=2)
# A person with two records who is there or not, as a record of ADDED is.
THERE = PrivacyUnit("person", max_records=2, neighbours="add_remove")
UNITS = (ADDED, PERSON, THERE)

X = np.tile([[0, 1], [1, 0], [1, 1]], (20, 1))
Y = np.array([0, 1, 1] * 20)


def naive_bayes(epsilon: float = 1.0, **options: Any) -> BayesianNaiveBayes:
    """Return naive Bayes for two classes and features of two values."""
    declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    return BayesianNaiveBayes(epsilon, **{**declared, **options})


def line(epsilon: float = 1.0, **options: Any) -> BayesianLinearRegression:
    """Return a linear regression of numbers from 0 to 1."""
    return BayesianLinearRegression(epsilon, **{"bounds_X": (0, 1), "bounds_y": (0, 1), **options})
