"""The best of a random number of zCDP runs: never more than claimed, by direct computation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.model_selection.rehearsal import run_rho, winner_epsilon
from dpbayes_sklearn.noise.finite import Stopping
from dpbayes_sklearn.privacy.composition import zcdp_rho
from tests.hockey_stick import hockey_stick

DELTA = Fraction(1, 10**5)


def generating(name: str, x: np.ndarray, m: int) -> np.ndarray:
    if name == "geometric":
        return x / m / (1 - (1 - 1 / m) * x)
    return np.log1p(-(1 - 1 / m) * x) / math.log(1 / m)


def winners(rho: float, law: Stopping, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """The laws of the winner for neighbours that shift a Gaussian score, on a fine lattice."""
    z = np.linspace(-12, 12, 20_001)
    shift = math.sqrt(2 * rho)
    laws = []
    for centre in (0.0, sign * shift):
        p = np.exp(-((z - centre) ** 2) / 2)
        below = np.concatenate([[0.0], np.cumsum(p / p.sum())])
        laws.append(np.diff(generating(law.name, np.minimum(below, 1.0), law.inverse)))
    return laws[0], laws[1]


@pytest.mark.parametrize("name", ["geometric", "logarithmic"])
@pytest.mark.parametrize("mean", [2, 20, 200])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_winner_keeps_to_its_delta(name: str, mean: int, epsilon: Fraction) -> None:
    law = Stopping.of_mean(name, mean)
    rho = run_rho(epsilon, DELTA, law.eta, law.inverse, law.mean)
    assert winner_epsilon(rho, DELTA, law.eta, law.inverse, law.mean) <= epsilon
    assert rho < zcdp_rho(epsilon, DELTA)
    for sign in (1, -1):
        one, other = winners(float(rho), law, sign)
        assert hockey_stick(one, other, float(epsilon)) <= DELTA
        assert hockey_stick(other, one, float(epsilon)) <= DELTA


def test_the_zcdp_of_the_search_in_every_run_is_too_much() -> None:
    law, epsilon = Stopping.of_mean("geometric", 200), Fraction(1)
    rho = float(zcdp_rho(epsilon, DELTA))
    worst = max(hockey_stick(*winners(rho, law, sign), float(epsilon)) for sign in (1, -1))
    assert worst > DELTA


def test_fewer_runs_and_logarithmic_stopping_leave_more_to_each() -> None:
    def rho(name: str, mean: int) -> Fraction:
        law = Stopping.of_mean(name, mean)
        return run_rho(Fraction(1), DELTA, law.eta, law.inverse, law.mean)

    assert rho("geometric", 10) > rho("geometric", 100)
    assert rho("logarithmic", 60) > 1.3 * rho("geometric", 60)


def test_what_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="too small for a search"):
        run_rho(Fraction(1, 10**40), Fraction(1, 10**300), 1, 60, 60.0)
