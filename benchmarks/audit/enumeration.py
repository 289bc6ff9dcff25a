"""Enumeration: the exact worst loss over all neighbouring data sets of small worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import Any

from benchmarks.audit._cases import Row
from benchmarks.audit._models import person
from benchmarks.audit._worlds import TIGHT, World
from benchmarks.audit.tools import Enumeration
from benchmarks.audit.tools.universes import MomentUniverse
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.schema import Categories, Interval

TREE = Network((2, 3, 2), ((2,), (0,), ()))  # class -> x0 -> x1
COLLIDER = Network((2, 2, 2), ((), (), (0, 1)))  # both features are parents of the class
LARGE = ((Network.star([2] * 4, 2), 3), (TREE, 3), (COLLIDER, 5), (Network.star([3, 3], 2), 3))
SMALL = ((Network.star([2], 2), 8), (Network.star([2, 2], 2), 4), (TREE, 2), (COLLIDER, 3))
DESIGNS = (
    Design((Interval(-1, 3),)),
    Design((Interval(0, 1),), intercept=False),
    Design((Categories([*"abc"]),)),
    Design((Categories([*"ab"]),), intercept=False),
    Design((Interval(5, 6), Categories([*"ab"]))),
    Design((Interval(-1, 1), Interval(0, 1))),
)
MATRIX, SIGNS = (Design((Categories([*letters]),) * 4) for letters in ("abc", "ab"))
LOCATED = 2500.0  # At this epsilon the releases of a regression locate numbers, too.
PRIORS = (1.0, 0.01, (0.01, 5.0), (20.0, 3.0), 50.0)
Grouped = Iterator[tuple[str, World]]


def counts() -> Grouped:
    """Yield naive Bayes and other networks, in both units."""
    for unit, (network, n) in product(("record", "feature"), LARGE):
        of, two = {"unit": unit}, {"unit": unit, "epsilon": 2.0}
        yield "counts, laplace", World("laplace", network, n, {**of, "epsilon": 1.0}, TIGHT)
        yield "counts, fourier", World("fourier", network, n, {**of, "epsilon": 0.3}, TIGHT)
        yield "counts, fourier, joint noise", World(Fourier(noise="joint"), network, n, two, TIGHT)
        if network.is_star:
            rows = Laplace(noise="joint")
            yield "counts, laplace, joint noise", World(rows, network, n, two, TIGHT)
        if not network.parents[network.target]:
            yield "counts, laplace", World(Laplace(budget_split=0.3), network, 2, two, TIGHT)
    for mechanism in (Sampler(), MAP()):
        yield f"counts, {mechanism.name()}", World(mechanism, *LARGE[0], {})
    budgets = ((1.0, 0.1), (1.0, 1.0), ((0.5, 3.0), 2.0), (0.01, 8.0), (50.0, 1.0))
    for unit, (network, n), (prior, epsilon) in product(("record", "feature"), SMALL, budgets):
        tight = TIGHT * (unit == "feature" and network.is_star and prior == 1.0)
        options: dict[str, Any] = {"unit": unit, "epsilon": epsilon, "prior": prior}
        for mechanism in (Sampler(), Sampler(2, n_points=9), MAP()):
            yield f"counts, {mechanism.name()}", World(mechanism, network, n, options, tight)
        yield "counts, map by mass", World(MAP(score="posterior"), network, n, options)


def posteriors() -> Grouped:
    """Yield posteriors of one variable."""
    for epsilon, (k, n) in product((0.1, 1.0, 4.0), ((2, 200), (3, 25), (5, 8))):
        for mechanism in ("geometric", "laplace", "laplace_improved"):
            tight = TIGHT * ((mechanism, k) != ("laplace", 2))  # pays for two, releases one
            yield f"posterior, {mechanism}", World(mechanism, k, n, {"epsilon": epsilon}, tight)
    for epsilon, prior, (k, n) in product((0.1, 1.0, 4.0), PRIORS, ((2, 100), (3, 8))):
        for mechanism in ("exponential", "hellinger", "local"):
            options: dict[str, Any] = {"epsilon": epsilon, "prior": prior}
            # a prior that says almost all leaves posteriors too close together to use 4 up
            tight = TIGHT * (epsilon < 4 and prior != 50.0)
            yield f"posterior, {mechanism}", World(mechanism, k, n, options, tight)


def moments() -> Grouped:
    """Yield regressions, step by step along several transcripts."""
    for mechanism, design, epsilon in product(
        ("laplace", "fourier", "sampler", "map"), DESIGNS, (0.5, 4.0, LOCATED)
    ):
        n = 2 if len(design.domains) == 1 else 1
        yield f"moments, {mechanism}", World(mechanism, design, n, {"epsilon": epsilon})
    for design, epsilon in ((MATRIX, 0.5), (MATRIX, 4.0), (SIGNS, 4.0), (SIGNS, LOCATED)):
        options = {"epsilon": epsilon, "transcripts": 1}
        yield "moments, laplace, matrix noise", World("laplace", design, 1, options)
    both = MomentUniverse(Design((Interval(-1, 1), Categories([*"ab"]))), levels=2)
    for mechanism, change in product(("laplace", "fourier"), ("replace", "add_remove")):
        of: dict[str, Any] = {"unit": person(3, neighbours=change), "transcripts": 1}
        yield f"moments of a person, {mechanism}", World(mechanism, both, 3, of)


def run(scale: float) -> Iterator[Row]:
    """Go through all worlds, or through some evenly spaced ones."""
    worlds, step = [*counts(), *posteriors(), *moments()], max(1, ceil(1 / scale))
    found: defaultdict[str, list[tuple[float, Enumeration]]] = defaultdict(list)
    for group, world in progress(worlds[step // 2 :: step], "enumeration"):
        found[group].append((world.least, world.enumerated()))
    for group, results in found.items():
        each = [e for _, e in results]
        tight = [e.ratio for least, e in results if least]
        pairs, worst = sum(e.n_pairs for e in each), max(e.ratio for e in each)
        kind = "exact" if all(e.exact for e in each) else "upper bound"
        what = f"{group}, {len(each)} worlds, {pairs:,} pairs, {kind}"
        within = all(e.within for e in each)
        yield Row(what, f"loss / claim = {worst:.7f}", "<= 1", within)
        if tight:
            what, least = f"{group}, the least of {len(tight)} tight ones", min(tight)
            yield Row(what, f"loss / claim = {least:.7f}", f">= {TIGHT}", least >= TIGHT)
    every = [e for results in found.values() for _, e in results]
    pairs, outcomes = sum(e.n_pairs for e in every), sum(e.n_outcomes for e in every)
    wanted = 2_000_000 if scale >= 1 else 1
    yield Row("neighbouring pairs", f"{pairs:,}", f">= {wanted:,}", pairs >= wanted)
    yield Row("log ratios of outcomes", f"{outcomes:,}", "> 0", outcomes > 0)
