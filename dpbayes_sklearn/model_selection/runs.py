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
what a winner does (:mod:`dpbayes_sklearn.noise.random_stopping`). The text of an error could show
more than the fit has spent, so nobody sees it.

With a delta, every fit is :math:`\rho`-zCDP and the score has discrete Gaussian noise of
:math:`\sigma^2 = \Delta^2/2\rho`; by the same argument a run is :math:`\rho`-zCDP. A secret number
of records is released first, with 4 % of :math:`\rho`; the released number then decides by which
epsilon the rest of the fit is zCDP with what is left (adaptive composition).
"""

from __future__ import annotations

import math
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid

from dpbayes_sklearn._estimator import FitInput
from dpbayes_sklearn._log import silence
from dpbayes_sklearn._supervised import SupervisedEstimator
from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.data.reading import read_table
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.model_selection.steps import steps_of
from dpbayes_sklearn.noise.discrete_gaussian import discrete_gaussian, representable_variance
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.source import RandomSource, random_source
from dpbayes_sklearn.privacy import BudgetAccountant, exact
from dpbayes_sklearn.statistics.size import GUESS, size_share

__all__ = [
    "Prepaid",
    "Prepared",
    "Run",
    "candidates_of",
    "points",
    "prepared",
    "run",
    "seed_from",
    "sensitivity",
]

POINTS = 2**10
"""Grid of a regression's score: what one person can change it by."""

LARGEST_ERROR = Fraction(1, 4)
"""Errors above this share of the target's range count as this much.

This bounds the sensitivity of the score, and so its noise."""

_LEAST = Fraction(1, 10**12)  # epsilon of a run

_OWN = {
    "epsilon": "the search divides its own epsilon among the fits; set epsilon of the search",
    "delta": "the search has one delta; set delta of the search",
    "accountant": "the search is charged as a whole; set accountant of the search",
    "random_state": "every run needs noise of its own; set random_state of the search",
    "bounds_y": "scores have to be on one scale; set bounds_y of the estimator",
    "privacy_unit": "a guarantee has one unit; set privacy_unit of the estimator",
    "max_records_per_person": "a guarantee has one unit; set it of the estimator",
    "neighbours": "a guarantee has one kind of neighbours; set it of the estimator",
}


class Run(NamedTuple):
    """What a run may publish: its noisy score, the number of its candidate and its model."""

    score: int
    candidate: int
    model: SupervisedEstimator


class Prepaid(BudgetAccountant):
    """The accountant of fits inside a search, which is charged as a whole: records nothing."""

    def __init__(self) -> None: ...

    @property
    def temporary(self) -> bool:
        """Nothing is recorded."""
        return True

    @property
    def delta(self) -> float:
        """The search has checked the ceiling of its own ledger."""
        return 0.0

    def check(self, *_: Any, **__: Any) -> bool:
        """Allow everything."""
        return True

    def spend(self, *_: Any, **__: Any) -> Any:
        """Charge nothing."""
        return None

    def __repr__(self) -> str:
        return "paid by the search"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Prepaid, ()


def candidates_of(param_grid: Any) -> list[dict[str, Any]]:
    """Return the points of the grid, refusing parameters that belong to the search."""
    candidates = list(ParameterGrid(param_grid))
    for name in sorted({name for params in candidates for name in params}):
        own = name.rpartition("__")[2]  # of a step as well
        if own in _OWN:
            raise ValueError(f"param_grid must not hold {name!r}: {_OWN[own]}.")
    return candidates


def seed_from(source: RandomSource) -> int:
    """Draw a seed for numpy's generators."""
    return int.from_bytes(source(4), "little")


class Prepared(NamedTuple):
    """A candidate and the exact statistics of the training people, for all of its runs.

    **Sensitive.**
    """

    model: SupervisedEstimator
    given: FitInput
    largest_epsilon: Any


def prepared(
    model: SupervisedEstimator,
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
    if secret:
        candidate._n_known = GUESS
    with silence(), quiet_numpy():
        given = candidate._read(X, y, groups=groups)
        _refuse_unreadable(model, *test)
        if rho is None:
            _refuse_what_cannot_be_released(candidate, given)
        else:
            rule = _epsilon_of_size if secret else _epsilon_within
            candidate.epsilon = rule(candidate, given, rho, model.epsilon)
    return Prepared(candidate, given, model.epsilon)


def _refuse_what_cannot_be_released(model: SupervisedEstimator, given: FitInput) -> None:
    """Refuse what a fit would refuse before its charge: domains may have been read from data."""
    asked = copy(model)
    asked._n_is_guessed = True  # nothing is released
    at, rest = asked._sized(lambda _: given, asked._budget())
    asked._chosen_mechanism(at.statistics, asked._prior(at.public), rest)


def _refuse_unreadable(model: Any, X: Any, y: Any) -> None:
    """Refuse held-out people who cannot be predicted, which only undeclared domains allow."""
    first = steps_of(getattr(model, "pipeline", model))[0]
    if len(y) and isinstance(first, SupervisedEstimator) and not first._declares_columns:
        read_table(clone(first), X, reset=True, declared=False)


def _epsilon_of_size(_: Any, __: Any, rho: Fraction, largest: Any) -> Fraction:
    r"""Return the epsilon whose share for a secret number of records, s, is 4 % of rho: s²/2."""
    share = size_share(Fraction(1))
    return Fraction(math.sqrt(2 * rho / 25) * (1 - 1e-12)) / share


def _epsilon_within(
    model: SupervisedEstimator, given: FitInput, rho: Fraction, largest: Any
) -> Fraction:
    """Return the largest epsilon, to a part in 10,000, at which a fit is rho-zCDP.

    It depends on public quantities only.
    """
    prior, asked = model._prior(given.public), model._budget()
    mechanism = model._resolve_mechanism()

    def within(epsilon: Fraction) -> bool:
        budget = asked._replace(epsilon=epsilon)
        chosen = mechanism.chosen(given.statistics, prior, budget)
        cost = chosen.cost(given.statistics, prior, budget)
        if cost.rho is None:  # a pure release is epsilon²/2-zCDP
            return not cost.delta and epsilon**2 / 2 <= rho
        return cost.rho <= rho

    low, high = Fraction(0), Fraction(largest)
    while high - low > high / 10_000:
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if within(middle) else (low, middle)
        if high < _LEAST:
            raise ValueError("epsilon and delta are too small for a search.")
    return low


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
    source, failure = random_source(seed), ""
    fitted = copy(ready.model)
    fitted.random_state = None if seed is None else seed_from(source)
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
    return Run(score + _score_noise(fitted, rho, source), candidate, fitted)


def _scored(
    fitted: SupervisedEstimator, ready: Prepared, test: tuple[Any, Any], rho: Fraction | None
) -> int:
    """Fit a candidate and return its exact score."""
    with silence():
        if rho is not None and fitted._unit.size_is_secret:
            _fit_within(fitted, ready, rho)
        else:
            fitted._fit(lambda _: ready.given)
        return int(points(fitted, *test).sum())


def _fit_within(model: SupervisedEstimator, ready: Prepared, rho: Fraction) -> None:
    """Release the number of records, then the model with what that leaves of rho."""
    budget = model._budget()
    with quiet_numpy():
        given, rest = model._sized(lambda _: ready.given, budget)
        spent = Fraction(budget.epsilon) - Fraction(rest.epsilon)
        left = _epsilon_within(model, given, rho - spent**2 / 2, ready.largest_epsilon)
        model.epsilon = spent + left
        rest, prior = rest._replace(epsilon=left), model._prior(given.public)
        release = model._release(given.statistics, prior, rest, given.conditions)
        model._attach(given.public, release)
    del model._n_known


def _score_noise(model: SupervisedEstimator, rho: Fraction | None, source: RandomSource) -> int:
    """Draw noise for a score: Laplace for the epsilon of a fit, or Gaussian for a rho."""
    moved, epsilon = sensitivity(model), exact(model.epsilon)
    if rho is not None:
        return int(discrete_gaussian(representable_variance(moved**2 / (2 * rho)), 1, source)[0])
    if isinstance(epsilon, Fraction):  # and not infinite
        return int(discrete_laplace(moved / epsilon, 1, source)[0])
    return 0


def sensitivity(model: SupervisedEstimator) -> int:
    """Return the sensitivity of the score: the points of one person lie between 0 and this."""
    one = 1 if is_classifier(model) else POINTS
    return one * model._unit.max_records


def points(model: Any, X: Any, y: Any) -> IntArray:
    r"""Return the points that a model earns with each person, whole numbers.

    A classifier earns 1 for the right class. A regression earns, in steps of 1/1024,
    :math:`1 - \min(1, |y - \hat y|/b)^2` with b a quarter of the public range of the target. No
    person changes the points of another, not even by rounding.
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
    return np.asarray(earned, dtype=np.int64)
