"""Sufficient statistics and their sensitivities."""

from dpbayes_sklearn.statistics.shards import ExactStatistics, merge

__all__ = ["ExactStatistics", "merge"]
