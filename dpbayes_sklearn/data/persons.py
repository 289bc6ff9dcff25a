"""Which records of a person count, if there are more than are protected together.

A rule that looked at anybody else would let one person change which records of others count, and
so would one that looked at positions: in a table that is listed anew, others may have moved. So
the records that count are drawn at random, for every person alone, all choices alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length

from dpbayes_sklearn.data.dask import column_here
from dpbayes_sklearn.data.labels import canonical
from dpbayes_sklearn.data.table import refuse_other_containers

__all__ = ["coins_of", "counted_records", "read_groups"]

_ATTEMPTS = 64  # two of a billion keys are equal once in 37 times
_PLAIN = "biufUSmM"  # kinds of numpy's types whose values it compares exactly


def read_groups(groups: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return the labels of persons as one column in memory, one for each record."""
    refuse_other_containers(groups, "groups")
    labels = column_here(groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"groups must be one column, of shape (n_samples,). Got shape {labels.shape} instead."
        )
    check_consistent_length(np.broadcast_to(0, n_rows), labels)
    return labels


def counted_records(
    labels: npt.NDArray[Any], most: int, source: Callable[[int], bytes] = os.urandom
) -> npt.NDArray[np.intp]:
    """Return the positions of the records that count: at most ``most`` of each label, in order.

    Records without a label (None, NaN, NaT) do not count: nobody could tell how many are of one
    person. Nor do those whose label is of a type for which nobody can tell which labels are equal.
    Of a label with more records, those that count are drawn from a source of random bytes: the
    first ones in a random order of all.

    Examples
    --------
    >>> labels = np.array(["ann", "bob", "ann", None, "ann"], dtype=object)
    >>> len(counted_records(labels, 2)), len(counted_records(labels, 3))
    (3, 4)
    """
    person = _codes(labels)
    positions = np.flatnonzero(person >= 0)
    person = person[positions]
    counts = np.bincount(person)
    if not len(counts) or counts.max() <= most:
        return positions
    shuffled = _random_order(len(person), source)
    by_person = shuffled[np.argsort(person[shuffled], kind="stable")]
    rank = np.arange(len(person)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(positions[by_person[rank < most]])


def _random_order(n: int, source: Callable[[int], bytes]) -> npt.NDArray[np.intp]:
    """Return 0, ..., n-1 in random order, all orders alike: by keys, of which no two are equal."""
    for _ in range(_ATTEMPTS):
        keys = np.frombuffer(source(8 * n), np.uint64)
        order = np.argsort(keys)
        if (np.diff(keys[order]) > 0).all():  # otherwise positions would decide
            return order
    raise RuntimeError("The source of random bytes keeps repeating itself: it cannot be used.")


def coins_of(
    labels: npt.NDArray[Any], source: Callable[[int], bytes] = os.urandom
) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each record, the same for all of one label.

    Every label draws a number of its own from a source of random bytes.

    >>> coins = coins_of(np.array(["ann", "bob", "ann"]))
    >>> bool(coins[0] == coins[2] != coins[1])
    True
    """
    person = _codes(labels)  # -1 of those without a label, who share the last number
    n_persons = person.max(initial=-1) + 2
    numbers = np.frombuffer(source(8 * int(n_persons)), np.uint64) / 2.0**64
    return np.minimum(numbers, 1 - 2.0**-53)[person]


def _codes(labels: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the number of each label, from 0 on: the same for the same label; -1 if missing.

    Not by numpy's arrays of text, in which labels that differ in trailing NULs are equal.
    """
    if labels.dtype.kind in _PLAIN:
        codes = np.unique(labels, return_inverse=True)[1]
        return np.where(labels == labels, codes, -1)  # NaN and NaT differ from themselves
    numbers: dict[Hashable, int] = {None: -1}
    forms = map(canonical, labels.tolist())
    return np.fromiter((numbers.setdefault(x, len(numbers) - 1) for x in forms), np.intp)
