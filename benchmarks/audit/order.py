"""The order of records: none is asked because of its place, and neighbours may be listed anew.

Two things together show that a step is private for multisets. The sets of records that it asks are
all as probable (`places`), in small worlds where the exact sums tell which records were asked. And
a neighbour that was sorted again loses no more than is claimed (`sorted_tables`), in tables so
large that the rules of the library ask only some of the records: of both neighbours the same ones,
by their draws, which are as probable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import combinations, product
from math import ceil
from typing import Any, NamedTuple
from zlib import crc32

import dask
import dask.array as da
import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from benchmarks.audit._cases import Case, Row, Subject
from benchmarks.audit._models import ADDED, PERSON, THERE
from benchmarks.audit._pairs import subjects
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    PrivateSearchCV,
)
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.audit.fuzzing import CONTAINERS
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.audit.replaying import DRAWS, replay
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts import plans, temperature
from dpbayes_sklearn.counts.temperature import LossRecords, LossSums
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit
from dpbayes_sklearn.regression import location, release
from dpbayes_sklearn.regression.moments import Moments, Predictive, Windows
from dpbayes_sklearn.regression.record_sums import RADII

N, SOME, RUNS = 8, 2, 28
SETS = [*combinations(range(N), SOME)]
POWERS = 2.0 ** -np.arange(N)
EPSILON = 10_000.0
FARTHEST = 5.2  # In standard deviations; a fair draw exceeds it once in 10 million audits.

Places = tuple[int, ...]
Asked = dict[str, Places]
"""By the name of a step, the records that it asked."""
Ask = Callable[[PrivacyUnit, str, int], Asked]
"""Fits records, in memory or on dask, with a seed."""


def places(runs: int = RUNS) -> list[Case]:
    """Return the cases: all that looks at some of the records, for all units and on dask."""
    public, secret = (RECORD, PERSON), (ADDED, THERE)
    wheres = [*product(public, ("in memory", "dask")), *product(secret, ("in memory",))]
    steps = (("regression", _regression), ("temperature", _classifier))
    fits = [
        Case(f"places: {name}, {where}, {unit.label}", partial(_fits, ask, unit, where, runs))
        for (name, ask), (unit, where) in product(steps, wheres)
    ]
    return [
        *fits,
        Case(
            "places: temperature, feature", partial(_fits, _classifier, FEATURE, "in memory", runs)
        ),
        *(
            Case(f"places: held out, {unit.label}", partial(_held_out, unit, 4 * runs))
            for unit in (*public, *secret, FEATURE)
        ),
        Case("places: surplus of a person", partial(_surplus, runs)),
    ]


def _fits(ask: Ask, unit: PrivacyUnit, where: str, runs: int) -> Iterator[str]:
    few = 4 if unit.size_is_secret else runs  # all are asked, or not
    yield from _unfair(asked_places(ask, unit, where, few), unit)


def asked_places(ask: Ask, unit: PrivacyUnit, where: str, runs: int) -> dict[str, Counter[Places]]:
    """Return, for every step, how often which records were asked."""
    seen: dict[str, Counter[Places]] = {}
    with dask.config.set(scheduler="synchronous"):
        for run in range(runs):
            for step, places in ask(unit, where, run).items():
                seen.setdefault(step, Counter())[places] += 1
    return seen


def _unfair(seen: dict[str, Counter[Places]], unit: PrivacyUnit) -> Iterator[str]:
    """Compare how often sets of records were asked with how often they should be."""
    if not seen:
        yield "nothing was seen"
    for step, sets in seen.items():
        if unit.size_is_secret:  # the size of a sample would tell it
            if set(sets) != {tuple(range(N))}:
                yield f"{step}: not all records are asked where their number is secret"
            continue
        expected = sets.total() / len(SETS)
        distance = sum((sets[places] - expected) ** 2 / expected for places in SETS)
        if set(sets) - set(SETS) or distance > _far(len(SETS) - 1):
            yield f"{step}: records are asked by their places, chi-squared {distance:.0f}"


def _far(freedom: int) -> float:
    """Return a sum of so many squares that chance hardly ever exceeds (Wilson and Hilferty)."""
    return float(freedom * (1 - 2 / (9 * freedom) + FARTHEST * np.sqrt(2 / (9 * freedom))) ** 3)


def _regression(unit: PrivacyUnit, where: str, seed: int) -> Asked:
    """Fit a regression whose targets are powers of two: every sum tells which were added up."""
    model = BayesianLinearRegression(
        EPSILON, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed, privacy_unit=unit
    )
    seen: Asked = {}
    with _few_are_enough(unit), _watched_sums(seen):
        model.fit(*_contained(where, np.zeros((N, 1)), POWERS), **_own_groups(unit))
    return seen


@contextmanager
def _few_are_enough(unit: PrivacyUnit) -> Iterator[None]:
    """Let two of the eight records be enough for every step."""
    few = N / SOME
    worth = N * float(unit.equivalent(EPSILON)) / few
    with ExitStack() as stack:
        for owner, name, value in (
            (location, "_ENOUGH_RECORDS", worth),
            (location, "_LEAST_SAMPLE", SOME),
            (release, "_MOST_RESIDUALS", worth),
            (temperature, "_ENOUGH", SOME),
        ):
            stack.enter_context(planted((owner, name, value)))
        yield


@contextmanager
def _watched_sums(seen: Asked) -> Iterator[None]:
    """Note which targets were added up, at public centres and under a public model."""
    sums, distances, residuals = (
        Moments.location_sums,
        Moments.distance_counts,
        Moments.squared_residuals,
    )

    def summed(self: Any, grid: int) -> Any:
        rows, total = sums(self, grid)
        seen["location"] = _bits(int(total[-1]) // grid * 2 ** (N - 1) // grid)
        return rows, total

    def counted(self: Any, centres: Any) -> Any:
        found = distances(self, np.zeros_like(centres))[-1]
        near = {float(RADII[i]) for i in np.flatnonzero(found)}
        seen["distances"] = tuple(j for j in range(N) if 2.0**-j in near)
        return distances(self, centres)

    def squared(self: Any, model: Any, grid: int) -> Any:
        width = len(model.windows.centres)
        plain = Predictive(np.zeros((width + 1, 1)), 1.0, 1.0, Windows.whole(width))
        total, _ = residuals(self, plain, grid)
        seen["residuals"] = _bits(total // grid * 4 ** (N - 1) // grid, 4)
        return residuals(self, model, grid)

    with (
        planted((Moments, "location_sums", summed)),
        planted((Moments, "distance_counts", counted)),
        planted((Moments, "squared_residuals", squared)),
    ):
        yield


def _bits(total: int, base: int = 2) -> Places:
    """Return the j whose powers base**(N - 1 - j) add up to a total."""
    return tuple(j for j in range(N) if total // base ** (N - 1 - j) % base)


def _classifier(unit: PrivacyUnit, where: str, seed: int) -> Asked:
    """Fit a classifier with a class for every record: its losses are told by their classes."""
    model = BayesianNaiveBayes(
        EPSILON,
        bounds=(0, 1),
        n_bins=2,
        classes=[*range(N)],
        inference="plug_in",
        random_state=seed,
        privacy_unit=unit,
    )
    seen: Asked = {}
    real = plans.tempering_weights

    def of(log_prior: Any, evidence: Any, classes: Any) -> LossSums:
        return LossSums(np.full(len(temperature.TEMPERINGS), (1 << classes).sum()), len(classes), N)

    def chosen(losses: LossSums, *rest: Any) -> Any:
        seen["temperature"] = tuple(j for j in range(N) if losses.sums[0] >> j & 1)
        return real(losses, *rest)

    with (
        _few_are_enough(unit),
        planted((LossSums, "of", of)),
        planted((LossSums, "at_most", lambda self, n: self)),
        planted((plans, "tempering_weights", chosen)),
    ):
        model.fit(*_contained(where, np.zeros((N, 1)), np.arange(N)), **_own_groups(unit))
    return seen


def _contained(where: str, X: Any, y: Any) -> tuple[Any, Any]:
    if where == "in memory":
        return X, y
    uneven = (1, 4, 3)
    return da.from_array(X, (uneven, (1,))), da.from_array(y, (uneven,))


def _own_groups(unit: PrivacyUnit) -> dict[str, Any]:
    """Return labels, where they are needed, by which no person has more records than count."""
    return {"groups": np.arange(N) // 2} if unit.name == "person" else {}


def _held_out(unit: PrivacyUnit, runs: int) -> Iterator[str]:
    """See who is held out of a search: a set of public size, or by coins."""
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1], privacy_unit=unit)
    alone = unit.name == "person" or unit.size_is_secret
    sets: Counter[Places] = Counter()
    who = np.arange(N, dtype=float)
    for seed in range(runs):
        search = PrivateSearchCV(model, {"alpha": [1.0]}, test_size=SOME / N, random_state=seed)
        records = search._records(who[:, None], np.zeros(N, int), reset=True)
        groups = who if unit.name == "person" else None
        try:
            split, _ = search._protected(records, groups)
        except ValueError:  # by chance nobody is held out
            sets[()] += 1
            continue
        sets[tuple(sorted(split.test[0].ravel().astype(int).tolist()))] += 1
    if not alone:
        yield from _unfair({"held out": sets}, unit)
        return
    together = np.zeros((N, N))
    for places, times in sets.items():
        together[np.ix_(places, places)] += times
    p = np.where(np.eye(N, dtype=bool), SOME / N, (SOME / N) ** 2)
    if (np.abs(together / runs - p) > FARTHEST * np.sqrt(p * (1 - p) / runs)).any():
        yield "held out: no independent coins"


def _surplus(runs: int) -> Iterator[str]:
    """See which records of a person with too many count."""
    sets: Counter[Places] = Counter()
    for seed in range(runs):
        model = BayesianLinearRegression(
            EPSILON, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed, privacy_unit=PERSON
        )
        seen: Asked = {}
        with _watched_sums(seen):
            model.fit(np.zeros((N, 1)), POWERS, groups=np.zeros(N))
        sets[seen["location"]] += 1
    yield from _unfair({"records that count": sets}, PERSON)


MANY = 40_000  # of which, at this epsilon, a tenth of the residuals is enough
MODERATE = 10.0
LINEAR: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
CLASSES: dict[str, Any] = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1]}


def sorted_tables() -> list[Case]:
    """Return large sorted tables, of which one record or person is replaced."""
    models: dict[str, Any] = {
        "laplace": BayesianLinearRegression(MODERATE, mechanism="laplace", **LINEAR),
        "gaussian": BayesianLinearRegression(MODERATE, mechanism="gaussian", delta=1e-6, **LINEAR),
        "sampler": BayesianLinearRegression(MODERATE, mechanism="sampler", **LINEAR),
        "temperature": BayesianNaiveBayes(MODERATE, inference="plug_in", **CLASSES),
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
    X = np.sort(np.random.default_rng(0).random((MANY, 1)), axis=0)
    y = ((X[:, 0] > 0.5) != (np.arange(MANY) % 4 == 0)).astype(int)
    X2 = np.concatenate([X[replaced:], np.ones((replaced, 1))])
    y2 = np.concatenate([y[replaced:], np.ones(replaced, int)])
    return _Neighbours(X, y, X2, y2, (np.arange(MANY) - replaced) % MANY)


def _sorted(model: Any, unit: PrivacyUnit, where: str) -> Iterator[str]:
    data = _neighbours(unit.max_records)
    seen: list[list[tuple[str, Any, float]]] = []  # of every fit
    drawn: list[Any] = []
    estimator = clone(model).set_params(
        random_state=0, accountant=BudgetAccountant(delta=1), privacy_unit=unit
    )
    persons = {}
    if unit.name == "person":
        who = np.arange(MANY) // unit.max_records
        persons = {"groups": who, "groups2": np.roll(who, -unit.max_records)}
    tables = [_placed(where, part) for part in data[:4]]
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


def _placed(where: str, values: Any) -> Any:
    return values if where == "in memory" else da.from_array(values, MANY // 3)


def _moved(step: str, one: Any, other: Any) -> float:
    change = np.asarray(other, float) - np.asarray(one, float)
    if step == "losses":  # what all share cancels
        return float(change.max() - change.min())
    return float(np.abs(change).sum(axis=-1).max() if step == "distances" else np.abs(change).max())


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
    location, distances = Moments.location_sums, Moments.distance_counts
    residuals, products = Moments.squared_residuals, Moments.weighted_residuals
    losses = LossRecords.loss_sums
    k = unit.max_records

    def summed(self: Any, grid: int) -> Any:
        rows, sums = location(self, grid)
        seen[-1].append(("location", sums / grid**2, 2.0 * k))
        return rows, sums

    def counted(self: Any, centres: Any) -> Any:
        counts = distances(self, centres)
        seen[-1].append(("distances", counts, 2.0 * k))
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
        planted((Moments, "distance_counts", counted)),
        planted((Moments, "squared_residuals", squared)),
        planted((Moments, "weighted_residuals", weighted)),
        planted((LossRecords, "loss_sums", lost)),
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


FITS, PAIRS = 400, 100


def run(scale: float) -> Iterator[Row]:
    """Try all cases; one row for each."""
    fits, pairs = max(RUNS, ceil(scale * FITS)), ceil(scale * PAIRS)
    for case in progress([*places(fits), *sorted_tables(), *listed_anew(pairs)], "order"):
        found = next(case.findings(), None)
        yield Row(case.name[:58], (found or "nothing found")[:58], "nothing", found is None)
