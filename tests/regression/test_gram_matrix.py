"""The weighted moments of two records never lie farther apart than declared, as matrices."""

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.convex.design import Design, Reach
from dpbayes_sklearn.noise import MatrixNoise
from dpbayes_sklearn.regression.gram import GramMatrix, gram_block
from dpbayes_sklearn.regression.moments import Block
from dpbayes_sklearn.schema import Categories
from tests.regression.records import DESIGNS, NUMBER, SIGN, reach_of, scaled


@pytest.mark.parametrize("deviations", [None, 0.0, 1.0])
@pytest.mark.parametrize(
    ("stretch", "centre"), [(None, None), (1.3, None), (3.0, None), (20.0, None), (3.0, 0.0),
                            (1.3, 0.95), (20.0, -0.6)]
)  # fmt: skip
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_no_pair_of_records_moves_the_matrix_further(design, stretch, centre, deviations):
    matrix, grid = GramMatrix.of(design, reach_of(design, stretch, centre), deviations), 2**6
    law = matrix.law(Fraction(1), grid)
    assert isinstance(law, MatrixNoise)
    records = list(scaled(matrix, design, grid, centre))
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


def test_centred_signs_of_rare_values_leave_less_noise_elsewhere():
    design = Design((NUMBER,) * 2 + (SIGN,) * 10)
    reach = np.full(design.width + 1, 2.5)
    bounds = [
        float(GramMatrix.of(design, Reach(reach, signs), 1.0).bound)
        for signs in (None, np.zeros(10), np.full(10, 0.9))
    ]
    assert bounds[2] < 0.75 * bounds[0]
    assert bounds[1] == pytest.approx(bounds[0], rel=0.01)


def test_a_target_alone_is_scaled_from_where_it_is_said():
    """The bound is reached by a record whose other entries have their usual squares."""
    design = Design((NUMBER,) * 3)
    matrix, whole = GramMatrix.of(design, deviations=1.0), GramMatrix.of(design)
    grid, x = 2**12, np.sqrt(0.2)
    for part, moved in ((0.99, False), (1.01, True)):
        X, t = np.full((1, 3), x * grid), np.array([part * matrix.target_end * grid])
        before = t.copy()
        matrix.norm.clip(X, t, grid)
        assert (t != before).any() == moved
    assert 0.3 < matrix.target_end < 1.0 == whole.target_end


def test_more_levels_cost_nothing_but_dimensions():
    few, many = (GramMatrix.of(Design((Categories(range(k)),) * 3)) for k in (3, 30))
    assert few.bound == many.bound
