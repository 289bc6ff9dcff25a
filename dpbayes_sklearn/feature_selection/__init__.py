"""Columns chosen privately, by how strongly they depend on the target."""

from dpbayes_sklearn.feature_selection.k_best import PrivateSelectKBest

__all__ = ["PrivateSelectKBest"]
