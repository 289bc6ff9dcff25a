"""Which records of a person count, and on which side of a split they are."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from benchmarks.audit._converted import EQUAL, NO_LABELS
from benchmarks.audit.groups import ODD_LABELS
from benchmarks.audit.tools.fuzzing import MARK, everything_said
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.data.persons import coins_of, counted_records, read_groups
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit

NAMES = ["ann", "bob", "c", "dd", "eve", "fritz"]


def read(*labels):
    return read_groups([*labels], len(labels))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("of", [list, pd.Series, lambda x: np.array(x, dtype=object)])
def test_labels_that_differ_in_trailing_nuls_are_two_persons(name, of):
    labels = read_groups(of([name + "\0", name, name + "\0\0"]), 3)
    assert counted_records(labels, 1).tolist() == [0, 1, 2]
    assert len(set(coins_of(labels))) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_person_with_a_similar_label_changes_nothing(name):
    both = counted_records(read(name + "\0", name, name, name), 1)
    assert both.tolist() in [[0, 1], [0, 2], [0, 3]]


@pytest.mark.parametrize(
    "same",
    [
        *EQUAL,
        (
            pd.Timestamp("2020-01-01"),
            pd.Timestamp("2020-01-01 02:00", tz="Europe/Helsinki"),
            np.datetime64("2020-01-01", "s"),
        ),
        (pd.Timedelta(1, "s"), np.timedelta64(1, "s")),
        (pd.Timestamp(7, unit="ns"), np.datetime64(7, "ns")),
    ],
)
def test_a_label_of_several_types_is_one_person(same):
    labels = np.empty(len(same), object)
    labels[:] = same
    assert len(counted_records(labels, 1)) == 1
    assert len(set(coins_of(labels))) == 1


@pytest.mark.parametrize(
    "different",
    [
        ("1", 1),
        (2**53, 2**53 + 1),
        (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
        (Decimal(1), "1"),
        ("", "\0"),
        ("ann", b"ann"),
        (("ann", 1), ("ann", 2), ("ann",), ("ann", "1")),
        (("tuple", 1), ("instant", 0), np.datetime64(0, "s"), np.timedelta64(0, "s"), 0),
        (np.datetime64(0, "ns"), np.datetime64(1, "ns"), np.datetime64(1, "as")),
        (np.longdouble(1) / 3, 1 / 3),
    ],
)
def test_labels_that_differ_are_several_persons(different):
    assert len(counted_records(read(*different), 1)) == len(different)


@pytest.mark.parametrize("dtype", ["int64", "float64", "U8", "datetime64[s]", object])
def test_all_types_count_as_many_of_each(dtype):
    who = np.repeat(np.arange(50), np.arange(50) % 6)
    kept = counted_records(who.astype(dtype), 3)
    assert np.array_equal(np.bincount(who[kept], minlength=50), np.minimum(np.arange(50) % 6, 3))


@pytest.mark.parametrize("place", range(len(ODD_LABELS)))  # pytest asks values for a class
@pytest.mark.parametrize("of", [list, lambda labels: np.fromiter(labels, object, len(labels))])
def test_no_label_stops_a_fit_or_moves_others(place, of):
    labels = ["a", "a", "b", "b", ODD_LABELS[place]]
    groups = of(labels)
    kept = counted_records(read_groups(groups, 5), 1)
    assert [labels[i] for i in kept if i < 4] == ["a", "b"]
    assert len(coins_of(read_groups(groups, 5))) == 5
    model = BayesianNaiveBayes(
        bounds=(0, 1), classes=[0, 1], privacy_unit=PrivacyUnit("person", max_records=1)
    )
    said = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.fit(np.zeros((5, 1)), [0, 1, 1, 0, 0], groups=groups)
        except Exception as error:
            said = everything_said(error)
    assert not said, MARK in said


@pytest.mark.parametrize("digits", [600, 700, 5000])
def test_integers_of_any_length_are_labels(digits):
    one = 10**digits
    for same in (one, Fraction(one)):
        assert counted_records(read(one, 7, same), 1).tolist() in ([0, 1], [1, 2])
    assert len(counted_records(read(one, one + 1, -one, Fraction(1, one)), 1)) == 4


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_records_without_a_date_do_not_count(kind, unit):
    labels = np.array([1, "NaT", 2, "NaT"], dtype=f"{kind}[{unit}]")
    assert counted_records(labels, 1).tolist() == [0, 2]


def test_labels_of_several_fields_are_compared_as_a_whole():
    labels = np.array([(1, "a"), (1, "b"), (1, "a")], dtype=[("x", int), ("y", object)])
    assert len(counted_records(labels, 1)) == 2


@pytest.mark.parametrize("place", range(len(NO_LABELS)))  # pytest asks values for a class
def test_what_nobody_can_compare_does_not_count(place):
    labels = np.fromiter(["ann", NO_LABELS[place], NO_LABELS[place]], object, 3)
    assert counted_records(labels, 2).tolist() == [0]


def test_complex_numbers_do_not_count_in_an_array_either():
    assert not len(counted_records(np.array([1j, 2]), 1))


def test_persons_draw_their_coins_from_the_source():
    asked = []

    def source(n):
        asked.append(n)
        return bytes(range(n))

    coins = coins_of(np.array(["a", "b", None, "a"], object), Noise(source))
    assert asked == [24]
    assert coins[0] == coins[3] == int.from_bytes(bytes(range(8)), "little") / 2.0**64
