"""Reading a noisy histogram of distances: centre, spread and window of a column."""

import numpy as np
import pytest
from dpbayes_sklearn.regression.location import Located, common_half, locate
from dpbayes_sklearn.regression.record_sums import RADII

from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.schema import Categories, Interval


def distance_shares_of(x, centre):
    away = np.abs(np.clip(x, -1, 1) - centre)
    inner = np.append(RADII[1:], -1.0)
    return np.array(
        [[np.mean((away > a) & (away <= b)) for a, b in zip(inner, RADII, strict=True)]]
    )


def read(x, centre, error=0.001, noise=1e-4, reach=2.5):
    shares = (
        distance_shares_of(x, centre) + np.random.default_rng(1).normal(size=len(RADII)) * noise
    )
    return locate(np.array([centre]), np.array([error]), shares, noise**2, reach)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_the_spread_is_found(spread, draw):
    rng = np.random.default_rng(0)
    x = rng.normal(size=50_000) if draw == "normal" else rng.uniform(-1, 1, 50_000) * np.sqrt(3)
    found = read(0.2 + spread * x, 0.2)
    assert np.exp(found.log_spread[0]) == pytest.approx(spread, rel=0.4)
    assert found.half[0] == pytest.approx(2.5 * spread, rel=0.45)
    outside = np.mean(np.abs(spread * x) > found.half[0])
    assert found.beyond()[0] == pytest.approx(outside, abs=0.02)
    within = np.mean(np.abs(spread * x) > 0.6 * found.half[0])
    assert found.beyond(0.6)[0] == pytest.approx(within, abs=0.05)


DRAWS = {
    "normal": lambda rng: rng.normal(size=200_000),
    "exponential": lambda rng: rng.exponential(size=200_000) - 1,
    "log-normal": lambda rng: np.exp(0.65 * rng.normal(size=200_000)) - np.exp(0.21125),
}


@pytest.mark.parametrize("noise", [1e-4, 0.01])
@pytest.mark.parametrize("draw", DRAWS)
def test_what_clipping_adds_to_a_slope_is_known_by_the_shape(draw, noise):
    x = 0.05 * DRAWS[draw](np.random.default_rng(0))
    found = read(x, 0.0, noise=noise, reach=3.5)
    inside = np.clip(x, -found.half[0], found.half[0])
    mean, sd = found.lost(np.array([np.var(inside) / found.half[0] ** 2]))
    truth = np.cov(x - inside, inside)[0, 1] / np.var(inside)
    assert abs(mean[0] - truth) < 2 * sd[0] + 1e-3
    assert (truth < 0.01) == (draw == "normal") == (mean[0] < 0.01)


def test_nothing_is_lost_at_the_bounds_and_values_of_few_kinds_leave_the_shape_open():
    rng = np.random.default_rng(0)
    whole = read(rng.uniform(-1, 1, 10_000), 0.0, reach=50.0)
    assert whole.lost(np.array([1 / 3]))[0][0] == 0
    few = read(0.1 * (rng.poisson(3, 50_000) - 3), 0.0)
    assert few.shapes.max() < 0.5 < read(0.1 * rng.normal(size=50_000), 0.0).shapes.max()


def test_noise_leaves_the_spread_open_and_the_window_wide():
    x = 0.05 * np.random.default_rng(0).normal(size=50_000)
    sharp, blunt = read(x, 0.0, noise=0.01), read(x, 0.0, noise=0.5)
    assert sharp.log_spread_sd[0] < 0.3 < blunt.log_spread_sd[0]
    assert sharp.half[0] < blunt.half[0]


def test_an_uncertain_centre_widens_the_window():
    x = 0.1 + 0.05 * np.random.default_rng(0).normal(size=50_000)
    assert read(x, 0.0, error=0.1).half[0] > 1.3 * read(x, 0.1, error=0.001).half[0]


def test_no_window_is_wider_than_the_bounds():
    x = np.random.default_rng(0).uniform(-1, 1, 10_000)
    assert read(x, 0.3, reach=50.0).half[0] == 1.3


def test_places_become_windows_of_the_numbers_and_signs_that_were_located():
    place = read(0.1 * np.random.default_rng(0).normal(size=1000), 0.0)
    design = Design((Categories([*"ab"]), Interval(0, 1)))
    assert Located(place, None).windows(design).halves.tolist() == [1.0, 1.0]
    windows = Located(place, place).windows(design)
    assert windows.halves.tolist() == [1.0, place.half[0]]
    assert windows.centres.tolist() == [0.0, 0.0]
    assert Located(place, place).window.half == pytest.approx(place.half[0])
    centred = Located(place, None, np.array([-0.5])).windows(design)
    assert centred.halves.tolist() == [1.5, 1.0]
    assert centred.centres.tolist() == [-0.5, 0.0]


def test_numbers_that_are_not_located_have_one_common_window():
    place = read(0.1 * np.random.default_rng(0).normal(size=1000), 0.0)
    design = Design((Categories([*"ab"]), Interval(0, 1), Interval(-1, 1)))
    windows = Located(place, None, common=0.25).windows(design)
    assert windows.halves.tolist() == [1.0, 0.25, 0.25]
    assert windows.centres.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("farthest", "half"), [(1.0, 1.0), (0.2, 0.25), (0.25, 0.25), (0.0, RADII[-1])]
)
def test_a_common_window_holds_what_is_seen_and_ends_within_the_bounds(farthest, half):
    shares = distance_shares_of(np.full(100, farthest), 0.0)
    assert common_half(shares, 0.0) == half
    few = 0.8 * shares + 0.2 * distance_shares_of(np.ones(100), 0.0)
    assert common_half(few, 0.0) == half  # a fifth of the records is clipped
    assert common_half(0.5 * few + 0.5 * distance_shares_of(np.ones(100), 0.0), 0.0) == 1
    assert common_half(np.zeros(len(RADII)), 1e-4) == RADII[-1]  # noise may be anything
    assert common_half(np.full(len(RADII), -5.0), 1.0) == RADII[-1]
    assert common_half(np.full(len(RADII), 5.0), 1.0) == 1


@pytest.mark.parametrize("share", [0.002, 0.02])
def test_windows_are_narrowed_to_what_few_records_exceed(share):
    rng = np.random.default_rng(0)
    light, heavy = 0.05 * rng.normal(size=50_000), 0.05 * rng.standard_t(3, 50_000)
    found = [read(x, 0.0, reach=8.0).narrowed(share, 2.5) for x in (light, heavy)]
    for x, at in zip((light, heavy), found, strict=True):
        assert np.mean(np.abs(x) > at.half[0]) < share + 0.005
        assert at.half[0] >= 2.5 * np.exp(at.log_spread[0])
    assert found[0].half[0] < 0.6 * read(light, 0.0, reach=8.0).half[0]
    assert found[1].half[0] > found[0].half[0]


def test_a_window_whose_tails_the_noise_hides_stays_as_it_was():
    x = 0.05 * np.random.default_rng(0).normal(size=50_000)
    wide = read(x, 0.0, noise=0.05, reach=6.0)
    assert wide.narrowed(0.001, 2.5).half[0] == wide.half[0]


@pytest.mark.parametrize("part", [0.3, 0.6])
def test_values_beside_a_frequent_one_are_in_the_window(part):
    """The frequent one alone would fit a model with a far smaller spread."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(50_000) < part, 0.0, 0.25 * rng.normal(size=50_000))
    found = read(x, 0.0)
    assert np.mean(np.abs(x) > found.half[0]) < 0.11
    assert np.exp(found.log_spread[0]) > 0.3 * x.std()
