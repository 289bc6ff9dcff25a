"""Bugs by which the place of a record decides whether it is asked, held out or counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.data.dask import PartitionedRecords
from dpbayes_sklearn.data.records import LocalRecords
from dpbayes_sklearn.model_selection import runs
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.integers import random_positions
from dpbayes_sklearn.privacy.unit import RECORD
from dpbayes_sklearn.regression import location, release
from dpbayes_sklearn.release import drawn_sample

Replacements = Iterator[tuple[Any, str, Any]]
ORDER = "order of records"


def _by_place(n: int, every: int, unit: Any, source: Any) -> Any:
    """Ask every s-th record."""
    return None if every == 1 or unit.size_is_secret else np.arange(0, n, every)


@fault("order", ORDER, "Where a regression lies is read from every s-th record", "sorted: laplace")
def location_by_place() -> Replacements:
    yield location, "drawn_sample", _by_place


@fault("order", ORDER, "Residuals are those of every s-th record", "sorted: laplace")
def residuals_by_place() -> Replacements:
    yield release, "drawn_sample", _by_place


@fault("order", ORDER, "A temperature is learned from every s-th record", "sorted: temperature")
def temperature_by_place() -> Replacements:
    yield plans, "drawn_sample", _by_place


@fault(
    "order",
    ORDER,
    "Residuals of persons are those of every s-th record",
    "places: regression, in memory, person",
)
def residuals_of_persons_by_place() -> Replacements:
    real = release.drawn_sample

    def drawn(n: int, every: int, unit: Any, source: Any) -> Any:
        return (_by_place if unit.name == "person" else real)(n, every, unit, source)

    yield release, "drawn_sample", drawn


@fault(
    "order",
    ORDER,
    "Residuals of persons are those of every s-th record, on dask alone",
    "places: regression, dask, person",
)
def residuals_by_place_on_dask() -> Replacements:
    real = PartitionedRecords.total

    def total(self: Any, ask: Any, at: Any = None) -> Any:
        residuals = "squared_residuals" in repr(ask)
        if at is not None and residuals:
            at = np.linspace(0, self.n, len(at), endpoint=False).astype(np.intp)
        return real(self, ask, at)

    yield PartitionedRecords, "total", total


@fault("order", ORDER, "Every s-th record is asked, from a random one on", "places: regression")
def random_start() -> Replacements:
    def systematic(n: int, size: int, source: Any) -> Any:
        every = n // size
        return source(1)[0] % every + every * np.arange(size)

    yield drawing, "random_positions", systematic


@fault("order", ORDER, "A sample is a block of records that are next to each other", "places: temp")
def one_block() -> Replacements:
    def block(n: int, size: int, source: Any) -> Any:
        first = int.from_bytes(source(8), "big") % n
        return np.sort((first + np.arange(size)) % n)

    yield drawing, "random_positions", block


@fault("order", ORDER, "The first records are sampled more often than others", "places: regression")
def first_records_first() -> Replacements:
    def early(n: int, size: int, source: Any) -> Any:
        return random_positions(max(n // 2, size), size, source)

    yield drawing, "random_positions", early


@fault(
    "order", ORDER, "Of a sample only the records in the first block are added up", "places: regr"
)
def first_block_counts() -> Replacements:
    real = LocalRecords.total

    def total(self: Any, ask: Any, at: Any = None) -> Any:
        return real(self, ask, None if at is None else np.arange(len(at)))

    yield LocalRecords, "total", total


@fault("order", ORDER, "A sample is drawn where the number of records is secret", "add_remove")
def sample_of_a_secret_number() -> Replacements:
    def drawn(n: int, every: int, unit: Any, source: Any) -> Any:
        return drawn_sample(n, every, RECORD, source)

    for module in (location, release, plans):
        yield module, "drawn_sample", drawn


@fault("order", ORDER, "A search holds out the last records", "places: held out, record")
def last_are_held_out() -> Replacements:
    yield drawing, "random_positions", lambda n, size, source: np.arange(n - size, n)


@fault("order", ORDER, "Coins of persons are tossed with a public seed", "places: held out, person")
def public_coins() -> Replacements:
    real = runs.coins_of
    yield (
        runs,
        "coins_of",
        lambda labels, _: real(labels, Noise(np.random.default_rng(7).bytes)),
    )


@fault("order", ORDER, "Of a person the records count that are listed first", "places: surplus")
def first_of_a_person() -> Replacements:
    yield drawing, "random_order", lambda n, source: np.arange(n)
