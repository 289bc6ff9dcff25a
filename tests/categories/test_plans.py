"""What is drawn follows the law that was certified."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.plans import plan
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, SimplexPrior
from dpbayes_sklearn.mechanisms import (
    Exponential,
    Geometric,
    Hellinger,
    Laplace,
    LaplaceImproved,
    Local,
    Mechanism,
)
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, ZeroSum
from dpbayes_sklearn.papers.candidates import FiniteLaw
from dpbayes_sklearn.papers.choices import outcome_law
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.release import Facts

DRAWS = 2000
ALPHA = 1e-4
TWO = [Geometric(), Laplace(), LaplaceImproved(), Exponential(), Hellinger(), Local()]


def released_rows(mechanism: Mechanism, counts: list[int], epsilon: float, law: FiniteLaw):
    """Rows of the candidates that repeated releases choose."""
    k = len(counts)
    prior = SimplexPrior(Beta(1, 1) if k == 2 else Dirichlet(np.ones(k)))
    noise = Noise.of(11)
    exact = SimplexCounts(np.array(counts))
    budget = Budget(Fraction(epsilon))
    planned = plan(mechanism, prior, Facts(sum(counts)), budget)
    drawn = [planned.release(exact, noise) for _ in range(DRAWS)]
    chosen = np.array([posterior.concentration for posterior in drawn]) - 1.0
    return law.candidates.row_of(chosen.astype(int))


def p_value(rows: np.ndarray, law: FiniteLaw, counts: list[int]) -> float:
    expected = DRAWS * np.exp(law.log_probabilities(law.candidates.row_of([counts]))[0])
    observed = np.bincount(rows, minlength=len(expected))
    frequent = expected >= 5
    if (~frequent).any():  # what is rare is counted together
        expected = np.append(expected[frequent], expected[~frequent].sum())
        observed = np.append(observed[frequent], observed[~frequent].sum())
    return float(stats.chisquare(observed, expected * DRAWS / expected.sum()).pvalue)


@pytest.mark.parametrize("mechanism", TWO, ids=lambda m: m.name())
def test_two_categories_follow_the_certified_law(mechanism) -> None:
    counts = [3, 9]
    law, strict, loose = (outcome_law(mechanism, 12, (1.0, 1.0), Budget(e)) for e in (1, 0.7, 1.4))
    rows = released_rows(mechanism, counts, 1.0, law)
    assert p_value(rows, law, counts) > ALPHA
    assert p_value(rows, strict, counts) < ALPHA
    assert p_value(rows, loose, counts) < ALPHA


@pytest.mark.parametrize("mechanism", TWO[3:], ids=lambda m: m.name())
def test_three_categories_follow_the_certified_law(mechanism) -> None:
    counts = [1, 2, 3]
    law, strict, loose = (outcome_law(mechanism, 6, (1.0,) * 3, Budget(e)) for e in (1, 0.5, 2))
    rows = released_rows(mechanism, counts, 1.0, law)
    assert p_value(rows, law, counts) > ALPHA
    assert p_value(rows, strict, counts) < ALPHA
    assert p_value(rows, loose, counts) < ALPHA


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Geometric(), ZeroSum(Fraction(2), 4)),
        (Laplace(), DiscreteLaplace.of(Fraction(2), [4])),
        (LaplaceImproved(), DiscreteLaplace.of(Fraction(2), [3])),
    ],
    ids=["geometric", "laplace", "laplace_improved"],
)
def test_noise_in_many_counts_has_the_scale_of_its_closed_form(mechanism, law) -> None:
    seen, cells = [], law.size

    class Recording(SimplexPrior):
        def update(self, released):
            seen.append(released)
            return super().update(released)

    exact = SimplexCounts(np.array([40, 30, 20, 10]))
    prior = Recording(Dirichlet(np.ones(4)))
    noise = Noise.of(2)
    planned = plan(mechanism, prior, Facts(100), Budget(Fraction(1)))
    for _ in range(DRAWS // 4):
        planned.release(exact, noise)
    noise = np.array([r.counts for r in seen]) - exact.counts[:cells]
    assert {(r.laws, r.n, len(r.counts)) for r in seen} == {((law,), 100, cells)}
    assert outcome_law(mechanism, 100, (1.0,) * 4, Budget(Fraction(1))).worst_case().epsilon == 1.0
    if mechanism.name() == "geometric":
        assert not noise.sum(axis=1).any()
    else:  # E|Z| = 1 / sinh(1/b) for independent discrete Laplace noise
        mean = np.abs(noise).mean()
        assert abs(mean - 1 / np.sinh(1 / 2)) < 5 * np.abs(noise).std() / np.sqrt(noise.size)


def test_no_noise_without_privacy() -> None:
    exact = SimplexCounts(np.array([5, 0, 2]))
    for mechanism in TWO:
        prior = SimplexPrior(Dirichlet(np.ones(3)), "noise_aware")
        planned = plan(mechanism, prior, Facts(7), Budget(float("inf")))
        assert planned.release(exact, Noise()).concentration.tolist() == [6, 1, 3]
