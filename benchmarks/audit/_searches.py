"""Private searches: what a run gets and tells, who is held out, and that nobody hears of a run."""

from __future__ import annotations

import logging
import threading
import warnings
import weakref
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Case, cases_of
from benchmarks.audit._search_steps import steps_of_pipelines
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    PrivateSearchCV,
)
from dpbayes_sklearn.audit.fuzzing import Ear
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.model_selection import runs
from dpbayes_sklearn.model_selection import runs as of_runs
from dpbayes_sklearn.model_selection.runs import SearchPlan, held_out
from dpbayes_sklearn.noise import Noise, made_by
from dpbayes_sklearn.noise.finite import Stopping
from dpbayes_sklearn.privacy import guarantee
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import boundary

__all__ = ["searches"]

N = 40
X = np.column_stack([np.arange(N), np.arange(N) % 3])  # the first column names the record
Y = np.arange(N) % 2
BAYES: dict[str, Any] = {"bounds": (0, N), "n_bins": 2, "inference": "plug_in"}
GRID = {"mechanism": ["laplace", "fourier"]}


def searches() -> list[Case]:
    """Search, and look at every run."""
    return [
        *cases_of(_what_runs_get, _noise_of_scores, _who_is_held_out, _what_is_heard),
        *cases_of(_number_of_runs, _many_runs, _with_a_delta),
        *cases_of(_sides_of_persons, _two_searches_at_once, _models_that_are_kept),
        *steps_of_pipelines(),
    ]


def _what_runs_get() -> Iterator[str]:
    """See that a run has a third of epsilon, for its fit and, by its own noise, for its score."""
    for model, largest in (
        (BayesianNaiveBayes(classes=[0, 1], **BAYES), 1),
        (BayesianLinearRegression(bounds_X=(0, N), bounds_y=(0, 1)), of_runs.POINTS),
    ):
        epsilons: list[Any] = []
        scales: list[Any] = []
        law_of = of_runs.score_law

        def fits(release: Any, plan: Any, *rest: Any, _log: Any = epsilons) -> Any:
            if not isinstance(rest[0], of_runs.HeldOutSplit):  # of a run, not of the search
                _log.append(plan.cost.epsilon)
            return release(plan, *rest)

        def scores(*args: Any, _log: Any = scales) -> Any:
            law = law_of(*args)  # noqa: B023
            _log.append(law.scales[0])
            return law

        ledger = BudgetAccountant()
        search = PrivateSearchCV(model, GRID, epsilon=0.9, runs_per_candidate=3, accountant=ledger)
        with (
            boundary(fits),
            planted((of_runs, "score_law", scores)),
        ):
            search.fit(X, Y)
        name, third = type(model).__name__, Fraction(3, 10)
        if any(epsilon > third for epsilon in epsilons):
            yield f"{name}: a fit has more than a third of epsilon"
        if not scales or any(scale < largest / third for scale in scales):
            yield f"{name}: a score has too little noise"
        if len(ledger) != 1 or ledger.total().epsilon != 0.9:
            yield f"{name}: the search was charged {ledger.total().epsilon}"
        if set(search.cv_results_) != {"params"}:
            yield f"{name}: the search tells how other candidates did"


def _noise_of_scores() -> Iterator[str]:
    """Compare exact scores of a regression with those that its runs tell."""
    exact: list[int] = []
    told: list[int] = []
    points, run = of_runs.points, runs.run

    def counted(*args: Any) -> Any:
        earned = points(*args)
        exact.append(int(earned.sum()))
        return earned

    def ran(*args: Any) -> Any:
        one = run(*args)
        told.append(one.score)
        return one

    line = BayesianLinearRegression(bounds_X=(0, N), bounds_y=(0, 1))
    with (
        planted((of_runs, "points", counted)),
        planted((runs, "run", ran)),
    ):
        PrivateSearchCV(line, GRID, runs_per_candidate=3).fit(X, Y)
    if exact == told:
        yield "scores carry no noise"


def _who_is_held_out() -> Iterator[str]:
    """See that nobody is both fitted to and held out, and that labels do not decide who is."""
    split: list[Any] = []
    real = SearchPlan.release

    def watched(self: Any, statistics: Any, *rest: Any) -> Any:
        split.append([set(part[0][:, 0].tolist()) for part in (statistics.train, statistics.test)])
        return real(self, statistics, *rest)

    model = BayesianNaiveBayes(classes=[0, 1], **BAYES)
    search = PrivateSearchCV(model, GRID, runs_per_candidate=1, random_state=3)
    with planted((SearchPlan, "release", watched)):
        for y in (Y, np.sort(Y)):
            search.fit(X, y)
    if split[0][0] & split[0][1]:
        yield "people are fitted to and held out"
    if split[0] != split[1]:
        yield "who is held out depends on labels"


def _what_is_heard() -> Iterator[str]:
    """Compare the warnings and log lines of searches with different numbers of runs."""
    heard = set()
    # bounds are not declared, which is warned of; that a class seems absent is logged by every fit
    model = BayesianNaiveBayes(classes=[0, 1, 2], n_bins=2, inference="plug_in")
    logger, drawn = logging.getLogger("dpbayes_sklearn"), iter((1, 5))
    for count in drawn:
        ear = Ear()
        logger.addHandler(ear)
        search = PrivateSearchCV(model, GRID, epsilon=300.0, runs_per_candidate=1, random_state=1)
        with (
            warnings.catch_warnings(record=True) as caught,
            made_by(_always(count)),
            planted((guarantee, "_warned", True)),  # once in a process
        ):
            warnings.simplefilter("always")
            search.fit(X, Y)
        logger.removeHandler(ear)
        heard.add((tuple(str(w.message) for w in caught), tuple(ear.heard)))
    if len(heard) > 1:
        yield "warnings or log lines tell the number of runs"


def _models_that_are_kept() -> Iterator[str]:
    """Count the models that are there at a time, of searches with different numbers of runs."""
    most = set()
    for count in (20, 60):
        made: list[weakref.ref[Any]] = []
        alive, run = [0], runs.run

        def counted(*args: Any, _made: Any = made, _alive: Any = alive, _run: Any = run) -> Any:
            one = _run(*args)
            _made.append(weakref.ref(one.model))
            _alive.append(sum(ref() is not None for ref in _made))
            return one

        model = BayesianNaiveBayes(classes=[0, 1], **BAYES)
        with (
            made_by(_always(count)),
            planted((runs, "run", counted)),
        ):
            PrivateSearchCV(model, {}).fit(X, Y)
        most.add(max(alive))
    if len(most) > 1:
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
        (PrivacyUnit("person", max_records=2), who),
        (PrivacyUnit("person", max_records=2, neighbours="add_remove"), who),
        (PrivacyUnit("record", neighbours="add_remove"), None),
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
    model = BayesianNaiveBayes(30.0, classes=[0, 1, 2], **BAYES)  # a class is absent: logged
    ready, fit = of_runs.prepared(model, X, Y, None, None), BayesianNaiveBayes._fit
    first_inside, second_inside, first_over = (threading.Event() for _ in range(3))

    def in_turn(self: Any, *args: Any) -> Any:
        first = threading.current_thread().name == "first"
        (first_inside if first else second_inside).set()
        (second_inside if first else first_over).wait(60)
        warnings.warn("of another library", UserWarning, stacklevel=2)
        return fit(self, *args)

    def first() -> None:
        of_runs.run(0, ready, None, (X, Y))
        first_over.set()

    def second() -> None:
        first_inside.wait(60)
        of_runs.run(0, ready, None, (X, Y))

    ear, logger = Ear(), logging.getLogger("dpbayes_sklearn")
    with (
        warnings.catch_warnings(record=True) as caught,
        planted((BayesianNaiveBayes, "_fit", in_turn)),
        planted((logger, "disabled", False)),
        planted((logger, "handlers", [ear])),
    ):
        warnings.simplefilter("always")
        threads = [threading.Thread(target=run, name=run.__name__) for run in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if ear.heard or caught:
            yield "the search that ends first unmutes the other"
        warnings.warn("heard", UserWarning, stacklevel=2)
        if logger.disabled or not caught:
            yield "two searches leave the process silent"


def _with_a_delta() -> Iterator[str]:
    """See that the fits and scores of a search with a delta are far below its own zCDP."""
    fits: list[Any] = []
    scores: list[Any] = []
    law_of = of_runs.score_law

    def fitted(release: Any, plan: Any, *rest: Any) -> Any:
        cost = plan.cost
        if not isinstance(rest[0], of_runs.HeldOutSplit):  # of a run, not of the search
            fits.append(Fraction(cost.epsilon) ** 2 / 2 if cost.rho is None else cost.rho)
        return release(plan, *rest)

    def scored(*args: Any) -> Any:
        law = law_of(*args)
        scores.append(law.rho(np.ones(1, np.int64)))
        return law

    model = BayesianNaiveBayes(classes=[0, 1], mechanism="gaussian", **BAYES)
    search = PrivateSearchCV(model, {"alpha": [0.5, 1.0]}, epsilon=0.9, delta=1e-3)
    secret = clone(model).set_params(privacy_unit=PrivacyUnit("record", neighbours="add_remove"))
    with (
        boundary(fitted),
        planted((of_runs, "score_law", scored)),
    ):
        search.fit(X, Y)
        PrivateSearchCV(secret, {"alpha": [0.5, 1.0]}, epsilon=0.9, delta=1e-3).fit(X, Y)
    whole = zcdp_rho(Fraction(9, 10), Fraction(1, 1000))
    if max([*fits, *scores]) > whole / 2 or not scores:
        yield "a run has the zCDP of the whole search"
    if (search.guarantee_.epsilon, search.guarantee_.delta) != (0.9, 1e-3):
        yield f"the search promises {search.guarantee_}"
