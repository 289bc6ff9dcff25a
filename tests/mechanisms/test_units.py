"""The loss of every release, for each unit of privacy and both kinds of neighbours."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit import _models as audited
from benchmarks.audit.tools import enumerate_delta, enumerate_loss
from benchmarks.audit.tools.shifts import shifts
from benchmarks.audit.tools.universes import MomentUniverse
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import MAP, Fourier, Gaussian, Laplace, Sampler
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.release import RecordCount, SizePlan
from dpbayes_sklearn.schema import Categories, Interval

UNITS = [
    RECORD,
    PrivacyUnit("record", neighbours="add_remove"),
    *(
        PrivacyUnit("person", max_records=k, neighbours=change)
        for k in (1, 2, 3)
        for change in ("replace", "add_remove")
    ),
]
STAR, CHAIN = Network.star([2, 2], 2), Network((2, 2, 2), ((1,), (2,), ()))


def enough(unit):
    """Return a number of records at which the worst neighbours are among all there are."""
    return max(2, unit.max_records)  # others' records move nothing


named = pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.label)
# other units are in a layer of the audit, which tests/benchmarks/audit/test_faults.py runs in short
others = pytest.mark.parametrize(
    "unit", [unit for unit in UNITS if unit not in audited.UNITS], ids=lambda u: u.label
)


@pytest.mark.slow
@others
@pytest.mark.parametrize("noise", ["independent", "joint"])
@pytest.mark.parametrize("family", [Laplace, Fourier])
def test_noise_on_counts_loses_epsilon_exactly(unit, noise, family):
    found = enumerate_loss(family(noise=noise), STAR, enough(unit), unit=unit)
    assert found.within
    assert found.loss == pytest.approx(1.0, abs=1e-12)


@named
def test_a_chain_loses_epsilon_exactly(unit):
    found = enumerate_loss(Laplace(noise="independent"), CHAIN, enough(unit), unit=unit)
    assert found.within
    assert found.loss == pytest.approx(1.0, abs=1e-12)


@named
@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("mechanism", ["geometric", "laplace", "laplace_improved"])
def test_one_variable_loses_epsilon(unit, categories, mechanism):
    found = enumerate_loss(mechanism, categories, n=4, unit=unit)
    # "laplace" adds the noise of all counts to the first of two as well
    loose = mechanism == "laplace" and categories == 2 and not unit.size_is_secret
    assert found.within
    assert found.loss == pytest.approx(0.5 if loose else 1.0, abs=1e-12)


@named
@pytest.mark.parametrize("mechanism", [Sampler(n_points=9), MAP(n_points=9)], ids=str)
def test_draws_lose_no_more_than_epsilon(unit, mechanism):
    found = enumerate_loss(mechanism, STAR, enough(unit), unit=unit)
    assert found.within
    assert found.loss > 0.15  # a bound over all counts there can be, and over k records alike


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("mechanism", ["exponential", "hellinger"])
def test_choices_among_posteriors_lose_no_more_than_epsilon(k, mechanism):
    unit = PrivacyUnit("person", max_records=k)
    found = enumerate_loss(mechanism, 2, n=6, unit=unit)
    assert found.within
    assert found.loss > 0.5


ONE_COLUMN, TWO_COLUMNS = (Interval(-1, 1),), (Interval(-1, 1), Categories([*"ab"]))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace", "fourier"])
@pytest.mark.parametrize(
    ("unit", "columns"),
    # three records of a person in two columns take longest, so `make audit` tries them
    [(u, ONE_COLUMN) for u in UNITS if u not in audited.UNITS]
    + [(u, TWO_COLUMNS) for u in UNITS if u.max_records < 3],
    ids=str,
)
def test_moments_lose_no_more_than_epsilon(unit, mechanism, columns):
    world = MomentUniverse(Design(columns), levels=2)
    found = enumerate_loss(mechanism, world, enough(unit), unit=unit, transcripts=1)
    assert found.within
    assert found.loss > 0.4  # not all steps have their worst case at the same pair


@pytest.mark.slow
@named
def test_the_sensitivity_of_moments_is_what_records_do(unit):
    design = Design((Interval(-1, 1), Categories([*"abc"]), Interval(-1, 1)))
    world, rng = MomentUniverse(design, levels=3), np.random.default_rng(0)
    seen: dict[str, float] = {}
    for _ in range(100):
        rest, one, other = (
            rng.choice(len(world.records), k).tolist() for k in (2, *[unit.max_records] * 2)
        )
        here = world.statistics(rest + one)
        there = world.statistics(rest if unit.size_is_secret else rest + other)
        for shift in shifts(here, there, unit):
            assert shift.moved <= shift.sensitivity * (1 + 1e-9), shift
            share = shift.moved / shift.sensitivity
            seen[shift.what] = max(seen.get(shift.what, 0.0), share)
    assert min(seen.values()) > 0.5, seen


@others
def test_gaussian_noise_spends_no_more_than_delta(unit):
    found = enumerate_delta(Gaussian(), STAR, enough(unit), unit=unit)
    assert found.within
    assert found.delta > (0.9e-6 if unit.max_records == 1 else 1e-8)


@named
def test_the_number_of_records_loses_epsilon_exactly(unit):
    count, epsilon = RecordCount(7), Fraction(1, 25)
    if not unit.size_is_secret:
        assert count.sensitivity(unit) == 0
        return
    losses = [
        count.law(unit, epsilon).privacy_loss(np.array([shift]))
        for shift in range(unit.max_records + 1)
    ]
    assert max(losses) == losses[-1] == epsilon


def test_the_released_number_has_the_noise_of_its_law():
    budget = Budget(Fraction(1), unit=PrivacyUnit("person", max_records=2, neighbours="add_remove"))
    plan, noise = SizePlan.of(budget), Noise.of(0)
    released = [plan.release(RecordCount(100), noise) for _ in range(2000)]
    errors = np.array([size.n for size in released]) - 100
    (law,) = released[0].laws
    assert law.variance() == pytest.approx(2 * 2**2, rel=0.05)
    assert errors.var() == pytest.approx(law.variance(), rel=0.15)
    nobody = [plan.release(RecordCount(0), noise).n for _ in range(20)]
    assert min(nobody) == 1


def test_a_feature_cannot_be_added():
    with pytest.raises(ValueError, match="can only be replaced"):
        PrivacyUnit(FEATURE.name, neighbours="add_remove")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_records": 0}, r"must be an int in the range \[1, "),
        ({"max_records": 2.5}, r"must be an int in the range \[1, "),
        ({"max_records": 2}, "it goes with 'person'"),
        ({"neighbours": "swap"}, "must be a str among"),
        ({"name": "family"}, "must be a str among"),
    ],
)
def test_units_that_do_not_exist(wrong, said):
    with pytest.raises(ValueError, match=said):
        PrivacyUnit(**wrong)
