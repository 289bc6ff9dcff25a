"""Hints in the log, from public facts and released values only."""

from __future__ import annotations

from collections.abc import Sequence

from dpbayes_sklearn._log import is_heard, remark
from dpbayes_sklearn._typing import FloatArray

__all__ = ["Told", "advise_if_noisy", "hint_at_absent_classes"]

_TELLING = 0.2
"""No hint if the noise exceeds this share of an average class: it could hide a class."""


def hint_at_absent_classes(
    classes: Sequence[object], counts: FloatArray, n: int, bound: float
) -> None:
    """Log which classes have a released count that is zero within its noise.

    Parameters
    ----------
    classes : sequence
        The declared classes.
    counts : array of shape (n_classes,)
        Their released counts.
    n : int
        Number of records.
    bound : float
        High-probability bound on the noise of a count.
    """
    absent = [c for c, count in zip(classes, counts, strict=True) if count <= bound]
    if absent and bound < _TELLING * n / len(classes):
        remark(
            "Of %d records, few or none have class %s (up to noise of %.3g records). If that is "
            "wrong, the labels are not encoded as declared: ensembles of scikit-learn encode them "
            "as 0, ..., k - 1, so that their members need classes=range(k).",
            n,
            " or ".join(map(repr, absent)),
            bound,
        )


class Told:
    """What was logged in this process."""

    noisy = False  # in this process


def advise_if_noisy(ratio: float) -> None:
    """Log, once per process, that the noise exceeds the counts, and what helps.

    Parameters
    ----------
    ratio : float
        Standard deviation of the noise of a cell over its expected count, on average.
    """
    if ratio <= 1.0 or Told.noisy or not is_heard():
        return
    Told.noisy = True
    remark(
        "The noise is %.2g times as large as the average count of a cell, so the model may be far "
        "less accurate than without privacy. Fewer columns, fewer bins or values, more records or "
        "a larger epsilon help.",
        ratio,
    )
