"""The release of all second moments: what it spends, and what may be computed from it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.convex.coordinates import n_coordinates
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.moments import MomentsPlan
from dpbayes_sklearn.convex.record_sums import lengths, pairs
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.convex.regressions import Moments
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import DiscreteLaplace, MatrixNoise, Noise
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.release import Facts, composed
from dpbayes_sklearn.schema import Categories, Interval

NUMBER, SIGN, LEVELS = Interval(-3, 3), Categories([*"ab"]), Categories([*"xyz"])
KINDS = {
    "numbers": (NUMBER,) * 3,
    "all": (NUMBER, SIGN, LEVELS, Interval(-3, 3, missing="indicator")),
    "levels": (LEVELS,),
}
UNITS = (
    RECORD,
    PrivacyUnit("record", neighbours="add_remove"),
    PrivacyUnit("person", max_records=3),
)


def planned(kinds, n, epsilon=Fraction(1), unit=RECORD):
    budget = Budget(epsilon, Fraction(0), unit)
    design = Design(KINDS[kinds])
    return MomentsPlan(cost=budget, mechanism="laplace", design=design, facts=Facts(n))


def records(kinds, n, seed=0):
    rng, columns = np.random.default_rng(seed), []
    for domain in KINDS[kinds]:
        if isinstance(domain, Interval):
            column = rng.normal(size=n)
            column[rng.random(n) < 0.2 * domain.marks_missing] = np.nan
            columns.append(column.astype(object))
        else:
            columns.append(rng.choice(np.array(domain.values, object), n))
    table = Table(np.array(columns, object).T.reshape(n, len(columns)))
    return LinearRecords(Design(KINDS[kinds]), Scale(0.0, 1.0), LocalRecords.unlabelled(table))


@pytest.mark.parametrize(("kinds", "unit"), [*product(KINDS, UNITS)])
def test_the_steps_spend_all_of_epsilon(kinds, unit):
    plan = planned(kinds, 1000, Fraction(7, 10), unit)
    assert composed(step.cost for step in plan.steps).epsilon == Fraction(7, 10)
    kinds_of_noise = [type(step.law) for step in plan.steps]
    assert kinds_of_noise == [
        DiscreteLaplace,
        MatrixNoise,
        DiscreteLaplace,
        MatrixNoise,
        MatrixNoise,
    ]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("n", [0, 1, 2, 50])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**4), Fraction(1), Fraction(10**8)])
def test_a_release_of_few_records_never_fails(kinds, n, epsilon):
    found = planned(kinds, n, epsilon).release(records(kinds, n), Noise.of(0))
    assert all(np.isfinite(each).all() for each in vars(found).values())
    assert np.linalg.eigvalsh(found.turn).min() > 0


@pytest.mark.parametrize("kinds", KINDS)
def test_without_noise_moments_are_exact(kinds):
    n = 2000
    plan, own = planned(kinds, n, float("inf")), records(kinds, n)
    found = plan.release(own, Noise.of(0))
    (_, x), *_ = Design(KINDS[kinds]).chunks(own.records.table)
    rows = [x.copy() for _, x in Design(KINDS[kinds]).chunks(own.records.table)]
    z = np.column_stack([np.ones(n), np.concatenate(rows)]) @ (found.turn @ found.first).T
    np.testing.assert_allclose(found.products, z.T @ z, atol=2e-3 * n)
    q = pairs(np.ascontiguousarray(z.T))
    np.testing.assert_allclose(found.pairs, q @ q.T, atol=2e-2 * n * n_coordinates(plan.design))
    assert found.lost_sd < 1e-6 * n


def test_pairs_are_as_long_as_squares():
    z = np.random.default_rng(0).normal(size=(4, 9))
    np.testing.assert_allclose(lengths(pairs(z)), lengths(z) ** 2)


def noisy_moments(rng, products, variance):
    """Return moments of two turned coordinates beside the constant, with noise of a variance."""
    p = len(products)
    noise = rng.normal(size=(p, p)) * np.sqrt(variance)
    noise = np.triu(noise, 1) + np.triu(noise, 1).T + np.diag(np.diag(noise)) * np.sqrt(2)
    n, size = 10_000, p * (p + 1) // 2
    eye = np.eye(p)
    return Moments(
        eye, eye, products + noise, variance, n * np.eye(size), 1.0, eye / p, 0.0, 0.0, n
    )


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_intervals_hold_the_noise_that_was_drawn(slope):
    """Coverage of products with normal noise and no sampling error that is worth its name."""
    rng, held, n = np.random.default_rng(1), [], 10_000
    products = n * np.array([[1, 0, 0], [0, 1, slope], [0, slope, 1 + slope**2]])
    design = Design((Interval(-1, 1),))
    for _ in range(300):
        moments = noisy_moments(rng, products, 400.0**2)
        slopes = moments.regression(design, 2, [0, 1], [0]).slopes
        at = slopes.sampling + slopes.privacy
        held.append(abs(slopes.mean[1] - slope) <= 1.96 * np.sqrt(at[1, 1]))
        # half the noise would be seen
        assert np.sqrt(slopes.privacy[1, 1]) > 0.02
    assert 0.92 <= np.mean(held) <= 0.995


def test_far_records_are_part_of_the_interval():
    rng, n = np.random.default_rng(0), 20_000
    x = rng.normal(size=n)
    x[:40] = 40.0
    own = LinearRecords(
        design := Design((Interval(-50, 50), Interval(-50, 50))),
        Scale(0.0, 1.0),
        LocalRecords.unlabelled(Table(np.column_stack([x, x + rng.normal(size=n)]))),
    )
    budget = Budget(Fraction(1))
    plan = MomentsPlan(cost=budget, mechanism="laplace", design=design, facts=Facts(n))
    found = [plan.release(own, Noise.of(seed)) for seed in range(12)]
    assert all(each.lost_sd > 0 for each in found)
    rows = [each.regression(Design((Interval(-50, 50),)), 2, [0, 1], [0]).slopes for each in found]
    sd = [np.sqrt((each.sampling + each.privacy)[1, 1]) for each in rows]
    truth = np.polyfit(x, own.records.table.column(1).astype(float), 1)[0]
    held = [
        abs(row.mean[1] - truth) <= 1.96 * s or row.growth[1] >= 0.25
        for row, s in zip(rows, sd, strict=True)
    ]
    assert sum(held) >= 11
