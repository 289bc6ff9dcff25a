"""Released statistics of networks as JSON, checked against their graph and noise laws."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbayes_sklearn.serialization.arrays import FLOATS, INTEGERS
from dpbayes_sklearn.serialization.codecs import (
    Codec,
    Integer,
    Many,
    RealNumber,
    Record,
    refuse,
)
from dpbayes_sklearn.serialization.laws import LAW
from dpbayes_sklearn.statistics.counts import ReleasedCounts
from dpbayes_sklearn.statistics.fourier import (
    ReleasedCharacters,
    closure,
    sum_count,
    varying_families,
)
from dpbayes_sklearn.statistics.network import Network

__all__ = ["CHARACTERS", "COUNTS", "NETWORK", "RECORDS"]

RECORDS = Integer(1, 2**53)
_NON_NEGATIVE = RealNumber(0.0)
_FEW_PARTS = 2**16  # of all families, that are listed without a thought


@dataclass(frozen=True)
class Pairs(Codec):
    """A mapping as a list of pairs, which keeps its order and any kind of key."""

    key: Codec
    value: Codec

    def encode(self, value: Any) -> list[list[Any]]:
        """Return the pairs."""
        return [[self.key.encode(k), self.value.encode(v)] for k, v in value.items()]

    def decode(self, json: Any, where: str) -> dict[Any, Any]:
        """Return the mapping."""
        pairs = [(f"{where}[{i}]", pair) for i, pair in enumerate(Many(_PAIR).decode(json, where))]
        read = {
            self.key.decode(key, at): self.value.decode(value, at) for at, (key, value) in pairs
        }
        if len(read) < len(pairs):
            refuse(where, "has a key twice")
        return read


class _Pair(Codec):
    def encode(self, value: Any) -> Any:
        return value

    def decode(self, json: Any, where: str) -> Any:
        if not isinstance(json, list) or len(json) != 2:
            refuse(where, "must be a pair")
        return json


_PAIR = _Pair()


NETWORK = Record(
    Network, {"sizes": Many(Integer(1, 2**16), 1), "parents": Many(Many(Integer(0, 2**16)))}
)


def _wrong_counts(released: ReleasedCounts) -> str | None:
    shapes = tuple(table.shape for table in released.tables)
    if shapes != released.network.shapes:
        return "has tables that are not those of its network"
    cells = tuple(math.prod(shape) for shape in shapes)
    joint = any(not law.independent for law in released.laws)
    if any(law.sizes != cells for law in released.laws) or (joint and not released.network.is_star):
        return "has the noise law of other tables"
    if any(law.sizes != (1,) for law in released.size_laws):
        return "has the noise law of more than one number of records"
    if released.laws and _impossible(released):
        return "has tables without noise that are no counts of its records"
    return _off_lattice(released.tables, released.grid)


def _impossible(released: ReleasedCounts) -> bool:
    """Tell whether a table without noise holds anything but n, or the counts of the classes.

    The latter leave without noise if all features are constant and labels are not protected.
    """
    *values, n_classes = released.network.sizes
    known = {1} if max(values, default=1) > 1 else {1, n_classes}
    tables = [np.ravel(table) for table in released.tables]
    exact = [t for node, t in enumerate(tables) if not released.noise(node).variance]
    return any(
        t.size not in known
        or (t < 0).any()
        or t.sum() != released.n
        or not (t.size == 1 or np.array_equal(t, tables[-1]))
        for t in exact
    )


def _off_lattice(arrays: Iterable[Any], grid: int) -> str | None:
    dtype = np.float64 if grid > 1 else np.int64
    for array in arrays:
        steps = array * grid
        if array.dtype != dtype or (steps != np.rint(steps)).any():
            return "has sums that are not on the grid of its noise"
    return None


def _wrong_characters(released: ReleasedCharacters) -> str | None:
    sizes = released.network.sizes
    # a family of k nodes has 2^k parts: too many to be listed only to see that they are not there
    parts = sum(2 ** len(family) for family in varying_families(released.network))
    if parts > max(_FEW_PARTS, 4 * len(released.blocks)):
        return "has blocks that are not those of its network"
    wanted = {s: tuple(sizes[u] - 1 for u in s) for s in closure(released.network)}
    fits = wanted == {support: block.shape for support, block in released.blocks.items()}
    fits = fits and all(law.sizes == (sum_count(released.network),) for law in released.laws)
    if not fits:
        return "has blocks that are not those of its network"
    return _off_lattice(released.blocks.values(), released.grid)


class _Sums(Codec):
    """Sums after noise: integers, or floats if the noise has a finer grid."""

    def encode(self, value: Any) -> Any:
        return (FLOATS if value.dtype == np.float64 else INTEGERS).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        data = json.get("data") if isinstance(json, dict) else None
        floats = isinstance(data, list) and any(type(number) is float for number in data)
        return (FLOATS if floats else INTEGERS).decode(json, where)


COUNTS = Record(
    ReleasedCounts,
    {
        "network": NETWORK,
        "tables": Many(_Sums()),
        "n": RECORDS,
        "laws": Many(LAW),
        "size_laws": Many(LAW),
    },
    _wrong_counts,
)
CHARACTERS = Record(
    ReleasedCharacters,
    {
        "network": NETWORK,
        "blocks": Pairs(Many(Integer(0, 2**16), 1), _Sums()),
        "n": RECORDS,
        "laws": Many(LAW),
        "increment": _NON_NEGATIVE,
        "size_laws": Many(LAW),
    },
    _wrong_characters,
)
