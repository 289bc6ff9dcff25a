"""Certification of every mechanism over priors, budgets and sizes; calibration to epsilon."""

from __future__ import annotations

from itertools import product

import pytest

from dpbayes_sklearn.conjugate import certify
from dpbayes_sklearn.mechanisms import Exponential, Hellinger
from dpbayes_sklearn.papers import choices
from dpbayes_sklearn.papers.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.papers.choices import choice_law
from dpbayes_sklearn.privacy import Budget

PRIORS = [(1.0, 1.0), (0.5, 0.5), (0.01, 5.0), (50.0, 50.0), (3.0, 20.0), (1.0, 1.0, 1.0)]
EPSILONS = [0.1, 1.0, 3.0]
CALIBRATED = ["exponential", "hellinger", "local"]


def size(prior: tuple[float, ...]) -> int:
    return 200 if len(prior) == 2 else 12


@pytest.mark.parametrize("mechanism", CALIBRATED)
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_calibrated_loss_is_epsilon_and_never_above(mechanism, prior) -> None:
    for epsilon, n in product(EPSILONS, (5, size(prior))):
        found = certify(mechanism, n, prior, epsilon)
        assert epsilon - max(1e-6, 1e-4 * epsilon) < found.pure_epsilon <= epsilon


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_nothing_is_above_its_claim_without_calibration(prior) -> None:
    for epsilon, n in product(EPSILONS, (5, size(prior))):
        for mechanism in ("exponential", "hellinger"):
            found = certify(mechanism, n, prior, epsilon, 1e-6, calibrate=False)
            assert 0.4 * epsilon < found.epsilon <= found.pure_epsilon <= epsilon
        for mechanism, share in (("geometric", 1), ("laplace_improved", 1), ("laplace", None)):
            share = share or (0.5 if len(prior) == 2 else 1)
            assert certify(mechanism, n, prior, epsilon).pure_epsilon == pytest.approx(
                share * epsilon, abs=1e-12
            )


@pytest.mark.parametrize(("n", "exact"), [(100, 0.53), (300, 0.51), (1000, 0.53)])
def test_half_the_budget_of_the_uncalibrated_mechanism_is_wasted(n: int, exact: float) -> None:
    found = certify("hellinger", n, (1, 1), 1.0, 1e-8, calibrate=False)
    assert found.pure_epsilon == pytest.approx(exact, abs=0.01)
    calibrated = certify("hellinger", n, (1, 1), 1.0, 1e-8)
    assert 1 - 1e-6 < calibrated.pure_epsilon <= 1


def local_loss(n: int, prior: tuple[float, ...], epsilon: float) -> float:
    """Loss of the mechanism as it was proposed, which the library refuses to run."""
    candidates = Candidates(n, prior)
    law = ScoredCandidates(candidates, candidates.local_sensitivity(), epsilon / 2, "hellinger")
    return law.worst_case().epsilon


def test_local_sensitivity_exceeds_epsilon_somewhere() -> None:
    assert local_loss(200, (0.01, 5.0), 1.0) > 1.07
    assert 0.6 <= local_loss(20, (1.0, 1.0), 1.0) <= 0.91
    with pytest.raises(ValueError, match="not private in general"):
        certify("local", 200, (0.01, 5.0), calibrate=False)


def test_hellinger_without_calibration_needs_a_delta() -> None:
    with pytest.raises(ValueError, match="needs a delta"):
        certify("hellinger", 20, (1, 1), calibrate=False)


def test_a_claim_that_enumeration_denies_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(
        choices,
        "sensitivity_of",
        lambda mechanism, candidates, *_: candidates.local_sensitivity() / 2,
    )
    with pytest.raises(ValueError, match="exact loss"):
        choice_law(Hellinger(calibrate=False), 30, (1.0, 1.0), Budget(1, 1e-8))


def test_rounding_is_taken_off_a_claim_that_rests_on_a_theorem() -> None:
    law = choice_law(Exponential(calibrate=False), 50, (1.0, 1.0), Budget(1))
    assert 1 - 1e-6 < 2 * law.exponent < 1
    with pytest.raises(ValueError, match="too small for a choice among 51 candidates"):
        choice_law(Exponential(calibrate=False), 50, (1.0, 1.0), Budget(1e-9))


def test_laws_are_kept_by_public_facts() -> None:
    a, b, c = (
        choice_law(Exponential(), n, (1.0, 1.0), Budget(epsilon))
        for n, epsilon in ((9, 1), (9, 1), (9, 2))
    )
    assert a is b
    assert a is not c
