"""What is published about uncertainty: intervals that hold, or none, and probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.audit._cases import Case, Row, silent
from benchmarks.audit._models import ADDED, line
from benchmarks.data.tables import small_split
from dpbayes_sklearn import BayesianNaiveBayes, BetaBinomial, DirichletMultinomial


def run(scale: float) -> Iterator[Row]:
    """Repeat every release, and count."""
    runs = max(150, round(1000 * scale))
    for name, setting in SETTINGS.items():
        found = covered(*setting, runs)
        what = f"{name}, n = {setting[0]}, epsilon = {setting[1]:g}"
        yield Row(what, f"95 % hold in {found:.3f}", f">= {LEAST}", found >= LEAST)
    yield silent("coefficients without known errors", stated())
    for name, epsilon in SMALL_TABLES:
        excess = excess_of_loss(name, epsilon, max(2, round(16 * scale)))
        figure = f"log loss {excess:+.3f} against temperature=1"
        yield Row(f"{name}, epsilon = {epsilon:g}", figure, f"<= {MOST}", excess <= MOST)


LEAST = 0.85  # Required coverage of 95 % intervals: two moments are matched, and runs are few.
MOST = 0.02  # Largest excess of log loss over that of temperature=1, on small tables.
SMALL_TABLES = (("iris", 1.0), ("iris", 3.0), ("wine", 3.0), ("breast cancer", 1.0))
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


def excess_of_loss(name: str, epsilon: float, runs: int) -> float:
    """Return by how much the log loss of naive Bayes is above that with ``temperature=1``."""
    excess = []
    for seed in range(runs):
        X, y, test_X, test_y, public = small_split(name, seed)
        losses = []
        for temperature in ("auto", 1):
            model = BayesianNaiveBayes(
                epsilon, temperature=temperature, random_state=seed, **public
            ).fit(X, y)
            losses.append(log_loss(test_y, model.predict_proba(test_X), labels=model.classes_))
        excess.append(losses[0] - losses[1])
    return float(np.mean(excess))


def _worse_than_plain() -> Iterator[str]:
    for name, epsilon in SMALL_TABLES:
        found = excess_of_loss(name, epsilon, 4)
        if found > MOST:
            yield f"{name}: log loss {found:+.3f} against temperature=1"


def intervals() -> list[Case]:
    """Return every setting, the tables of coefficients, and small tables."""
    cases = [Case(name, partial(_too_rare, *setting)) for name, setting in SETTINGS.items()]
    others = (Case("coefficients", stated), Case("small tables", _worse_than_plain))
    return [*cases, *others]
