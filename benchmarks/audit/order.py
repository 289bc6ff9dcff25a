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
from contextlib import contextmanager
from functools import partial
from itertools import combinations, product
from math import ceil
from typing import Any
from zlib import crc32

import dask
import dask.array as da
import numpy as np
from dpbayes_sklearn.regression.record_sums import RADII
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from benchmarks.audit._cases import Called, Case, Row, Subject, calls_of, silent
from benchmarks.audit._models import ADDED, FEATURE, PERSON, RECORD, THERE, line, naive_bayes
from benchmarks.audit._pairs import subjects
from dpbayes_sklearn import BudgetAccountant, PrivateSearchCV
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.audit.fuzzing import CONTAINERS
from dpbayes_sklearn.audit.recording import planted
from dpbayes_sklearn.audit.replaying import DRAWS, replay
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts import plans, temperature
from dpbayes_sklearn.counts.temperature import LossRecords, LossSums
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.regression import release, step_noise
from dpbayes_sklearn.regression.moments import Moments, Predictive, Windows

N, SOME, RUNS = 8, 2, 28
SETS = [*combinations(range(N), SOME)]
POWERS = 2.0 ** -np.arange(N)
EPSILON = 10_000.0
FARTHEST = 5.2  # In standard deviations; a fair draw exceeds it once in 10 million audits.
FAR = chi2.isf(norm.sf(FARTHEST), len(SETS) - 1)

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
    of_feature = partial(_fits, _classifier, FEATURE, "in memory", runs)
    return [
        *(
            Case(f"places: {name}, {where}, {unit.label}", partial(_fits, ask, unit, where, runs))
            for (name, ask), (unit, where) in product(steps, wheres)
        ),
        Case("places: temperature, feature", of_feature),
        *(
            Case(f"places: held out, {unit.label}", partial(_held_out, unit, 4 * runs))
            for unit in (*public, *secret, FEATURE)
        ),
        Case("places: surplus of a person", partial(_surplus, runs)),
    ]


def _fits(ask: Ask, unit: PrivacyUnit, where: str, runs: int) -> Iterator[str]:
    """Count, for every step, how often which records were asked."""
    seen: dict[str, Counter[Places]] = {}
    with dask.config.set(scheduler="synchronous"):
        for run in range(4 if unit.size_is_secret else runs):  # then all are asked, or not
            for step, places in ask(unit, where, run).items():
                seen.setdefault(step, Counter())[places] += 1
    yield from _unfair(seen, unit)


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
        if set(sets) - set(SETS) or distance > FAR:
            yield f"{step}: records are asked by their places, chi-squared {distance:.0f}"


def _regression(unit: PrivacyUnit, where: str, seed: int) -> Asked:
    """Fit a regression whose targets are powers of two: every sum tells which were added up."""
    X, y = _contained(where, np.zeros((N, 1)), POWERS)
    with _few_are_enough(unit):
        return _added_up(unit, seed, X, y, **_own_groups(unit))


def _few_are_enough(unit: PrivacyUnit) -> Any:
    """Let two of the eight records be enough for every step."""
    worth = SOME * float(unit.equivalent(EPSILON))
    return planted(
        (step_noise, "_ENOUGH_RECORDS", worth),
        (step_noise, "_LEAST_SAMPLE", SOME),
        (release, "_MOST_RESIDUALS", worth),
        (temperature, "_ENOUGH", SOME),
    )


def _added_up(unit: PrivacyUnit, seed: int, *data: Any, **groups: Any) -> Asked:
    """Return whose targets a fit has added up, at public centres and under a public model."""
    ends: dict[str, Any] = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
    with calls_of(Moments, "location_sums", "distance_counts", "squared_residuals") as calls:
        line(EPSILON, random_state=seed, privacy_unit=unit, **ends).fit(*data, **groups)
    seen: Asked = {}
    for name, (records, of, *grid), found in calls:
        if name == "location_sums":
            seen["location"] = _bits(int(found[1][-1]) // of * 2 ** (N - 1) // of)
        elif name == "distance_counts":
            distances = records.distance_counts(np.zeros_like(of))[-1]
            near = {float(RADII[i]) for i in np.flatnonzero(distances)}
            seen["distances"] = tuple(j for j in range(N) if 2.0**-j in near)
        else:
            width = len(of.windows.centres)
            plain = Predictive(np.zeros((width + 1, 1)), 1.0, 1.0, Windows.whole(width))
            total, _ = records.squared_residuals(plain, *grid)
            seen["residuals"] = _bits(total // grid[0] * 4 ** (N - 1) // grid[0], 4)
    return seen


def _bits(total: int, base: int = 2) -> Places:
    """Return the j whose powers base**(N - 1 - j) add up to a total."""
    return tuple(j for j in range(N) if total // base ** (N - 1 - j) % base)


def _classifier(unit: PrivacyUnit, where: str, seed: int) -> Asked:
    """Fit a classifier with a class for every record: its losses are told by their classes."""
    options = {"inference": "plug_in", "random_state": seed, "privacy_unit": unit}
    model = naive_bayes(EPSILON, classes=[*range(N)], **options)
    seen: Asked = {}
    real = plans.tempering_weights

    def of(log_prior: Any, evidence: Any, classes: Any) -> LossSums:
        return LossSums(np.full(len(temperature.TEMPERINGS), (1 << classes).sum()), len(classes), N)

    def chosen(losses: LossSums, *rest: Any) -> Any:
        seen["temperature"] = tuple(j for j in range(N) if losses.sums[0] >> j & 1)
        return real(losses, *rest)

    with (
        _few_are_enough(unit),
        planted((LossSums, "of", of), (LossSums, "at_most", lambda self, n: self)),
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
    model = naive_bayes(privacy_unit=unit)
    sets: Counter[Places] = Counter()
    who = np.arange(N, dtype=float)
    for seed in range(runs):
        search = PrivateSearchCV(model, {"alpha": [1.0]}, test_size=SOME / N, random_state=seed)
        records = search._records(who[:, None], np.zeros(N, int), reset=True)
        groups = who if unit.name == "person" else None
        split, _ = search._protected(records, groups)
        sets[tuple(sorted(split.test[0].ravel().astype(int).tolist()))] += 1
    if not unit.size_is_secret:
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
    data = np.zeros((N, 1)), POWERS
    fits = (_added_up(PERSON, seed, *data, groups=np.zeros(N)) for seed in range(runs))
    yield from _unfair({"records that count": Counter(fit["location"] for fit in fits)}, PERSON)


MANY = 40_000  # of which, at this epsilon, a tenth of the residuals is enough
MODERATE = 10.0
PLACES = ("in memory", "dask")


def sorted_tables() -> list[Case]:
    """Return large sorted tables, of which one record or person is replaced."""
    models: dict[str, Any] = {
        "laplace": line(MODERATE, mechanism="laplace"),
        "gaussian": line(MODERATE, mechanism="gaussian", delta=1e-6),
        "sampler": line(MODERATE, mechanism="sampler"),
        "temperature": naive_bayes(MODERATE, inference="plug_in"),
    }
    return [
        Case(f"sorted: {name}, {where}, {unit.label}", partial(_sorted, model, unit, where))
        for (name, model), where, unit in product(models.items(), PLACES, (RECORD, PERSON))
        if where == "in memory" or name in {"laplace", "temperature"}
    ]


def _neighbours(replaced: int) -> tuple[Any, ...]:
    """Return a sorted table, and its neighbour, sorted again.

    The first records are replaced by others, which come last; every fourth one is an exception.
    """
    X = np.sort(np.random.default_rng(0).random((MANY, 1)), axis=0)
    y = ((X[:, 0] > 0.5) != (np.arange(MANY) % 4 == 0)).astype(int)
    X2 = np.concatenate([X[replaced:], np.ones((replaced, 1))])
    return X, y, X2, np.concatenate([y[replaced:], np.ones(replaced, int)])


def _sorted(model: Any, unit: PrivacyUnit, where: str) -> Iterator[str]:
    ledger, k = BudgetAccountant(delta=1), unit.max_records
    estimator = clone(model).set_params(random_state=0, accountant=ledger, privacy_unit=unit)
    who, persons = np.arange(MANY) // k, {}
    if unit.name == "person":
        persons = {"groups": who, "groups2": np.roll(who, -k)}
    tables: Any = _neighbours(k)
    if where == "dask":
        tables = [da.from_array(part, MANY // 3) for part in tables]
    calls, drawn = list[Called](), list[Any]()
    with (
        dask.config.set(scheduler="synchronous"),
        calls_of(Moments, *EXACT, among=calls),
        calls_of(LossRecords, "loss_sums", among=calls),
        calls_of(PrivateEstimator, "_fit", among=calls),
        _coupled((np.arange(MANY) - k) % MANY, calls, drawn),
    ):
        found = replay(estimator, *tables, freeze=DRAWS, **persons)
    yield from found.divergences
    first, second = _by_fit(calls)
    if found.status != "fitted" or not first or len(first) != len(second):
        yield f"{found.status}, with {len(first)} and {len(second)} questions"
        return
    for one, other in zip(first, second, strict=True):
        (step, here, most), (_, there, _) = (_exact_sums(call, unit) for call in (one, other))
        moved = _moved(step, here, there)
        if moved > most:
            yield f"{step}: moved by {moved:g} in a table that is sorted again, at most {most:g}"
    if not drawn:
        yield "no sample was drawn"


def _moved(step: str, one: Any, other: Any) -> float:
    change = np.asarray(other, float) - np.asarray(one, float)
    if step == "losses":  # what all share cancels
        return float(change.max() - change.min())
    return float(np.abs(change).sum(axis=-1).max() if step == "distances" else np.abs(change).max())


@contextmanager
def _coupled(place: Any, calls: list[Called], drawn: list[Any]) -> Iterator[None]:
    """Let the second fit draw the same records as the first, where they are listed now."""
    draw, again = Noise.positions, iter(drawn)

    def positions(self: Noise, n: int, size: int) -> Any:
        if any(call.name == "_fit" for call in calls):
            return np.sort(place[next(again)])
        drawn.append(draw(self, n, size))
        return drawn[-1]

    with planted((Noise, "positions", positions)):
        yield


EXACT = ("location_sums", "distance_counts", "squared_residuals", "weighted_residuals")


def _by_fit(calls: list[Called]) -> tuple[list[Called], list[Called]]:
    """Return the sums that either fit has asked for; what comes after both is left out."""
    ends = [i for i, call in enumerate(calls) if call.name == "_fit"]
    return calls[: ends[0]], calls[ends[0] + 1 : ends[1]]


def _exact_sums(call: Called, unit: PrivacyUnit) -> tuple[str, Any, float]:
    """Return a step, its exact sums, and how far the records of one unit may move them."""
    k, found, grid = unit.max_records, call.result, call.args[-1]
    if call.name == "location_sums":
        return "location", found[1] / grid**2, 2.0 * k
    if call.name == "distance_counts":
        return "distances", found, 2.0 * k
    if call.name == "squared_residuals":
        return "residuals", [found[0] / grid**2], float(k)
    if call.name == "weighted_residuals":
        return "weighted residuals", found / grid**2, float(k)
    return "losses", found.sums, float(found.spread(unit))


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
        yield silent(case.name[:58], case.findings())
