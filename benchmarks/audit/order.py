"""The order of records: none is asked because of its place, and neighbours may be listed anew.

Two things together show that a step is private for multisets. The sets of records that it asks are
all as probable (`places`), in small worlds where the exact sums tell which records were asked. And
a neighbour that was sorted again loses no more than is claimed (`sorted_tables`), in tables so
large that the rules of the library ask only some of the records: of both neighbours the same ones,
by their draws, which are as probable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations, product
from math import ceil
from typing import Any
from zlib import crc32

import dask
import dask.array as da
import numpy as np
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from benchmarks.audit._cases import Called, Case, Row, Subject, calls_of, crossings, silent
from benchmarks.audit._models import ADDED, FEATURE, PERSON, RECORD, THERE, line, naive_bayes
from benchmarks.audit._pairs import subjects
from benchmarks.audit.tools.fuzzing import CONTAINERS
from benchmarks.audit.tools.recording import planted
from benchmarks.audit.tools.replaying import DRAWS, Replay, replay
from dpbayes_sklearn import BudgetAccountant, PrivateSearchCV
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts import plans, temperature
from dpbayes_sklearn.counts.temperature import LossRecords, LossSums
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.regression.moments import gram

N, SOME, RUNS = 8, 2, 28
SETS = [*combinations(range(N), SOME)]
POWERS = 2.0 ** -np.arange(N)
EPSILON = 10_000.0
FARTHEST = 5.2  # In standard deviations; a fair draw exceeds it once in 10 million audits.
FAR = chi2.isf(norm.sf(FARTHEST), len(SETS) - 1)

Places = tuple[int, ...]
Asked = dict[str, Places]
"""By the name of a step, the records that it asked."""


def places(runs: int = RUNS) -> list[Case]:
    """Return the cases: all that looks at some of the records, for all units and on dask."""
    public, secret = (RECORD, PERSON), (ADDED, THERE)
    wheres = [*product(public, ("in memory", "dask")), *product(secret, ("in memory",))]
    return [
        *(
            Case(f"places: temperature, {where}, {unit.label}", partial(_fits, unit, where, runs))
            for unit, where in wheres
        ),
        Case("places: temperature, feature", partial(_fits, FEATURE, "in memory", runs)),
        *(
            Case(f"places: held out, {unit.label}", partial(_held_out, unit, 4 * runs))
            for unit in (*public, *secret, FEATURE)
        ),
        Case("places: surplus of a person", partial(_surplus, runs)),
    ]


def _fits(unit: PrivacyUnit, where: str, runs: int) -> Iterator[str]:
    """Count how often which records were asked."""
    seen: dict[str, Counter[Places]] = {}
    with dask.config.set(scheduler="synchronous"):
        for run in range(4 if unit.size_is_secret else runs):  # then all are asked, or not
            for step, places in _classifier(unit, where, run).items():
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
        planted((temperature, "_ENOUGH", SOME)),
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
    """See which records of a person with too many count, by targets that are powers of two."""
    ends: dict[str, Any] = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "privacy_unit": PERSON}
    seen = Counter[Places]()
    for seed in range(runs):
        with crossings() as crossed:
            model = line(EPSILON, random_state=seed, mechanism="laplace", **ends)
            model.fit(np.zeros((N, 1)), POWERS, groups=np.zeros(N))
        total = int(gram(crossed[-1].statistics, 2 ** (N - 1))[0, -1]) >> (N - 1)
        seen[tuple(j for j in range(N) if total >> (N - 1 - j) & 1)] += 1
    yield from _unfair({"records that count": seen}, PERSON)


MANY = 40_000  # of which the losses of some are enough, at this epsilon
MODERATE = 10.0
PLACES = ("in memory", "dask")


def sorted_tables() -> list[Case]:
    """Return large sorted tables, of which one record or person is replaced."""
    temperature, slopes = naive_bayes(MODERATE, inference="plug_in"), line(MODERATE)
    return [
        Case(f"sorted: {name}, {where}, {unit.label}", partial(findings, model, unit, where))
        for name, model, findings in (
            ("temperature", temperature, _sampled),
            ("regression", slopes, _unsampled),
        )
        for where, unit in product(PLACES, (RECORD, PERSON))
    ]


def _neighbours(replaced: int) -> tuple[Any, ...]:
    """Return a sorted table, and its neighbour, sorted again.

    The first records are replaced by others, which come last; every fourth one is an exception.
    """
    X = np.sort(np.random.default_rng(0).random((MANY, 1)), axis=0)
    y = ((X[:, 0] > 0.5) != (np.arange(MANY) % 4 == 0)).astype(int)
    X2 = np.concatenate([X[replaced:], np.ones((replaced, 1))])
    return X, y, X2, np.concatenate([y[replaced:], np.ones(replaced, int)])


def _sorted(model: Any, unit: PrivacyUnit, where: str) -> Replay:
    """Replay a table and its neighbour."""
    ledger, k = BudgetAccountant(delta=1), unit.max_records
    estimator = clone(model).set_params(random_state=0, accountant=ledger, privacy_unit=unit)
    who, persons = np.arange(MANY) // k, {}
    if unit.name == "person":
        persons = {"groups": who, "groups2": np.roll(who, -k)}
    tables: Any = _neighbours(k)
    if where == "dask":
        tables = [da.from_array(part, MANY // 3) for part in tables]
    with dask.config.set(scheduler="synchronous"):
        return replay(estimator, *tables, freeze=DRAWS, **persons)


def _unsampled(model: Any, unit: PrivacyUnit, where: str) -> Iterator[str]:
    """Compare what is asked of all records: the search for a mode starts in a part of them."""
    found = _sorted(model, unit, where)
    yield from found.divergences
    if found.status != "fitted" or not found.shifts:
        yield found.status


def _sampled(model: Any, unit: PrivacyUnit, where: str) -> Iterator[str]:
    """Compare the losses of samples of both tables that belong together."""
    calls, drawn = list[Called](), list[Any]()
    with (
        calls_of(LossRecords, "loss_sums", among=calls),
        calls_of(PrivateEstimator, "_fit", among=calls),
        _coupled((np.arange(MANY) - unit.max_records) % MANY, calls, drawn),
    ):
        found = _sorted(model, unit, where)
    yield from found.divergences
    first, second = _by_fit(calls)
    if found.status != "fitted" or not first or len(first) != len(second):
        yield f"{found.status}, with {len(first)} and {len(second)} questions"
        return
    for one, other in zip(first, second, strict=True):
        change = np.subtract(other.result.sums, one.result.sums, dtype=float)
        moved, most = float(np.ptp(change)), float(one.result.spread(unit))
        if moved > most:  # what all losses share cancels
            yield f"losses: moved by {moved:g} in a table that is sorted again, at most {most:g}"
    if not drawn:
        yield "no sample was drawn"


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


def _by_fit(calls: list[Called]) -> tuple[list[Called], list[Called]]:
    """Return the sums that either fit has asked for; what comes after both is left out."""
    ends = [i for i, call in enumerate(calls) if call.name == "_fit"]
    return calls[: ends[0]], calls[ends[0] + 1 : ends[1]]


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
