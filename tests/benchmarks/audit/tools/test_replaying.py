"""Replay: silent for every estimator and mechanism, loud for every way around the release."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.naive_bayes import GaussianNB

from benchmarks.audit._cases import Subject, circumstance
from benchmarks.audit._pairs import subjects
from benchmarks.audit.replay import few_subjects
from benchmarks.audit.tools import Replay, replay
from benchmarks.audit.tools.replaying import CHOKE_POINT, DRAWS, SEARCH
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    DirichletMultinomial,
)
from dpbayes_sklearn.base import spending
from dpbayes_sklearn.convex import records
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.ledger import Ledger
from dpbayes_sklearn.release import Release, boundary

rng = np.random.default_rng(0)
X, Y = rng.integers(0, 2, (30, 3)).astype(float), rng.integers(0, 2, 30)
X2, Y2 = X.copy(), Y.copy()
X2[4], Y2[4] = 1 - X[4], 1 - Y[4]
SUBJECTS = list(subjects())
FEW = {s.name for s in few_subjects()}  # which the layers of the audit replay: see test_faults


def declared(**params: Any) -> BayesianNaiveBayes:
    return BayesianNaiveBayes(**{"bounds": (0, 1), "classes": [0, 1], "n_bins": 2, **params})


def found(model: Any = None, *pair: Any, **options: Any) -> Replay:
    return replay(model or declared(), *(pair or (X, Y, X2, Y2)), **options)


@pytest.fixture
def ledger() -> BudgetAccountant:
    return BudgetAccountant(delta=1)


@pytest.mark.slow
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.name not in FEW], ids=str)
def test_nothing_but_the_release_tells_neighbours_apart(
    subject: Subject, ledger: BudgetAccountant
) -> None:
    estimator = clone(subject.estimator).set_params(accountant=ledger)
    chance = np.random.default_rng(1)
    for turn, freeze in enumerate(subject.freezes):
        with circumstance(turn + 2):
            result = replay(estimator, *subject.make(chance), freeze=freeze)
        assert result.sound, result.divergences
        assert result.status == "fitted"
        assert result.epsilon == float(getattr(estimator, "epsilon", 1.0))
        assert len(result.calls) >= 1
        assert result.shifts or freeze is SEARCH


def test_the_pairs_are_of_all_kinds() -> None:
    names = {type(s.estimator).__name__ for s in SUBJECTS}
    assert len(names) == 17
    numbers = next(s for s in SUBJECTS if "naive" in s.name.lower() and "record" in s.name)
    chance, kinds = np.random.default_rng(0), set()
    for _ in range(200):
        X, y, X2, y2 = numbers.make(chance)
        same = ((X == X2) | (np.isnan(X) & np.isnan(X2))).all(axis=1) & (y == y2)
        assert (~same).sum() <= 1
        kinds.add("nan" if np.isnan(X).any() else "")
        kinds.add("label only" if (y != y2).any() and np.array_equal(X, X2, equal_nan=True) else "")
        lost = set(y.tolist()) - set(y2.tolist())
        kinds.add("last of a class" if lost else "")
    assert kinds >= {"nan", "label only", "last of a class"}


def test_the_largest_changes_are_listed_first() -> None:
    result = found()
    assert [(m.moved, m.sensitivity) for m in result.shifts][:2] == [(8, 8), (8, 12)]
    assert result.epsilon == 1.0
    assert result.calls == ("carry_out",)


# ------------------------------------------------------------- what it has to notice


def noticed(what: str, *args: Any, **options: Any) -> bool:
    return any(what in divergence for divergence in found(*args, **options).divergences)


def test_an_exact_value_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    real = BayesianNaiveBayes.fit

    def leaky(self: Any, X: Any, y: Any) -> Any:
        real(self, X, y)
        self.positives_ = int(np.sum(y))
        return self

    monkeypatch.setattr(BayesianNaiveBayes, "fit", leaky)
    assert noticed("pickles of")


def test_a_posterior_that_has_read_the_data() -> None:
    """Only freezing the draws shows what a mechanism does besides drawing."""

    def leaky(real: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        release = real(plan, statistics, noise)
        exact = int(statistics.counts.tables[-1][0])
        object.__setattr__(release.posterior.released, "window", exact)
        return release

    model = declared(inference="plug_in")
    with boundary(leaky):
        assert found(model).sound
        assert noticed("pickles of", model, freeze=DRAWS)


@pytest.mark.parametrize("freeze", [CHOKE_POINT, DRAWS])
def test_whether_it_raises(freeze: Any) -> None:
    undeclared = BayesianNaiveBayes()
    bad = X.copy()
    bad[4, 0] = np.nan
    assert noticed("status", undeclared, X, Y, bad, Y, freeze=freeze)


def test_classes_and_bounds_of_the_data() -> None:
    alone = np.zeros(30, int)
    alone[4] = 1
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2)
    assert noticed("public facts that the mechanism was told", model, X, alone, X, 0 * alone)
    assert noticed("public facts of the counts", model, X, alone, X, 0 * alone)
    wide = X.copy()
    wide[4, 0] = 9.0
    assert noticed("pickles of", BayesianNaiveBayes(classes=[0, 1], n_bins=2), X, Y, wide, Y)


def test_a_warning_that_depends_on_a_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = BayesianNaiveBayes.fit

    def chatty(self: Any, X: Any, y: Any) -> Any:
        if np.mean(y) < np.mean(Y):
            warnings.warn("many positives", UserWarning, stacklevel=2)
        return real(self, X, y)

    monkeypatch.setattr(BayesianNaiveBayes, "fit", chatty)
    assert noticed("warnings")


def test_another_number_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    real = BayesianNaiveBayes.fit

    def twice(self: Any, X: Any, y: Any) -> Any:
        return real(real(self, X, y), X, y) if y[4] else real(self, X, y)

    monkeypatch.setattr(BayesianNaiveBayes, "fit", twice)
    assert noticed("calls")
    assert noticed("epsilon charged")
    assert noticed("promised epsilon 1, released 2")


def test_a_delta_that_depends_on_the_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Ledger.charge
    charges: list[int] = []

    def cheaper(self: Any, spend: Any, *rest: Any) -> Any:
        charges.append(1)
        delta = Fraction(len(charges), 100)
        return real(self, Spend(Cost(spend.cost.epsilon, delta), spend.rho), *rest)

    monkeypatch.setattr(Ledger, "charge", cheaper)
    assert noticed("delta charged")
    assert noticed("charged delta")


def test_a_record_that_moves_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CountTables.sensitivity
    monkeypatch.setattr(CountTables, "sensitivity", lambda self, unit: real(self, unit) - 1)
    assert noticed("counts: moved by 8, sensitivity 7")


def test_neighbours_of_another_unit_are_too_far_apart() -> None:
    assert noticed("counts: moved by 8, sensitivity 2", declared(privacy_unit="feature"))


@pytest.mark.parametrize("model", [BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))])
def test_two_records_of_a_regression(model: Any) -> None:
    far = np.zeros((2, 3)), np.zeros(2), np.ones((2, 3)), np.ones(2)
    assert noticed("moments", model, *far)
    near = np.zeros((2, 3)), np.zeros(2), np.eye(2, 3), np.eye(2)[0]
    assert not noticed("moments", model, near[0], near[1], np.array([[1] * 3, [0] * 3]), near[3])


def test_statistics_that_cannot_be_made_of_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    real = records._of_known

    def strict(ask: Any, shard: Any) -> Any:
        if np.isnan(shard.target).any():
            raise ValueError("missing")
        return real(ask, shard)

    monkeypatch.setattr(records, "_of_known", strict)
    missing = Y.astype(float)
    missing[4] = np.nan
    model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))
    assert noticed("statistics (ValueError)", model, X, Y, X, missing)
    assert noticed("status", model, X, Y, X, missing, freeze=DRAWS)


def test_a_charge_that_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    spend, release = BudgetAccountant.spend, vars(spending)["carry_out"]
    owed: list[Any] = []

    def late(self: Any, *args: Any, **options: Any) -> None:
        owed.append(lambda: spend(self, *args, **options))

    def then_pay(*args: Any) -> Release[Any]:
        released: Release[Any] = release(*args)
        owed.pop()()
        return released

    monkeypatch.setattr(BudgetAccountant, "spend", late)
    monkeypatch.setattr(spending, "carry_out", then_pay)
    assert noticed("released before it was charged")


def test_a_charge_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    spend = BudgetAccountant.spend

    def cheap(self: Any, epsilon: Any, *args: Any, **options: Any) -> Any:
        return spend(self, Fraction(epsilon) / 2, *args, **options)

    monkeypatch.setattr(BudgetAccountant, "spend", cheap)
    assert noticed("charged epsilon 0.5, released 1")
    assert noticed("released before it was charged")


# ------------------------------------------------------------- other people's estimators


class Mean(BaseEstimator):
    """A little library of its own, with a leak if it is told to."""

    def __init__(self, leak: bool = False) -> None:
        self.leak = leak

    def noise(self, value: float) -> float:
        return value + 1.0

    def fit(self, X: Any, y: Any = None) -> Mean:
        self.mean_ = self.noise(float(np.mean(X)))
        if self.leak:
            self.n_large_ = int((X > 0.5).sum())
        return self


def test_any_estimator_can_be_replayed() -> None:
    sound = replay(Mean(), X, None, X2, None, freeze=[(Mean, "noise")])
    assert (sound.sound, sound.epsilon, sound.shifts) == (True, None, ())
    assert sound.calls == ("noise",)
    leaky = replay(Mean(leak=True), X, None, X2, None, freeze=[(Mean, "noise")])
    assert leaky.sound == ((X > 0.5).sum() == (X2 > 0.5).sum())
    assert not replay(GaussianNB(), X, Y, X2, Y2).sound


def test_the_estimator_is_left_alone() -> None:
    model = declared(epsilon=0.25)
    assert replay(model, X, Y, X2, Y2).epsilon == 0.25
    assert model.accountant is None
    assert not hasattr(model, "posterior_")
    infinite = found(declared(epsilon=math.inf))
    assert infinite.epsilon == math.inf
    assert DirichletMultinomial().accountant is None
