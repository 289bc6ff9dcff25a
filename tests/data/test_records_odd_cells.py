"""Cells that a container cannot convert: no fit fails, and all other cells are read as before."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks.audit._converted import COLUMNS, ODD, N
from dpbayes_sklearn import BayesianNaiveBayes, PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.values import cells_of, number_of

DATES = Interval(datetime.date(1960, 1, 1), datetime.date(2030, 1, 1))
TEXTS = Categories([str(i) for i in range(N)])
LABELS = np.arange(N) % 2
PERSONS = PrivacyUnit("person", max_records=1)


class Classless:
    @property
    def __class__(self):
        raise RuntimeError


@pytest.mark.parametrize("name", COLUMNS)
def test_one_cell_changes_no_other(name):
    plain, odd = (cells_of(COLUMNS[name](each)).tolist() for each in (False, True))
    del plain[ODD], odd[ODD]
    assert plain == odd


@pytest.mark.parametrize("name", COLUMNS)
def test_one_cell_stops_no_fit(name):
    column = COLUMNS[name](True)
    domain = DATES if "timestamp" in name or "date" in name or "zone" in name else TEXTS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = BayesianNaiveBayes(1e4, schema=Schema({"x": domain}), n_bins=2, classes=[0, 1])
        one.fit(column.rename("x").to_frame(), LABELS)
        two = BayesianNaiveBayes(1e4, bounds=(0, 1), n_bins=2, classes=[0, 1], privacy_unit=PERSONS)
        two.fit(np.zeros((N, 1)), LABELS, groups=column)
        BayesianNaiveBayes(1e4, bounds=(0, 1), n_bins=2, classes=["0", "1"]).fit(
            np.zeros((N, 1)), column
        )


@pytest.mark.parametrize("places", [[0], [6], [0, 6], [2, 3, 4], range(7)])
def test_any_number_of_cells_can_be_missing(places):
    class Column:
        def __init__(self, cells):
            self.cells = cells

        def __len__(self):
            return len(self.cells)

        def __getitem__(self, rows):
            return Column(self.cells[rows])

        def to_list(self):
            if "odd" in self.cells:
                raise ValueError
            return self.cells

    cells = ["odd" if i in places else i for i in range(7)]
    read = cells_of(Column(cells)).tolist()
    assert read == [None if i in places else i for i in range(7)]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("seconds", [-(2**36), 0, 2**36])
def test_dates_beyond_nanoseconds_are_numbers(zone, seconds):
    assert number_of(pd.Timestamp(seconds, unit="s", tz=zone)) == seconds


def test_a_number_is_asked_for_nothing_that_may_raise():
    assert np.isnan(number_of(Classless()))
