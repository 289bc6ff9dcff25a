"""Enumeration of sums: the loss of means and rates over all sums of few records in few steps."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case
from dpbayes_sklearn import GammaExponential, NormalMean
from dpbayes_sklearn.audit.replaying import replay
from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.privacy import Budget, PrivacyUnit
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Interval
from dpbayes_sklearn.sums import release
from dpbayes_sklearn.sums.release import Prior

__all__ = ["sums"]

GRID, N = 6, 4
UNITS = (PrivacyUnit("record"), PrivacyUnit("person", max_records=2))
MODELS = (
    NormalMean(bounds=(-1, 3), sigma=1.0),
    GammaExponential(bounds=(0, 5)),
    GammaExponential(bounds=(-2, 3), data="laplace", location=0.5),
    GammaExponential(bounds=(-2, 3), data="normal", location=0.5),
)


def sums() -> list[Case]:
    """Enumerate noise and draws of every family and unit, and replay neighbours."""
    found = [Case(f"draws, {m}, {u.label}", partial(_draws, m, u)) for m in MODELS for u in UNITS]
    found += [Case(f"noise, {m}, {u.label}", partial(_noise, m, u)) for m in MODELS for u in UNITS]
    return [*found, *(Case(f"replay, {model}", partial(_replayed, model)) for model in MODELS)]


def _prior(model: Any, d: int = 1) -> Prior:
    interval = Interval(*model.bounds)
    columns, families = zip(*[model._column(interval)] * d, strict=True)
    return Prior(columns, families, GRID)


def _draws(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    sampler = Sampler(n_samples=2, n_points=33)
    plan: Any = release.plan(sampler, _prior(model), Facts(N), Budget(Fraction(1), unit=unit))
    low, step = plan.prior.bounds(0, N)[0], plan.prior.step(0)
    weights = plan.weights(0, low + step * np.arange(N * GRID + 1)).astype(float)
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    shifts = range(1, unit.max_records * GRID + 1)
    loss = max(float(np.abs(logs[s:] - logs[:-s]).max()) for s in shifts) * sampler.n_samples
    if loss > 1 + 1e-9:
        yield f"draws of {model}: loss {loss:.4f} of 1"


def _noise(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    for d in (1, 5):
        budget = Budget(Fraction(1), unit=unit)
        plan: Any = release.plan(Laplace(), _prior(model, d), Facts(N), budget)
        loss = float(plan.law.privacy_loss(np.full(d, unit.max_records * GRID)))
        if loss > 1 + 1e-9:
            yield f"noise of {d} sums of {model}: loss {loss:.4f} of 1"
        close = np.eye(d, dtype=np.int64)[0]
        if float(plan.law.privacy_loss(close)) > plan.slopes[0] * plan.prior.step(0) * (1 + 1e-9):
            yield f"noise of {d} sums of {model}: close records lose more than their slope"


def _replayed(model: Any) -> Iterator[str]:
    X = np.array([[0.5], [1.0], [2.0]])
    for value in (np.nan, -1e300, 1e300, 2.75):
        other = np.array([[0.5], [value], [2.0]])
        yield from replay(model, X, None, other, None).divergences
