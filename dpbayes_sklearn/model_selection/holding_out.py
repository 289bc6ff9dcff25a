"""Who is held out of a search: a split that looks at no value."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.data.persons import coins_of, counted_records
from dpbayes_sklearn.noise.integers import random_positions
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["held_out"]

Positions = npt.NDArray[np.intp]


def held_out(
    n: int,
    labels: npt.NDArray[Any] | None,
    unit: PrivacyUnit,
    test_size: float,
    source: RandomSource,
) -> tuple[Positions, Positions]:
    """Return the positions of the records to fit to, and of those to score on.

    Of a public number of records a public number is held out, all choices alike. Otherwise every
    record, or every person, has a coin of its own, so that nobody changes another's side. So no
    position is special: neighbours may list their records in any order.
    """
    everybody = np.arange(n)
    if not (unit.name == "person" or unit.size_is_secret):
        test = random_positions(n, ceil(test_size * n), source)
        return np.delete(everybody, test), test
    if labels is None:
        place, coins = everybody, np.frombuffer(source(8 * n), np.uint64) / 2.0**64
    else:
        place = counted_records(labels, unit.max_records, source)
        coins = coins_of(labels, source(16))
    tails = coins[place] < test_size
    return place[~tails], place[tails]
