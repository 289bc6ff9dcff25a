"""Bugs of private searches: what a run gets, tells and prints, and the rehearsal before it."""

from __future__ import annotations

import logging
import math
import warnings
from contextlib import contextmanager, nullcontext
from copy import copy
from fractions import Fraction

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from benchmarks.audit._planted._fault import Faults, at, returns, times
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn._compat import _safe_indexing
from dpbayes_sklearn.model_selection import pipelines, rehearsal, runs
from dpbayes_sklearn.noise import DiscreteLaplace, Noise
from dpbayes_sklearn.noise.finite import Stopping, _geometric
from dpbayes_sklearn.noise.integers import rounds, uniform_below
from dpbayes_sklearn.privacy.budget import RECORD
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.schema.values import as_cells

FAULTS = Faults("searching")
SEARCHES, REHEARSALS, PARTS = "searches", "rehearsals", "parts"
RUNS, SEARCH, PIPES = (f"model_selection.{m}" for m in ("runs", "search", "pipelines"))
REHEARSAL, NUMBER = "model_selection.rehearsal", "noise.noise.number_of_runs"
COINS, STEPS = f"{RUNS}.coins_of", f"{PIPES}.step_epsilons"
PIPELINE, CV = f"{PIPES}.PrivatePipeline", f"{SEARCH}.PrivateSearchCV"
REFUSED = "what is refused"
PURE, ZCDP = "search, geometric, 0.0", "search, geometric, 0.001"


@contextmanager
def _switched_off(_):
    """Turn log and warnings off by switches of the process."""
    logger = logging.getLogger("dpbayes_sklearn")
    with planted((logger, "disabled", True)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield []


def _held(estimators):
    """Return the ledgers of all steps."""
    steps = [step for one in estimators for step in pipelines.steps_of(one)]
    return [step.accountant for step in steps if step.accountant is not None]


def _with(**parameters):
    """Leave a pipeline its cache, or its prints, which its own method then uses."""
    return lambda _, pipeline: clone(pipeline).set_params(**parameters)


def _fitted_as_a_pipeline(_, pipeline, people):
    pipeline.fit(people.X, people.y)


FAULTS.rows(SEARCHES, {
    "Warnings of the runs tell how many there were":
        at(f"{RUNS}.silence", lambda _: nullcontext(), "what is heard"),
    "Every run has the epsilon of the whole search": at(f"{SEARCH}.PRICE", {"geometric": 1}),
    "Scores carry no noise":
        at(f"{RUNS}.score_law", lambda *_: DiscreteLaplace.of(Fraction(0), [1]), "noise of scores"),
    "A held-out record without a target takes points away":
        at(f"{RUNS}.points", lambda real, model, X, y: np.where(
               model._has_target(y), real(model, X, y), -10
           ), "without a target"),
    "The number of runs is fixed, and no longer secret":
        at(NUMBER, lambda _, stopping, source: stopping.inverse, "number of runs"),
    "With a delta every run has the zCDP of the whole search":
        at(f"{SEARCH}.run_rho", lambda _, epsilon, delta, *law: zcdp_rho(epsilon, delta),
           "with a delta"),
    "Logarithmic stopping is priced, geometric stopping is used":
        at(NUMBER, lambda real, stopping, source: real(Stopping("geometric", 5), source),
           "number of runs"),
    "People who are held out are fitted to as well":
        at(f"{SEARCH}.held_out", lambda real, n, *rest: (np.arange(n), real(n, *rest)[1]),
           "who is held out"),
    "The search is not charged, as its runs are thought to be": at(f"{CV}._ledger", returns(None)),
    "Every step of a pipeline has the epsilon of a whole run":
        at(STEPS, lambda real, pipe, total: dict.fromkeys(real(pipe, total), total), "shares"),
    "A pipeline in a search may have steps that are not private":
        at(f"{PIPES}.private_steps",
           lambda _, pipeline: [step for step in pipeline.steps if hasattr(step[1], "epsilon")],
           REFUSED)
        .also((f"{PIPELINE}._validate_params", f"{PIPES}.refuse_others", f"{SEARCH}.refuse_others"),
              returns(None)),
    "A grid may change the unit that a step protects":
        at(f"{SEARCH}.candidates_of", lambda _, grid: list(ParameterGrid(grid)), REFUSED)
        .also(f"{PIPELINE}._declared_unit", RECORD)
        .also(f"{PIPELINE}._validate_params", returns(None)),
    "A candidate that replaces a step may protect another unit":
        at(f"{PIPELINE}._declared_unit", RECORD, REFUSED)
        .also(f"{PIPELINE}._validate_params", returns(None)),
    "Ledgers of all steps but the last are forgotten":
        at(f"{SEARCH}.shared_ledger",
           lambda _, models: pipelines.steps_of(models[0])[-1].accountant, "ledgers"),
    "One of two ledgers is charged":
        at(f"{SEARCH}.shared_ledger", lambda _, models: next(iter(_held(models)), None), "ledgers"),
    "A verbose pipeline prints a line for every run":
        at(f"{PIPES}.fresh", _with(memory=None), "what is printed")
        .also(f"{PIPES}._fit_in_turn", _fitted_as_a_pipeline),
    "Runs share the noise of a step that a pipeline has cached":
        at(f"{PIPES}.fresh", _with(verbose=False), "cache")
        .also(f"{PIPES}._fit_in_turn", _fitted_as_a_pipeline),
    "joblib prints how many runs are done":
        at(f"{RUNS}.Parallel", lambda _, n_jobs, verbose: joblib.Parallel(n_jobs),
           "what is printed"),
    "A step of a pipeline is not told whose records they are":
        at(f"{PIPES}._fit_in_turn",
           lambda real, pipe, people: real(pipe, people._replace(groups=None)), "persons"),
    "With a delta the number of records is released besides the zCDP":
        at(f"{RUNS}._epsilon_of_size", times(40), "with a delta")
        .also(f"{RUNS}._budget_within",
              lambda real, model, given, asked, rho, most:
                  real(model, given, asked, abs(rho), most)),
    "A run of a search with a delta is a mode that is not zCDP":
        at(f"{RUNS}._budget_within",
           lambda real, model, given, asked, rho, most:
               asked._replace(epsilon=real(model, given, asked, rho, most).epsilon),
           "with a delta"),
    "Runs are silenced by switches of the process, which another search turns back":
        at(f"{RUNS}.silence", _switched_off, "two searches"),
    "A search keeps the models of all runs until the last":
        at(f"{RUNS}._MODELS_AT_A_TIME", 10**6, "models that are kept"),
    "In a search of persons a fixed seed decides who is held out":
        at(COINS, lambda real, labels, _: real(labels, Noise(np.random.default_rng(0).bytes)),
           "sides of persons"),
    "Every record has a side of its own, also those of one person":
        at(COINS, lambda real, labels, noise: real(np.arange(len(labels)), noise),
           "sides of persons"),
    "Logarithmic stopping cuts off its few large numbers of runs":
        at(NUMBER, lambda real, stopping, source: min(real(stopping, source), stopping.inverse),
           "many runs"),
    "Logarithmic stopping takes every number of a power of two alike":
        at("noise.finite._one_below",
           lambda real, bound, source: real(1 << (bound.bit_length() - 1), source), "many runs"),
})  # fmt: skip
FAULTS.rows(REHEARSALS, {
    "A search is rehearsed on the records themselves":
        at(f"{REHEARSAL}.stand_ins",
           lambda _, X, y, groups, *rest: rehearsal.StandIns(X, y, groups), "a selection"),
    "Stand-ins are copies of the first record":
        at(f"{REHEARSAL}._one_row", lambda _, X: _safe_indexing(X, [0]), "a selection"),
    "Later steps of a pipeline are tried with one selection of columns only":
        at(f"{REHEARSAL}._forms", lambda _, step, X: iter([step]), "errors of later steps"),
    "A search splits a list as it is, and every part says how many columns there are":
        at(f"{REHEARSAL}._one_row", lambda real, X: (
               np.zeros((1, *as_cells(X, 2).shape[1:]), object).tolist()
               if isinstance(X, list)
               else real(X)
           ), "lists of rows").also(f"{SEARCH}.in_memory", lambda _, X, *rest: X),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "Geometric stopping costs twice a run":
        at(f"{SEARCH}.PRICE", {"geometric": 2, "logarithmic": 2}, PURE),
    "Logarithmic stopping costs one run and a half":
        at(f"{SEARCH}.PRICE", {"geometric": 3, "logarithmic": Fraction(3, 2)},
           "search, logarithmic, 0.0"),
    "With a delta, all stopping is priced as logarithmic":
        at(f"{SEARCH}.run_rho", lambda real, e, d, eta, inverse, mean: real(e, d, 0, inverse, mean),
           ZCDP),
    "Gaussian noise of a score has the variance of half of its square":
        at(f"{RUNS}.representable_variance", times(Fraction(1, 2)), ZCDP),
    "A score is divided by the exact number of records held out":
        at(f"{CV}._protected",
           lambda real, *args: ((found := real(*args))[0]._replace(n_test=None), found[1]),
           "search of nobody knows how many"),
    "The last step of a pipeline has the epsilon of the whole run":
        at(STEPS, lambda real, pipe, all_: {**(own := real(pipe, all_)), [*own][-1]: all_}, PURE),
})  # fmt: skip


def _unclipped(_, model, X, y):
    if not hasattr(model.schema_.target, "high"):
        classes = model.schema_.classes
        return (classes.encode(model._predict_by_row(X)) == classes.encode(y)).astype(np.int64)
    largest = float(runs.LARGEST_ERROR) * (model.schema_.target.high - model.schema_.target.low)
    error = (model._predict_by_row(X) - np.asarray(y, float)) / largest
    return np.floor(runs.POINTS * (1 - error**2)).astype(np.int64)


FAULTS.rows(PARTS, {
    "Large errors of a regression earn less than nothing":
        at(f"{RUNS}.LARGEST_ERROR", Fraction(1, 4), PURE).also(f"{RUNS}.points", _unclipped),
})  # fmt: skip


@FAULTS.row(SEARCHES, f"{RUNS}.score_law")
def _(real, *args):
    """One person is thought to move a score by half of what he can."""
    whole = runs.sensitivity
    with planted((runs, "sensitivity", lambda model: Fraction(whole(model), 2))):
        return real(*args)


@FAULTS.row(SEARCHES, f"{CV}._protected", "who is held out")
def _(real, self, records, groups, *rest):
    """Who is held out depends on the labels."""
    X, y, _ = records.train
    order = np.argsort(y, kind="stable")
    return real(self, records._replace(train=(X[order], y[order], None)), groups, *rest)


@FAULTS.row(SEARCHES, f"{CV}._attach")
def _(real, self, public, release):
    """The results list how often every candidate was run."""
    fitted = real(self, public, release)
    fitted.cv_results_["n_runs"] = [1] * len(public)
    return fitted


@FAULTS.row(SEARCHES, STEPS, REFUSED)
def _(real, pipeline, total):
    """One step of infinite epsilon makes all steps of a pipeline exact."""
    own = dict(pipelines.private_steps(pipeline))
    infinite = any(math.isinf(step.epsilon) for step in own.values())
    return dict.fromkeys(own, math.inf) if infinite else real(pipeline, total)


@FAULTS.row(SEARCHES, f"{PIPELINE}.winner", "winner")
def _(_, self, ledger):
    """The winner's batches keep the guarantee of a run."""
    for _, step in pipelines.private_steps(self.posterior_):
        step.guarantee_ = self.guarantee_
    return self.posterior_


@FAULTS.row(SEARCHES, NUMBER, "many runs")
def _(_, stopping, source):
    """Logarithmic stopping gives up after 255 proposals, once the search is charged."""
    number, attempt = _geometric(stopping.inverse, source), rounds()
    while uniform_below(number, 1, source)[0]:
        next(attempt)
        number = _geometric(stopping.inverse, source)
    return number


@FAULTS.row(REHEARSALS, f"{REHEARSAL}.stand_ins", "a classifier")
def _(real, X, y, *facts):
    """Stand-ins have the targets of the records."""
    made = real(X, y, *facts)
    return made._replace(y=y) if len(made.y) == len(y) else made


@FAULTS.row(REHEARSALS, f"{REHEARSAL}.stand_ins", "a secret number")
def _(real, X, y, *facts):
    """There are as many stand-ins as records, though their number is secret."""
    made = real(X, y, *facts)
    own = _safe_indexing(rehearsal._one_row(X), [0] * len(y))
    return made._replace(X=own, y=made.y[: len(y)], groups=made.groups and made.groups[: len(y)])


@FAULTS.row(REHEARSALS, f"{RUNS}.run", "errors of runs")
def _(real, candidate, ready, seed, test, rho=None):
    """The error of a run is shown as it is."""
    runs._scored(copy(ready.model), ready, test, rho)
    return real(candidate, ready, seed, test, rho)
