"""Private evaluations: all neighbours of small worlds, attacks, prices, persons, bad values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from benchmarks.audit._cases import Case, Row, calls_of, cases_of, refused, silent
from benchmarks.audit._models import ADDED, PERSON, RECORD, THERE, naive_bayes
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import BudgetAccountant, BudgetError
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.audit.statistical import bound_from_outcomes
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.metrics.plan import plan
from dpbayes_sklearn.metrics.statistics import (
    Classification,
    Labelled,
    Measured,
    Regression,
    ScoreSums,
)
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def run(scale: float) -> Iterator[Row]:
    """Enumerate every world for every unit; attack; then look at prices, persons and values."""
    for delta, kind in ((0.0, "pure"), (1e-6, "zCDP")):
        found = [worst(w, u, delta) for w in progress(WORLDS, "worlds") for u in UNITS.values()]
        share, pairs = max(s for s, _, _ in found), sum(n for _, n, _ in found)
        what = f"{len(found)} worlds, {pairs:,} pairs, {kind}"
        passed = share <= 1 and not any(wrong for _, _, wrong in found)
        yield Row(what, f"loss / claim = {share:.7f}", "<= 1", passed)
    runs = max(RUNS, int(10 * RUNS * scale))
    for name, unit in UNITS.items():
        bound = attack(unit, runs)
        what = f"attack, {name}: {runs:,} runs a side"
        yield Row(what, f"epsilon >= {bound:.3f}", "<= 1, >= 0.6", 0.6 <= bound <= 1)
        with planted((ScoreSums, "law", partial(_halved, ScoreSums.law))):
            bound = attack(unit, runs)
        what = f"attack, {name}, with half the noise"
        yield Row(what, f"epsilon >= {bound:.3f}", "> 1", bound > 1)
    yield silent("prices, persons and bad values", (w for f in OTHERS for w in f()))


def _halved(real: Any, number: int, unit: PrivacyUnit, epsilon: Any, rho: Any) -> Any:
    return real(number, unit, 2 * epsilon, rho)


RUNS = 8000
UNITS = {"a record": RECORD, "a record added": ADDED, "a person": PERSON, "a person added": THERE}
Transcript = list[tuple[Any, ...]]


class ScoredModel(NamedTuple):
    """A model that is evaluated on few kinds of records.

    ``tight`` if some pair of neighbours has to use up the claim.
    """

    name: str
    task: Any
    kinds: tuple[tuple[float, ...], ...]
    scoring: tuple[str, ...]
    tight: bool = False

    def records(self, some: Sequence[int]) -> Any:
        """Return records of these kinds; one that is no number has no target."""
        cells = np.array([self.kinds[one] for one in some], float).reshape(len(some), 2)
        known = cells[~np.isnan(cells[:, 0])]
        missing = len(cells) - len(known)
        if isinstance(self.task, Regression):
            return Measured(known[:, 0], known[:, 1], missing)
        rest = self.task.n_classes - 1
        proba = np.hstack([*[(1 - known[:, 1:]) / rest] * rest, known[:, 1:]])
        return Labelled(known[:, 0].astype(int), proba.argmax(axis=1), proba, missing)


TWO, THREE = Classification(2, 0.01), Classification(3, 0.2)
LINE = Regression(-1.0, 3.0, 1.5)
NO_TARGET = (np.nan, 0.0)
LABELLED = (*((c, p) for c in (0, 1) for p in (0.0, 0.3, 0.5, 0.9995)), NO_TARGET)
TRIPLE = (*((c, p) for c in (0, 1, 2) for p in (0.0, 0.4, 1.0)), NO_TARGET)
MEASURED = (*((t, p) for t in (-1.0, 0.9, 3.0) for p in (-1.0, 0.2, 3.0)), NO_TARGET)
WORLDS = (
    ScoredModel("accuracy", TWO, LABELLED, ("accuracy",), True),
    ScoredModel("balanced accuracy", THREE, TRIPLE, ("balanced_accuracy",), True),
    ScoredModel("confusion matrix", THREE, TRIPLE, ("confusion_matrix", "accuracy"), True),
    ScoredModel("area under the curve", TWO, LABELLED, ("roc_auc",), True),
    ScoredModel("calibration curve", THREE, TRIPLE, ("calibration_curve",), True),
    ScoredModel("log loss", TWO, LABELLED, ("log_loss",)),
    ScoredModel("Brier score", THREE, TRIPLE, ("brier_score",)),
    ScoredModel("all of a classifier", TWO, LABELLED, Classification.metrics),
    ScoredModel("all of a regression", LINE, MEASURED, Regression.metrics),
    ScoredModel("absolute error", LINE, MEASURED, ("mae",)),
)


class Frozen(Noise):
    """Answers as it did before, whatever it is asked now, and remembers what it was asked."""

    def __init__(self, answers: Transcript) -> None:
        super().__init__(random_source(7))
        self.answers, self.seen = answers, list[tuple[Any, NoiseLaw]]()

    def add(self, arrays: Any, law: NoiseLaw) -> Any:
        """Return the answer of the transcript, made by the first who asks."""
        if len(self.answers) == len(self.seen):
            self.answers.append(super().add(arrays, law))
        self.seen.append((np.concatenate([array.ravel() for array in arrays]), law))
        return self.answers[len(self.seen) - 1]


def neighbours(kinds: int, unit: PrivacyUnit) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield all pairs of neighbours with one other record."""
    some = [*combinations_with_replacement(range(kinds), unit.max_records)]
    for other in range(kinds):
        if unit.size_is_secret:
            yield from (((other, *more), (other,)) for more in some)
        else:
            yield from (((other, *one), (other, *two)) for one, two in combinations(some, 2))


def worst(
    world: ScoredModel, unit: PrivacyUnit, delta: float = 0.0
) -> tuple[float, int, list[str]]:
    """Return the worst loss as a share of the claim, the number of pairs, and what differed."""
    budget = Budget(Fraction(1), exact(delta, "delta"), unit)
    pairs = [*neighbours(len(world.kinds), unit)]
    planned = plan(world.task, world.scoring, budget, 1 + unit.max_records)
    answers: Transcript = []
    seen, told = {}, {}
    compared = {one for pair in pairs[:: max(1, len(pairs) // 3)] for one in pair}
    for some in dict.fromkeys(one for pair in pairs for one in pair):
        noise = Frozen(answers)
        released = planned.release(world.records(some), noise)
        seen[some] = noise.seen
        if some in compared:
            told[some] = [repr(released.score(name, 0.95)) for name in world.scoring]
            told[some] += [repr(released.cut(0.95))]
    largest, wrong = Fraction(0), list[str]()
    for one, other in pairs:
        loss = Fraction(0)
        for (a, law), (b, same) in zip(seen[one], seen[other], strict=True):
            if law != same:
                wrong.append("neighbours have noise of different laws")
            lost: Any = law.rho(a - b) if delta else law.privacy_loss(a - b)  # type: ignore[attr-defined]
            loss += Fraction(lost) if lost < np.inf else 10**9
        largest = max(largest, loss)
        if {one, other} <= compared and told[one] != told[other]:
            wrong.append("metrics depend on more than what was released")
    claim = planned.cost.rho if delta else planned.cost.epsilon
    assert claim is not None
    return float(largest / Fraction(claim)), len(pairs), wrong


def _enumerated(world: ScoredModel, unit: PrivacyUnit, delta: float) -> Iterator[str]:
    share, _, wrong = worst(world, unit, delta)
    yield from wrong[:1]
    if share > 1:
        yield f"{world.name}: the loss is {share:.3f} of what is claimed"
    if world.tight and not delta and share < 0.99:
        yield f"{world.name}: the loss is only {share:.3f} of what is claimed"


def attack(unit: PrivacyUnit, runs: int = RUNS) -> float:
    """Bound epsilon from below by telling a right prediction from a wrong one, of a whole unit."""
    world, k = WORLDS[0], unit.max_records
    other = (2,) if unit.size_is_secret else (2, *[3] * k)
    sides = [world.records(some) for some in ((2, *[7] * k), other)]
    planned = plan(world.task, world.scoring, Budget(Fraction(1), unit=unit), 1 + k)
    noise = Noise.of(0)
    first, second = (
        [[s.value for s in planned.release(side, noise).sums.values()] for _ in range(runs)]
        for side in sides
    )
    return bound_from_outcomes(first, second).epsilon


def _attacked(unit: PrivacyUnit) -> Iterator[str]:
    bound = attack(unit)
    if bound > 1:
        yield f"epsilon is at least {bound:.3f}, not 1"
    if bound < 0.6:
        yield f"the attack is too weak to tell: {bound:.3f}"


def _people(n: int = 60) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, n)
    return (rng.random((n, 2)) < 0.3 + 0.4 * y[:, None]).astype(float), y, np.arange(n) // 3


def prices() -> Iterator[str]:
    """See what is charged, and when."""
    X, y, _ = _people()
    model, ledger = naive_bayes(0.5).fit(X, y), BudgetAccountant(epsilon=3)
    metrics = ["accuracy", "log_loss", "roc_auc"]
    found = private_score(model, X, y, scoring=metrics, epsilon=1, accountant=ledger)
    if (ledger.total().epsilon, len(ledger), found.guarantee.epsilon) != (1, 1, 1):
        yield "three metrics together are not charged once, at what was asked for"
    private_cross_validate(
        naive_bayes(0.5), X, y, scoring="accuracy", epsilon=0.5, cv=4, accountant=ledger
    )
    if ledger.total().epsilon != 3:  # 1 before, three fits of 0.5, and 0.5
        yield "a cross-validation is not charged for all fits that a person is in"
    asked = partial(private_score, model, X, y)
    with calls_of(Noise, "add") as drawn:
        if not refused(lambda: asked(scoring="mae", epsilon=1), ValueError):
            yield "a metric of regressions is not refused"
        more = {"scoring": "accuracy", "epsilon": 0.1, "accountant": ledger}
        if not refused(lambda: asked(**more), BudgetError):
            yield "more than the ceiling is spent"
    if drawn:
        yield "noise is drawn before the charge"


def persons() -> Iterator[str]:
    """See how many records of a person count."""
    X, y, groups = _people()
    model = naive_bayes(0.5, privacy_unit=PERSON).fit(X, y, groups=groups)
    found = private_score(model, X, y, scoring="accuracy", epsilon=1, groups=groups)
    if found.n_records != 40:
        yield f"of 20 persons with three records each, {found.n_records:g} count instead of 40"


def bad_values() -> Iterator[str]:
    """Replace one value by a bad one: no message, finite results, and no more than one cell."""
    X, y, _ = _people(30)
    model = naive_bayes(0.5).fit(X, y)
    names = ["accuracy", "log_loss", "calibration_curve"]
    for bad in (np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324, "text", None):
        table, labels = X.astype(object), y.astype(object)
        table[0, 0], labels[1] = bad, bad
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for side in ((table, y), (X, labels)):
                found = private_score(model, *side, scoring=names, epsilon=1.0)
                if not np.isfinite(found["log_loss"].value):
                    yield "a bad value makes a metric infinite"


def evaluations() -> list[Case]:
    """Return a few worlds of every kind, and all that is no world."""
    cases = [
        Case(f"{world.name}, {name}{gauss}", partial(_enumerated, world, UNITS[name], delta))
        for world in WORLDS
        for name, gauss, delta in (
            ("a record", "", 0.0),
            ("a record added", "", 0.0),
            ("a person", "", 0.0),
            ("a record", ", Gaussian", 1e-6),
        )
        if name == "a record" or world.tight
    ]
    attacks = [Case("attack, a record", partial(_attacked, UNITS["a record"]))]
    return [*cases, *cases_of(*OTHERS), *attacks]


OTHERS = (prices, persons, bad_values)
