"""Metrics of a model on private records: noisy, charged once, with intervals."""

from dpbayes_sklearn.metrics.intervals import CrossValidation, Evaluation, Score
from dpbayes_sklearn.metrics.plan import CalibrationCurve, ConfusionMatrix
from dpbayes_sklearn.metrics.scoring import private_cross_validate, private_score

__all__ = [
    "CalibrationCurve",
    "ConfusionMatrix",
    "CrossValidation",
    "Evaluation",
    "Score",
    "private_cross_validate",
    "private_score",
]
