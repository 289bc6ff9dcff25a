"""Epsilon measured from outside, at the choke point, with a million releases on either side.

The pair of neighbours is the worst there is: one record that changes in everything. The bound must
not exceed the claim, and must come within a tenth of it where added noise is tight. (Independent
``laplace`` noise on one variable of two categories is not: it pays for two counts and tells one.)
Draws from a grid of two points are extreme draws, where neighbours differ most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._table import Row
from dpbayes_sklearn import mechanisms
from dpbayes_sklearn.audit import audit_release
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.posteriors.categories import Beta, SimplexPrior
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.statistics.categories import SimplexCounts
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.network import Network

RUNS = 1_000_000
CLAIM = 1.0
STAR = Network.star([2], 2)
PRIOR = DirichletPrior(STAR, tuple(np.ones(k) for k in STAR.sizes))


def tables_of(*record: int) -> CountTables:
    codes = np.array([record], np.uint8)
    return CountTables.count(STAR, [(codes[:, :-1], codes[:, -1])])


NETWORK = tables_of(1, 1), tables_of(0, 0), PRIOR
VARIABLE = (
    SimplexCounts(np.array([1, 0])),
    SimplexCounts(np.array([0, 1])),
    SimplexPrior(Beta(1, 1)),
)

ROWS = mechanisms.Laplace(noise="joint")  # slower, and a fifth of the runs shows as much

# what is released, how, and the share of the claim that a million runs must show
CASES: list[tuple[str, Mechanism, tuple[Any, ...], float]] = [
    ("naive Bayes", mechanisms.Laplace(), NETWORK, 0.9),
    ("naive Bayes, joint noise", ROWS, NETWORK, 0.9),
    ("naive Bayes", mechanisms.Fourier(), NETWORK, 0.9),
    ("naive Bayes, joint noise", mechanisms.Fourier(noise="joint"), NETWORK, 0.6),
    ("naive Bayes, two points", mechanisms.Sampler(n_points=2), NETWORK, 0.0),
    ("naive Bayes, two points", mechanisms.MAP(n_points=2), NETWORK, 0.0),
    ("naive Bayes, 33 points", mechanisms.Sampler(n_points=33), NETWORK, 0.0),
    ("one variable", mechanisms.Laplace(), VARIABLE, 0.0),
    ("one variable", mechanisms.LaplaceImproved(), VARIABLE, 0.9),
    ("one variable", mechanisms.Geometric(), VARIABLE, 0.9),
    ("one variable", mechanisms.Exponential(), VARIABLE, 0.0),
    ("one variable", mechanisms.Hellinger(), VARIABLE, 0.0),
    ("one variable", mechanisms.Local(), VARIABLE, 0.0),
]


def run(scale: float) -> Iterator[Row]:
    for what, mechanism, (statistics, neighbour, prior), share in CASES:
        full = RUNS // 5 if mechanism is ROWS else RUNS
        runs = max(20_000, int(full * scale))
        bound = audit_release(mechanism, statistics, neighbour, prior, Budget(1), runs)
        least = share * CLAIM if runs >= full else 0.0
        passed = least <= bound.epsilon <= CLAIM or (not least and bound.epsilon <= CLAIM)
        claim = f"<= {CLAIM:g}" + (f", >= {least:g}" if least else "")
        text = f"{what}, {mechanism.name()}: {runs:,} runs a side"
        yield Row("statistical", text, f"epsilon >= {bound.epsilon:.3f}", claim, passed)
    caught = audit_release(mechanisms.Laplace(), *NETWORK[:2], PRIOR, Budget(2), 20_000).epsilon
    what = "naive Bayes, laplace with half the noise: 20,000 runs a side"
    yield Row("statistical", what, f"epsilon >= {caught:.3f}", f"> {CLAIM:g}", caught > CLAIM)
