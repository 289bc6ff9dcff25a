r"""The runs of a private search: a candidate, fitted to some people and scored on others.

Guarantee
---------
*Precondition*: the grid is public; the split into training and held-out people is drawn without
looking at the data; every candidate's fit is :math:`\varepsilon_1`-private. *Claim*: a run, that
is its candidate, its model and its noisy score, is :math:`\varepsilon_1`-private, for the same unit
as the fits. *Proof*: given the split, the candidate is drawn at random. A person is either in the
training part or held out. One who is held out does not change the law of the model and, given the
model, changes the score by at most its sensitivity, to which the discrete Laplace noise is
calibrated at :math:`\varepsilon_1`. Another one changes the law of the model by a factor of at most
:math:`e^{\varepsilon_1}`, and the score is drawn from the model and other people. ∎

The split is secret, and drawn from the source of the noise. Where one record, or a value of it, is
replaced, n is public, and so is how many are held out; all sets of so many are as probable, so
every split has one of the neighbour that differs in the replaced record alone, in whatever order
both list their records. Otherwise a coin of each person decides, or, where records are added or
removed, of each record, so all records of a person are on the same side. Coins are independent,
hence those of all others, and of whoever comes or goes, have the same law in neighbouring data
sets; what holds given all splits, or coins, holds for their mixture.

A run that fails publishes its candidate and the type of its error, which ends the search. Its
outcome counts as higher than every score, so it is the winner if there is one such run, and costs
what a winner does (:mod:`dpbayes_sklearn.noise.finite`). The text of an error could show
more than the fit has spent, so nobody sees it.

With a delta, every fit is :math:`\rho`-zCDP and the score has discrete Gaussian noise of
:math:`\sigma^2 = \Delta^2/2\rho`; by the same argument a run is :math:`\rho`-zCDP. A secret number
of records is released first, with 4 % of :math:`\rho`; the released number then decides by which
epsilon the rest of the fit is zCDP with what is left (adaptive composition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid

from dpbayes_sklearn._presenting import silence
from dpbayes_sklearn._typing import AnyArray, IntArray, Positions
from dpbayes_sklearn.base.estimator import AnyInput
from dpbayes_sklearn.base.supervised import AnySupervised, SupervisedEstimator
from dpbayes_sklearn.data.persons import codes_of, coins_of, counted_records, fewest_left
from dpbayes_sklearn.data.reading import read_table
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.model_selection.pipelines import steps_of
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoiseLaw
from dpbayes_sklearn.noise.discrete_gaussian import representable_variance
from dpbayes_sklearn.noise.finite import Stopping
from dpbayes_sklearn.noise.law import representable_scale
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import NOTHING_KNOWN, OneStepPlan, size_share
from dpbayes_sklearn.schema.values import Kind

POINTS = 2**10
"""Grid of a regression's score: what one person can change it by."""

LARGEST_ERROR = Fraction(1, 4)
"""Errors above this share of the target's range count as this much.

This bounds the sensitivity of the score, and so its noise."""

_LEAST_EPSILON = Fraction(1, 10**12)  # A run has at least this epsilon.
_MODELS_AT_A_TIME = 4  # Each worker makes this many models before all but the best are dropped.

_OWN = {
    "epsilon": "the search divides its own epsilon among the fits; set epsilon of the search",
    "delta": "the search has one delta; set delta of the search",
    "accountant": "the search is charged as a whole; set accountant of the search",
    "random_state": "every run needs noise of its own; set random_state of the search",
    "bounds_y": "scores have to be on one scale; set bounds_y of the estimator",
    "privacy_unit": "a guarantee has one unit; set privacy_unit of the estimator",
}

MOST_RUNS = 10**6
"""Largest mean of the number of runs."""


class Run(NamedTuple):
    """What a run may publish: its noisy score, the number of its candidate and its model."""

    score: int
    candidate: int
    model: AnySupervised


def candidates_of(param_grid: Any) -> list[dict[str, Any]]:
    """Return the points of the grid, refusing parameters that belong to the search."""
    candidates = list(ParameterGrid(param_grid))
    for name in sorted({name for params in candidates for name in params}):
        own = name.rpartition("__")[2]  # of a step as well
        if own in _OWN:
            raise ValueError(f"param_grid must not hold {name!r}: {_OWN[own]}.")
    return candidates


class Prepared(NamedTuple):
    """A candidate and the exact statistics of the training people, for all of its runs.

    **Sensitive.**
    """

    model: AnySupervised
    given: AnyInput
    largest_epsilon: Any


def prepared(
    model: AnySupervised,
    X: Any,
    y: Any,
    groups: Any,
    rho: Fraction | None,
    test: tuple[Any, Any] = (None, ()),
) -> Prepared:
    """Read the training people once; with a ``rho``, set epsilon such that a fit is rho-zCDP.

    Every run releases a secret number of records anew, so a guess stands for it here.
    """
    candidate, secret = clone(model), model._unit.size_is_secret
    with silence(), quiet_numpy():
        facts = NOTHING_KNOWN if secret else None
        given = candidate._read(X, y, groups=groups, facts=facts)
        _refuse_unreadable(model, *test)
        if rho is None:
            # refuse what a fit would refuse before its charge: domains may have been read from
            # data; with facts that stand for a secret number of records, nothing is released
            budget = candidate._budget()
            candidate._planned(*candidate._sized(lambda *_: given, budget, facts=given.facts))
        elif secret:
            candidate.epsilon = _epsilon_of_size(rho)
        else:
            asked = candidate._budget()
            budget = _budget_within(candidate, given, asked, rho, model.epsilon)
            candidate.epsilon = budget.epsilon
            if budget.delta != asked.delta:
                candidate.delta = budget.delta
    return Prepared(candidate, given._replace(prior=None), model.epsilon)  # sensitive values only


def _refuse_unreadable(model: Any, X: Any, y: Any) -> None:
    """Refuse held-out people who cannot be predicted, which only undeclared domains allow."""
    first = steps_of(getattr(model, "pipeline", model))[0]
    if len(y) and isinstance(first, SupervisedEstimator) and not first._declares_columns:
        read_table(clone(first), X, reset=True, declared=False)


def _epsilon_of_size(rho: Fraction) -> Fraction:
    r"""Return the epsilon whose share for a secret number of records, s, is 4 % of rho: s²/2."""
    share = size_share(Fraction(1))
    return Fraction(math.sqrt(2 * rho / 25) * (1 - 1e-12)) / share


def _budget_within(
    model: AnySupervised, given: AnyInput, asked: Budget, rho: Fraction, largest: Any
) -> Budget:
    """Return the largest budget, to a part in 10,000 of epsilon, at which a fit is rho-zCDP.

    It depends on public quantities only. Noise with a delta may not be zCDP, as that of a mode:
    then the fit has no delta.
    """

    def within(epsilon: Fraction) -> bool:
        cost = model._planned(given, asked._replace(epsilon=epsilon)).cost
        return cost.rho is not None and cost.rho <= rho

    pure = Fraction(math.sqrt(2 * rho) * (1 - 1e-12))  # a pure release is epsilon²/2-zCDP
    least = _LEAST_EPSILON if model._mechanism.needs_delta else pure
    low, high = Fraction(0), Fraction(largest)
    while high - low > high / 10_000 and high > least:
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if within(middle) else (low, middle)
    if low >= least:
        return asked._replace(epsilon=low)
    if model._mechanism.needs_delta or pure < _LEAST_EPSILON:
        raise ValueError("epsilon and delta are too small for a search.")
    return asked.without_delta._replace(epsilon=pure)


def run(
    candidate: int,
    ready: Prepared,
    seed: int | None,
    test: tuple[Any, Any],
    rho: Fraction | None = None,
) -> Run:
    """Fit a candidate to the training people and score it, with noise, on those held out.

    A worker has a context of its own, so it is silenced here.
    """
    noise, failure = Noise.of(seed), ""
    fitted = copy(ready.model)
    fitted.random_state = None if seed is None else noise.seed()
    try:
        score = _scored(fitted, ready, test, rho)
    except Exception as error:
        failure = type(error).__name__
    if failure:  # raised out here, because an exception remembers the one it is raised in
        raise RuntimeError(
            f"Candidate {candidate} of the search could not be fitted to these records, which no "
            f"public fact could tell before the search was charged: {failure}. What it says is not "
            "shown, because it could show what nothing was spent on."
        )
    (noisy,) = noise.add([np.array([score])], score_law(fitted, rho))
    return Run(int(noisy[0]), candidate, fitted)


def _scored(
    fitted: AnySupervised, ready: Prepared, test: tuple[Any, Any], rho: Fraction | None
) -> int:
    """Fit a candidate and return its exact score."""
    with silence():
        if rho is not None and fitted._unit.size_is_secret:
            _fit_within(fitted, ready, rho)
        else:
            fitted._fit(lambda *_: _own_prior(fitted, ready.given))
        return int(points(fitted, *test).sum())


def _own_prior(model: AnySupervised, given: AnyInput) -> AnyInput:
    """Return what was read for all runs, with a prior of this one."""
    return given._replace(prior=model._prior(given.public))


def _fit_within(model: AnySupervised, ready: Prepared, rho: Fraction) -> None:
    """Release the number of records, then the model with what that leaves of rho."""
    budget = model._budget()
    with quiet_numpy():
        given, rest = model._sized(lambda *_: _own_prior(model, ready.given), budget)
        spent = Fraction(budget.epsilon) - Fraction(rest.epsilon)
        left = _budget_within(model, given, rest, rho - spent**2 / 2, ready.largest_epsilon)
        model.epsilon = spent + Fraction(left.epsilon)
        plan = model._planned(given, left)
        model._attach(given.public, model._carried_out(plan, given))


def score_law(model: AnySupervised, rho: Fraction | None) -> NoiseLaw:
    """Return Laplace noise of a score for the epsilon of a fit, or Gaussian noise for a rho."""
    moved, epsilon = sensitivity(model), exact(model.epsilon)
    if rho is not None:
        return DiscreteGaussian((representable_variance(moved**2 / (2 * rho)),), (1,))
    scale = moved / epsilon if isinstance(epsilon, Fraction) else Fraction(0)
    return DiscreteLaplace.of(representable_scale(scale), [1])


def sensitivity(model: AnySupervised) -> int:
    """Return the sensitivity of the score: the points of one person lie between 0 and this."""
    one = 1 if is_classifier(model) else POINTS
    return one * model._unit.max_records


def points(model: Any, X: Any, y: Any) -> IntArray:
    r"""Return the points that a model earns with each person, whole numbers.

    A classifier earns 1 for the right class. A regression earns, in steps of 1/1024,
    :math:`1 - \min(1, |y - \hat y|/b)^2` with b a quarter of the public range of the target. A
    record without a target earns none, whatever the model. No person changes the points of another,
    not even by rounding.
    """
    if not len(y):  # nobody was held out, which a secret number of records allows
        return np.zeros(0, np.int64)
    if is_classifier(model):
        classes = model.schema_.classes
        earned = classes.encode(model._predict_by_row(X)) == classes.encode(y)
    else:
        target = model.schema_.target
        largest = float(LARGEST_ERROR) * (target.high - target.low)
        error = (target.clip(model._predict_by_row(X)) - target.clip(y)) / largest
        earned = np.floor(POINTS * (1 - np.minimum(error**2, 1)))
    return np.where(model._has_target(y), earned, 0).astype(np.int64)


def held_out(
    n: int, labels: AnyArray | None, unit: PrivacyUnit, test_size: float, noise: Noise
) -> tuple[Positions, Positions]:
    """Return the positions of the records to fit to, and of those to score on.

    Of a public number of records, or persons, a public number is held out, all choices alike.
    Otherwise every record, or every person, has a coin of its own, so that nobody changes another's
    side. So no position is special: neighbours may list their records in any order.
    """
    place = np.arange(n)
    if labels is not None:
        place = counted_records(labels, unit.max_records, noise)
    if unit.size_is_secret:
        coins = noise.coins(n) if labels is None else coins_of(labels, noise)
        tails = coins[place] < test_size
        return place[~tails], place[tails]
    person = place if labels is None else codes_of(labels[place])
    persons = int(person.max(initial=-1)) + 1
    held = ceil(test_size * persons)
    if fewest_left(person, held) < unit.max_records:
        raise ValueError(
            f"There are too few {unit.name}s to hold some out. Got n_samples={n}. "
            "Nothing was spent."
        )
    tails = np.zeros(persons, np.bool_)
    tails[noise.positions(persons, held)] = True
    return place[~tails[person]], place[tails[person]]


class HeldOutSplit(NamedTuple):
    """Records of the people that candidates are fitted to (X, y, groups), and of those held out.

    **Sensitive**, but for the kind of values that the type of the target declares, and for the
    zCDP of a run if the search has a delta. ``n_test`` tells from a released model how many records
    are held out, if that is secret.
    """

    train: tuple[Any, Any, Any]
    test: tuple[Any, Any]
    kind: Kind
    prepared: tuple[Prepared, ...] = ()
    rho: Fraction | None = None
    n_test: Callable[[Any], float] | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.train[1]) + len(self.test[1])


class Winner(NamedTuple):
    """The best run, with its noisy score as a share of what could be earned."""

    score: float
    candidate: int
    model: AnySupervised


class Selection(Mechanism):
    """Run candidates drawn at random, a random number of times, and keep the best run.

    Guarantee: three times (logarithmic stopping: twice) the epsilon of one run, see
    :mod:`dpbayes_sklearn.noise.finite`; with a delta by the zCDP of a run, see
    :mod:`dpbayes_sklearn.model_selection.rehearsal`. The number of runs is secret, so a run prints
    nothing: no warning, log line or progress, in this process or in a worker. If it is ``seeded``,
    every run gets a seed from the source of the search.
    """

    def __init__(
        self,
        runs_per_candidate: int = 10,
        stopping: str = "geometric",
        seeded: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.runs_per_candidate = runs_per_candidate
        self.stopping = stopping
        self.seeded = seeded
        self.n_jobs = n_jobs

    @property
    def spends_delta(self) -> bool:
        """True: candidates may add Gaussian noise."""
        return True

    def law_of_runs(self, n_candidates: int) -> Stopping:
        """Return the law of the number of runs."""
        return Stopping.of_mean(self.stopping, self.runs_per_candidate * n_candidates)

    def _best(self, calls: Iterator[Any]) -> Run:
        """Return the first run of the highest score; a few at a time, so that no others are kept.

        With all of them the memory of a search would grow with the secret number of its runs.
        """
        best: list[Run] = []
        at_once = _MODELS_AT_A_TIME * effective_n_jobs(self.n_jobs)
        with Parallel(n_jobs=self.n_jobs, verbose=0) as workers:
            while some := [*islice(calls, at_once)]:
                best = [max([*best, *workers(some)], key=lambda one: one.score)]
        return best[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchPlan(OneStepPlan[HeldOutSplit, Winner]):
    """The best of a random number of runs; what it costs does not depend on the candidates."""

    law: Stopping
    runs: Selection
    models: Sequence[AnySupervised]

    @classmethod
    def of(cls, runs: Selection, models: Sequence[AnySupervised], budget: Budget) -> Self:
        """Refuse more runs than can be made; the rehearsal has fitted every candidate."""
        mean = runs.runs_per_candidate * len(models)
        if mean > MOST_RUNS:
            raise ValueError(
                f"A search of {mean} runs on average is too long: set a smaller runs_per_candidate."
            )
        law = runs.law_of_runs(len(models))
        return cls(cost=budget, mechanism=runs.name(), law=law, runs=runs, models=models)

    def draw(self, exact: HeldOutSplit, law: Stopping, noise: Noise) -> Winner:
        """Return the best of all runs of the candidates on the people of a split."""
        test, ready, rho = exact.test, exact.prepared, exact.rho
        n_runs = noise.runs(law)
        picked = noise.below(len(self.models), n_runs).tolist()
        seeds = [noise.seed() if self.runs.seeded else None for _ in picked]
        calls = (
            delayed(run)(j, ready[j], seed, test, rho)
            for j, seed in zip(picked, seeds, strict=True)
        )
        with silence():
            best = self.runs._best(calls)
        held_out = len(test[1]) if exact.n_test is None else exact.n_test(best.model)
        whole = sensitivity(best.model) // best.model._unit.max_records
        return Winner(best.score / (whole * max(held_out, 1)), best.candidate, best.model)

    def promise(self, released: Winner) -> PrivacyGuarantee:
        """Return the guarantee of the search, with the mechanism of the winner."""
        own = released.model.guarantee_
        return PrivacyGuarantee.of(self.cost, own.mechanism, own.conditions)

    @property
    def what(self) -> str:
        """The best run."""
        runs = self.runs.runs_per_candidate * len(self.models)
        return f"best of about {runs} runs of {len(self.models)} candidates"
