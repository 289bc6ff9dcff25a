"""Scores of naive Bayes: a plain sum of logarithms, however its terms are added."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.counts import predict
from dpbayes_sklearn.counts.predict import StarScores, exact_in_sums, side_by_side
from dpbayes_sklearn.data.encoder import Encoder, SparseCodes
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema.domains import Interval


def star(sizes: list[int], n_classes: int) -> Any:
    rng = np.random.default_rng(sum(sizes))
    tables = [np.log(rng.dirichlet(np.ones(k), n_classes)) for k in sizes]
    return (*tables, np.log(rng.dirichlet(np.ones(n_classes))))


def codes_below(sizes: list[int], n: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in sizes], axis=1)
    return codes.astype(np.uint8 if max(sizes) <= 256 else np.uint16)


def naive(tables: Any, codes: npt.NDArray[Any]) -> list[list[float]]:
    return [
        [
            math.fsum([tables[-1][c], *(t[c, v] for t, v in zip(tables[:-1], row, strict=True))])
            for c in range(len(tables[-1]))
        ]
        for row in codes.tolist()
    ]


SMALL = [[2], [2, 2, 2], [2] * 17, [3], [3, 2, 4] * 5, [3, 2, 5, 8], [1, 4, 1], [16] * 3, [1]]
LARGE = [[32] * 5, [33, 2, 7], [300, 2], [256, 256, 3]]


@pytest.mark.parametrize("n_classes", [1, 2, 10])
@pytest.mark.parametrize("sizes", SMALL + LARGE)
def test_it_is_the_sum_of_logarithms(sizes: list[int], n_classes: int) -> None:
    tables, codes = star(sizes, n_classes), codes_below(sizes, 137)
    expected = naive(tables, codes)
    for layout in (codes, np.asfortranarray(codes), codes.astype(np.uint16)):
        np.testing.assert_allclose(StarScores(tables)(layout), expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("sizes", SMALL + LARGE)
def test_a_row_has_the_same_bits_however_its_terms_are_added(
    sizes: list[int], n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, codes = StarScores(star(sizes, n_classes)), codes_below(sizes, 137)
    alone = np.concatenate([scores(codes[i : i + 1]) for i in range(len(codes))])
    assert np.array_equal(scores(codes), alone)
    monkeypatch.setattr(predict, "_TERMS", 50)
    assert np.array_equal(scores(codes), alone)
    monkeypatch.setattr(predict, "_CACHE_CELLS", 1)  # one feature in a group
    assert np.array_equal(StarScores(star(sizes, n_classes))(codes), alone)


@pytest.mark.parametrize(
    ("values", "together"), [(1, 8), (2, 8), (3, 4), (4, 4), (5, 2), (16, 2), (17, 1)]
)
def test_features_of_few_values_share_a_table(values: int, together: int) -> None:
    assert StarScores(star([values] * 20, 2))._groups.together == together


@pytest.mark.parametrize(("bits", "together"), [(1, 8), (1, 4), (1, 2), (2, 4), (3, 2), (4, 2)])
def test_codes_stand_side_by_side(bits: int, together: int) -> None:
    codes = np.random.default_rng(0).integers(0, 1 << bits, (9, 11), dtype=np.uint8)
    padded = np.pad(codes.astype(int), ((0, 0), (0, -11 % together)))
    places = 1 << bits * np.arange(together)
    expected = (padded.reshape(9, -1, together) * places).sum(axis=2)
    assert np.array_equal(side_by_side(codes, bits, together), expected)


def test_the_cells_of_a_caller_are_left_as_they_are() -> None:
    codes = np.full((100, 16), 3, np.uint8)
    StarScores(star([4] * 16, 2))(codes)
    assert (codes == 3).all()


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e250])
def test_sums_of_rounded_terms_are_exact(scale: float) -> None:
    rng = np.random.default_rng(1)
    terms, constants = exact_in_sums(
        scale * rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-9, 9, (40, 1)),
        np.arange(40),
        scale * np.ones(3),
    )
    for c in range(3):
        column = [*terms[:, c], constants[c]]
        exact = math.fsum(column)
        assert all(float(np.sum(rng.permutation(column))) == exact for _ in range(20))


N, CLASSES = 60, 3
SIZES = [(2,) * 7, (5,) * 7, (2, 3, 5, 2, 4, 4, 3)]


def rows_of(sizes: tuple[int, ...]) -> sparse.csr_matrix:
    """Return rows most of whose cells are zero; the first and the last have no others."""
    rng = np.random.default_rng(0)
    shape = (N, len(sizes))
    dense = rng.integers(0, sizes, shape) * (rng.random(shape) < 0.4)
    dense[[0, -1]] = 0
    return sparse.csr_matrix(dense.astype(float))


def codes_of(sizes: tuple[int, ...]) -> SparseCodes:
    # one domain starts below zero, so that zero has another code there
    domains = [Interval(0, k - 1, bins=k) for k in sizes[:-1]]
    last = Interval(-1, sizes[-1] - 2, bins=sizes[-1])
    ((_, codes),) = Encoder([*domains, last]).compact_chunks(Table(rows_of(sizes)))
    assert isinstance(codes, SparseCodes)
    return codes


def tables_of(sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    features = (np.log(rng.dirichlet(np.ones(k), CLASSES)) for k in sizes)
    return (*features, np.log(rng.dirichlet(np.ones(CLASSES))))


@pytest.mark.parametrize("sizes", SIZES)
def test_sparse_rows_have_the_bits_of_dense_ones(sizes: tuple[int, ...]) -> None:
    codes, scores = codes_of(sizes), StarScores(tables_of(sizes))
    assert np.array_equal(scores(codes), scores(codes.dense()))


def test_probabilities_of_zero_are_no_exception() -> None:
    codes, tables = codes_of(SIZES[0]), tables_of(SIZES[0])
    tables[3][1] = -np.inf, 0.0
    found = StarScores(tables)(codes)
    assert np.array_equal(np.isneginf(found[:, 1]), codes.dense()[:, 3] == 0)
    np.testing.assert_allclose(found, naive(tables, codes.dense()), rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_sparse_row_has_the_same_bits_wherever_it_stands(sizes: tuple[int, ...]) -> None:
    codes, scores = codes_of(sizes), StarScores(tables_of(sizes))
    together = scores(codes)
    for i, (start, stop) in enumerate(zip(codes.starts, codes.starts[1:], strict=False)):
        alone = SparseCodes(
            np.array([0, stop - start]),
            codes.columns[start:stop],
            codes.codes[start:stop],
            codes.zeros,
        )
        assert np.array_equal(scores(alone)[0], together[i])


def test_nothing_is_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows_of(SIZES[0]), np.arange(N) % 2
    monkeypatch.delattr(SparseCodes, "dense")
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1]).fit(X, y)
    assert model.predict_proba(X).shape == (N, 2)
