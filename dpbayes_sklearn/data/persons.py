"""Which records of a person count, if there are more than are protected together.

A rule that looked at anybody else would let one person change which records of others count, and
so would one that looked at positions: in a table that is listed anew, others may have moved. So
the records that count are drawn at random, for every person alone, all choices alike.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length

from dpbayes_sklearn.data.dask import gathered
from dpbayes_sklearn.data.table import one_column, refuse_other_containers

__all__ = ["coins_of", "counted_records", "read_groups"]

_KEY = b"dpbayes_sklearn: which records of a person count"
_ATTEMPTS = 64  # two of a billion keys are equal once in 37 times


def read_groups(groups: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return the labels of persons as one column in memory, one for each record."""
    refuse_other_containers(groups, "groups")
    labels = one_column(gathered(groups))
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
    person. Of a label with more records, those that count are drawn from a source of random
    bytes: the first ones in a random order of all.

    Examples
    --------
    >>> labels = np.array(["ann", "bob", "ann", None, "ann"], dtype=object)
    >>> len(counted_records(labels, 2)), len(counted_records(labels, 3))
    (3, 4)
    """
    positions = np.flatnonzero(~_missing(labels))
    person = _codes(labels[positions])
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


def coins_of(labels: npt.NDArray[Any], key: bytes) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each record, the same for all of one label.

    Numbers of different labels are independent, as far as a hash with a secret key of 16 bytes is
    random.

    >>> coins = coins_of(np.array(["ann", "bob", "ann"]), b"a secret")
    >>> bool(coins[0] == coins[2] != coins[1])
    True
    """
    person = _codes(labels)
    _, first = np.unique(person, return_index=True)
    keys = [_hash(label, key) for label in labels[first].tolist()]
    numbers: npt.NDArray[np.float64] = np.array(keys, np.uint64)[person] / 2.0**64
    return np.minimum(numbers, 1 - 2.0**-53)


def _missing(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell which labels are missing."""
    if labels.dtype.kind in "OfcmM":
        with np.errstate(all="ignore"):
            unequal = np.array([_unequal(x) for x in labels.tolist()], bool)
        return unequal if labels.dtype.kind != "M" else np.isnat(labels)
    return np.zeros(len(labels), bool)


def _unequal(label: Any) -> bool:
    """Tell whether a label is None, or is not equal to itself, as NaN and NA are not."""
    try:
        return label is None or not bool(label == label)
    except (TypeError, ValueError):
        return True


def _codes(labels: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the number of each label, from 0 on: the same for the same label.

    Not by numpy's arrays of text, in which labels that differ in trailing NULs are equal.
    """
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1]
    numbers: dict[str, int] = {}
    codes = (numbers.setdefault(_text(x), len(numbers)) for x in labels.tolist())
    return np.fromiter(codes, np.intp, len(labels))


def _text(label: Any) -> str:
    """Return a label as text: one form, whatever type its container gives it."""
    if isinstance(label, str):
        return f"str:{label}"
    if isinstance(label, Integral):
        return f"number:{int(label)}"
    if isinstance(label, Rational):
        return f"number:{label}"
    if isinstance(label, Real):
        number = float(label)
        return f"number:{Fraction(number) if isfinite(number) else number}"
    return f"{type(label).__name__}:{label}"


def _hash(label: Any, key: bytes = b"") -> int:
    text = _text(label).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8, key=_KEY + key).digest()
    return int.from_bytes(digest, "little")
