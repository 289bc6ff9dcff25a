"""Predictions from log p(x, c), a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import Codes, Encoder
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.data.table import Table

__all__ = ["RowFunction", "answer_by_row", "log_proba", "log_sum", "most_probable", "proba"]

RowFunction = Callable[[FloatArray], npt.NDArray[Any]]
"""A function of log p(x, c), one row for each record and one column for each class."""


class Classifying(Protocol):
    """A posterior of a discrete network."""

    def log_predictive(self, codes: Codes | SparseCodes, /) -> FloatArray:
        """Return log p(x, c) for every row and class."""


def answer_by_row(
    posterior: Classifying, encoder: Encoder, of: RowFunction, like: npt.NDArray[Any], table: Table
) -> npt.NDArray[Any]:
    """Return ``of`` the log joint of every row.

    ``like`` is an array without rows that has the type and the columns of the answer.
    """
    out = np.empty((table.n_rows, *like.shape[1:]), like.dtype)
    for rows, codes in encoder.compact_chunks(table):
        out[rows] = of(posterior.log_predictive(codes))
    return out


def most_probable(classes: npt.NDArray[Any], joint: FloatArray) -> npt.NDArray[Any]:
    """Return the most probable class, the first of equals."""
    if len(classes) == 2:  # far faster than a search of every row
        return np.asarray(classes[(joint[:, 1] > joint[:, 0]).astype(np.intp)])
    return np.asarray(classes[joint.argmax(axis=1)])


def log_sum(joint: FloatArray) -> FloatArray:
    """Return log p(x) = log sum_c p(x, c)."""
    top = _finite_top(joint)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(joint - top).sum(axis=1)) + top[:, 0])


def log_proba(joint: FloatArray) -> FloatArray:
    """Return log p(c | x) = log p(x, c) - log p(x)."""
    return joint - log_sum(joint)[:, None]


def proba(joint: FloatArray) -> FloatArray:
    """Return p(c | x)."""
    if joint.shape[1] == 2:
        gap = joint[:, 1] - joint[:, 0]
        return np.stack([expit(-gap), expit(gap)], axis=1)
    power = np.exp(joint - _finite_top(joint))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def _finite_top(joint: FloatArray) -> FloatArray:
    """Return the largest log of every row, as a column; 0 of a row that is impossible."""
    top: FloatArray = joint.max(axis=1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    return top
