"""The weighted moments of two records never lie farther apart than declared, as matrices."""

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.noise import MatrixNoise
from dpbayes_sklearn.regression.gram import GramMatrix, gram_block
from dpbayes_sklearn.regression.moments import Block
from dpbayes_sklearn.schema import Categories
from tests.linear_records import DESIGNS, NUMBER, whole_steps

GRID = 2**6


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_no_pair_of_records_moves_the_matrix_further(design):
    matrix = GramMatrix.of(design)
    law = matrix.law(Fraction(1), GRID)
    assert isinstance(law, MatrixNoise)
    records = list(whole_steps(design, GRID))
    sums = [np.outer(z, z)[matrix.rows, matrix.columns] for z in records]
    losses = [law.privacy_loss(a - b) for a in sums for b in sums]
    assert 0.5 < max(losses) <= 1 + 1e-12
    present = [z[0 if design.intercept else 1 :].tolist() for z in records]
    squares = [sum(a**2 * v**2 for a, v in zip(matrix.weights, z, strict=True)) for z in present]
    assert max(squares) == matrix.bound * GRID**2  # in whole numbers: attained exactly


def test_many_columns_get_matrix_noise_and_few_do_not():
    assert isinstance(gram_block(Design((NUMBER,) * 2)), Block)
    assert isinstance(gram_block(Design((NUMBER,) * 10)), GramMatrix)
    assert isinstance(gram_block(Design((NUMBER,) * 10, intercept=False)), GramMatrix)


def test_more_levels_cost_nothing_but_dimensions():
    few, many = (GramMatrix.of(Design((Categories(range(k)),) * 3)) for k in (3, 30))
    assert few.bound == many.bound
