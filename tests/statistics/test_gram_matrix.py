"""The weighted moments of two records never lie farther apart than declared, as matrices."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.laws import MatrixNoise
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.gram_matrix import GramMatrix, gaussian_gram, gram_block
from dpbayes_sklearn.statistics.moment_blocks import Block, whole_block

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


def scaled(matrix, design, grid):
    """Every record of the small world, scaled to the bound of its norm, in steps of the grid."""
    for z in coordinates(design):
        x, t = np.rint(z[None, 1:-1] * grid), np.rint(z[-1:] * grid)
        matrix.norm.clip(x, t, grid)
        yield np.concatenate([[grid], x[0], t]).astype(np.int64)


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


def gaussian_moves(design, records):
    """Weighted squared changes of all pairs of records."""
    block = gaussian_gram(design)
    weights = np.repeat([float(w) for w in block.weights], block.sizes)
    sums = np.array([np.outer(z, z)[block.rows, block.columns] for z in records])
    rooted = sums * np.sqrt(weights)
    return np.array([np.square(rooted - row).sum(axis=1).max() for row in rooted])


@pytest.mark.parametrize("design", [*DESIGNS, Design((NUMBER,) * 3)], ids=str)
def test_no_pair_of_records_moves_gaussian_products_further(design):
    block = gaussian_gram(design)
    worst = gaussian_moves(design, list(coordinates(design))).max()
    assert 0.95 * float(block.bound) < worst <= float(block.bound) * (1 + 1e-12)


def test_the_weights_of_squares_are_as_large_as_they_may_be():
    """Two numbers, no constant: from (1, 1, 1) to (0, 1, -1) is the worst pair there is."""
    design = Design((NUMBER,) * 6, intercept=False)
    rng = np.random.default_rng(0)
    records = np.hstack([np.ones((400, 1)), rng.choice([-1.0, 0.0, 1.0], (400, 7))])
    bound = float(gaussian_gram(design).bound)
    assert 0.8 * bound < gaussian_moves(design, records).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_what_gaussian_products_leave_out_is_public(design):
    block, whole = gaussian_gram(design), whole_block(design)
    levels = set((1 + np.flatnonzero(design.levels)).tolist())
    released = set(zip(block.rows.tolist(), block.columns.tolist(), strict=True))
    wanted = set(zip(whole.rows.tolist(), whole.columns.tolist(), strict=True))
    squares = {(i, i) for i in levels}  # which are released a second time
    without = set() if design.intercept else {(0, i) for i in levels}  # a level is its own square
    assert released == (wanted - without) | squares
    assert len(released) == len(block) == sum(block.sizes)


def test_gaussian_noise_is_rho_zcdp_and_no_more():
    design, rho, grid = Design((NUMBER, LEVELS, SIGN)), Fraction(1, 50), 2**4
    block = gaussian_gram(design)
    law = block.law(rho, grid)
    records = list(coordinates(design))
    z = records[int(np.argmax(gaussian_moves(design, records)))]
    changes = [np.outer(z, z) - np.outer(other, other) for other in records]
    sums = [np.rint(change[block.rows, block.columns] * grid**2) for change in changes]
    worst = max(law.rho(change.astype(np.int64)) for change in sums)
    assert 0.9 * rho < worst <= rho
