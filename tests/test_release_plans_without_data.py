"""Plans from one record to a billion: what cannot be released is refused while it is planned.

Nothing is read: a plan that is made is carried out on no records, with noise that is drawn where
there are few numbers and left out where there are many.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit.preflight import sweep
from dpbayes_sklearn import Categories, Interval, mechanisms
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.data.records import LocalRecords, Table, quiet_numpy
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.regression import plans
from dpbayes_sklearn.release import Facts

MOST_DRAWN = 60
KINDS = (Interval(0, 1), Categories([0, 1]), Categories(range(5)))
DESIGNS = [
    *(Design((kind,) * columns) for kind in KINDS for columns in (1, 4)),
    Design((KINDS[0],) * 3 + (KINDS[1],)),
    Design(KINDS * 2),
    Design(KINDS, intercept=False),
]
SIZES = (1, 30, 54_875, 10**9)
EPSILONS = (1e-6, 1e-3, 1.0, 3.0, 1e4)
PERSON = PrivacyUnit("person", max_records=3)
ADDED = PrivacyUnit("record", neighbours="add_remove")
WIDE = [Design((KINDS[0],) * 2000), Design((KINDS[2],) * 120)]


class Few(Noise):
    """Draws few numbers, and samples of few records."""

    def add(self, arrays, law):
        if sum(law.sizes) <= MOST_DRAWN:
            return super().add(arrays, law)
        assert np.isfinite(law.variances).all()
        return tuple(np.asarray(each, float) for each in arrays)

    def positions(self, n, size):
        return np.arange(1)

    def ball(self, precision, linear, radius, n_draws):
        return np.zeros((n_draws, len(linear)))


def planned(mechanism, design, n, epsilon, unit=RECORD, **options):
    prior = GaussianPrior(design, inference="noise_aware", **options)
    budget = Budget(Fraction(epsilon), Fraction(1, 10**6), unit=unit)
    return plans.plan(mechanism, prior, Facts(n), budget)


def carried_out(mechanism, design, n, epsilon, unit=RECORD):
    """Plan and, if that is not refused, release; return whether it was planned."""
    try:
        plan = planned(mechanism, design, n, epsilon, unit)
    except ValueError:
        return False
    nobody = LocalRecords([(Table(np.zeros((1, len(design.domains)))), np.zeros(1))])
    with quiet_numpy():
        plan.release(LinearRecords(design, Scale(0.0, 1.0), nobody), Few(random_source(0)))
    return True


MECHANISMS = [
    mechanisms.Laplace(),
    mechanisms.Gaussian(),
    mechanisms.Auto(),
    mechanisms.Fourier(),
    mechanisms.Sampler(),
    mechanisms.MAP(),
]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name())


@pytest.mark.slow
@each_mechanism
def test_what_is_planned_can_be_released(mechanism):
    made = [
        carried_out(mechanism, design, n, epsilon)
        for design in DESIGNS
        for n in SIZES
        for epsilon in EPSILONS
    ]
    assert sum(made) >= 0.9 * len(made)  # hardly anything has to be refused


@each_mechanism
@pytest.mark.parametrize("unit", [PERSON, ADDED], ids=["person", "add_remove"])
def test_so_it_is_for_other_units(mechanism, unit):
    for design in DESIGNS[::3]:
        for n, epsilon in ((1, 1e-3), (54_875, 1.0), (10**9, 1e4)):
            carried_out(mechanism, design, n, epsilon, unit)


def test_noise_that_cannot_be_drawn_is_seen(monkeypatch):
    """The defect that this file was written for: it was refused after the charge."""
    monkeypatch.setattr(plans, "largest_grid", lambda n, scale: 2**15)
    with pytest.raises(ValueError, match="variance must be between"):
        carried_out(mechanisms.Gaussian(), DESIGNS[6], 10**9, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "sizes", "epsilons"),
    [((1, 20), (1, 10**9), (1e-6, 1e4)), ((2000,), (54_875,), (1.0,))],
    ids=["few columns", "many columns"],
)
def test_every_estimator_is_planned_or_refused(columns, sizes, epsilons):
    assert not [*sweep(columns, sizes, epsilons)]


def test_a_failure_while_planning_is_seen(monkeypatch):
    monkeypatch.setattr(plans, "_MISSING_SHARE", "not a number")
    found = [*sweep((1,), (30,), (1.0,))]
    assert found
    assert all("while planning linear" in one for one in found)


def test_more_coefficients_than_memory_has_room_for_are_refused():
    with pytest.raises(ValueError, match=r"10000 coefficients, more than 4000: merge categories"):
        planned(mechanisms.Laplace(), Design((KINDS[2],) * 2000), 54_875, 1.0)
