"""partial_fit: every batch a release of its own, charged, and merged with the others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError, mechanisms
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.privacy.guarantee import APART

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
INF = float("inf")


def records(n=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, d)), rng.integers(0, 2, n)


def declared(**params):
    defaults = {"inference": "plug_in", "classes": [0, 1], "bounds": (0, 2), "n_bins": 3}
    return BayesianNaiveBayes(**{**defaults, **params})


def in_batches(model, X, y, n_batches=3):
    for rows in np.array_split(np.arange(len(X)), n_batches):
        model.partial_fit(X[rows], y[rows])
    return model


def test_without_noise_batches_add_up_to_one_fit():
    X, y = records()
    whole, parts = declared(epsilon=INF).fit(X, y), in_batches(declared(epsilon=INF), X, y)
    assert_allclose(parts.predict_log_proba(X), whole.predict_log_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_batch_is_charged(mechanism):
    X, y = records()
    accountant = BudgetAccountant(1.0)
    in_batches(declared(epsilon=0.1, mechanism=mechanism, accountant=accountant), X, y)
    assert (len(accountant), accountant.total().epsilon) == (3, 0.3)


def test_the_batch_that_would_cross_the_ceiling_is_refused_and_changes_nothing():
    X, y = records()
    model = declared(epsilon=0.4, accountant=BudgetAccountant(1.0))
    in_batches(model, X, y, 2)
    before, posterior = model.predict_log_proba(X), model.posterior_
    with pytest.raises(BudgetError) as refusal:
        model.partial_fit(X, y)
    assert refusal.value.remaining.epsilon == 0.2
    assert model.posterior_ is posterior
    assert_array_equal(model.predict_log_proba(X), before)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_guarantee_speaks_of_batches(mechanism):
    X, y = records()
    model = in_batches(declared(epsilon=0.5, mechanism=mechanism), X, y, 1)
    assert model.guarantee_.conditions == ()
    model.set_params(epsilon=0.25).partial_fit(X, y)
    assert model.guarantee_.epsilon == 0.5
    (condition,) = model.guarantee_.conditions
    assert condition.startswith("no person is in two of the 2 batches")
    assert "add up to 0.75" in condition
    assert APART in condition
    assert condition.endswith("somebody who is replaced stays in the same batch")


def test_no_position_decides_a_batch_with_a_secret_number_of_records_either():
    X, y = records()
    model = in_batches(
        declared(epsilon=0.5, privacy_unit=PrivacyUnit("record", neighbours="add_remove")), X, y, 2
    )
    (condition,) = model.guarantee_.conditions
    assert "replaced" not in condition
    assert condition.endswith(APART)


def test_conditions_of_every_batch_are_kept():
    X, y = records()
    model = declared(bounds=None)
    with pytest.warns(UserWarning, match="bounds of the features were read"):
        model.partial_fit(X, y)
    model.set_params(random_state=1).partial_fit(X, y)
    bounds, seed, batches = model.guarantee_.conditions
    assert bounds.startswith("bounds of the features were read from the data")
    assert "random_state" in seed
    assert batches.startswith("no person")


def test_noise_of_batches_adds_up():
    """The law of the merged noise is kept, for whoever reads the released counts as noisy."""
    X, y = records()
    model = in_batches(declared(epsilon=1.0), X, y)
    released = model.posterior_.released
    assert released.n == len(X)
    assert [law.sizes for law in released.laws] == [tuple(t.size for t in released.tables)] * 3
    one, all_three = released.laws[0].marginal(0), released.noise(0)
    assert all_three.variance == 3 * one.variance > 0


def test_draws_of_batches_are_weighed_by_their_records():
    X, y = records(90)
    model = declared(mechanism="sampler").partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert_allclose(model.posterior_.untempered.weights, [60, 30])
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_classes_of_the_first_call_are_kept():
    X, y = records()
    model = declared(classes=None)
    model.partial_fit(X, np.zeros(len(X), int), classes=[1, 0]).partial_fit(X, y, classes=[0, 1])
    assert_array_equal(model.classes_, [0, 1])
    with pytest.raises(ValueError, match="classes must be the same"):
        model.partial_fit(X, y, classes=[0, 1, 2])


def test_the_first_call_needs_classes():
    X, y = records()
    accountant = BudgetAccountant()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        declared(classes=None, accountant=accountant).partial_fit(X, y)
    assert len(accountant) == 0


def test_every_batch_keeps_the_options_of_its_release():
    X, y = records()
    model = declared(mechanism=mechanisms.Laplace(budget_split=0.5)).partial_fit(X, y)
    one = model.utility_bound(0.05)
    model.set_params(mechanism__budget_split=1.0).partial_fit(X, y)
    other = declared(mechanism=mechanisms.Laplace()).fit(X, y).utility_bound(0.05)
    assert one != other
    assert model.utility_bound(0.1) == pytest.approx(one + other)


def test_batches_after_a_fit_and_a_fit_after_batches():
    X, y = records()
    model = declared(epsilon=INF).fit(X, y).partial_fit(X, y)
    assert model.posterior_.released.n == 2 * len(X)
    assert model.fit(X, y).posterior_.released.n == len(X)
    assert model.guarantee_.conditions == ()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mechanism": "fourier"}, "privacy_unit must be the same"),
        ({"mechanism": mechanisms.Sampler()}, "privacy_unit must be the same"),
        ({"privacy_unit": "feature"}, "privacy_unit must be the same"),
        ({"alpha": 2.0}, "alpha, inference and temperature must be the same"),
        ({"alpha": [1.0, 1.0, 2.0]}, "alpha, inference and temperature must be the same"),
        ({"inference": "noise_aware"}, "alpha, inference and temperature must be the same"),
        ({"temperature": 1.0}, "alpha, inference and temperature must be the same"),
        ({"epsilon": INF}, "epsilon must be finite on every call"),
        ({"epsilon": -1}, "The 'epsilon' parameter of BayesianNaiveBayes must be"),
        ({"mechanism": "magic"}, "The 'mechanism' parameter of BayesianNaiveBayes must be"),
        ({"accountant": 3}, "The 'accountant' parameter of BayesianNaiveBayes must be"),
        ({"alpha": -1.0}, "The 'alpha' parameter of BayesianNaiveBayes must be"),
        ({"inference": "guess"}, "The 'inference' parameter of BayesianNaiveBayes must be"),
    ],
    ids=str,
)
def test_a_later_batch_of_another_model_is_refused(change, error):
    X, y = records()
    accountant = BudgetAccountant()
    model = declared(accountant=accountant).partial_fit(X, y)
    posterior = model.posterior_
    model.set_params(**change)
    with pytest.raises(ValueError, match=error):
        model.partial_fit(X, y)
    assert len(accountant) == 1
    assert model.posterior_ is posterior


def test_a_batch_with_other_columns_is_refused():
    X, y = records()
    accountant = BudgetAccountant()
    model = declared(accountant=accountant).partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but BayesianNaiveBayes is expecting 3"):
        model.partial_fit(X[:, :2], y)
    pd = pytest.importorskip("pandas")
    named = declared().partial_fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    with pytest.raises(ValueError, match="feature names should match"):
        named.partial_fit(pd.DataFrame(X, columns=["a", "b", "d"]), y)
    assert len(accountant) == 1
