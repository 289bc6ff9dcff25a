"""Epsilon measured from outside, at the choke point, with many releases on either side.

Every row has several features or categories, several classes and several records. The pair of
neighbours is one that uses up most of the claim. The bound must not exceed the claim,
and with half the noise it must: a row that could not tell would prove nothing. Where the claim is
tight, the bound must come near it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Row
from benchmarks.audit._models import ADDED, FEATURE, RECORD, person
from benchmarks.audit._parts import Neighbourhood, claims, recordings
from benchmarks.audit.parts import sessions
from benchmarks.audit.tools.ratios import audit_ratios, drawn_steps
from benchmarks.audit.tools.releases import audit_release
from benchmarks.audit.tools.steps import StepLaw
from benchmarks.audit.tools.universes import Known
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.counts.dependence import ColumnChoice, ColumnScores
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import (
    MAP,
    Exponential,
    Fourier,
    Gaussian,
    Geometric,
    Hellinger,
    Laplace,
    LaplaceImproved,
    Local,
    Mechanism,
    Sampler,
)
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts

RUNS = 1_000_000
Seeds = tuple[int | None, int | None]
LEAST = 60_000  # Enough runs for every row to see half the noise.
CHOICES, LEAST_CHOICES = 20_000, 3_000
SESSIONS = 200_000


class Trial(NamedTuple):
    """What is released, how, and what share of the claim all runs must show."""

    what: str
    mechanism: Mechanism
    sides: tuple[Any, Any]  # statistics of two neighbouring data sets
    prior: Any
    share: float = 0.0  # 0 where the worst case is too rare an event
    part: float = 1.0  # of all runs: slow samplers and frequent events do with fewer
    epsilon: float = 1.0
    unit: PrivacyUnit = RECORD
    delta: float = 0.0  # of Gaussian noise, large enough for its event to be seen


Records = tuple[tuple[int, ...], ...]


def network_of(sizes: tuple[int, ...], *sides: Records, n: int = 0) -> tuple[Any, DirichletPrior]:
    """Return naive Bayes on either list of records, of which ``n`` were released before."""
    network, counted = Network.star(sizes[:-1], sizes[-1]), []
    for some in sides:
        codes = np.array(some, np.uint8)
        tables = CountTables.count(network, [(codes[:, :-1], codes[:, -1].astype(np.intp))])
        counted.append(Known(tables, Facts(n, ())) if n else tables)
    return tuple(counted), DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))


def replaced(sizes: tuple[int, ...], *records: tuple[int, ...]) -> tuple[Any, DirichletPrior]:
    """Return naive Bayes on some records, of which the last one is replaced by the one before."""
    *others, one, other = records
    return network_of(sizes, (*others, one), (*others, other))


def with_and_without(sizes: tuple[int, ...], *records: tuple[int, ...], gone: int) -> Any:
    """Return naive Bayes on some records, and without the last ones; 5 were released before."""
    return network_of(sizes, records, records[:-gone], n=5)


def variable_of(*counts: int) -> tuple[Any, SimplexPrior]:
    """Return counts of categories, and those with a record moved from the second to the first."""
    moved = np.array(counts)
    moved[[0, 1]] += (1, -1)
    sides = SimplexCounts(np.array(counts)), SimplexCounts(moved)
    return sides, SimplexPrior(Dirichlet(np.ones(len(counts))))


# features of two and three values and three classes; Boolean features; where draws tell most
MIXED = replaced((2, 3, 3), (0, 1, 2), (1, 2, 0), (0, 0, 0), (1, 2, 2))
# (products of features and class move if the features change and the class does not)
BOOLEAN = replaced((2, 2, 2), (0, 1, 0), (1, 0, 1), (0, 0, 0), (1, 1, 0))
POINTS = replaced((2, 2, 3), (1, 1, 2), (0, 0, 2), (1, 1, 1))
ONE_VALUE = replaced((2, 2, 3), (0, 0, 0), (0, 0, 0), (1, 0, 0))
THREE, TWO = variable_of(3, 2, 4), variable_of(0, 12)
# one record, or both of a person, there or not; both of a person replaced by two others
COMES = with_and_without((2, 3, 3), (0, 1, 2), (1, 2, 0), (1, 2, 2), gone=1)
THERE = with_and_without((2, 3, 3), (0, 1, 2), (1, 2, 2), (1, 2, 2), gone=2)
PERSON = variable_of(3, 2, 4)[0][0], SimplexCounts(np.array([5, 0, 4]))
PERSON_ADDED, PERSON_REPLACED = person(neighbours="add_remove"), person()

CASES: tuple[Trial, ...] = (
    Trial("naive Bayes", Laplace(noise="independent"), *MIXED, 0.8),
    Trial("naive Bayes, budget_split=0.5", Laplace(budget_split=0.5), *MIXED, 0.8),
    Trial("naive Bayes, joint noise", Laplace(noise="joint"), *MIXED, 0.8, 0.05),
    Trial("naive Bayes", Fourier(), *BOOLEAN, 0.8, epsilon=2.0),
    Trial("naive Bayes, joint noise", Fourier(noise="joint"), *BOOLEAN, 0.9),
    Trial("naive Bayes, joint noise, three classes", Fourier(noise="joint"), *MIXED, 0.9),
    Trial("naive Bayes, 2 points", Sampler(n_points=2), *POINTS, 0.5),
    Trial("naive Bayes, a feature", Sampler(), *ONE_VALUE, 0.7, 0.2, unit=FEATURE),
    Trial("naive Bayes, 2 points", MAP(n_points=2), *POINTS, 0.5, epsilon=2.0),
    Trial("naive Bayes, a feature", MAP(n_points=33), *ONE_VALUE, 0.7, 0.5, unit=FEATURE),
    Trial("naive Bayes", Gaussian(), *MIXED, 0.9, delta=0.01),
    Trial("naive Bayes, a feature", Gaussian(), *ONE_VALUE, 0.9, unit=FEATURE, delta=0.01),
    Trial("one variable", Gaussian(), *THREE, 0.9, delta=0.01),
    Trial("one variable", Laplace(), *THREE, 0.9),
    Trial("one variable", LaplaceImproved(), *THREE, 0.9),
    Trial("one variable", Geometric(), *THREE, 0.9),
    Trial("one variable", Exponential(), *TWO, 0.9),
    Trial("one variable", Hellinger(), *TWO, 0.9),
    Trial("one variable", Local(), *TWO, 0.9),
    *(
        Trial(f"naive Bayes, {what}", mechanism, *sides, share, part, unit=unit)
        for what, sides, unit in (
            ("a record added", COMES, ADDED),
            ("a person added", THERE, PERSON_ADDED),
        )
        for mechanism, share, part in (
            (Laplace(noise="independent"), 0.8, 1.0),
            (Laplace(noise="joint"), 0.8, 0.05),
        )
    ),
    Trial("naive Bayes, a person added", Gaussian(), *THERE, unit=PERSON_ADDED, delta=0.01),
    Trial("one variable, a person", Geometric(), PERSON, THREE[1], 0.9, unit=PERSON_REPLACED),
)


def steps_of(case: Trial, seeds: Seeds = (None, None)) -> list[list[StepLaw]]:
    """Return the noise steps of both sides."""
    budget = Budget(exact(case.epsilon), exact(case.delta), case.unit)
    return [
        drawn_steps(case.mechanism, side, case.prior, budget, random_state=seed).steps
        for side, seed in zip(case.sides, seeds, strict=True)
    ]


def pair_loss(one: list[StepLaw], other: list[StepLaw]) -> float:
    """Return the exact loss between the two data sets: what a bound could reach at most."""
    both = ((one, other), (other, one))
    return max(float(sum(a.loss(b) for a, b in zip(*p, strict=True))) for p in both)


def bounds_of(case: Trial, scale: float, seeds: Seeds = (None, None)) -> tuple[int, float, float]:
    """Return the runs on a side, the bound, and the bound with half the noise."""
    least = LEAST if case.part > 0.1 else LEAST // 10
    runs = max(least, int(RUNS * case.part * scale))
    one, other = steps_of(case, seeds)
    sound = audit_ratios(one, other, runs, delta=case.delta, random_state=seeds[0]).epsilon
    fewer = max(least, runs // 4)
    caught = audit_ratios(one, other, fewer, True, case.delta, seeds[1]).epsilon
    return runs, sound, caught


def run(scale: float) -> Iterator[Row]:
    """Audit every mechanism, as it is and with half the noise."""
    for case in progress(CASES, "statistical"):
        runs, sound, caught = bounds_of(case, scale)
        least = case.share * case.epsilon if scale >= 1 else 0.0
        claim = f"<= {case.epsilon:g}" + (f", >= {least:g}" if least else "")
        passed = sound <= case.epsilon and (not least or sound >= least)
        text = f"{case.what}, {case.mechanism.name()}: {runs:,} runs a side"
        yield Row(text, f"epsilon >= {sound:.3f}", claim, passed)
        what = f"{case.what}, {case.mechanism.name()}, with half the noise"
        figure, must = f"epsilon >= {caught:.3f}", f"> {case.epsilon:g}"
        yield Row(what, figure, must, caught > case.epsilon)
    for world in sessions(queries=2, epsilon=0.5):
        if "Bayesian" not in world.name and not world.unit.size_is_secret:
            yield from _session(world, max(LEAST, int(SESSIONS * scale)))
    for unit in (ADDED, PERSON_ADDED, PERSON_REPLACED):
        yield from _choice_of_a_column(unit, max(LEAST_CHOICES, int(CHOICES * scale)))


def _session(world: Neighbourhood, runs: int) -> Iterator[Row]:
    """Audit all answers of a session together, about a unit alone, drawn from two points each."""
    asked = clone(world.model).set_params(model__mechanism=Sampler(n_points=2))
    found, fitted = recordings(replace(world, model=asked, others=world.others.head(0)))
    claim = float(claims(*fitted[0])[0][1])
    pairs = [(found[i].steps, found[j].steps) for i, j in world.pairs]
    one, other = max(pairs, key=lambda pair: pair_loss(*pair))
    for sharper, what in ((False, f"{runs:,} runs a side"), (True, "with half the noise")):
        bound = audit_ratios(one, other, runs, sharper).epsilon
        must, passed = (">", bound > claim) if sharper else ("<=", bound <= claim)
        figure = f"epsilon >= {bound:.3f}"
        yield Row(f"{world.name}: {what}", figure, f"{must} {claim:g}", passed)


def _choice_of_a_column(unit: PrivacyUnit, runs: int) -> Iterator[Row]:
    """Audit the choice between two scores that change as far as they can, in opposite directions.

    Permute-and-flip loses 1.49 of an epsilon of 2 between them.
    """
    choice, sizes = ColumnChoice(Network.star([2, 2], 2), 1), (2, 2, 2)
    far = ColumnScores(np.zeros(2, np.int64), 50, sizes).sensitivity(unit)
    sides = (ColumnScores(np.array(scores), 50, sizes) for scores in ((0, far), (far, 0)))
    given, what = (None, *sides, choice), f"a column, {unit.label}"
    for factor, half in ((1, ""), (2, ", with half the sensitivity")):
        budget = Budget(exact(2.0) * factor, unit=unit)
        found = audit_release(*given, budget, runs, verbose=False).epsilon
        least = 1.2 if runs >= CHOICES else 1.0
        passed, claim = (found > 2, "> 2") if half else (least < found <= 2, f"<= 2, >= {least:g}")
        text = f"{what}, permute_and_flip: {runs:,} runs a side{half}"
        yield Row(text, f"epsilon >= {found:.3f}", claim, passed)
