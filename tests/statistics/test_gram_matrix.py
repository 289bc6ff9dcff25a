"""The weighted moments of two records never lie farther apart than declared, as matrices."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.laws import MatrixNoise
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.gram_matrix import GramMatrix, gram_block
from dpbayes_sklearn.statistics.moment_blocks import Block

NUMBER, SIGN, LEVELS = Interval(-1, 1), Categories("ab"), Categories("xyz")
DESIGNS = [
    Design(kinds, intercept)
    for intercept in (True, False)
    for kinds in ((NUMBER,), (NUMBER, SIGN), (NUMBER, LEVELS), (LEVELS, LEVELS), (SIGN, LEVELS))
]


def coordinates(design):
    """Every record of a small world, as z = (1, x, t)."""
    columns = []
    for domain in design.domains:
        if isinstance(domain, Interval):
            columns.append([[v] for v in (-1.0, 0.0, 0.5, 1.0)])
        elif domain.n_values == 2 and design.intercept:
            columns.append([[-1.0], [1.0]])
        else:
            columns.append(np.eye(domain.n_values).tolist())
    for parts in product(*columns, [[-1.0], [0.0], [1.0]]):
        yield np.array([1.0, *(value for part in parts for value in part)])


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_no_pair_of_records_moves_the_matrix_further(design):
    matrix = GramMatrix.of(design)
    law = matrix.law(Fraction(1), 2**4)
    assert isinstance(law, MatrixNoise)
    sums = [np.outer(z, z)[matrix.rows, matrix.columns] * 2**8 for z in coordinates(design)]
    losses = [law.privacy_loss(np.rint(a - b).astype(int)) for a in sums for b in sums]
    assert 0.6 < max(losses) <= 1 + 1e-12
    squares = [
        float(sum(np.float64(a) ** 2 * v for a, v in zip(matrix.weights, z2, strict=True)))
        for z2 in (z[0 if design.intercept else 1 :] ** 2 for z in coordinates(design))
    ]
    assert max(squares) == pytest.approx(float(matrix.bound))


def test_many_columns_get_matrix_noise_and_few_do_not():
    assert isinstance(gram_block(Design((NUMBER,) * 2)), Block)
    assert isinstance(gram_block(Design((NUMBER,) * 10)), GramMatrix)
    assert isinstance(gram_block(Design((NUMBER,) * 10, intercept=False)), GramMatrix)


def test_more_levels_cost_nothing_but_dimensions():
    few, many = (GramMatrix.of(Design((Categories(range(k)),) * 3)) for k in (3, 30))
    assert few.bound == many.bound
