from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.categories.posterior import hellinger
from dpbayes_sklearn.papers.candidates import Candidates

PRIORS = [(1.0, 1.0), (0.01, 5.0), (0.5, 2.0, 1.3), (1.0, 1.0, 1.0, 0.1)]


@pytest.fixture(params=PRIORS, ids=str)
def candidates(request) -> Candidates:
    return Candidates(7, request.param)


@pytest.fixture
def distances(candidates: Candidates) -> np.ndarray:
    concentration = candidates.counts + np.array(candidates.prior)
    return hellinger(concentration[:, None], concentration[None])


@pytest.fixture
def replaced(candidates: Candidates) -> np.ndarray:
    """Number of records in which data sets differ."""
    return np.abs(candidates.counts[:, None] - candidates.counts).sum(axis=2) // 2


def test_every_count_vector_once_in_order(candidates: Candidates) -> None:
    k = len(candidates.prior)
    rows = candidates.counts.tolist()
    assert len(rows) == math.comb(7 + k - 1, k - 1)
    assert rows == sorted(rows)
    assert (candidates.counts.sum(axis=1) == 7).all()
    assert (candidates.row_of(candidates.counts) == np.arange(len(rows))).all()


def test_distances_from_tables(candidates: Candidates, distances: np.ndarray) -> None:
    found = candidates.hellinger(np.arange(len(candidates)))
    assert found == pytest.approx(distances, abs=1e-12)
    assert (np.diag(found) == 0).all()


def test_each_pair_of_neighbours_once(candidates: Candidates, replaced: np.ndarray) -> None:
    pairs = [
        (int(a), int(b)) for x, y in candidates.neighbours() for a, b in zip(x, y, strict=True)
    ]
    assert sorted(pairs) == [tuple(pair) for pair in np.argwhere(np.triu(replaced == 1)).tolist()]


def test_sensitivity_from_neighbours_is_that_over_all_candidates(
    candidates: Candidates, distances: np.ndarray, replaced: np.ndarray
) -> None:
    change = np.abs(distances[:, None, :] - distances[None, :, :]).max(axis=2)
    over_all = np.where(replaced == 1, change, 0).max(axis=1)
    assert candidates.local_sensitivity() == pytest.approx(over_all)


@pytest.mark.parametrize("gamma", [0.0, 0.02, 0.5])
def test_smooth_sensitivity(candidates: Candidates, replaced: np.ndarray, gamma: float) -> None:
    by_definition = (candidates.local_sensitivity() * np.exp(-gamma * replaced)).max(axis=1)
    assert candidates.smooth_sensitivity(gamma) == pytest.approx(by_definition)


def test_local_sensitivity_grows_towards_the_ends() -> None:
    """Statements I and III of the proofs for Beta(1, 1)."""
    ends = Candidates(100, (1.0, 1.0)).local_sensitivity()
    assert (np.diff(ends[1:51]) < 0).all()
    assert (np.diff(ends[50:100]) > 0).all()


def exact_distance(n: int, i: int, j: int) -> float:
    """Hellinger distance of Beta(1+i, 1+n-i) and Beta(1+j, 1+n-j), i + j even, in 60 digits."""

    def beta(a: int) -> Fraction:
        return Fraction(math.factorial(a) * math.factorial(n - a), math.factorial(n + 1))

    squared = beta((i + j) // 2) ** 2 / (beta(i) * beta(j))
    with localcontext() as context:
        context.prec = 60
        affinity = (Decimal(squared.numerator) / Decimal(squared.denominator)).sqrt()
        return float((1 - affinity).sqrt())


def test_rounding_bounds_the_error() -> None:
    n, i = 2000, 940
    candidates = Candidates(n, (1.0, 1.0))
    found = candidates.hellinger([i])[0]
    errors = [abs(found[j] - exact_distance(n, i, j)) for j in (0, 938, 942, 960, 1200, n)]
    assert 0 < max(errors) <= candidates.rounding < 1e-9


def test_too_many_candidates_name_what_scales() -> None:
    with pytest.raises(ValueError, match=r"1,373,701 possible .*'geometric', 'laplace'"):
        Candidates(200, (1.0,) * 4)
