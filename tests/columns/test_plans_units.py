"""Private preparation, for each unit of privacy: within its claim in every small world."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_loss
from benchmarks.audit.tools.deltas import enumerate_texts
from benchmarks.audit.tools.releases import audit_release
from benchmarks.audit.tools.universes import ColumnUniverse
from dpbayes_sklearn.columns.plans import TextCounts
from dpbayes_sklearn.columns.quantiles import (
    BinEdges,
    CentreAndSpread,
    Level,
    OuterQuantiles,
    QuantileQuestions,
)
from dpbayes_sklearn.counts.dependence import ColumnChoice, ColumnScores, TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import PrivacyUnit

UNITS = [
    PrivacyUnit("record", neighbours="add_remove"),
    *(
        PrivacyUnit("person", max_records=2, neighbours=change)
        for change in ("replace", "add_remove")
    ),
]
LARGER = [
    *UNITS,
    *(
        PrivacyUnit("person", max_records=3, neighbours=change)
        for change in ("replace", "add_remove")
    ),
]
by_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.label)
QUARTERS = Fraction(1, 4), Fraction(3, 4)
STAR, PAIR = ColumnChoice(Network.star([2, 2], 2), 1), TreeChoice(Network.star([2, 2, 2], 1))


def few_numbers(plan):
    """Return a world of so few numbers that there can be many records."""
    return ColumnUniverse(QuantileQuestions((plan,)), (0.0, 3.0, np.nan))


def plans_of(unit):
    return [
        BinEdges(4),
        OuterQuantiles(*QUARTERS, 400, 6.0, None, unit),
        OuterQuantiles(*QUARTERS, 3, 6.0, (0.0, 4.0), unit),
        CentreAndSpread(3, 6.0, None, unit),
    ]


@by_unit
@pytest.mark.parametrize("plan", range(4))
def test_quantiles_of_a_few_numbers_stay_within_the_claim(unit, plan):
    world = few_numbers(plans_of(unit)[plan])
    found = enumerate_loss(None, world, 5, epsilon=6.0, unit=unit, transcripts=1)
    assert found.within
    assert found.ratio > 0.15


@pytest.mark.parametrize("k", [1, 2])
def test_a_median_uses_up_its_claim(k):
    unit, world = (
        PrivacyUnit("person", max_records=k, neighbours="add_remove"),
        few_numbers(BinEdges(2)),
    )
    found = enumerate_loss(None, world, 6 * k, epsilon=8.0, unit=unit, transcripts=1)
    assert found.within
    assert found.ratio > 0.9
    with mock.patch.object(Level, "sensitivity", lambda self, unit: self.moved / 2):
        wrong = enumerate_loss(None, world, 6 * k, epsilon=8.0, unit=unit, transcripts=1)
    assert not wrong.within


def distances(column, q, points):
    below = np.searchsorted(column, points, side="left")
    up_to = np.searchsorted(column, points, side="right")
    middle = q * len(column)
    return np.maximum(0, np.maximum(below - middle, middle - up_to))


@pytest.mark.parametrize("unit", LARGER, ids=lambda unit: unit.label)
@pytest.mark.parametrize("q", [0.05, 0.5, 0.8])
def test_distances_of_a_quantile_change_by_the_sensitivity_of_its_level(unit, q):
    """Written down a second time, with numbers wherever they make the change largest."""
    rng, points, k = np.random.default_rng(0), np.arange(-0.5, 6, 0.25), unit.max_records
    (level,) = BinEdges(2).levels if q == 0.5 else CentreAndSpread(9, 1.0).levels[1:]
    worst = 0.0
    for _ in range(1_000):
        rest = (
            rng.integers(0, 6, rng.integers(0, 40))
            if rng.random() < 0.5
            else np.repeat([0, 2, 3, 5], rng.integers(0, 40, 4))
        )
        gone = rng.integers(0, 6, k) if rng.random() < 0.5 else [rng.integers(0, 6)] * k
        come = () if unit.size_is_secret else [rng.integers(0, 6)] * k
        one, other = (distances(np.sort([*rest, *own]), q, points) for own in (gone, come))
        worst = max(worst, np.ptp(one - other))
    assert worst <= level.sensitivity(unit) + 1e-9
    assert worst > 0.79 * level.sensitivity(unit)


@by_unit
def test_choices_stay_within_the_claim(unit):
    found = enumerate_loss(None, STAR, 3, epsilon=8.0, unit=unit, transcripts=1)
    assert found.within
    assert found.ratio > 0.1
    tree = enumerate_loss(None, PAIR, 2, epsilon=8.0, unit=unit, transcripts=2)
    assert tree.within
    assert tree.ratio > 0.05


def test_scores_thought_to_change_a_quarter_as_far_are_seen():
    unit = PrivacyUnit("person", max_records=2, neighbours="add_remove")
    with mock.patch.object(ColumnScores, "sensitivity", return_value=1024):
        found = enumerate_loss(None, STAR, 3, epsilon=8.0, unit=unit)
    right = enumerate_loss(None, STAR, 3, epsilon=8.0, unit=unit)
    assert found.ratio > 3 * right.ratio


def texts_of(unit):
    """Return the delta of a world of two texts, and the claim that its noise is made for."""
    k, epsilon, reach = unit.max_records, 4.0, unit.max_records + 1
    law = TruncatedLaplace(Fraction(unit.n_changed, 4), reach)
    delta = float(law.beyond(k)) * unit.n_changed / k * (1 + 1e-9)
    return enumerate_texts(("a", "b"), 2 * reach + 2, epsilon=epsilon, delta=delta, unit=unit)


@by_unit
def test_common_texts_use_up_their_delta(unit):
    found = texts_of(unit)
    assert found.within
    assert found.delta > 0.5 * found.claim


@pytest.mark.parametrize("change", ["replace", "add_remove"])
def test_a_threshold_for_one_record_of_a_person_is_seen(change):
    """With k records of a person in one text, a reach for one record shows it too often."""
    real = TextCounts.law

    def one_record(self, unit, epsilon, delta):
        law = real(self, unit, epsilon, delta)
        return TruncatedLaplace.calibrated(law.scale, delta / (unit.n_changed // unit.max_records))

    with mock.patch.object(TextCounts, "law", one_record):
        found = texts_of(PrivacyUnit("person", max_records=2, neighbours=change))
    assert found.delta > found.claim


def test_choices_of_persons_are_as_private_as_they_claim_and_no_more():
    """Two scores change as far as they can, in opposite directions: a loss of 1.49 of 2."""
    unit, sizes = PrivacyUnit("person", max_records=3, neighbours="add_remove"), (2, 2, 2)
    far = ColumnScores(np.zeros(2, np.int64), 50, sizes).sensitivity(unit)
    sides = [ColumnScores(np.array(scores), 50, sizes) for scores in ((0, far), (far, 0))]

    def bound(epsilon):
        budget = Budget(Fraction(epsilon), unit=unit)
        return audit_release(
            None, *sides, STAR, budget, 1_000, random_state=0, verbose=False
        ).epsilon

    assert 1.1 < bound(2) <= 2
    assert bound(4) > 2  # as with half the sensitivity
