"""Bugs of private evaluations, of means and rates, and of plans that fail after the charge."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from benchmarks.audit._planted._fault import Faults, at, returns, uncached
from dpbayes_sklearn.counts.count_lattice import log_dirichlet_weight
from dpbayes_sklearn.metrics.statistics import SCORE_STEPS
from dpbayes_sklearn.noise.discrete_laplace import integer_allowance
from dpbayes_sklearn.privacy.budget import RECORD

FAULTS = Faults("publishing")
METRICS, SUMS, PLANS = "evaluations", "enumeration of sums", "plans"
LAW, LOSS = "metrics.statistics.ScoreSums.law", "sums.release.draw_loss"
CACHES = ("counts.count_lattice._shared_mass", "counts.count_lattice._split_mass")


def _uncut(_, self, records, name):
    predicted, truth = (self._in_units(own) for own in (records.predicted, records.truth))
    found = truth if name.startswith("target") else np.abs(truth - predicted) / self.reach
    return found**2 if name.endswith("squared") or name == "squared_error" else found


FAULTS.rows(METRICS, {
    "A replaced record is thought to change one cell of a confusion matrix":
        at("metrics.statistics.CellCounts.sensitivity", lambda _, unit: unit.max_records,
           "confusion matrix, a record"),
    "A person's records are thought to change a sum as much as one record":
        at(LAW, lambda real, cls, number, unit, *shares: real(
               cls, number, replace(unit, name="record", max_records=1), *shares
           ), "accuracy, a person"),
    "Losses are not clipped before they are added up":
        at("metrics.statistics.Range.steps",
           lambda _, self, values: np.rint((values - self.middle) / self.half * SCORE_STEPS).astype(
               np.int64
           ), "all of a regression, a record")
        .also("metrics.statistics.Regression.losses", _uncut),
    "Every part of an evaluation has all of its epsilon":
        at("metrics.plan._with_noise",
           lambda real, part, unit, share, *rest: real(part, unit, Fraction(1), *rest),
           "all of a classifier, a record"),
    "The spread of the losses, which only intervals need, has no noise":
        at("metrics.plan._with_noise",
           lambda real, part, *rest: part if part.name == "spreads" else real(part, *rest),
           "log loss, a record"),
    "The number of errors that are cut has no noise":
        at("metrics.plan._with_noise",
           lambda real, part, *rest: part if part.name == "cut" else real(part, *rest),
           "absolute error, a record"),
    "The number of errors that are cut is released at no cost":
        at("metrics.plan._parts",
           lambda real, task, scoring, budget, n: [
               replace(part, name="missing") if part.name == "cut" else part
               for part in real(task, scoring, budget, n)
           ], "absolute error, a record"),
    "The number of records without a target has half of its noise":
        at("metrics.plan._with_noise",
           lambda real, part, unit, share, *rest: real(
               part, unit, share * (1 + (part.name == "missing")), *rest
           ), "accuracy, a record"),
    "Metrics are divided by the exact number of records, though it is secret":
        at("metrics.plan.EvaluationPlan.release", lambda real, self, records, noise: replace(
               real(self, records, noise), n=len(records.truth)
           ), "accuracy, a record added"),
    "The Gaussian noise of sums is calibrated to one of them":
        at(LAW, lambda real, cls, number, unit, epsilon, rho: real(
               cls, number, unit, epsilon, None if rho is None else number * rho
           ), "all of a regression, a record, Gaussian"),
    "An evaluation is not charged": at("metrics.scoring._charge", returns(None), "prices"),
    "A cross-validation is charged for one fit":
        at("metrics.scoring._charge", lambda real, ledger, cost, what: real(
               ledger, cost._replace(epsilon=cost.epsilon / (1 + ("cross_validate" in what))), what
           ), "prices"),
    "All records of a person are evaluated, however many":
        at("metrics.scoring.records_that_count", lambda _, records, *__: (records, ()), "persons"),
    "The sums of an evaluation have half of their noise":
        at(LAW,
           lambda real, cls, number, unit, epsilon, rho: real(cls, number, unit, 2 * epsilon, rho),
           "attack, a record"),
})  # fmt: skip
FAULTS.rows("after the charge", {
    "Persons are dealt to folds by coins, so that a fold may be too small for a fit":
        at("metrics.scoring._folds", lambda real, n, labels, unit, cv, noise: real(
               n, labels, replace(unit, neighbours="add_remove", name="record"), cv, noise
           ), "private_cross_validate of classes"),
    "Metrics are computed in the state of numpy that the caller left":
        at("metrics.scoring.quiet_numpy", nullcontext, "private_score of numbers"),
    "Errors are squared in units of the target":
        at("metrics.statistics.Regression.losses", lambda real, self, records, name: (
               real(self, records, name) * ((self.high - self.low) ** 2 > 0)
           ), "private_score of numbers"),
})  # fmt: skip
FAULTS.rows(SUMS, {
    "All records of a person change a sum as one does":
        at("sums.release.largest_change", lambda _, grid, unit: grid, "noise"),
    "A draw is thought to lose half of what it does":
        at(LOSS, lambda real, *facts: real(*facts) / 2, "draws"),
    "The closest records are promised what their distance says, without the rounding":
        at("sums.release.SumsPosterior", lambda real, means, variances, slopes, roundings, **more:
           real(means, variances, slopes, 0 * roundings, **more), "closest"),
    "The loss of a draw is looked for at small sums only":
        at(LOSS, lambda real, prior, j, n, k, points, temper: real(
               prior, j, 10 * n, k, points, temper / 10
           ), "draws"),
})  # fmt: skip
FAULTS.rows("parts", {
    "Every answer of a session about means is drawn for twice its epsilon":
        at(LOSS, lambda real, *facts: real(*facts) / 2, "session, record, NormalMean"),
    "All records of a person change a drawn rate as one does":
        at("sums.release.largest_change", lambda _, grid, unit: grid,
           "session, person (2 records), GammaExponential"),
    "A session about a proportion protects one record of a person":
        at("papers.query.plan", lambda real, mechanism, prior, facts, budget: real(
               mechanism, prior, facts, budget._replace(unit=RECORD)
           ), "session, person (2 records), BetaBinomial"),
})  # fmt: skip
FAULTS.rows(PLANS, {
    "The masses of tiny pseudo-counts are differences of rounding errors":
        at("counts.count_lattice._log_mass",
           lambda _, alpha, x: log_dirichlet_weight(alpha + 1.0, x), "tiny pseudo-counts")
        .also(CACHES, uncached),
    "Memory grows with the noise of counts whose sum is secret":
        at("categories.counts._least_step", returns(1), "memory of wide noise"),
})  # fmt: skip


@FAULTS.row(SUMS, "sums.release.Column.codes", "replay")
def _(_, self, numbers, grid):
    """Numbers beyond the bounds are not clipped."""
    least, most = self.range
    share = (self.statistic(np.nan_to_num(numbers, posinf=9e9)) - least) / (most - least)
    return np.rint(np.clip(share, -1e6, 1e6) * grid).astype(np.int64)


def _log_sharing(_, alpha, index, step):
    slope = step * np.log((alpha + index * step) / (1.0 + index * step))
    half = np.maximum(np.abs(slope) / 2.0, 1e-9)
    return 2.0 * np.log(np.sinh(half) / half) - (alpha - 1.0) / (12.0 * index**2)


FAULTS.rows(PLANS, {
    "Weights of huge pseudo-counts overflow":
        at("counts.count_lattice._log_sharing", _log_sharing, "weights of pseudo counts")
        .also(CACHES, uncached),
})  # fmt: skip


@FAULTS.row(PLANS, "noise.DiscreteLaplace.error_bound", "shares that differ")
def _(_, self, delta):
    """The bound of errors is searched where rounding leaves no crossing."""
    noisy = {}
    for scale, size in zip(self.scales, self.sizes, strict=True):
        noisy[float(scale)] = noisy.get(float(scale), 0) + size
    alone = [b * math.log(m / delta) + integer_allowance(b) for b, m in noisy.items()]
    if len(alone) < 2:
        return max(alone)
    largest = max(b * math.log(len(noisy)) + z for b, z in zip(noisy, alone, strict=True))
    tails = [(b, m, integer_allowance(b)) for b, m in noisy.items()]
    return brentq(
        lambda z: sum(m * math.exp((a - z) / b) for b, m, a in tails) - delta,
        max(alone),
        largest + 1.0,
    )
