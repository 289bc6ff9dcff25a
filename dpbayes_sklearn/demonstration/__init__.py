"""The demonstration: every mechanism of both predictors, on data that ship with scikit-learn."""

from dpbayes_sklearn.demonstration.console import main

__all__ = ["main"]
