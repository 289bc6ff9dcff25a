"""Enumeration: the exact worst loss over all neighbouring data sets of small worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from benchmarks.audit._cases import Row
from dpbayes_sklearn._messages import progress
from dpbayes_sklearn.audit import Enumeration, enumerate_loss
from dpbayes_sklearn.audit._universes import MomentUniverse
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.schema import Categories, Interval

TREE = Network((2, 3, 2), ((2,), (0,), ()))  # class -> x0 -> x1
COLLIDER = Network((2, 2, 2), ((), (), (0, 1)))  # both features are parents of the class
WORLDS = ((Network.star([2] * 4, 2), 3), (TREE, 3), (COLLIDER, 5), (Network.star([3, 3], 2), 3))
SMALL = ((Network.star([2], 2), 8), (Network.star([2, 2], 2), 4), (TREE, 2), (COLLIDER, 3))
DESIGNS = (
    Design((Interval(-1, 3),)),
    Design((Interval(0, 1),), intercept=False),
    Design((Categories([*"abc"]),)),
    Design((Categories([*"ab"]),), intercept=False),
    Design((Interval(5, 6), Categories([*"ab"]))),
    Design((Interval(-1, 1), Interval(0, 1))),
)
MATRIX = Design((Categories([*"abc"]),) * 4)
SIGNS = Design((Categories([*"ab"]),) * 4)
LOCATED = 2500.0  # At this epsilon the releases of a regression locate numbers, too.
PRIORS = (1.0, 0.01, (0.01, 5.0), (20.0, 3.0), 50.0)


@dataclass(frozen=True)
class Case:
    """One enumeration, and the row that it counts for."""

    group: str
    mechanism: Any
    structure: Any
    n: int
    options: dict[str, Any]
    tight: bool = False  # whether the worst pair has to use up the claim

    def found(self) -> Enumeration:
        return enumerate_loss(self.mechanism, self.structure, self.n, **self.options)


def counts() -> Iterator[Case]:
    """Yield naive Bayes and other networks, in both units."""
    for unit, (world, n) in product(("record", "feature"), WORLDS):
        for mechanism, epsilon in (("laplace", 1.0), ("fourier", 0.3)):
            yield Case(f"counts, {mechanism}", mechanism, world, n, _of(unit, epsilon), True)
        joint = Fourier(noise="joint")
        yield Case("counts, fourier, joint noise", joint, world, n, _of(unit, 2.0), True)
        if world.is_star:
            rows = Laplace(noise="joint")
            yield Case("counts, laplace, joint noise", rows, world, n, _of(unit, 2.0), True)
        if not world.parents[world.target]:
            split = Laplace(budget_split=0.3)
            yield Case("counts, laplace", split, world, 2, _of(unit, 2.0), True)
    for mechanism in (Sampler(), MAP()):
        group = f"counts, {mechanism.name()}"
        yield Case(group, mechanism, *WORLDS[0], _of("record", 1.0))
    for unit, (world, n) in product(("record", "feature"), SMALL):
        tight = unit == "feature" and world.is_star
        for prior, epsilon in ((1.0, 0.1), (1.0, 1.0), ((0.5, 3.0), 2.0), (0.01, 8.0), (50.0, 1.0)):
            for mechanism in (Sampler(), Sampler(2, n_points=9), MAP()):
                group, sharp = f"counts, {mechanism.name()}", tight and prior == 1.0
                options = {**_of(unit, epsilon), "prior": prior}
                yield Case(group, mechanism, world, n, options, sharp)
            mass = MAP(score="posterior")
            yield Case(
                "counts, map by mass", mass, world, n, {**_of(unit, epsilon), "prior": prior}
            )


def _of(unit: str, epsilon: float) -> dict[str, Any]:
    return {"unit": unit, "epsilon": epsilon}


def posteriors() -> Iterator[Case]:
    """Yield posteriors of one variable."""
    for epsilon, (k, n) in product((0.1, 1.0, 4.0), ((2, 200), (3, 25), (5, 8))):
        for mechanism in ("geometric", "laplace", "laplace_improved"):
            tight = (mechanism, k) != ("laplace", 2)  # pays for two counts and releases one
            group = f"posterior, {mechanism}"
            yield Case(group, mechanism, k, n, {"epsilon": epsilon}, tight)
    for epsilon, prior, (k, n) in product((0.1, 1.0, 4.0), PRIORS, ((2, 100), (3, 8))):
        for mechanism in ("exponential", "hellinger", "local"):
            options = {"epsilon": epsilon, "prior": prior}
            # a prior that says almost all leaves posteriors too close together to use 4 up
            tight = epsilon < 4 and prior != 50.0
            yield Case(f"posterior, {mechanism}", mechanism, k, n, options, tight)


def moments() -> Iterator[Case]:
    """Yield regressions, step by step along several transcripts."""
    for mechanism, design, epsilon in product(
        ("laplace", "fourier", "sampler", "map"), DESIGNS, (0.5, 4.0, LOCATED)
    ):
        small = len(design.domains) == 1
        options = {"epsilon": epsilon, "transcripts": 2}
        yield Case(f"moments, {mechanism}", mechanism, design, 2 if small else 1, options)
    for design, epsilon in ((MATRIX, 0.5), (MATRIX, 4.0), (SIGNS, 4.0), (SIGNS, LOCATED)):
        options = {"epsilon": epsilon, "transcripts": 1}
        yield Case("moments, laplace, matrix noise", "laplace", design, 1, options)
    world = MomentUniverse(Design((Interval(-1, 1), Categories([*"ab"]))), levels=2)
    for mechanism, change in product(("laplace", "fourier"), ("replace", "add_remove")):
        unit = PrivacyUnit("person", max_records=3, by_construction=True, neighbours=change)
        options = {"unit": unit, "epsilon": 1.0, "transcripts": 1}
        yield Case(f"moments of a person, {mechanism}", mechanism, world, 3, options)


def run(scale: float) -> Iterator[Row]:
    """Go through all cases, or through some evenly spaced ones."""
    cases = [*counts(), *posteriors(), *moments()]
    step = max(1, ceil(1 / scale))
    cases = cases[step // 2 :: step]
    found: defaultdict[str, list[tuple[Case, Enumeration]]] = defaultdict(list)
    for case in progress(cases, "enumeration"):
        found[case.group].append((case, case.found()))
    for group, results in found.items():
        worst = max(e.ratio for _, e in results)
        within = all(e.within for _, e in results)
        least = min((e.ratio for c, e in results if c.tight), default=None)
        pairs = sum(e.n_pairs for _, e in results)
        kind = "exact" if all(e.exact for _, e in results) else "upper bound"
        what = f"{group}, {len(results)} worlds, {pairs:,} pairs, {kind}"
        yield Row("enumeration", what, f"loss / claim = {worst:.7f}", "<= 1", within)
        if least is not None:
            of = sum(c.tight for c, _ in results)
            tight = f"{group}, the least of {of} tight ones"
            yield Row("enumeration", tight, f"loss / claim = {least:.7f}", ">= 0.99", least >= 0.99)
    everything = [e for results in found.values() for _, e in results]
    pairs, outcomes = (
        sum(getattr(e, name) for e in everything) for name in ("n_pairs", "n_outcomes")
    )
    wanted = 2_000_000 if scale >= 1 else 1
    yield Row("enumeration", "neighbouring pairs", f"{pairs:,}", f">= {wanted:,}", pairs >= wanted)
    yield Row("enumeration", "log ratios of outcomes", f"{outcomes:,}", "> 0", outcomes > 0)
