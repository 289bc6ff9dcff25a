"""Private searches and pipelines: what a run gets and tells, and that nobody hears of a run."""

from __future__ import annotations

import logging
import math
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.audit._cases import Case, Crossing, calls_of, cases_of, crossings, run_at_once
from benchmarks.audit._models import ADDED, PERSON, THERE, line, naive_bayes
from benchmarks.audit.tools.fuzzing import heard
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, PrivateSearchCV, from_json
from dpbayes_sklearn.model_selection import runs
from dpbayes_sklearn.model_selection.pipelines import People, PipelinePlan
from dpbayes_sklearn.model_selection.runs import HeldOutSplit, SearchPlan, held_out
from dpbayes_sklearn.noise import Noise, made_by
from dpbayes_sklearn.noise.finite import Stopping
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer
from dpbayes_sklearn.privacy.composition import zcdp_rho

N = 40
X = np.column_stack([np.arange(N), np.arange(N) % 3])  # the first column names the record
Y = np.arange(N) % 2
BAYES: dict[str, Any] = {"bounds": (0, N), "inference": "plug_in"}
GRID = {"mechanism": ["laplace", "fourier"]}


def searches() -> list[Case]:
    """Search, and look at every run."""
    return [
        *cases_of(_what_runs_get, _noise_of_scores, _records_without_a_target),
        *cases_of(_who_is_held_out, _what_is_heard),
        *cases_of(_number_of_runs, _many_runs, _with_a_delta),
        *cases_of(_sides_of_persons, _two_searches_at_once, _models_that_are_kept),
        *cases_of(_shares, _what_is_refused, _ledgers, _winner),
        *cases_of(_what_is_printed, _cache, _persons),
    ]


def _what_runs_get() -> Iterator[str]:
    """See that a run has a third of epsilon, for its fit and, by its own noise, for its score."""
    for model, largest in (
        (naive_bayes(**BAYES), 1),
        (line(bounds_X=(0, N)), runs.POINTS),
    ):
        ledger = BudgetAccountant()
        search = PrivateSearchCV(model, GRID, epsilon=0.9, runs_per_candidate=3, accountant=ledger)
        with crossings() as fits, calls_of(runs, "score_law") as scores:
            search.fit(X, Y)
        epsilons = [fit.plan.cost.epsilon for fit in _of_runs(fits)]
        scales = [score.result.scales[0] for score in scores]
        name, third = type(model).__name__, Fraction(3, 10)
        if any(epsilon > third for epsilon in epsilons):
            yield f"{name}: a fit has more than a third of epsilon"
        if not scales or any(scale < largest / third for scale in scales):
            yield f"{name}: a score has too little noise"
        if len(ledger) != 1 or ledger.total().epsilon != 0.9:
            yield f"{name}: the search was charged {ledger.total().epsilon}"
        if set(search.cv_results_) != {"params"}:
            yield f"{name}: the search tells how other candidates did"


def _of_runs(seen: list[Crossing]) -> list[Crossing]:
    """Leave out the release of the search itself."""
    return [one for one in seen if not isinstance(one.statistics, runs.HeldOutSplit)]


def _noise_of_scores() -> Iterator[str]:
    """Compare exact scores of a regression with those that its runs tell."""
    model = line(bounds_X=(0, N))
    with calls_of(runs, "points") as earned, calls_of(runs, "run") as told:
        PrivateSearchCV(model, GRID, runs_per_candidate=3).fit(X, Y)
    if [int(one.result.sum()) for one in earned] == [one.result.score for one in told]:
        yield "scores carry no noise"


def _records_without_a_target() -> Iterator[str]:
    """See that every held-out record earns from 0 to what the noise of a score covers."""
    y = np.where(np.arange(N) % 4, Y, 9.0)
    y[::8] = np.nan  # not a class, and not a number
    for model in (naive_bayes(**BAYES), line(bounds_X=(0, N))):
        with calls_of(runs, "points") as earned:
            PrivateSearchCV(model, GRID, runs_per_candidate=8, random_state=3).fit(X, y)
        each = np.concatenate([one.result for one in earned])
        if each.min() < 0 or each.max() > runs.sensitivity(model):
            yield f"{type(model).__name__}: a record earns {each.min()} or {each.max()} points"


def _who_is_held_out() -> Iterator[str]:
    """See that nobody is both fitted to and held out, and that labels do not decide who is."""
    model = naive_bayes(**BAYES)
    search = PrivateSearchCV(model, GRID, runs_per_candidate=1, random_state=3)
    with calls_of(SearchPlan, "release") as seen:
        for y in (Y, np.sort(Y)):
            search.fit(X, y)
    sides = [(one.args[1].train, one.args[1].test) for one in seen]
    split = [[set(part[0][:, 0].tolist()) for part in both] for both in sides]
    if split[0][0] & split[0][1]:
        yield "people are fitted to and held out"
    if split[0] != split[1]:
        yield "who is held out depends on labels"


def _what_is_heard() -> Iterator[str]:
    """Compare the warnings and log lines of searches with different numbers of runs."""
    told = set()
    # bounds are not declared, which is warned of; that a class seems absent is logged by every fit
    model = BayesianNaiveBayes(classes=[0, 1, 2], n_bins=2, inference="plug_in")
    for count in (1, 5):
        search = PrivateSearchCV(model, GRID, epsilon=300.0, runs_per_candidate=1, random_state=1)
        with made_by(_always(count)), heard() as found:
            search.fit(X, Y)
        told.add((tuple(str(w.message) for w in found[0]), tuple(found[1])))
    if len(told) > 1:
        yield "warnings or log lines tell the number of runs"


def _models_that_are_kept() -> Iterator[str]:
    """Count the models that are there at a time, of searches with different numbers of runs."""
    most = []
    for count in (20, 60):
        made: list[weakref.ref[Any]] = []
        alive, run = [0], runs.run

        def counted(*args: Any, _made: Any = made, _alive: Any = alive, _run: Any = run) -> Any:
            one = _run(*args)
            _made.append(weakref.ref(one.model))
            _alive.append(sum(ref() is not None for ref in _made))
            return one

        model = naive_bayes(**BAYES)
        with made_by(_always(count)), planted((runs, "run", counted)):
            PrivateSearchCV(model, {}).fit(X, Y)
        most.append(max(alive))
    if most[1] - most[0] > 10:  # by chance, one or two models wait for the garbage collector
        yield "the memory of a search grows with its secret number of runs"


def _always(count: int) -> Any:
    """Return noise that decides on this number of runs."""
    return type("Always", (Noise,), {"runs": lambda self, stopping: count})


def _number_of_runs() -> Iterator[str]:
    """Compare numbers of runs with their laws: the price of a search rests on them."""
    laws = {"geometric": ((1, 0.2), (2, 0.16)), "logarithmic": ((1, 0.497), (2, 0.1988))}
    for name, chances in laws.items():
        law = Stopping(name, 5)
        drawn = np.array([Noise.of(i).runs(law) for i in range(400)])
        for r, chance in chances:
            spread = (400 * chance * (1 - chance)) ** 0.5
            if abs((drawn == r).sum() - 400 * chance) > 6 * spread:
                yield f"{(drawn == r).sum()} of 400 searches, {name}, have {r} runs"


def _many_runs() -> Iterator[str]:
    """See that searches of many runs are not given up, and that large numbers are not left out."""
    law = Stopping.of_mean("logarithmic", 300)
    p, noise = 1 - 1 / law.inverse, Noise.of(0)
    try:
        drawn = np.array([noise.runs(law) for _ in range(3000)])
    except RuntimeError:
        yield "the number of runs of a search is not drawn, after its charge"
        return
    for most in (10, 100, 1000, 2500):
        chance = sum(p**r / r for r in range(1, most + 1)) / np.log(law.inverse)
        spread = (3000 * chance * (1 - chance)) ** 0.5
        if abs((drawn <= most).sum() - 3000 * chance) > 6 * spread:
            yield f"{(drawn <= most).sum()} of 3000 searches have at most {most} runs"


def _sides_of_persons() -> Iterator[str]:
    """See that a person's side is drawn anew, from the source, and that records do not share it."""
    who, half = np.arange(N) // 2, 0.5
    for unit, labels in (
        (PERSON, who),
        (THERE, who),
        (ADDED, None),
    ):
        sides = [held_out(N, labels, unit, half, Noise.of(None)) for _ in range(40)]
        if len({train.tobytes() for train, _ in sides}) < 20:
            yield f"{unit.label}: who is held out is the same in many searches"
        if any({*who[train]} & {*who[test]} for train, test in sides if labels is not None):
            yield f"{unit.label}: a person is on both sides"
        often = sum(np.isin(np.arange(N), test).astype(int) for _, test in sides)
        if min(often) < 4 or max(often) > 36:  # by chance in one of 10^5 audits
            yield f"{unit.label}: somebody is held out {min(often)} or {max(often)} times of 40"


def _two_searches_at_once() -> Iterator[str]:
    """Let a run of one search end while a run of another is in the middle of its fit."""
    model = naive_bayes(30.0, classes=[0, 1, 2], **BAYES)  # a class is absent: logged
    ready, fit = runs.prepared(model, X, Y, None, None), BayesianNaiveBayes._fit
    first_inside, second_inside, first_over = (threading.Event() for _ in range(3))

    def in_turn(self: Any, *args: Any) -> Any:
        first = threading.current_thread().name == "first"
        (first_inside if first else second_inside).set()
        (second_inside if first else first_over).wait(60)
        warnings.warn("of another library", UserWarning, stacklevel=2)
        return fit(self, *args)

    def first() -> None:
        runs.run(0, ready, None, (X, Y))
        first_over.set()

    def second() -> None:
        first_inside.wait(60)
        runs.run(0, ready, None, (X, Y))

    logger = logging.getLogger("dpbayes_sklearn")
    with (
        planted((logger, "disabled", False), (logger, "handlers", [])),
        heard() as (caught, logged),
        planted((BayesianNaiveBayes, "_fit", in_turn)),
    ):
        run_at_once([threading.Thread(target=run, name=run.__name__) for run in (first, second)])
        if logged or caught:
            yield "the search that ends first unmutes the other"
        warnings.warn("heard", UserWarning, stacklevel=2)
        if logger.disabled or not caught:
            yield "two searches leave the process silent"


def _with_a_delta() -> Iterator[str]:
    """See that the fits and scores of a search with a delta are far below its own zCDP."""
    model = naive_bayes(mechanism="gaussian", **BAYES)
    search = PrivateSearchCV(model, {"alpha": [0.5, 1.0]}, epsilon=0.9, delta=1e-3)
    secret = clone(model).set_params(privacy_unit=ADDED)
    with crossings() as seen, calls_of(runs, "score_law") as laws:
        search.fit(X, Y)
        PrivateSearchCV(secret, {"alpha": [0.5, 1.0]}, epsilon=0.9, delta=1e-3).fit(X, Y)
    wide = line(mechanism="map")  # of many columns, for which a delta means less noise
    with crossings() as modes:
        PrivateSearchCV(wide, {"prior_precision": [1.0]}, epsilon=0.9, delta=1e-3).fit(
            np.zeros((40, 30)), np.zeros(40)
        )
    rehearsal = [isinstance(one.statistics, HeldOutSplit) for one in modes].index(True)
    if any(run.plan.cost.delta and run.plan.cost.rho is None for run in modes[rehearsal + 1 :]):
        yield "a run is not zCDP"
    costs = [fit.plan.cost for fit in _of_runs(seen)]
    fits = [Fraction(c.epsilon) ** 2 / 2 if c.rho is None else c.rho for c in costs]
    scores = [law.result.rho(np.ones(1, np.int64)) for law in laws]
    whole = zcdp_rho(Fraction(9, 10), Fraction(1, 1000))
    if max([*fits, *scores]) > whole / 2 or not scores:
        yield "a run has the zCDP of the whole search"
    if (search.guarantee_.epsilon, search.guarantee_.delta) != (0.9, 1e-3):
        yield f"the search promises {search.guarantee_}"


GRID_OF_STEPS = {"model__alpha": [0.5, 1.0]}


def _step(epsilon: float = 0.5, **options: Any) -> BayesianNaiveBayes:
    return naive_bayes(epsilon, inference="plug_in", **options)


def _pipe(bins: Any = None, model: Any = None, **options: Any) -> Pipeline:
    bins = bins or PrivateKBinsDiscretizer(2, epsilon=0.5)
    return Pipeline([("bins", bins), ("model", model or _step())], **options)


def _shares() -> Iterator[str]:
    """See that the steps of a pipeline share the epsilon of a run."""
    with crossings() as seen:
        PrivateSearchCV(_pipe(), GRID_OF_STEPS, epsilon=0.9, runs_per_candidate=1).fit(X, Y)
    spent: list[Any] = []
    for one in seen:
        if isinstance(one.statistics, People):
            spent.append(Fraction(0))
        elif not isinstance(one.statistics, HeldOutSplit) and spent:  # and after the rehearsal
            spent[-1] += one.plan.cost.epsilon
    if any(total > Fraction(3, 10) for total in spent):
        yield "the steps of a pipeline have more than a third of epsilon"


def _what_is_refused() -> Iterator[str]:
    """See that steps are private, of finite epsilon and for the same unit, before the charge."""
    feature = _step(privacy_unit="feature")
    exact = PrivateKBinsDiscretizer(2, epsilon=math.inf)
    bad: dict[str, tuple[Any, Any]] = {
        "that is not private": (_pipe(StandardScaler()), GRID_OF_STEPS),
        "of infinite epsilon": (_pipe(exact), GRID_OF_STEPS),
        "for another unit, by the grid": (_pipe(), {"model__privacy_unit": ["feature"]}),
        "for another unit, by a candidate": (_pipe(), {"model": [feature]}),
    }
    for what, (pipe, grid) in bad.items():
        ledger = BudgetAccountant()
        try:
            PrivateSearchCV(pipe, grid, runs_per_candidate=1, accountant=ledger).fit(X, Y)
        except ValueError:
            if len(ledger):
                yield f"a step {what} is refused after the charge"
        else:
            yield f"a step {what} is taken"


def _ledgers() -> Iterator[str]:
    """See that the ledger of the first step is charged, and that two are refused."""
    one, other = BudgetAccountant(), BudgetAccountant()
    first = PrivateKBinsDiscretizer(2, epsilon=0.5, accountant=one)
    PrivateSearchCV(_pipe(first), GRID_OF_STEPS, runs_per_candidate=1).fit(X, Y)
    if [entry.epsilon for entry in one] != [1.0]:
        yield "the ledger of the first step is not charged"
    try:
        PrivateSearchCV(_pipe(first, _step(accountant=other)), GRID_OF_STEPS).fit(X, Y)
    except ValueError:
        return
    yield "one of two ledgers is charged"


def _winner() -> Iterator[str]:
    """See that a winner that is stored and read again promises what the search did."""
    search = PrivateSearchCV(_pipe(), GRID_OF_STEPS, runs_per_candidate=1).fit(X, Y)
    for _, step in search.best_estimator_.steps:
        if step.guarantee_ != search.guarantee_:
            yield "a step of the winner promises more than the search"
    try:
        again = from_json(search.best_estimator_[-1].to_json())
    except ValueError:
        yield "the parts of a stored winner promise different things"
    else:
        if again.guarantee_ != search.guarantee_:
            yield "a stored winner promises more than the search"


def _what_is_printed() -> Iterator[str]:
    """Search with a pipeline and with workers that are asked to report what they do."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out), joblib.parallel_config(verbose=60):
        PrivateSearchCV(_pipe(verbose=True), GRID_OF_STEPS, runs_per_candidate=1).fit(X, Y)
    if out.getvalue():
        yield "a search prints what tells the number of runs"


def _cache() -> Iterator[str]:
    """See that a pipeline with a cache draws the noise of every fit, and stores nothing."""
    with (
        TemporaryDirectory() as folder,
        calls_of(PipelinePlan, "release") as fits,
        calls_of(PrivateKBinsDiscretizer, "_set") as drawn,
        made_by(_always(4)),
    ):
        PrivateSearchCV(_pipe(memory=folder), GRID_OF_STEPS, runs_per_candidate=1).fit(X, Y)
    if len(drawn) < len(fits):
        yield "runs share the noise of a step"


def _persons() -> Iterator[str]:
    """See that every step knows whose records they are."""
    # bins of equal width look at the number of records
    bins = PrivateKBinsDiscretizer(2, strategy="uniform", epsilon=0.5, privacy_unit=THERE)
    model = _step(privacy_unit=THERE)
    who = np.arange(N) // 3
    search = PrivateSearchCV(_pipe(bins, model), GRID_OF_STEPS, epsilon=3.0, runs_per_candidate=1)
    try:  # a step that is not told refuses
        search.fit(X, Y, groups=who)
    except RuntimeError:
        yield "a step of a pipeline is not told whose records it is fitted to"
