"""Pooled posteriors of several sites."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    DirichletMultinomial,
    GammaExponential,
    Interval,
    NormalMean,
    PrivacyUnit,
    PrivateMoments,
    Schema,
    from_json,
    pool,
)

EXACT = float("inf")
rng = np.random.default_rng(0)
SLOPES = [0.5, -0.3]


def columns(n, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 2)).clip(-4, 4)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x @ SLOPES + draws.normal(0, 0.5, n)})


SCHEMA = Schema({name: Interval(-5, 5) for name in "aby"})
LINE = Schema({name: Interval(-5, 5) for name in "ab"}, Interval(-5, 5))


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (lambda e: BetaBinomial(e, prior=(2.0, 3.0)), rng.integers(0, 2, 900)),
        (lambda e: DirichletMultinomial(e, categories=4, prior=2.0), rng.integers(0, 4, 900)),
        (lambda e: NormalMean(e, bounds=(0, 9), sigma=2.0), rng.uniform(0, 9, (900, 2))),
        (lambda e: GammaExponential(e, bounds=(0, 9)), rng.uniform(0, 9, (900, 2))),
    ],
)
def test_without_noise_the_pool_is_the_fit_to_all_records(make, data):
    """So the prior counts once: three times it would be another posterior."""
    sites = [make(EXACT).fit(part) for part in np.split(data, 3)]
    pooled, whole = pool(sites).posterior_, make(EXACT).fit(data).posterior_
    np.testing.assert_allclose(pooled.mean(), whole.mean(), rtol=1e-6)
    np.testing.assert_allclose(pooled.variance(), whole.variance(), rtol=1e-5)


def test_pooled_moments_are_those_of_all_records():
    frame = columns(6000)
    frame.loc[3000:, "y"] += 1.0 + frame["a"]  # sites differ
    make = PrivateMoments(EXACT, schema=SCHEMA, random_state=0)
    sites = [from_json(make.fit(part).to_json()) for part in (frame[:2000], frame[2000:])]
    pooled, whole = pool(sites), make.fit(frame)
    for asked in (["a", "b"], ["a"]):
        one, other = pooled.regress("y", asked), whole.regress("y", asked)
        for row, same in zip(one.table.rows, other.table.rows, strict=True):
            assert row.estimate == pytest.approx(same.estimate, abs=0.02 * same.sd)
            assert row.sd == pytest.approx(same.sd, rel=0.1)
    assert pooled.posterior_.n == 6000


@pytest.mark.parametrize("texts", [False, True])
def test_epsilons_do_not_add_up_and_the_guarantee_says_why(texts):
    sites = [BetaBinomial(e, random_state=0).fit([1, 0] * 200) for e in (0.5, 1.0, 0.25)]
    pooled = pool([site.to_json() for site in sites] if texts else sites)
    assert pooled.guarantee_.epsilon == 1.0
    (condition,) = (c for c in pooled.guarantee_.conditions if "no person is in two" in c)
    assert "add up to 1.75" in condition
    assert from_json(pooled.to_json()).posterior_.mean() == pooled.posterior_.mean()
    assert pooled.epsilon == 1.0


def test_pooled_slopes_hold_the_truth_and_are_narrower():
    held, narrower = [], []
    for seed in range(4):
        frame = columns(24_000, seed)
        model = BayesianLinearRegression(1.0, schema=LINE, random_state=seed)
        sites = [
            BayesianLinearRegression(1.0, schema=LINE, random_state=3 * seed + k).fit(
                part[["a", "b"]], part["y"]
            )
            for k, part in enumerate((frame[:8000], frame[8000:16_000], frame[16_000:]))
        ]
        assert model.get_params()["epsilon"] == 1.0
        rows, alone = pool(sites).coefficients().rows, sites[0].coefficients().rows
        held += [row.low <= t <= row.high for row, t in zip(rows[1:], SLOPES, strict=True)]
        narrower += [
            (r.high - r.low) / (a.high - a.low)
            for r, a in zip(rows, alone, strict=True)
            if a.identified
        ]
    assert sum(held) >= 7
    assert 0.4 < np.median(narrower) < 0.75  # three sites: 0.58


@pytest.mark.slow
def test_pooled_intervals_of_small_noisy_sites_hold_the_truth():
    draws, held = np.random.default_rng(3), []
    for seed in range(80):
        data = (draws.random(600) < 0.1).astype(int)
        sites = [
            BetaBinomial(0.5, random_state=4 * seed + k).fit(part)
            for k, part in enumerate(np.split(data, 4))
        ]
        low, high = pool(sites).posterior_.credible_interval()
        held.append(low <= 0.1 <= high)
    assert np.mean(held) >= 0.9


PERSON = PrivacyUnit("person", max_records=2, by_construction=True)


def fitted(**options):
    return NormalMean(1.0, **{"bounds": (0, 9), "random_state": 0, **options}).fit(np.ones((50, 1)))


@pytest.mark.parametrize(
    ("models", "match"),
    [
        ([], "at least one"),
        ([fitted(), fitted(bounds=(0, 10))], "same parameters"),
        ([fitted(), fitted(prior=(1.0, 2.0))], "same parameters"),
        ([fitted(), fitted(privacy_unit=PERSON)], "same parameters"),
        ([fitted(mechanism="sampler")] * 2, "error of a release must be known"),
        ([BetaBinomial(inference="plug_in", random_state=0).fit([0, 1])], "error of a release"),
        ([BetaBinomial(random_state=0).fit([0, 1]), fitted()], "same parameters"),
    ],
)
def test_what_does_not_belong_together_is_refused(models, match):
    with pytest.raises(ValueError, match=match):
        pool(models)


def test_other_models_are_refused():
    bayes = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], random_state=0)
    with pytest.raises(TypeError, match="BayesianNaiveBayes cannot be pooled"):
        pool([bayes.fit([[0], [1]], [0, 1])])
    few = BayesianLinearRegression(1.0, schema=LINE, random_state=0)
    few.fit(columns(40)[["a", "b"]], columns(40)["y"])
    with pytest.raises(ValueError, match="one with intervals"):
        pool([few])
