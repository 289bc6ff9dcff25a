"""The check of speed: what got worse is named, and nothing else; every work has a floor."""

from __future__ import annotations

import numpy as np

from benchmarks.speed import linear_regression, ratios
from benchmarks.speed.work import Work


def test_what_takes_more_than_one_and_a_half_times_as_long_is_named():
    before = {"slower": 2.0, "noise": 2.0, "faster": 2.0, "gone": 1.0, "a, MB": 9.0, "b, MB": 0.5}
    now = {"slower": 3.1, "noise": 2.9, "faster": 0.1, "new": 9.0, "a, MB": 14.0, "b, MB": 5.0}
    assert ratios.worse(before, now) == {"slower": (2.0, 3.1), "a, MB": (9.0, 14.0)}


def test_time_is_compared_with_a_floor_and_memory_is_that_of_a_fit():
    work = Work("fit", lambda: np.ones(10**6), "", ("floor", lambda: np.ones(10**6).sum()))
    found = ratios.measured(work, 3)
    assert found["fit, MB"] == 8.0
    assert 0.1 < found["fit"] < 10


def test_targets_of_every_shape_are_measured_on_the_same_columns():
    works = [*linear_regression.targets(100, 6)]
    assert len({work.name for work in works}) == len(works) == 7
    assert all(work.floor is not None and work.ours() is not None for work in works)
