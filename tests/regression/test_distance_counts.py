"""Distances by the exponents of squares: the same as by comparing distances with radii."""

import numpy as np
from dpbayes_sklearn.regression.record_sums import RADII, count_distances


def test_every_value_is_in_the_bin_of_its_distance():
    rng = np.random.default_rng(0)
    values, centres = rng.uniform(-1, 1, (500, 3)) ** 3, np.array([0.0, -0.3, 0.9])
    inner = np.append(RADII[1:], -1.0)
    for column, centre, counts in zip(
        values.T, centres, count_distances(values.copy(), centres), strict=True
    ):
        away = np.abs(column - centre)
        assert counts.tolist() == [
            ((away > low) & (away <= high)).sum() for low, high in zip(inner, RADII, strict=True)
        ]


def test_ends_belong_to_the_bin_inside_and_the_centre_to_the_last():
    whole = RADII[::2]  # 2, 1, 1/2, ...: exact as doubles
    counts = count_distances(np.append(whole, 0.0)[:, None], np.zeros(1))
    assert counts[0].tolist() == [1, 0] * 8 + [2]


def test_values_far_outside_are_in_the_outer_bin():
    assert count_distances(np.array([[50.0]]), np.zeros(1))[0, 0] == 1
