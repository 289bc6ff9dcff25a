"""Conjugate Bayes on released counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.counts.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.counts.fourier import CharacterSums, ReleasedCharacters
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts

STAR = Network.star([3], 2)
PRIOR = DirichletPrior(STAR, (np.array([1.0, 0.5, 2.0]), np.array([1.0, 3.0])))
TABLES = (np.array([[4, 0, 2], [1, 1, 0]]), np.array([6, 2]))


def released(tables: Any = TABLES, n: int = 8) -> ReleasedCounts:
    return ReleasedCounts(STAR, tables, n, ((Fraction(2),),) * 2)


def test_the_update_adds_counts_to_pseudo_counts() -> None:
    posterior = PRIOR.update(released())
    assert isinstance(posterior, DirichletPosterior)
    assert posterior.network is STAR
    assert posterior.concentrations[0].tolist() == [[5, 0.5, 4], [2, 1.5, 2]]
    assert posterior.concentrations[1].tolist() == [7, 5]
    assert posterior.mean()[1].tolist() == pytest.approx([7 / 12, 5 / 12])
    assert posterior.mean()[0][0].tolist() == pytest.approx([5 / 9.5, 0.5 / 9.5, 4 / 9.5])


def test_the_predictive_is_that_of_the_mean_tables() -> None:
    posterior = PRIOR.update(released())
    got = np.exp(posterior.log_predictive(np.array([[0], [1], [2]], np.uint8)))
    feature, classes = posterior.mean()
    np.testing.assert_allclose(got, feature.T * classes, rtol=1e-12)
    assert got.sum() == pytest.approx(1)


def test_batches_of_counts_add_up_before_they_are_clipped() -> None:
    first = released((np.array([[9, -5, 2], [1, 1, 0]]), np.array([-2, 2])))
    second = released((np.array([[0, 7, 2], [1, 1, 0]]), np.array([6, 2])))
    both = DirichletPosterior(PRIOR, first).merge(DirichletPosterior(PRIOR, second))
    assert both.concentrations[0].tolist() == [[10, 2.5, 6], [3, 2.5, 2]]
    assert both.concentrations[1].tolist() == [5, 7]


def test_batches_of_characters_are_the_characters_of_all() -> None:
    exact = CountTables(STAR, TABLES, 8)
    sums = CharacterSums.of(exact)
    batch = PRIOR.update(ReleasedCharacters(STAR, sums.blocks, 8, (), 16.0))
    both = batch.merge(batch)
    # each batch brings an increment of 16: 2^-h of it to a cell
    expected = TABLES[1] * 2 + 32 / 2 + PRIOR.alphas[1]
    assert both.concentrations[1].tolist() == expected.tolist()  # type: ignore[attr-defined]


def test_without_noise_two_batches_are_one() -> None:
    whole = PRIOR.update(CountTables(STAR, tuple(2 * t for t in TABLES), 16).without_noise())
    part = PRIOR.update(CountTables(STAR, TABLES, 8).without_noise())
    for a, b in zip(part.merge(part).mean(), whole.mean(), strict=True):
        assert (a == b).all()


def test_samples_follow_the_dirichlet() -> None:
    posterior = PRIOR.update(released())
    feature, classes = posterior.sample(np.random.default_rng(0), 20_000)
    assert feature.shape == (20_000, 2, 3)
    assert classes.shape == (20_000, 2)
    np.testing.assert_allclose(feature.sum(axis=-1), 1, rtol=1e-12)
    draws = feature[:, 0, 0]  # Beta(5, 4.5)
    assert stats.kstest(draws, stats.beta(5, 4.5).cdf).pvalue > 1e-3
    assert stats.kstest(draws, stats.beta(5.5, 4.5).cdf).pvalue < 1e-6
    assert stats.kstest(draws, stats.beta(4.5, 4.5).cdf).pvalue < 1e-6


@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
def test_samples_of_tiny_pseudo_counts_are_probabilities(alpha: float) -> None:
    prior = DirichletPrior(STAR, (np.full(3, alpha), np.full(2, alpha)))
    empty = ReleasedCounts(STAR, tuple(0 * t for t in TABLES), 0, ((), ()))
    for table in prior.update(empty).sample(np.random.default_rng(1), 3000):
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-9)
        # nearly all of a row in one place, each place as often
        chosen = table.reshape(-1, table.shape[-1]).argmax(axis=-1)
        shares = np.bincount(chosen) / len(chosen)
        np.testing.assert_allclose(shares, 1 / table.shape[-1], atol=0.04)
