"""The mutual information of a feature and the class in released tables."""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["mutual_information"]


def mutual_information(class_probabilities: FloatArray, rows: FloatArray) -> float:
    r"""Return :math:`\sum_c \pi_c \sum_k \theta_{ck} \log(\theta_{ck}/\bar\theta_k)` in nats.

    >>> round(mutual_information(np.array([0.5, 0.5]), np.eye(2)), 4)  # log 2
    0.6931
    """
    pooled = np.broadcast_to(class_probabilities @ rows, rows.shape)
    seen = rows > 0
    log = np.zeros_like(rows)
    np.log(rows / np.where(pooled > 0, pooled, 1.0), out=log, where=seen)
    return max(float(class_probabilities @ (rows * log).sum(axis=1)), 0.0)
