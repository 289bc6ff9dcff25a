"""Bugs that leave something of the data behind in what is handed out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.audit._planted._fault import Faults, at
from dpbayes_sklearn.counts.tables import ReleasedCounts

FAULTS = Faults("fitted")
REPLAY, CARRIED = "replay of estimators", "base.estimator.PrivateEstimator._carried_out"
FIT = "base.classifier.DiscreteClassifier.fit"


@FAULTS.row("leak walk", CARRIED)
def _(real, self, plan, given, *rest):
    """The exact statistics stay in a private attribute."""
    counts = getattr(given.statistics, "counts", given.statistics)
    self._counts = getattr(counts, "tables", None)
    return real(self, plan, given, *rest)


@FAULTS.row("leak walk", "base.spending.carry_out")
def _(real, plan, statistics, noise):
    """A function that is kept holds on to the exact statistics."""
    released = real(plan, statistics, noise)
    object.__setattr__(released.posterior, "_recount", lambda: statistics)
    return released


@FAULTS.row("leak walk", "linear_model.BayesianLinearRegression.fit")
def _(real, self, X, y):
    """The labels stay on the fitted object, as if for later use."""
    real(self, X, y)
    self._y_train = y
    return self


@FAULTS.row(REPLAY, FIT)
def _(real, self, X, y):
    """The number of classes that occur is kept, for a later warning."""
    real(self, X, y)
    self.n_present_ = len({str(label) for label in y})
    return self


_HIDDEN = {}


def _remembering(real, self, X, y):
    _HIDDEN[id(self)] = [str(label) for label in y]
    return real(self, X, y)


FAULTS.rows(REPLAY, {
    "The pickle has a cell that the object does not show":
        at(FIT, _remembering)
        .also("base.estimator.PrivateEstimator.__getstate__", lambda real, self: (
                  {**real(self), **({"_y": _HIDDEN[id(self)]} if id(self) in _HIDDEN else {})}
              )),
})  # fmt: skip


@FAULTS.row(REPLAY, "release.StepPlan.release")
def _(real, self, statistics, noise):
    """The record of the steps, which JSON carries, has what was counted exactly."""
    released = real(self, statistics, noise)
    for note in noise.notes or ():
        note["exact"] = repr(statistics)
    return released


@FAULTS.row("enumeration of counts", "counts.plans.NoisyTables.release")
def _(_, self, statistics, noise):
    """Noisy counts are cut at the exact number of records of their class."""
    most, facts = int(statistics.tables[-1].max()), self.facts
    cut = tuple(np.minimum(t, most) for t in noise.add(statistics.tables, self.law))
    told = ReleasedCounts(self.prior.network, cut, facts.n, (self.law,), facts.laws)
    return self.prior.update(told)


@FAULTS.row(REPLAY, CARRIED)
def _(real, self, plan, given, *rest):
    """The prior is centred at the shares of the classes in the data."""
    if hasattr(plan, "tables"):
        counts, prior = getattr(given.statistics, "counts", given.statistics), plan.tables.prior
        alphas = (*prior.alphas[:-1], 1.0 + counts.tables[-1] / counts.n)
        tables = replace(plan.tables, prior=replace(prior, alphas=alphas))
        plan = tables if plan is plan.tables else replace(plan, tables=tables)
    return real(self, plan, given, *rest)
