"""Who is held out of a search: a split that looks at no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from dpbayes_sklearn.data.persons import coins_of, counted_records
from dpbayes_sklearn.model_selection.runs import seed_from
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

    If all other records keep their positions in a neighbour, positions are shuffled. Otherwise
    every record, or every person, has a coin of its own, so that nobody changes another's side.
    """
    everybody = np.arange(n)
    if unit.keeps_places:
        seed = seed_from(source)
        train, test = train_test_split(everybody, test_size=test_size, random_state=seed)
        return train, test
    if labels is None:
        place, coins = everybody, np.frombuffer(source(8 * n), np.uint64) / 2.0**64
    else:
        place, coins = counted_records(labels, unit.max_records), coins_of(labels, source(16))
    tails = coins[place] < test_size
    return place[~tails], place[tails]
