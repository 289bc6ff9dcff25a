"""Intervals and predictions of the default hold over awkward families of data."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy import honesty
from benchmarks.data.families import FAMILIES
from dpbayes_sklearn import BayesianLinearRegression

# Noise hides a few records that decide: no interval covers them, as the guide says.
HIDDEN = {"code_999", "far_group", "log_normal_2", "inflated_costs", "income_in_units", "doses"}
LINEAR = [n for n, family in FAMILIES.items() if family.group != "logistic" and n not in HIDDEN]
RELEASES, N = 3, 12_000


@pytest.mark.slow
@pytest.mark.parametrize("family", LINEAR)
def test_intervals_and_predictions_hold(family):
    """With wide margins: few releases each, of which nominal intervals miss one in twenty."""
    truth, inside, targets, scores = honesty.truth(family, N), [], [], []
    for seed in range(RELEASES):
        data = FAMILIES[family].make(N, np.random.default_rng(seed))
        options = {"schema": data.schema, "fit_intercept": data.intercept}
        model = BayesianLinearRegression(2.0, random_state=seed, **options).fit(data.X, data.y)
        rows = model.coefficients().rows
        inside += [
            row.low <= true <= row.high
            for row, true in zip(rows, truth, strict=True)
            if row.identified
        ]
        mean, deviation = model.predict(data.X, return_std=True)
        targets.append(np.mean(np.abs(data.y - mean) < 1.96 * deviation))
        scores.append(1 - np.var(data.y - mean) / np.var(data.y))
        exact = 1 - np.var(data.y - honesty.exact_of(data).fitted) / np.var(data.y)
        assert scores[-1] <= exact + 1e-3
    assert len(inside) - sum(inside) <= 2 + 0.15 * len(inside)
    assert np.mean(targets) > 0.85
    assert np.mean(scores) > exact - 0.1
