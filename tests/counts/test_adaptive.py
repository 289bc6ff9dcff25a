"""Adaptive reading of noisy tables: symmetries, limits, extremes, and what it is for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive import AdaptiveTables, adaptive_means

NOISE = 15.0


def simulated(
    sizes: Sequence[int], n: int = 2000, C: int = 3, noise: float = NOISE, seed: int = 0
) -> tuple[list[FloatArray], FloatArray, list[FloatArray]]:
    """Noisy tables and class counts, and the true rows."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, rng.dirichlet(np.full(C, 5.0)))
    rows = [rng.dirichlet(np.full(k, 2.0), C) for k in sizes]
    exact = [
        np.array([rng.multinomial(m, p) for m, p in zip(counts, t, strict=True)]) for t in rows
    ]
    tables = [t + rng.normal(scale=noise, size=t.shape) for t in exact]
    return tables, counts + rng.normal(scale=noise, size=C), rows


def read(
    tables: Sequence[FloatArray], counts: FloatArray, n: int = 2000, noise: float = NOISE,
    ordered: Sequence[bool] | None = None, alpha: float = 1.0,
) -> AdaptiveTables:  # fmt: skip
    return adaptive_means(
        tables, counts, n, contrast_variance=[noise**2] * len(tables), class_variance=noise**2,
        ordered=ordered or [False] * len(tables), alpha=alpha,
    )  # fmt: skip


SIZES = (2, 5, 2, 1, 4, 5)


def test_order_of_features_does_not_matter() -> None:
    tables, counts, _ = simulated(SIZES)
    order = [3, 5, 0, 4, 2, 1]
    ordered = [False, True, False, False, True, False]
    plain = read(tables, counts, ordered=ordered)
    moved = read([tables[j] for j in order], counts, ordered=[ordered[j] for j in order])
    for position, j in enumerate(order):
        np.testing.assert_allclose(moved.means[position], plain.means[j], rtol=1e-6)
        np.testing.assert_allclose(moved.variances[position], plain.variances[j], rtol=1e-5)


def test_order_of_classes_does_not_matter() -> None:
    tables, counts, _ = simulated(SIZES)
    order, ordered = [2, 0, 1], [True] * len(SIZES)
    plain = read(tables, counts, ordered=ordered)
    moved = read([t[order] for t in tables], counts[order], ordered=ordered)
    np.testing.assert_allclose(
        moved.class_probabilities, plain.class_probabilities[order], rtol=1e-6
    )
    for a, b in zip(moved.means, plain.means, strict=True):
        np.testing.assert_allclose(a, b[order], rtol=1e-5)


def test_order_of_values_does_not_matter_unless_it_is_meant() -> None:
    tables, counts, _ = simulated((4,))
    order = [2, 0, 3, 1]
    plain, moved = read(tables, counts), read([tables[0][:, order]], counts)
    np.testing.assert_allclose(moved.means[0], plain.means[0][:, order], rtol=1e-6)
    meant = read([tables[0][:, order]], counts, ordered=[True])
    assert not np.allclose(meant.means[0], moved.means[0], rtol=1e-3)


def test_reversed_bins_give_reversed_rows() -> None:
    tables, counts, _ = simulated((8,))
    plain = read(tables, counts, ordered=[True])
    turned = read([tables[0][:, ::-1]], counts, ordered=[True])
    np.testing.assert_allclose(turned.means[0], plain.means[0][:, ::-1], rtol=1e-6)


@pytest.mark.parametrize("ordered", [False, True])
def test_without_noise_counts_are_recovered(ordered: bool) -> None:
    tables, counts, _ = simulated((2, 4, 7), n=200_000, noise=0.0)
    found = read(tables, counts, 200_000, noise=1e-3, ordered=[ordered] * 3)
    np.testing.assert_allclose(found.class_counts, counts, rtol=1e-3)
    for table, mean in zip(tables, found.means, strict=True):
        np.testing.assert_allclose(mean, table / counts[:, None], atol=2e-3)


@pytest.mark.parametrize("ordered", [False, True])
def test_with_endless_noise_nothing_is_claimed(ordered: bool) -> None:
    tables, counts, _ = simulated((2, 3, 6), noise=1e7)
    found = read(tables, counts, noise=1e7, ordered=[ordered] * 3)
    np.testing.assert_allclose(found.class_probabilities, 1 / 3, atol=0.05)
    for mean in found.means:
        np.testing.assert_allclose(mean, 1 / mean.shape[1], atol=0.05)


def test_more_noise_shrinks_more() -> None:
    tables, counts, _ = simulated((3,) * 10)
    gaps = [
        np.mean([np.ptp(m, axis=0).mean() for m in read(tables, counts, noise=s).means])
        for s in (1.0, 30.0, 100.0, 1000.0)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.2 * gaps[0]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 7, 100, 10**4, 10**8]),
    st.sampled_from([2, 3, 50]),
    st.lists(st.sampled_from([1, 2, 3, 16, 70]), min_size=1, max_size=4),
    st.sampled_from([0.0, 1e-6, 1.0, 1e3, 1e9, 1e12]),
    st.sampled_from([0.0, 1.0, 1e6, 1e15]),
    st.booleans(),
    st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_rows_are_probabilities_whatever_was_released(
    seed: int, n: int, C: int, sizes: list[int], noise: float, off: float, ordered: bool,
    alpha: float,
) -> None:  # fmt: skip
    tables, counts, _ = simulated(sizes, n=n, C=C, noise=off, seed=seed)
    found = read(tables, counts, n, noise, [ordered] * len(sizes), alpha)
    assert found.class_counts.sum() == pytest.approx(n)
    for rows in (found.class_probabilities[None], *found.means):
        assert np.isfinite(rows).all()
        assert (rows > 0).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    for variances in found.variances:
        assert np.isfinite(variances).all()
        assert (variances >= 0).all()


def test_largest_table_of_one_feature() -> None:
    tables, counts, rows = simulated((1000,), n=10**6, C=2)
    found = read(tables, counts, 10**6, ordered=[True])
    assert np.abs(found.means[0] - rows[0]).sum(axis=1).max() < 0.1


def test_class_counts_from_row_sums() -> None:
    tables, _, rows = simulated((2, 3, 4))
    found = adaptive_means(
        tables, None, 2000, contrast_variance=[NOISE**2] * 3, class_variance=0.0,
        ordered=[False] * 3,
    )  # fmt: skip
    for mean, row in zip(found.means, rows, strict=True):
        assert np.abs(mean - row).max() < 0.1


def test_smooth_rows_are_read_better_in_their_order() -> None:
    """Normal densities in 16 bins: adjacent bins say much about each other."""
    rng = np.random.default_rng(0)
    bins, C, d, n = np.linspace(-3, 3, 16), 4, 12, 4000
    density = np.exp(-0.5 * (bins - rng.uniform(-2, 2, (d, C, 1))) ** 2)
    rows = density / density.sum(axis=2, keepdims=True)
    tables = [rng.normal(n / C * row, 60.0) for row in rows]
    counts = np.full(C, n / C)
    error = [
        np.abs(np.array(read(tables, counts, n, 60.0, [kind] * d).means) - rows).sum(axis=2).mean()
        for kind in (True, False)
    ]
    assert error[0] < 0.8 * error[1]


def test_learned_base_rate_serves_rare_values() -> None:
    """Hundreds of rare values do not drift to one half, which would add up over features."""
    rng = np.random.default_rng(1)
    rates, counts = rng.beta(0.6, 5, 200), np.array([1400.0, 2600.0])
    tables = [counts[:, None] * np.array([1 - p, p]) for p in rates]
    tables = [t + rng.normal(scale=150.0, size=t.shape) for t in tables]
    found = read(tables, counts, 4000, 150.0)
    bias = np.mean([m[:, 1] - p for m, p in zip(found.means, rates, strict=True)], axis=0)
    assert np.abs(bias).max() < 0.02


@pytest.mark.parametrize("size", [2, 3, 8])
def test_variances_are_those_of_the_errors(size: int) -> None:
    """Standardised errors have a mean square near one, for rows of the assumed kind."""
    squares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        pooled = rng.dirichlet(np.full(size, 3.0), 30)
        rows = [rng.dirichlet(20 * m, 2) for m in pooled]
        counts = np.array([900.0, 1100.0])
        tables = [rng.normal(counts[:, None] * r, 60.0) for r in rows]
        found = read(tables, counts + rng.normal(scale=60.0, size=2), noise=60.0)
        for mean, variance, row in zip(found.means, found.variances, rows, strict=True):
            squares.append((mean - row) ** 2 / variance)
    assert 0.7 < np.mean(squares) < 1.4


def test_noise_does_not_flatten_the_rows_of_a_rare_class():
    """No column differs between classes, so together they say next to nothing of a record.

    Judged by the shape of pooled rows as well, their rare class was e^18 times less likely.
    """
    rng = np.random.default_rng(0)
    bells = np.exp(-0.25 * (np.arange(10) - rng.uniform(1, 8, (40, 1))) ** 2)
    rows = np.concatenate([bells, np.tile(np.eye(10)[0] + 0.01, (40, 1))])
    rows /= rows.sum(axis=1, keepdims=True)
    counts = np.array([4000.0, 250.0])
    tables = [counts[:, None] * row + rng.normal(0, 200, (2, 10)) for row in rows]
    found = read(tables, counts, 4250, noise=200.0, ordered=[True] * 80)
    ratios = (np.log(mean[1] / mean[0]) for mean in found.means)
    assert abs(sum(row @ ratio for row, ratio in zip(rows, ratios, strict=True))) < 1
