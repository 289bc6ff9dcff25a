"""Effects of a class on all two-valued features: found where they are, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts import adaptive as module
from dpbayes_sklearn.counts.adaptive import ClassEffects, adaptive_means, class_effects
from dpbayes_sklearn.counts.adaptive_rows import FeatureRows, group_rows

SIZES, NOISE = np.array([1500.0, 2500.0]), 60.0**2


def baskets(seed, factor=0.35, d=150, values=2):
    """Shares of rare items in two classes, and noisy tables of their counts."""
    rng = np.random.default_rng(seed)
    base = rng.beta(0.6, 5, d)
    shares = np.minimum(np.stack([base, base * rng.lognormal(factor, 0.35, d)]), 0.7)
    counts = rng.binomial(SIZES.astype(int)[:, None], shares)
    tables = np.stack([SIZES[:, None] - counts, counts], -1).transpose(1, 0, 2)
    return shares, [table + rng.normal(0, NOISE**0.5, table.shape) for table in tables]


def read(tables):
    noise, ordered = [NOISE] * len(tables), [False] * len(tables)
    options = {"contrast_variance": noise, "class_variance": NOISE, "ordered": ordered}
    return adaptive_means(tables, SIZES, int(SIZES.sum()), **options)


def log_ratio_error(means, shares):
    found = np.stack([mean[:, 1] for mean in means], 1)
    return float(np.square(np.diff(np.log(found), axis=0) - np.diff(np.log(shares), axis=0)).mean())


def test_rows_hidden_by_noise_shrink_to_what_their_class_does(monkeypatch):
    shares, tables = baskets(0)
    found = read(tables)
    monkeypatch.setattr(module, "_LEAST_FEATURES", 10**9)
    without = read(tables)
    assert log_ratio_error(found.means, shares) < 0.85 * log_ratio_error(without.means, shares)
    for mean in found.means:
        np.testing.assert_allclose(mean.sum(axis=1), 1.0)
        assert (mean > 0).all()


def test_there_is_no_effect_where_second_values_are_not_alike(monkeypatch):
    """Half of the items are turned round: then nothing is changed, to the last bit."""
    _, tables = baskets(1)
    turned = [table[:, ::-1] if j % 2 else table for j, table in enumerate(tables)]
    found = read(turned)
    monkeypatch.setattr(module, "_LEAST_FEATURES", 10**9)
    for one, other in zip(found.means, read(turned).means, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(3))
def test_equal_classes_have_none(seed):
    _, tables = baskets(seed, factor=-0.06)  # the mean of the factor is 1
    (rows,) = group_rows(tables, [NOISE] * len(tables), [False] * len(tables))
    pooled = np.clip(rows.shares(SIZES).mean(axis=1), 0.01, 0.99)
    spread = np.full(len(tables), 0.03)
    assert not class_effects(rows, pooled, spread, SIZES).effects.any()


def test_few_features_and_features_of_more_values_are_left_alone():
    _, tables = baskets(0, d=9)
    for some in (tables, [np.hstack([table, table[:, :1]]) for table in baskets(0)[1]]):
        (rows,) = group_rows(some, [NOISE] * len(some), [False] * len(some))
        pooled = np.full((len(some), rows.size), 1 / rows.size)
        effects = class_effects(rows, pooled, np.full(len(some), 0.03), SIZES)
        assert not effects.effects.any()
        assert effects.taken_out(rows, pooled, SIZES) is rows


def test_what_is_taken_out_is_put_back():
    effects = ClassEffects(np.array([-0.02, 0.01]), np.array([0.1, 0.1]))
    share = np.linspace(0.1, 0.6, 12)
    pooled = np.stack([1 - share, share], -1)
    moved = share[:, None] + share[:, None] * (1 - share[:, None]) * effects.effects
    contrasts = SIZES[:, None] * (np.stack([1 - moved, moved], -1) - 0.5)
    rows = FeatureRows(tuple(range(12)), contrasts, np.full(12, NOISE), ordered=False)
    left = effects.taken_out(rows, pooled, SIZES).shares(SIZES)
    np.testing.assert_allclose(left[..., 1], np.broadcast_to(share[:, None], (12, 2)))
    mean, variance = effects.put_back(left, np.zeros_like(left))
    np.testing.assert_allclose(mean[..., 1], moved, atol=1e-4)
    assert (variance > 0).all()
