"""Bugs where ways of records meet: deltas, weights of persons, missing classes, allotments."""

from __future__ import annotations

from argparse import Namespace
from copy import copy
from dataclasses import replace
from fractions import Fraction
from tempfile import NamedTemporaryFile

import numpy as np
from sklearn.base import clone

from benchmarks.audit._planted._fault import Faults, at, uncached
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.noise.discrete_laplace import truncated_laplace
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee

FAULTS = Faults("charging")
CHARGES, PARTS = "charges", "parts"

FAULTS.rows(CHARGES, {
    "Weights of a person are those of one record":
        at("privacy.budget.Copies.counted",
           lambda _, self: PrivacyUnit("person", max_records=self.most, neighbours="add_remove"),
           "weights, laplace, person"),
    "The share of a secret total weight is left out of the promise":
        at("base.spending.SpendingEstimator._spent_before",
           lambda real, self, *budgets: Fraction(0) if self._copies else real(self, *budgets),
           "weights, laplace, record"),
    "A delta for copies that come or go is promised where a record is replaced":
        at("privacy.budget.Copies._times", lambda *_: Fraction(1), "weights, gaussian, record"),
    "A record that loses its class is thought to stay in tables of one cell":
        at("counts.plans.with_public_cells", lambda _, tables, *rest: tables,
           "one value, laplace, record"),
    "Sparse rows without a class count for the first one":
        at("counts.tables.with_target",
           lambda real, shard, known: shard if shard.table.is_sparse else real(shard, known),
           "sparse rows, record"),
    "An evaluation knows the exact number of missing targets":
        at("metrics.scoring._said", lambda real, *args: real(*args)._replace(missing=0),
           "scored, laplace, record"),
    "Masses are drawn twice as sharply as their sensitivity allows":
        at("counts.dirichlet._mass_sensitivity", lambda real, *args: real(*args) / 2, "masses"),
    "Gaussian counts of a person are certified for one pattern of shifts":
        at("counts.plans.calibrated_variance",
           lambda real, budget: real(budget._replace(unit=RECORD)), "proven for persons"),
    "All batches promise the delta of the last":
        at("privacy.PrivacyGuarantee.parallel", lambda real, batches: (
               PrivacyGuarantee(**{**vars(real(batches)), "delta": batches[-1].delta})
           ), "batches, gaussian, record"),
    "A cross-validation charges the delta of one fit":
        at("metrics.scoring._charge", lambda real, ledger, cost, what: real(
               ledger, cost._replace(delta=cost.delta * 2 / 3) if "folds" in what else cost, what
           ), "cross-validated, gaussian, record"),
    "Records of a person are in several folds":
        at("metrics.scoring._folds", lambda real, n, labels, *rest: real(
               n, None if labels is None else np.arange(n), *rest
           ), "cross-validated, laplace, person"),
})  # fmt: skip


@FAULTS.row(CHARGES, "papers.query._priced_per_query", "queries, record")
def _(real, estimator, accountant):
    """A query may spend a delta that nobody states."""
    return real(estimator, accountant).set_params(delta=estimator.delta)


@FAULTS.row(CHARGES, "privacy.ledger.Ledger.remaining", "what is left")
def _(real, self):
    """What is left of an allotment ignores its ceiling of delta."""
    whole = copy(self)
    whole.allotment = ""
    return real(self)._replace(delta=real(whole).delta)


@FAULTS.row(CHARGES, "privacy.ledger.Ledger._refuse_beyond_allotment", "what is left")
def _(real, self, connection, spend):
    """An allotment may spend any delta."""
    return real(self, connection, spend._replace(cost=spend.cost._replace(delta=Fraction(0))))


FAULTS.rows(PARTS, {
    "The zCDP of draws leaves out the histograms of target and columns":
        at("convex.draws.DrawsPlan.of", lambda real, cls, *given, **options: replace(
               plan := real(cls, *given, **options),
               cost=plan.cost._replace(rho=plan.cost.rho - plan.look_share**2 / 2),
           ), "regression, Sampler(n_samples=30), record, add_remove"),
    "The mean of the number of runs is left out of the price of a search":
        at("model_selection.rehearsal.winner_epsilon",
           lambda real, *args: real(*args[:-1], 1.0), "search, geometric, 0.001")
        .also("model_selection.search.run_rho", uncached),
    "The records of a person earn a search as many points as one record":
        at("model_selection.runs.score_law",
           lambda real, model, rho: real(clone(model).set_params(privacy_unit="record"), rho),
           "search, person (2 records), 0.0"),
    "The delta of a mode of many records is not halved":
        at("noise.gradient.largest_ratio", lambda real, epsilon, delta, changed, *rest: real(
               epsilon, delta * (2 if changed > 2 else 1), changed, *rest
           ), "logistic, many columns, person"),
})  # fmt: skip


FAULTS.rows("enumeration of units", {
    "A weight above 1 counts one more than it says":
        at("data.records.CountedRecords.weighted",
           lambda real, self, w: real(self, np.where(w > 1, w + 1, w)), "weighted tables, record"),
})  # fmt: skip


@FAULTS.row("sampler laws", "noise.noise.Noise.common")
def _(real, self, columns, law):
    """The noise of texts is drawn once for all columns."""
    most = max(map(len, columns), default=0)
    once = truncated_laplace(law, most, self._source)
    with planted((self, "truncated", lambda law, size: once[:size])):
        return real(self, columns, law)


FAULTS.rows("source of bytes", {
    "Weights are rounded by coins of a public seed":
        at("base.estimator.copies_of", lambda real, weights, n, most, seed: (
               real(weights, n, most, 7)
           )),
})  # fmt: skip
FAULTS.rows("leak walk", {
    "Records of a stream are in a file that has a name":
        at("data.arrow.TemporaryFile", lambda _: NamedTemporaryFile(delete=False)),  # noqa: SIM115
})  # fmt: skip
FAULTS.rows("command line", {
    "An allotment is forgotten": at(
        "__main__._accountant",
        lambda real, options: real(Namespace(**{**vars(options), "allotment": None})),
        "allotment",
    ),
})  # fmt: skip
