"""Bugs of a logistic regression: its mode, its histograms, its curvature and its draws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, returns, times
from dpbayes_sklearn.logistic.blocks import PLACES

FAULTS = Faults("logistic")
MANY = "logistic, many columns, record"
THREE, FIVE = "logistic, 3 classes, record", "logistic, 5 classes, record"
ORDERED = "logistic, ordered, record"
RECORD, PERSON = "logistic, linear, record", "logistic, linear, person (2 records)"


def _scaled(by):
    return lambda law: replace(law, scale=law.scale / by)


def _unpaid(case):
    return at("logistic.mode.volume_of", returns(Fraction(1, 10**9)), case).also(
        "convex.perturbed.raised", lambda real, ridge, *_: ridge / 4
    )


FAULTS.rows("parts", {
    "The noise of a logistic mode hides a record that goes, not the one that comes":
        at("logistic.release.plan_mode",
           changed(body=lambda body: body._replace(law=_scaled(2)(body.law))), RECORD),
    "The determinant of a logistic mode is not paid for, with a quarter of the ridge":
        _unpaid(RECORD),
    "The determinant of a logistic mode with Gaussian noise is not paid for":
        _unpaid(MANY),
    "Gaussian noise of a logistic mode is calibrated for twice its delta":
        at("logistic.mode.search_delta", times(2), MANY),
    "The weights of Gaussian noise leave the last block out of the norm of a record":
        at("noise.gradient.BlockShape.norm",
           lambda _, shape: 1 + sum(k - 1 for k in shape.sizes[:-1]), MANY),
    "The determinant of a logistic mode is paid for as with eight times the ridge":
        at("convex.perturbed.raised", times(1 / 8), PERSON),
    "The search for a logistic mode ends early":
        at("convex.perturbed.Search.minimum", lambda real, self, error: real(self, 1e9 * error),
           RECORD),
    "What is released of a logistic mode has hardly any jitter":
        at("logistic.release.plan_mode", changed(jitter=_scaled(64)), RECORD),
    "The noise of three classes hides a record that goes, not the one that comes":
        at("logistic.release.plan_classes",
           changed(body=lambda body: body._replace(law=_scaled(2)(body.law))), THREE),
    "The noises of five classes hide the residual of one class of a record":
        at("logistic.softmax.Lift.of", changed(reach=1), FIVE),
    "The noise of ordered classes hides a record that goes, not the one that comes":
        at("logistic.release.plan_ordered",
           changed(body=lambda body: body._replace(law=_scaled(2)(body.law))), ORDERED),
    "The loss of ordered classes is the sum over the cuts, not the mean":
        at("logistic.ordered.OrderedLoss.gradient", lambda real, self, w: 3 * real(self, w),
           ORDERED),
    "The determinant of ordered classes is not paid for, with a quarter of the ridge":
        _unpaid(ORDERED),
    "The determinant of several classes is not paid for, with a quarter of the ridge":
        _unpaid(THREE),
    "The determinant of several classes is paid for as with eight times the ridge":
        at("convex.perturbed.raised", times(1 / 8), FIVE),
    "The histograms of a logistic regression have twice their share":
        at("logistic.release.LookPlan.of",
           lambda real, *args: real(*args[:-2], 2 * args[-2], args[-1]), RECORD),
    "Records are scaled to 16 times the limit of the noise of the curvature":
        at("logistic.release.CurvaturePlan.of", lambda real, cls, *given: real(
               cls, *given[:-1], given[-1] / 16
           )._replace(limit=given[-1]), "logistic, smooth, record"),
    "The score of a logistic draw is said to have a quarter of its range":
        at("logistic.draws.score_of_records", times(0.25), "logistic, sampler, linear, record"),
    "The mode that logistic draws are made around has all of the budget":
        at("logistic.release.plan_mode",
           lambda real, blocks, n, epsilon, *args: real(blocks, n, 2 * epsilon, *args),
           "logistic, sampler, linear, record"),
})  # fmt: skip

FAULTS.rows("replay of estimators", {
    "Predictions of a logistic regression are scaled by how many records have a class":
        at("logistic.release.LogisticPlan.release", lambda real, self, records, noise: real(
               replace(self, rho=1 + records.read().records.n), records, noise
           ), "LogisticRegression, targets may be missing"),
    "The level of rates follows from how many records have a count":
        at("rates.release.RatePlan.release", lambda real, self, records, noise: replace(
               real(self, records, noise), level=float(records.read().records.n)
           ), "CountRegression, targets may be missing"),
})  # fmt: skip


@FAULTS.row("parts", "logistic.release.PerturbedLoss", RECORD)
def _(real, loss, plan):
    """The ridge of a logistic mode grows with the gradient of the records."""
    gradient = loss.gradient(np.zeros(loss.n_parameters))
    return real(loss, replace(plan, ridge=plan.ridge + abs(float(gradient[0]))))


RATES = "rates, linear, record"
FAULTS.rows("parts", {
    "Second derivatives of counts are thought to be those of classes":
        at("rates.release.HEAVIEST", 1, RATES),
    "The determinant of a mode of rates is not paid for, with a quarter of the ridge":
        _unpaid(RATES),
    "Counts are clipped at twice their cap":
        at("rates.records.Cap.encode", times(2), RATES),
    "The level of rates protects one record of a person":
        at("rates.records.LevelSums.law", lambda real, self, unit, epsilon: real(
               self, replace(unit, max_records=1), epsilon
           ), "rates, linear, person (2 records)"),
    "Square residuals count twice":
        at("rates.records._squares", times(2), RATES),
    "Square residuals are thought to be as small as second derivatives":
        at("rates.release._SQUARE", 1, RATES),
})  # fmt: skip
FAULTS.rows("after the charge", {
    "The logarithm of an exposure is taken before it is clipped":
        at("rates.records.Exposure.encode", lambda _, self, values: np.rint(
               (np.log(values) - (ends := self._ends)[0]) / (ends[1] - ends[0]) * PLACES
           ).astype(np.intp), "counts with an exposure"),
})  # fmt: skip
