"""The exact loss of laws, from what is drawn and over all neighbours."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_pmf
from dpbayes_sklearn.papers.candidates import (
    Candidates,
    ClippedNoise,
    CountNoise,
    FiniteLaw,
    ScoredCandidates,
    noise_law,
)
from tests.releasing import law_loss


def scored(n: int, prior: tuple[float, ...], exponent: float) -> ScoredCandidates:
    candidates = Candidates(n, prior)
    return ScoredCandidates(candidates, candidates.local_sensitivity(), exponent)


@pytest.mark.parametrize(("n", "prior"), [(30, (1.0, 1.0)), (6, (0.3, 1.0, 2.0)), (3, (1.0,) * 4)])
def test_worst_case_is_that_of_all_pairs(n: int, prior: tuple[float, ...]) -> None:
    law = scored(n, prior, 0.7)
    counts = law.candidates.counts
    losses = {
        (i, j): law_loss(law.weights(np.array([i])), law.weights(np.array([j])))
        for i in range(len(counts))
        for j in range(i)
        if np.abs(counts[i] - counts[j]).sum() == 2
    }
    worst = law.worst_case()
    assert worst.epsilon == pytest.approx(max(losses.values()), abs=1e-12)
    assert worst.epsilon >= max(losses.values()) - 1e-14
    i, j = law.candidates.row_of(worst.pair)
    assert losses[max(i, j), min(i, j)] == pytest.approx(worst.epsilon)


def test_epsilon_with_delta_is_the_hockey_stick() -> None:
    law = scored(20, (1.0, 1.0), 0.8)
    p = np.exp(law.log_probabilities(np.arange(21)))

    def delta_at(epsilon: float) -> float:
        sides = [*pairwise(p), *pairwise(p[::-1])]
        return max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in sides)

    for delta in (1e-6, 1e-3, 0.05):
        worst = law.worst_case(delta)
        assert worst.epsilon < law.worst_case().epsilon
        assert delta_at(worst.epsilon) <= delta * (1 + 1e-9)
        assert delta_at(worst.epsilon - 1e-6) > delta
    assert law.worst_case(1.0).epsilon == 0.0


def test_a_planted_fault_is_seen() -> None:
    """One data set with a scale of its own, as an uncertified local sensitivity has."""
    law = scored(40, (1.0, 1.0), 0.5)
    sensitivity = law.sensitivity.copy()
    sensitivity[20] /= 3
    faulty = ScoredCandidates(law.candidates, sensitivity, 0.5)
    assert faulty.worst_case().epsilon > 1.5 * law.worst_case().epsilon
    assert (20, 20) in faulty.worst_case().pair


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 3), Fraction(20)])
def test_clipped_noise(scale: Fraction) -> None:
    law = ClippedNoise(Candidates(5, (1.0, 1.0)), scale)
    noise = np.arange(-2000, 2001)
    expected = np.zeros((6, 6))
    for x in range(6):
        np.add.at(expected[x], np.clip(x + noise, 0, 5), discrete_laplace_pmf(noise, scale))
    assert np.exp(law.log_probabilities(np.arange(6))) == pytest.approx(expected)
    assert law.worst_case().epsilon == float(1 / scale)
    assert FiniteLaw.worst_case(law).epsilon == pytest.approx(float(1 / scale), abs=1e-12)


def test_closed_form_holds_for_noise_in_three_counts() -> None:
    """Independent noise in two of three counts, cut to [0, n]: the loss is attained."""
    n, scale = 4, Fraction(2)
    one = ClippedNoise(Candidates(n, (1.0, 1.0)), scale).log_probabilities(np.arange(n + 1))
    counts = Candidates(n, (1.0,) * 3).counts
    logs = [one[x][:, None] + one[y][None, :] for x, y, _ in counts]
    worst = max(
        np.abs(logs[i] - logs[j]).max()
        for i in range(len(counts))
        for j in range(i)
        if np.abs(counts[i] - counts[j]).sum() == 2
    )
    assert CountNoise(n, 3, 2, scale).worst_case().epsilon == pytest.approx(worst)


def test_listing_stops_where_it_would_be_long() -> None:
    assert isinstance(noise_law(10**6, (1.0, 1.0), 1, Fraction(1)), CountNoise)
    assert noise_law(10**6, (1.0, 1.0), 1, Fraction(1, 2)).worst_case().epsilon == 2.0
