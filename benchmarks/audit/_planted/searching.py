"""Bugs of private searches: what a run gets, tells and prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.model_selection import pipelines, runs, search
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.random_stopping import Stopping
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.unit import RECORD

Replacements = Iterator[tuple[Any, str, Any]]


@fault("searching", "searches", "Warnings of the runs tell how many there were", "what is heard")
def runs_are_heard() -> Replacements:
    for module in (runs, runs):
        yield module, "silence", nullcontext


@fault("searching", "searches", "Every run has the epsilon of the whole search")
def runs_cost_nothing() -> Replacements:
    yield search, "PRICE", {"geometric": 1}


@fault("searching", "searches", "Scores carry no noise", "noise of scores")
def exact_scores() -> Replacements:
    yield runs, "score_law", lambda *_: DiscreteLaplace.of(Fraction(0), [1])


@fault("searching", "searches", "One person is thought to move a score by half of what he can")
def half_a_score() -> Replacements:
    real, law = runs.sensitivity, runs.score_law

    def too_little(*args: Any) -> Any:
        with planted((runs, "sensitivity", lambda model: Fraction(real(model), 2))):
            return law(*args)

    yield runs, "score_law", too_little


@fault(
    "searching", "searches", "The number of runs is fixed, and no longer secret", "number of runs"
)
def runs_of_a_fixed_number() -> Replacements:
    yield drawing, "number_of_runs", lambda stopping, source: stopping.inverse


@fault(
    "searching",
    "searches",
    "With a delta every run has the zCDP of the whole search",
    "with a delta",
)
def zcdp_of_the_search() -> Replacements:
    yield search, "run_rho", lambda epsilon, delta, *law: zcdp_rho(epsilon, delta)


@fault(
    "searching",
    "searches",
    "Logarithmic stopping is priced, geometric stopping is used",
    "number of runs",
)
def cheaper_than_it_stops() -> Replacements:
    real = drawing.number_of_runs
    yield drawing, "number_of_runs", lambda stopping, s: real(Stopping("geometric", 5), s)


@fault("searching", "searches", "People who are held out are fitted to as well", "who is held out")
def nobody_held_out() -> Replacements:
    real = search.held_out

    def everybody(n: int, *rest: Any) -> Any:
        return np.arange(n), real(n, *rest)[1]

    yield search, "held_out", everybody


@fault("searching", "searches", "Who is held out depends on the labels", "who is held out")
def held_out_by_label() -> Replacements:
    real = search.PrivateSearchCV._protected

    def sorted_first(self: Any, records: Any, groups: Any, *rest: Any) -> Any:
        X, y, _ = records.train
        order = np.argsort(y, kind="stable")
        return real(self, records._replace(train=(X[order], y[order], None)), groups)

    yield search.PrivateSearchCV, "_protected", sorted_first


@fault("searching", "searches", "The results list how often every candidate was run")
def other_candidates() -> Replacements:
    attach = search.PrivateSearchCV._attach

    def telling(self: Any, public: Any, release: Any) -> Any:
        fitted = attach(self, public, release)
        fitted.cv_results_["n_runs"] = [1] * len(public)
        return fitted

    yield search.PrivateSearchCV, "_attach", telling


@fault("searching", "searches", "The search is not charged, as its runs are thought to be")
def searches_are_free() -> Replacements:
    yield search.PrivateSearchCV, "_ledger", lambda self: None


@fault("searching", "searches", "Every step of a pipeline has the epsilon of a whole run", "shares")
def steps_do_not_share() -> Replacements:
    real = pipelines.step_epsilons

    def everything(pipeline: Any, total: Any) -> dict[str, Any]:
        return dict.fromkeys(real(pipeline, total), total)

    yield pipelines, "step_epsilons", everything


@fault(
    "searching",
    "searches",
    "A pipeline in a search may have steps that are not private",
    "what is refused",
)
def any_step_will_do() -> Replacements:
    yield pipelines, "private_steps", _steps_with_a_guarantee
    yield pipelines.PrivatePipeline, "_validate_params", lambda self: None
    for module in (pipelines, search):
        yield module, "refuse_others", lambda estimator: None


def _steps_with_a_guarantee(pipeline: Any) -> list[tuple[str, Any]]:
    return [(name, step) for name, step in pipeline.steps if hasattr(step, "epsilon")]


@fault(
    "searching",
    "searches",
    "One step of infinite epsilon makes all steps of a pipeline exact",
    "what is refused",
)
def infinity_is_shared() -> Replacements:
    real = pipelines.step_epsilons

    def exact(pipeline: Any, total: Any) -> dict[str, Any]:
        own = dict(pipelines.private_steps(pipeline))
        if any(math.isinf(step.epsilon) for step in own.values()):
            return dict.fromkeys(own, math.inf)
        return real(pipeline, total)

    yield pipelines, "step_epsilons", exact


@fault(
    "searching", "searches", "A grid may change the unit that a step protects", "what is refused"
)
def unit_of_a_step() -> Replacements:
    yield search, "candidates_of", lambda grid: list(ParameterGrid(grid))
    yield pipelines.PrivatePipeline, "_declared_unit", RECORD
    yield pipelines.PrivatePipeline, "_validate_params", lambda self: None


@fault(
    "searching",
    "searches",
    "A candidate that replaces a step may protect another unit",
    "what is refused",
)
def unit_of_a_new_step() -> Replacements:
    yield pipelines.PrivatePipeline, "_declared_unit", RECORD
    yield pipelines.PrivatePipeline, "_validate_params", lambda self: None


@fault("searching", "searches", "Ledgers of all steps but the last are forgotten", "ledgers")
def ledgers_of_early_steps() -> Replacements:
    yield search, "shared_ledger", lambda all_: pipelines.steps_of(all_[0])[-1].accountant


@fault("searching", "searches", "One of two ledgers is charged", "ledgers")
def either_ledger() -> Replacements:
    def any_of(estimators: Any) -> Any:
        held = [step.accountant for one in estimators for step in pipelines.steps_of(one)]
        return next((ledger for ledger in held if ledger is not None), None)

    yield search, "shared_ledger", any_of


@fault("searching", "searches", "The winner's batches keep the guarantee of a run", "winner")
def guarantee_of_a_run() -> Replacements:
    def winner(self: Any, ledger: Any) -> Any:
        for _, step in pipelines.private_steps(self.posterior_):
            step.guarantee_ = self.guarantee_
        return self.posterior_

    yield pipelines.PrivatePipeline, "winner", winner


def _fitted_as_a_pipeline(pipeline: Any, people: Any) -> None:
    """Fit a pipeline by its own method, which caches steps and prints."""
    pipeline.fit(people.X, people.y)


@fault("searching", "searches", "A verbose pipeline prints a line for every run", "what is printed")
def pipelines_are_verbose() -> Replacements:
    yield pipelines, "fresh", lambda pipeline: clone(pipeline).set_params(memory=None)
    yield pipelines, "_fit_in_turn", _fitted_as_a_pipeline


@fault("searching", "searches", "joblib prints how many runs are done", "what is printed")
def joblib_is_verbose() -> Replacements:
    yield runs, "Parallel", lambda n_jobs, verbose: joblib.Parallel(n_jobs)


@fault(
    "searching", "searches", "Runs share the noise of a step that a pipeline has cached", "cache"
)
def cached_noise() -> Replacements:
    yield pipelines, "fresh", lambda pipeline: clone(pipeline).set_params(verbose=False)
    yield pipelines, "_fit_in_turn", _fitted_as_a_pipeline


@fault(
    "searching", "searches", "A step of a pipeline is not told whose records they are", "persons"
)
def steps_without_persons() -> Replacements:
    real = pipelines._fit_in_turn
    yield (
        pipelines,
        "_fit_in_turn",
        lambda pipe, people: real(pipe, people._replace(groups=None)),
    )


@fault(
    "searching",
    "searches",
    "With a delta the number of records is released besides the zCDP",
    "with a delta",
)
def number_besides_the_zcdp() -> Replacements:
    real = runs._epsilon_of_size
    yield runs, "_epsilon_of_size", lambda *facts: 40 * real(*facts)
    within = runs._epsilon_within
    yield runs, "_epsilon_within", lambda m, given, rho, most: within(m, given, abs(rho), most)
