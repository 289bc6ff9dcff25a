"""What is published about uncertainty: intervals that hold, or none, and no false certainty."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case, Row, silent
from benchmarks.audit._models import ADDED, line, naive_bayes
from dpbayes_sklearn import BetaBinomial, DirichletMultinomial


def run(scale: float) -> Iterator[Row]:
    """Repeat every release, and count."""
    runs = max(150, round(1000 * scale))
    for name, setting in SETTINGS.items():
        found = covered(*setting, runs)
        what = f"{name}, n = {setting[0]}, epsilon = {setting[1]:g}"
        yield Row(what, f"95 % hold in {found:.3f}", f">= {LEAST}", found >= LEAST)
    yield silent("coefficients without known errors", stated())
    for n in (1000, 4900):
        excess = excess_of_confidence(n, max(1, round(8 * scale)))
        what = f"forty dependent columns, n = {n:,}, epsilon = 0.1"
        figure = f"too sure by {excess:+.3f}"
        yield Row(what, figure, f"<= {MOST}", excess <= MOST)


LEAST = 0.85  # Required coverage of 95 % intervals: two moments are matched, and runs are few.
MOST = 0.12  # Largest excess of mean confidence over accuracy.
SHARES = np.array([0.5, 0.3, 0.1, 0.05, 0.04, 0.01])
SETTINGS: dict[str, tuple[int, float, dict[str, Any]]] = {
    "a proportion, geometric": (50, 0.1, {}),
    "a proportion, laplace": (50, 0.2, {"mechanism": "laplace"}),
    "a proportion, gaussian": (50, 0.5, {"mechanism": "gaussian", "delta": 1e-6}),
    "a proportion, hellinger": (40, 0.5, {"mechanism": "hellinger"}),
    "a proportion, secret number of records": (60, 0.2, {"privacy_unit": ADDED}),
    "rare categories": (1000, 0.1, {"categories": len(SHARES)}),
}


def covered(n: int, epsilon: float, options: dict[str, Any], runs: int) -> float:
    """Return how often an interval holds; of several categories, that of the worst."""
    rng, held = np.random.default_rng(3), []
    kind: Any = DirichletMultinomial if "categories" in options else BetaBinomial
    for seed in range(runs):
        p = SHARES if "categories" in options else np.array([rng.random()])
        records = rng.choice(len(SHARES), n, p=p) if len(p) > 1 else rng.random(n) < p
        posterior = kind(epsilon, random_state=seed, **options).fit(records).posterior_
        low, high = np.atleast_2d(posterior.credible_interval()).T
        held.append((low <= p) & (p <= high))
    return float(np.mean(held, axis=0).min())


def _too_rare(n: int, epsilon: float, options: dict[str, Any]) -> Iterator[str]:
    found = covered(n, epsilon, options, 150)
    if found < LEAST:
        yield f"95 % intervals hold in {found:.2f}"


def stated() -> Iterator[str]:
    """Look for intervals of coefficients whose errors are not known."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = np.clip(X @ [0.5, 0.2] + rng.normal(scale=0.05, size=300), 0, 1)
    for options in ({"mechanism": "map"}, {"mechanism": "sampler"}, {"inference": "plug_in"}):
        model = line(**options).fit(X, y)
        shown = repr(model.coefficients()), model.card(), model.coefficients()._repr_html_()
        if any("95 %" in text for text in shown):
            yield f"{options} states intervals of 95 %"


def excess_of_confidence(n: int, runs: int) -> float:
    """Return by how much naive Bayes is too sure, with forty columns of one cause."""
    rng = np.random.default_rng(0)
    y = rng.random(n + 2000) < 0.5
    cause = y ^ (rng.random(len(y)) < 0.25)
    X = (cause[:, None] ^ (rng.random((len(y), 40)) < 0.1)).astype(int)
    excess = []
    for seed in range(runs):
        model = naive_bayes(0.1, random_state=seed, classes=[False, True]).fit(X[:n], y[:n])
        probabilities = model.predict_proba(X[n:])
        right = (probabilities.argmax(axis=1) == y[n:]).mean()
        excess.append(probabilities.max(axis=1).mean() - right)
    return float(np.mean(excess))


def _too_sure() -> Iterator[str]:
    found = excess_of_confidence(4900, 1)
    if found > MOST:
        yield f"confidence exceeds accuracy by {found:.2f}"


def intervals() -> list[Case]:
    """Return every setting, the tables of coefficients, and dependent columns."""
    cases = [Case(name, partial(_too_rare, *setting)) for name, setting in SETTINGS.items()]
    others = (Case("coefficients", stated), Case("forty dependent columns", _too_sure))
    return [*cases, *others]
