"""The weighted moments of two records never lie farther apart than declared, as matrices."""

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.laws import MatrixNoise
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.gram_matrix import GramMatrix, gram_block
from dpbayes_sklearn.statistics.moment_blocks import Block
from tests.statistics.records import DESIGNS, NUMBER, scaled


@pytest.mark.parametrize("deviations", [None, 0.0, 1.0])
@pytest.mark.parametrize("stretch", [None, 1.3, 3.0, 20.0])
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_no_pair_of_records_moves_the_matrix_further(design, stretch, deviations):
    reach = None if stretch is None else np.full(design.width + 1, stretch)
    matrix, grid = GramMatrix.of(design, reach, deviations), 2**6
    law = matrix.law(Fraction(1), grid)
    assert isinstance(law, MatrixNoise)
    records = list(scaled(matrix, design, grid))
    sums = [np.outer(z, z)[matrix.rows, matrix.columns] for z in records]
    losses = [law.privacy_loss(a - b) for a in sums for b in sums]
    assert 0.5 < max(losses) <= 1 + 1e-12
    present = [z[0 if design.intercept else 1 :].tolist() for z in records]
    squares = [
        sum(a**2 * value**2 for a, value in zip(matrix.weights, z, strict=True)) for z in present
    ]
    assert 0.85 < max(squares) / (matrix.bound * grid**2) <= 1  # in whole numbers: exactly


def test_many_columns_get_matrix_noise_and_few_do_not():
    assert isinstance(gram_block(Design((NUMBER,) * 2)), Block)
    assert isinstance(gram_block(Design((NUMBER,) * 2), deviations=1.0), GramMatrix)
    assert isinstance(gram_block(Design((NUMBER,) * 10)), GramMatrix)
    assert isinstance(gram_block(Design((NUMBER,) * 10, intercept=False)), GramMatrix)


def test_more_levels_cost_nothing_but_dimensions():
    few, many = (GramMatrix.of(Design((Categories(range(k)),) * 3)) for k in (3, 30))
    assert few.bound == many.bound
