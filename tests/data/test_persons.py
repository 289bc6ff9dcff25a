"""Which records of a person count, and on which side of a split they are."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn.data.persons import coins_of, counted_records, read_groups

NAMES = ["ann", "bob", "c", "dd", "eve", "fritz"]


def read(*labels):
    return read_groups([*labels], len(labels))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("of", [list, pd.Series, lambda x: np.array(x, dtype=object)])
def test_labels_that_differ_in_trailing_nuls_are_two_persons(name, of):
    labels = read_groups(of([name + "\0", name, name + "\0\0"]), 3)
    assert counted_records(labels, 1).tolist() == [0, 1, 2]
    assert len(set(coins_of(labels, b"7"))) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_person_with_a_similar_label_changes_nothing(name):
    both = counted_records(read(name + "\0", name, name, name), 1)
    assert both.tolist() in [[0, 1], [0, 2], [0, 3]]
    assert coins_of(read(name), b"3")[0] == coins_of(read(name + "\0", name), b"3")[1]


@pytest.mark.parametrize(
    "same",
    [
        ("ann", np.str_("ann")),
        (1, 1.0, np.int8(1), np.float32(1), Fraction(1)),
        (0.5, Fraction(1, 2), np.float64(0.5)),
        (np.inf, float("inf")),
    ],
)
def test_a_label_of_several_types_is_one_person(same):
    labels = np.empty(len(same), object)
    labels[:] = same
    assert len(counted_records(labels, 1)) == 1
    assert len(set(coins_of(labels, b"7"))) == 1


@pytest.mark.parametrize(
    "different",
    [
        ("1", 1),
        (2**53, 2**53 + 1),
        (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
        (Decimal(1), "1"),
        ("", "\0"),
    ],
)
def test_labels_that_differ_are_two_persons(different):
    assert len(counted_records(read(*different), 1)) == 2


@pytest.mark.parametrize("dtype", ["int64", "float64", "U8", "datetime64[s]", object])
def test_all_types_count_as_many_of_each(dtype):
    who = np.repeat(np.arange(50), np.arange(50) % 6)
    kept = counted_records(who.astype(dtype), 3)
    assert np.array_equal(np.bincount(who[kept], minlength=50), np.minimum(np.arange(50) % 6, 3))
