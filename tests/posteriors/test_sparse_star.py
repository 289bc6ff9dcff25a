"""Sparse rows: the log probabilities of dense ones, from the stored values alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.posteriors import network as module
from dpbayes_sklearn.schema.domains import Interval
from dpbayes_sklearn.statistics.network import Network

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
def test_the_log_joint_is_that_of_dense_rows(sizes: tuple[int, ...]) -> None:
    network, codes, tables = Network.star(sizes, CLASSES), codes_of(sizes), tables_of(sizes)
    found = module.log_joint(network, tables, codes)
    np.testing.assert_allclose(found, module.log_joint(network, tables, codes.dense()), rtol=1e-12)


def test_probabilities_of_zero_are_no_exception() -> None:
    sizes = SIZES[0]
    network, codes, tables = Network.star(sizes, CLASSES), codes_of(sizes), tables_of(sizes)
    tables[3][1] = -np.inf, 0.0
    found = module.log_joint(network, tables, codes)
    np.testing.assert_allclose(found, module._by_cells(network, tables, codes.dense()), rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_row_has_the_same_bits_wherever_it_stands(sizes: tuple[int, ...]) -> None:
    network, codes, tables = Network.star(sizes, CLASSES), codes_of(sizes), tables_of(sizes)
    together = module.log_joint(network, tables, codes)
    for i, (start, stop) in enumerate(zip(codes.starts, codes.starts[1:], strict=False)):
        alone = SparseCodes(
            np.array([0, stop - start]),
            codes.columns[start:stop],
            codes.codes[start:stop],
            codes.zeros,
        )
        assert np.array_equal(module.log_joint(network, tables, alone)[0], together[i])


def test_nothing_is_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows_of(SIZES[0]), np.arange(N) % 2
    monkeypatch.delattr(SparseCodes, "dense")
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1]).fit(X, y)
    assert model.predict_proba(X).shape == (N, 2)
