"""What is counted, and how far one record can move it."""

from dpbayes_sklearn.statistics.shards import ExactStatistics, merge

__all__ = ["ExactStatistics", "merge"]
