"""Plans at the edges, where releases once failed after they were charged."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case, cases_of
from benchmarks.audit._plans import KINDS, Plan, attempt, failures, random_plans
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    Schema,
)
from dpbayes_sklearn.categories.counts import ReleasedSimplex
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.columns.plans import ChoicePlan, choice_weights
from dpbayes_sklearn.counts.dependence import TreeChoice
from dpbayes_sklearn.counts.lattice import log_lattice_weight, log_row_weight
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["plans"]

_OF_EACH_KIND = 6
_MOST_MEMORY = 350 * 2**20


def _line(n: int, **options: Any) -> Plan:
    """Return a regression on three numbers and a column of two values."""
    number, sign = Interval(0, 1), Categories([0, 1])
    schema = Schema({"a": number, "b": number, "c": number, "d": sign}, number)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((40, 3)), rng.integers(0, 2, 40)])
    return Plan(BayesianLinearRegression(schema=schema, **options), X, rng.random(40), n)


def _tables(sizes: list[int], n_classes: int, n: int | None, **options: Any) -> Plan:
    """Return a naive Bayes model that takes its noise into account."""
    rng, domains = np.random.default_rng(0), [Categories(range(size)) for size in sizes]
    columns = {f"c{j}": domain for j, domain in enumerate(domains)}
    schema = Schema(columns, Categories(range(n_classes)))
    X = np.column_stack([rng.integers(0, size, 40) for size in sizes])
    model = BayesianNaiveBayes(schema=schema, inference="noise_aware", random_state=0, **options)
    return Plan(model, X, rng.integers(0, n_classes, 40), n)


EDGES: dict[str, Plan] = {
    "signs, many records": _line(54_875, epsilon=1.0, delta=1e-6, mechanism="gaussian"),
    "signs, more records": _line(10**9, epsilon=1.0),
    "signs, a coarse grid": _line(
        10_000,
        epsilon=5e-5,
        delta=1e-6,
        mechanism="auto",
        privacy_unit=PrivacyUnit(
            "person", max_records=5578, by_construction=True, neighbours="add_remove"
        ),
    ),
    "tiny pseudo-counts": _tables(
        [6, 7, 1, 4],
        1,
        None,
        epsilon=0.06,
        delta=1e-6,
        mechanism="gaussian",
        alpha=1e-8,
        privacy_unit=PrivacyUnit(
            "person", max_records=6176, by_construction=True, neighbours="add_remove"
        ),
    ),
    "huge pseudo-counts": _tables(
        [8],
        2,
        None,
        epsilon=2.5,
        mechanism=Laplace(noise="independent"),
        alpha=1e9,
        privacy_unit=PrivacyUnit(
            "person", max_records=809_645, by_construction=True, neighbours="add_remove"
        ),
    ),
    "shares that differ": _tables(
        [4, 2, 7], 2, 205, epsilon=0.01, mechanism=Laplace(budget_split=1e6)
    ),
    "nothing can change": _tables(
        [1, 1], 1, 40, epsilon=1.0, delta=1e-6, mechanism="gaussian", temperature=1
    ),
}
"""By name; none of them may fail after the charge, and none of these is refused."""


def edges(plan: Plan) -> Iterator[str]:
    """Say what goes wrong with a plan that can be released."""
    _, error = attempt(plan)
    if error is not None:
        yield f"{type(error).__name__} ({error}): {plan}"


def weights_of_pseudo_counts() -> Iterator[str]:
    """Weigh counts by priors from the least to the greatest, on lattices of every step."""
    points = np.arange(4096)
    for alpha, step in product((1e-100, 1e-12, 1e-8, 1e-3, 1.0, 1e4, 1e9, 1e12), (1.0, 3.7, 1e5)):
        cell = log_lattice_weight(alpha, points, step)
        row = log_row_weight((alpha,) * 3, 0, int(points[-1]), step)
        if not (np.isfinite(cell).all() and np.isfinite(row).all()):
            yield f"counts of step {step:g} have no weights under pseudo-counts of {alpha:g}"


def too_many_candidates() -> Iterator[str]:
    """Ask for trees of which some cannot be chosen exactly."""
    for columns in (1024, 1025):
        choice = TreeChoice(Network.star([2] * columns, 2))
        refused = _refuses(partial(ChoicePlan.of, choice, Budget(1)))
        half = columns // 2
        scores = np.zeros(half * (columns - half), np.int64)
        if refused != _refuses(partial(choice_weights, scores, 1, 1.0)):
            yield f"a tree over {columns} features is {'' if refused else 'not '}refused beforehand"


def _refuses(call: Callable[[], Any]) -> bool:
    try:
        call()
    except ValueError:
        return True
    return False


def memory_of_wide_noise() -> Iterator[str]:
    """Read two counts that are nothing but noise, of a secret sum."""
    law = DiscreteLaplace.of(Fraction(30_000), [2])
    tracemalloc.start()
    try:
        prior = SimplexPrior(Dirichlet([1.0, 1.0]), "noise_aware")
        prior.update(ReleasedSimplex(np.array([-9, -9]), None, (law,)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > _MOST_MEMORY:
        yield f"noise of scale 30,000 takes {peak >> 20} MB"


def plans() -> list[Case]:
    """Return the edges, and a few random plans of every kind."""
    known = [Case(name, partial(edges, plan)) for name, plan in EDGES.items()]
    others = cases_of(weights_of_pseudo_counts, too_many_candidates, memory_of_wide_noise)
    drawn = [Case(f"random {kind}", partial(_random, kind)) for kind in KINDS]
    return [*known, *others, *drawn]


def _random(kind: str) -> Iterator[str]:
    return failures(random_plans(kind, _OF_EACH_KIND, 8))
