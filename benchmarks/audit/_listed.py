"""Neighbours whose records are listed anew: sorted again, or in any other order.

In a table that is kept in order, one record that is replaced shifts all that lie between its old
and its new place. Nothing may come of it. What a step asks at random is asked here of the same
records of both neighbours: by their draws, which are as probable (see ``_order``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import dask
import dask.array as da
import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from benchmarks.audit._cases import Case, Subject
from benchmarks.audit._pairs import subjects
from benchmarks.audit._units import PERSON
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.audit.fuzzing import CONTAINERS
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.audit.replaying import DRAWS, replay
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts.temperature import LabelledRecords, LossSums
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.moments import Moments

__all__ = ["listed_anew", "sorted_tables"]

N = 40_000  # of which, at this epsilon, a tenth of the residuals is enough
EPSILON = 10.0
LINEAR: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
CLASSES: dict[str, Any] = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1]}


def sorted_tables() -> list[Case]:
    """Return large sorted tables, of which one record or person is replaced."""
    models: dict[str, Any] = {
        "laplace": BayesianLinearRegression(EPSILON, mechanism="laplace", **LINEAR),
        "gaussian": BayesianLinearRegression(EPSILON, mechanism="gaussian", delta=1e-6, **LINEAR),
        "sampler": BayesianLinearRegression(EPSILON, mechanism="sampler", **LINEAR),
        "temperature": BayesianNaiveBayes(EPSILON, inference="plug_in", **CLASSES),
    }
    wheres = [*product((RECORD, PERSON), ("in memory",)), (RECORD, "dask"), (PERSON, "dask")]
    return [
        Case(f"sorted: {name}, {where}, {unit.label}", partial(_sorted, model, unit, where))
        for (name, model), (unit, where) in product(models.items(), wheres)
        if where == "in memory" or name in {"laplace", "temperature"}
    ]


class _Neighbours(NamedTuple):
    """A sorted table, its neighbour, sorted again, and where the others' records are in it."""

    X: Any
    y: Any
    X2: Any
    y2: Any
    place: Any


def _neighbours(replaced: int) -> _Neighbours:
    """Replace the first records by others, which come last; every fourth one is an exception."""
    X = np.sort(np.random.default_rng(0).random((N, 1)), axis=0)
    y = ((X[:, 0] > 0.5) != (np.arange(N) % 4 == 0)).astype(int)
    X2 = np.concatenate([X[replaced:], np.ones((replaced, 1))])
    y2 = np.concatenate([y[replaced:], np.ones(replaced, int)])
    return _Neighbours(X, y, X2, y2, (np.arange(N) - replaced) % N)


def _sorted(model: Any, unit: PrivacyUnit, where: str) -> Iterator[str]:
    data = _neighbours(unit.max_records)
    seen: list[list[tuple[str, Any, float]]] = []  # of every fit
    drawn: list[Any] = []
    estimator = clone(model).set_params(
        random_state=0, accountant=BudgetAccountant(delta=1), privacy_unit=unit
    )
    persons = {}
    if unit.name == "person":
        who = np.arange(N) // unit.max_records
        persons = {"groups": who, "groups2": np.roll(who, -unit.max_records)}
    tables = [_contained(where, part) for part in data[:4]]
    with (
        dask.config.set(scheduler="synchronous"),
        _coupled(data.place, seen, drawn),
        _noted(unit, seen),
    ):
        found = replay(estimator, *tables, freeze=DRAWS, **persons)
    yield from found.divergences
    first, second, _ = seen  # the last is what is asked after both fits
    if found.status != "fitted" or not first or len(first) != len(second):
        yield f"{found.status}, with {len(first)} and {len(second)} questions"
        return
    for (step, one, most), (_, other, _) in zip(first, second, strict=True):
        moved = _moved(step, one, other)
        if moved > most:
            yield f"{step}: moved by {moved:g} in a table that is sorted again, at most {most:g}"
    if not drawn:
        yield "no sample was drawn"


def _contained(where: str, values: Any) -> Any:
    return values if where == "in memory" else da.from_array(values, N // 3)


def _moved(step: str, one: Any, other: Any) -> float:
    change = np.asarray(other, float) - np.asarray(one, float)
    if step == "losses":  # what all share cancels
        return float(change.max() - change.min())
    return float(np.abs(change).sum(axis=-1).max() if step == "shells" else np.abs(change).max())


@contextmanager
def _coupled(place: Any, seen: list[Any], drawn: list[Any]) -> Iterator[None]:
    """Let the second fit draw the same records as the first, where they are listed now."""
    fit, draw, again = PrivateEstimator._fit, Noise.positions, iter(drawn)
    seen.append([])

    def fitted(self: Any, *args: Any) -> Any:
        done = fit(self, *args)
        seen.append([])
        return done

    def positions(self: Noise, n: int, size: int) -> Any:
        if len(seen) > 1:
            return np.sort(place[next(again)])
        drawn.append(draw(self, n, size))
        return drawn[-1]

    with planted((PrivateEstimator, "_fit", fitted), (Noise, "positions", positions)):
        yield


@contextmanager
def _noted(unit: PrivacyUnit, seen: list[list[tuple[str, Any, float]]]) -> Iterator[None]:
    """Note exact sums of both fits, and how far the records of one unit may move them."""
    location, shells = Moments.location_sums, Moments.shell_counts
    residuals, products = Moments.squared_residuals, Moments.weighted_residuals
    losses = LabelledRecords.loss_sums
    k = unit.max_records

    def summed(self: Any, grid: int) -> Any:
        rows, sums = location(self, grid)
        seen[-1].append(("location", sums / grid**2, 2.0 * k))
        return rows, sums

    def counted(self: Any, centres: Any) -> Any:
        counts = shells(self, centres)
        seen[-1].append(("shells", counts, 2.0 * k))
        return counts

    def squared(self: Any, model: Any, grid: int) -> Any:
        total, rows = residuals(self, model, grid)
        seen[-1].append(("residuals", [total / grid**2], float(k)))
        return total, rows

    def weighted(self: Any, model: Any, grid: int) -> Any:
        sums = products(self, model, grid)
        seen[-1].append(("weighted residuals", sums / grid**2, float(k)))
        return sums

    def lost(self: Any, *args: Any) -> LossSums:
        sums = losses(self, *args)
        seen[-1].append(("losses", sums.sums, float(sums.spread(unit))))
        return sums

    with (
        planted((Moments, "location_sums", summed)),
        planted((Moments, "shell_counts", counted)),
        planted((Moments, "squared_residuals", squared)),
        planted((Moments, "weighted_residuals", weighted)),
        planted((LabelledRecords, "loss_sums", lost)),
    ):
        yield


def listed_anew(pairs: int = 1) -> list[Case]:
    """Return replays of estimators of all kinds whose neighbours are in another order."""
    arrays = [s for s in subjects() if not s.name.endswith(tuple(CONTAINERS))]
    kinds = {type(s.estimator): s for s in reversed(arrays)}
    return [
        Case(f"listed anew: {kind.__name__}", partial(_listed_anew, subject, pairs))
        for kind, subject in kinds.items()
    ]


def _listed_anew(subject: Subject, pairs: int) -> Iterator[str]:
    rng = np.random.default_rng(crc32(subject.name.encode()))
    for freeze in subject.freezes * pairs:
        X, y, X2, y2 = subject.make(rng)
        anew = rng.permutation(len(X2) if isinstance(X2, list) else X2.shape[0])
        X2, y2 = (part if part is None else _safe_indexing(part, anew) for part in (X2, y2))
        estimator = clone(subject.estimator).set_params(accountant=BudgetAccountant(delta=1))
        found = replay(estimator, X, y, X2, y2, freeze=freeze)
        yield from (f"{subject}: {what}" for what in found.divergences)
