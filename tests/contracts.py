"""What every noise law, estimator and step of a release keeps: inherit, and hand in the parts.

A subclass in a test file is ten lines: the thing that is tested, and what only its author knows
(the density of a law, records for an estimator, the catalogue of a step). pytest collects the
inherited tests under the name of the subclass.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.base import clone

from benchmarks.audit.tools import enumerate_loss
from dpbayes_sklearn import BudgetAccountant, BudgetError, from_json
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw

PASSES, REJECTED = 1e-3, 1e-9  # P values: of the right law at least, of a wrong scale at most


class LawContract:
    """A noise law on the integers, small enough that its points can be listed.

    A law that claims pure privacy states its loss for every shift; one that does not says
    ``pure = False``, and its own tests show what it claims instead.
    """

    law: ClassVar[NoiseLaw]
    reach: ClassVar[int]  # Points with entries up to this are listed.
    pure: ClassVar[bool] = True
    draws: ClassVar[int] = 20_000
    rounding: ClassVar[float] = 1e-6  # Variances of a fine lattice may be less by this part.
    slack: ClassVar[float] = 1 + 1e-4  # A bound of a variance may be this much above it.
    refused: ClassVar[Sequence[Callable[[], NoiseLaw]]]

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return log P(z) up to a constant for points (m, size); -inf outside of the support."""
        raise NotImplementedError

    def scaled(self, factor: Fraction) -> NoiseLaw:
        """Return the law with ``factor`` times the scale."""
        raise NotImplementedError

    @property
    def points(self) -> np.ndarray:
        """All points up to the reach that have a probability."""
        axis = range(-self.reach, self.reach + 1)
        z = np.array([*product(axis, repeat=self.law.size)])
        return z[np.isfinite(self.log_density(z))]

    def p_value(self, drawn: np.ndarray) -> float:
        """Compare how often each likely point was drawn, and all others together."""
        points = self.points
        log_p = self.log_density(points)
        p = np.exp(log_p - logsumexp(log_p))
        likely = len(drawn) * p >= 20
        found = {tuple(z): i for i, z in enumerate(points[likely].tolist())}
        places = [found.get(tuple(z), len(found)) for z in drawn.tolist()]
        observed = np.bincount(places, minlength=len(found) + 1)
        expected = np.append(p[likely], 1 - p[likely].sum()) * len(drawn)
        return float(chisquare(observed, expected).pvalue)

    def test_the_loss_of_every_shift_is_the_largest_log_ratio(self) -> None:
        points = self.points
        log_p = self.log_density(points)
        for shift in product((-2, -1, 0, 1, 2), repeat=self.law.size):
            claimed = self.law.privacy_loss(np.array(shift))
            moved = self.log_density(points - np.array(shift))
            possible = np.isfinite(moved)
            worst = float(np.abs(log_p - moved)[possible].max()) if possible.all() else math.inf
            if self.pure or not any(shift):
                assert float(claimed) == pytest.approx(worst, abs=1e-9)
            else:
                assert claimed == math.inf

    def test_draws_follow_the_law_and_a_scale_off_by_a_fifth_does_not(self) -> None:
        assert self.p_value(draw(self.law, self.draws, random_source(1))) > PASSES
        for factor in (Fraction(4, 5), Fraction(6, 5)):
            wrong = draw(self.scaled(factor), self.draws, random_source(1))
            assert self.p_value(wrong) < REJECTED

    def test_the_variance_is_that_of_the_points_or_a_bound_of_it(self) -> None:
        points = self.points
        log_p = self.log_density(points)
        exact = np.exp(log_p - logsumexp(log_p)) @ points.astype(float) ** 2
        assert np.all(self.law.variances >= exact * (1 - self.rounding))
        assert np.all(self.law.variances <= exact * self.slack)

    @pytest.mark.parametrize("delta", [0.1, 0.02])
    def test_the_error_bound_holds_and_half_of_it_does_not(self, delta: float) -> None:
        largest = np.abs(draw(self.law, self.draws, random_source(3))).max(axis=1)
        bound = self.law.error_bound(delta)
        assert np.mean(largest > bound) <= delta + 4 * math.sqrt(delta / self.draws)
        assert np.mean(largest > bound / 2) > delta

    def test_impossible_parameters_are_refused(self) -> None:
        for make in self.refused:
            with pytest.raises(ValueError, match=r"scale|cells|needs|grid|variance"):
                make()


class StepContract:
    """The steps of a mechanism in small worlds: all neighbouring data sets are gone through."""

    mechanism: ClassVar[Any]
    universes: ClassVar[Sequence[Any]]  # As for `enumerate_loss`: networks, numbers of categories.
    n: ClassVar[int] = 2
    units: ClassVar[Sequence[Any]] = ("record",)
    least: ClassVar[float] = 1.0  # The part of the claim that the worst neighbours use up.

    @pytest.mark.parametrize("epsilon", [0.1, 2.0])
    def test_the_loss_of_all_neighbours_is_within_the_claim_and_near_it(
        self, epsilon: float
    ) -> None:
        for universe, unit in product(self.universes, self.units):
            found = enumerate_loss(self.mechanism, universe, self.n, epsilon=epsilon, unit=unit)
            assert found.within
            assert found.ratio >= self.least * (1 - 1e-6)


class Silent(Noise):
    """Noise of zero: a fault that every enumeration has to see."""

    def add(self, arrays: Sequence[Any], law: NoiseLaw) -> Any:
        return tuple(arrays)


class NoisyStepContract(StepContract):
    """The same for steps that add noise."""

    def test_numbers_without_noise_are_seen(self) -> None:
        for universe in self.universes:
            assert not enumerate_loss(self.mechanism, universe, self.n, noise=Silent).within


class EstimatorContract:
    """An estimator as its users see it: what it spends, keeps, refuses and writes.

    scikit-learn's own checks are in ``tests/test_estimator_checks.py``, which finds every exported
    estimator by itself; what is private is checked for all at once by the audit's catalogue.
    """

    X: ClassVar[Any]
    y: ClassVar[Any] = None
    written: ClassVar[bool] = True  # Whether it is written as JSON.

    def make(self, **options: Any) -> Any:
        """Return an estimator of declared domains that a fit to (X, y) needs no warning for."""
        raise NotImplementedError

    def answer(self, model: Any) -> Any:
        """Return what a user reads off a fitted model, as an array."""
        raise NotImplementedError

    def fitted(self, **options: Any) -> Any:
        """Return a fitted estimator."""
        model = self.make(**options)
        return model.fit(self.X) if self.y is None else model.fit(self.X, self.y)

    def test_a_fit_is_charged_once_and_states_what_it_spent(self) -> None:
        ledger = BudgetAccountant(5.0)
        model = self.fitted(epsilon=1.0, accountant=ledger)
        assert len(ledger) == 1
        assert ledger.total().epsilon == model.guarantee_.epsilon == 1.0

    def test_a_fit_above_the_ceiling_is_refused_and_leaves_nothing(self) -> None:
        model = self.make(epsilon=2.0, accountant=BudgetAccountant(1.0))
        with pytest.raises(BudgetError):
            model.fit(self.X) if self.y is None else model.fit(self.X, self.y)
        assert not [name for name in vars(model) if name.endswith("_")]

    def test_a_plan_from_public_numbers_costs_what_the_fit_spends(self) -> None:
        plan = self.make(epsilon=1.0).plan(n=len(self.X))
        assert plan.cost.epsilon == self.fitted(epsilon=1.0).guarantee_.epsilon

    def test_a_seed_repeats_the_release_and_no_seed_does_not(self) -> None:
        once, twice = (self.answer(self.fitted(random_state=3)) for _ in range(2))
        np.testing.assert_array_equal(once, twice)
        assert not np.array_equal(self.answer(self.fitted()), self.answer(self.fitted()))

    def test_a_model_comes_back_from_json_and_pickle(self) -> None:
        model = self.fitted(random_state=0)
        copies = [pickle.loads(pickle.dumps(model))]
        for copy in [*copies, from_json(model.to_json())] if self.written else copies:
            np.testing.assert_array_equal(self.answer(copy), self.answer(model))

    def test_a_clone_shares_the_ledger_and_is_not_fitted(self) -> None:
        ledger = BudgetAccountant(5.0)
        copy = clone(self.fitted(accountant=ledger))
        assert not hasattr(copy, "guarantee_")
        copy.fit(self.X) if self.y is None else copy.fit(self.X, self.y)
        assert len(ledger) == 2

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
    def test_an_epsilon_that_is_none_is_refused_before_the_charge(self, epsilon: float) -> None:
        ledger = BudgetAccountant(5.0)
        with pytest.raises(ValueError, match="'epsilon' parameter"):
            self.fitted(epsilon=epsilon, accountant=ledger)
        assert len(ledger) == 0
