"""PrivateSearchCV: the laws that its proof speaks about are the laws of the code."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks.audit.tools.replaying import SEARCH, replay
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.model_selection import PrivateSearchCV, runs
from dpbayes_sklearn.model_selection.rehearsal import run_rho
from dpbayes_sklearn.model_selection.runs import POINTS, points, prepared, run, sensitivity
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_pmf
from dpbayes_sklearn.noise.finite import Stopping
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import boundary

SURE = 1e-4
RNG = np.random.default_rng(0)


# What is read from a release does not matter here, so it is read in the quickest way.
QUICK = {"temperature": 1.0, "inference": "plug_in"}


def binary(epsilon=1.0, **params):
    params = {"bounds": (0, 1), **QUICK, **params}
    return BayesianNaiveBayes(epsilon, classes=[0, 1], n_bins=2, **params)


def linear(epsilon=1.0, **params):
    return BayesianLinearRegression(
        epsilon, bounds_X=(0, 1), bounds_y=(-3, 5), inference="plug_in", **params
    )


# ------------------------------------------------------------------ the law of the selection

# Column 0 tells the class always, columns 1 and 2 ever more rarely: a candidate that is blind to
# the first ones (their bounds are far away) is worse on every split.
N = 60
LABELS = np.arange(N) % 2
RECORDS = np.stack([LABELS, LABELS ^ (np.arange(N) % 4 == 0), np.zeros(N, int)], axis=1)
GOOD, FAIR, BLIND = ([0, 0, 0], [1, 1, 1]), ([9, 0, 0], [10, 1, 1]), ([9, 9, 0], [10, 10, 1])


def chosen(runs_per_candidate, searches=130):
    """Count how often each candidate wins where the fits have no noise."""
    search = PrivateSearchCV(
        binary(),
        {"bounds": [BLIND, FAIR, GOOD]},
        epsilon=math.inf,
        runs_per_candidate=runs_per_candidate,
        test_size=0.5,
        random_state=np.random.RandomState(7),
    )
    winners = [search.fit(RECORDS, LABELS).best_index_ for _ in range(searches)]
    return np.bincount(winners, minlength=3)


def winner_law(mean):
    """P(winner = j) = f((j+1)/3) - f(j/3), f(x) = E x**R."""
    x = np.arange(4) / 3
    return np.diff(x / mean / (1 - (1 - 1 / mean) * x))


def test_the_best_of_a_geometric_number_of_runs_wins():
    observed = chosen(runs_per_candidate=1)
    law = winner_law(mean=3)
    assert stats.chisquare(observed, law * observed.sum()).pvalue > SURE
    for wrong in (1.5, 7):
        assert stats.chisquare(observed, winner_law(wrong) * observed.sum()).pvalue < SURE


# ------------------------------------------------------------------ one run


@pytest.mark.parametrize("model", [binary(0.5), linear(0.5)], ids=["classifier", "regression"])
def test_the_score_has_discrete_laplace_noise(model):
    X, y = RNG.integers(0, 2, (20, 2)), RNG.integers(0, 2, 20)
    one = sensitivity(model)
    noise = []
    for seed in range(150):
        ready = prepared(model.set_params(epsilon=Fraction(1, 2)), X, y, None, None)
        made = run(0, ready, seed, (X, y))
        noise.append((made.score - points(made.model, X, y).sum()) / one)
    scale = 2.0  # of one person, at epsilon 1/2
    edges = [-math.inf, -4, -2, -1, -0.01, 0.5, 1.5, 3.5, math.inf]

    def p_value(scale):
        steps = np.arange(-60 * one, 60 * one + 1)
        law = discrete_laplace_pmf(steps, Fraction(scale) * one)
        cells = np.digitize(steps / one, edges[1:-1])
        expected = np.bincount(cells, law, minlength=8) * len(noise)
        observed = np.bincount(np.digitize(noise, edges[1:-1]), minlength=8)
        return stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue

    assert p_value(scale) > SURE
    assert p_value(scale / 2.2) < SURE
    assert p_value(scale * 2.2) < SURE


def test_no_person_moves_a_classifier_by_more_than_one_point():
    people = list(itertools.product([0, 1, 7, math.nan], [0, 1, 2, -5]))
    X, y = np.array([[x] for x, _ in people]), np.array([label for _, label in people])
    model = binary(random_state=0).fit(RECORDS[:, :1], LABELS)
    earned = points(model, X, y)
    assert set(earned) == {0, sensitivity(model)} == {0, 1}


def test_no_person_moves_a_regression_by_more_than_its_sensitivity():
    values = [0, 1, 0.3, math.nan, math.inf, -1e308]
    targets = [-3, 5, 0.1, 1e308, -math.inf, math.nan]
    X, y = (np.array(side) for side in zip(*itertools.product(values, targets), strict=True))
    model = linear(random_state=0).fit(RECORDS[:, :1], LABELS)
    earned = points(model, X[:, None], y)
    assert earned.min() == 0
    assert POINTS * 0.9 < earned.max() <= sensitivity(model) == POINTS


def test_points_of_one_person_do_not_depend_on_the_others():
    X, y = RNG.random((50, 3)), RNG.normal(size=50)
    for model in (linear(random_state=0).fit(X, y), binary(random_state=0).fit(RECORDS, LABELS)):
        target = (y > 0).astype(int) if isinstance(model, BayesianNaiveBayes) else y
        before = points(model, X, target)
        moved_X, moved_y = X.copy(), target.copy()
        moved_X[7], moved_y[7] = 1 - moved_X[7], 1 - moved_y[7]
        after = points(model, moved_X, moved_y)
        assert np.flatnonzero(before != after).tolist() in ([], [7])


@pytest.mark.parametrize("model", [binary(0.5), linear(0.5)], ids=["classifier", "regression"])
def test_people_who_are_held_out_do_not_touch_the_model(model):
    X, y = RECORDS, LABELS
    ready = prepared(model, X, y, None, None)
    differ = 0
    for seed in range(20):
        one, other = (run(0, ready, seed, held_out) for held_out in ((X, y), (1 - X, y)))
        assert pickle.dumps(one.model) == pickle.dumps(other.model)
        differ += one.score != other.score
    assert differ


# ------------------------------------------------------------------ the whole

FIVE = np.zeros((5, 1), dtype=int)
SEARCHES = 120


def scores(labels):
    """Publish the score of many searches on five people."""
    search = PrivateSearchCV(
        binary(), {"alpha": [0.1]}, epsilon=0.6, runs_per_candidate=2, test_size=0.8
    )
    search.set_params(random_state=np.random.RandomState(0))
    return np.array([search.fit(FIVE, labels).best_score_ for _ in range(SEARCHES)])


def audited_epsilon():
    """Return a loss that is exceeded for sure (99.9 %) between labels that differ in one."""
    one, other = scores([0, 0, 0, 0, 0]), scores([0, 0, 0, 0, 1])
    losses = []
    for limit in (0.3, 0.6, 0.9):
        for event in (one > limit, other > limit), (one <= limit, other <= limit):
            a, b = (int(side.sum()) for side in event)
            low = stats.beta.ppf(1e-4, a, SEARCHES - a + 1) if a else 0.0
            high = stats.beta.ppf(1 - 1e-4, b + 1, SEARCHES - b) if b < SEARCHES else 1.0
            losses.append(math.log(low / high) if low else 0.0)
    return max(losses)


def test_the_loss_that_can_be_shown_is_within_the_claim():
    assert audited_epsilon() <= 0.6


def test_a_score_without_noise_is_caught(monkeypatch):
    monkeypatch.setattr(runs, "score_law", lambda *_: DiscreteLaplace.of(Fraction(0), [1]))
    assert audited_epsilon() > 0.6


SEARCH_IN_WORKERS = """
import numpy as np
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.model_selection import PrivateSearchCV
X, y = np.arange(120).reshape(60, 2) % 2, np.arange(60) % 2
model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2)  # its classes are not declared
PrivateSearchCV(
    model, {{"alpha": [1.0, 2.0]}}, epsilon=100.0, runs_per_candidate={runs}, n_jobs={jobs}
).fit(X, y)
"""


def test_worker_processes_print_nothing_that_tells_the_number_of_runs():
    few, many = (
        subprocess.run(
            [sys.executable, "-c", SEARCH_IN_WORKERS.format(runs=runs, jobs=jobs)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONWARNINGS": "always"},
        )
        for runs, jobs in ((1, 1), (20, 2))  # what workers print is besides what one process does
    )
    assert few.stdout == many.stdout == ""
    assert few.stderr == many.stderr
    assert few.stderr.count("classes were read from the data") == 1
    assert few.stderr.count("is a weak guarantee") == 1


# ------------------------------------------------------------------ with a delta


def gaussian_search(**options):
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2, temperature=1)
    grid = {"mechanism": ["gaussian", "laplace", "auto"]}
    defaults = {"epsilon": 1.0, "delta": 1e-4, "runs_per_candidate": 3, "random_state": 0}
    return PrivateSearchCV(model, grid, **{**defaults, **options})


@pytest.mark.parametrize("stopping", ["geometric", "logarithmic"])
def test_every_run_keeps_to_the_zcdp_of_a_run(monkeypatch, stopping):
    spent, scores = [], []
    law_of = runs.score_law

    def released(release, plan, statistics, noise):
        cost = plan.cost
        if not isinstance(statistics, runs.HeldOutSplit):
            spent.append(cost.rho if cost.rho is not None else Fraction(cost.epsilon) ** 2 / 2)
        return release(plan, statistics, noise)

    def scored(*args):
        law = law_of(*args)
        scores.append(law.rho(np.ones(1, np.int64)))
        return law

    monkeypatch.setattr(runs, "score_law", scored)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-4)
    with boundary(released):
        search = gaussian_search(stopping=stopping, accountant=accountant).fit(RECORDS, LABELS)
    law = Stopping.of_mean(stopping, 9)
    rho = run_rho(Fraction(1), Fraction(1, 10**4), law.eta, law.inverse, law.mean)
    fits = spent[3:]  # after the rehearsal of three candidates
    assert 0.99 * rho < max(fits) <= rho
    assert min(fits) > 0.99 * rho
    assert len(scores) == len(fits)
    assert 0.99 * rho < max(scores) <= rho
    assert (search.guarantee_.epsilon, search.guarantee_.delta) == (1.0, 1e-4)
    (entry,) = accountant
    assert (entry.epsilon, entry.delta, entry.rho) == (1.0, 1e-4, None)


@pytest.mark.parametrize("n", [None, 1, 10**7])
def test_a_secret_number_of_records_is_part_of_the_zcdp_of_a_run(monkeypatch, n):
    """Whatever number is released, and whatever rules look at it."""
    spent, charged = [], PrivateEstimator._charged

    def noted(self, plan, *rest):
        cost, size = plan.cost, plan.mechanism == "size"
        rho = cost.rho if cost.rho is not None else Fraction(cost.epsilon) ** 2 / 2
        if not isinstance(self, PrivateSearchCV):
            spent.append(("size" if size else "counts", rho))
        found = charged(self, plan, *rest)
        if n is None or not size:
            return found
        return replace(found, posterior=replace(found.posterior, n=n))

    monkeypatch.setattr(PrivateEstimator, "_charged", noted)
    search = gaussian_search()
    search.estimator.set_params(
        privacy_unit=PrivacyUnit("record", neighbours="add_remove"), temperature="auto"
    )
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-4)
    search.set_params(accountant=accountant).fit(RECORDS, LABELS)
    law = Stopping.of_mean("geometric", 9)
    rho = run_rho(Fraction(1), Fraction(1, 10**4), law.eta, law.inverse, law.mean)
    sizes, fits = spent[3::2], spent[4::2]  # after the rehearsal, which releases no number
    assert {kind for kind, _ in sizes} == {"size"}
    assert {kind for kind, _ in fits} == {"counts"}
    together = [size + fit for (_, size), (_, fit) in zip(sizes, fits, strict=True)]
    assert 0.99 * rho < min(together) <= max(together) <= rho
    assert all(0.039 * rho < size < 0.041 * rho for _, size in sizes)
    assert search.guarantee_.privacy_unit.size_is_secret
    (entry,) = accountant
    assert (entry.epsilon, entry.delta, entry.rho) == (1.0, 1e-4, None)


def test_a_search_with_a_delta_looks_at_no_number_of_records():
    search = gaussian_search(random_state=None, runs_per_candidate=1)
    search.estimator.set_params(
        privacy_unit=PrivacyUnit("record", neighbours="add_remove"), temperature="auto"
    )
    for n in (len(LABELS), 1):
        found = replay(
            search, RECORDS[:n], LABELS[:n], RECORDS[: n - 1], LABELS[: n - 1], freeze=SEARCH
        )
        assert found.sound, found.divergences
        assert found.status == "fitted"


def test_gaussian_candidates_need_a_delta_of_the_search():
    with pytest.raises(ValueError, match="set delta of the search"):
        gaussian_search(delta=0.0).fit(RECORDS, LABELS)
    with pytest.raises(ValueError, match="the search has one delta"):
        PrivateSearchCV(BayesianNaiveBayes(), {"delta": [1e-6]}).fit(RECORDS, LABELS)


def test_logarithmic_stopping_costs_two_runs():
    model = BayesianNaiveBayes(0.5, classes=[0, 1], bounds=(0, 1), n_bins=2)
    found = PrivateSearchCV.cost(model, {"alpha": [1, 2]}, 100, stopping="logarithmic")
    assert (found.epsilon, found.epsilon_per_run) == (1.0, 0.5)
    search = PrivateSearchCV(
        model, {"alpha": [1, 2]}, stopping="logarithmic", runs_per_candidate=2, random_state=0
    ).fit(RECORDS, LABELS)
    assert search.guarantee_.epsilon == 1.0
    assert search.best_estimator_.epsilon == Fraction(1, 2)


def test_the_training_people_are_counted_once_for_all_runs_of_a_candidate(monkeypatch):
    counted, drawn = [], []
    count = CountTables.of_shard.__func__
    monkeypatch.setattr(
        CountTables, "of_shard", classmethod(lambda *args: counted.append(1) or count(*args))
    )
    with boundary(lambda release, *given: drawn.append(1) or release(*given)):
        gaussian_search(runs_per_candidate=10).fit(RECORDS, LABELS)
    assert len(counted) == 6  # three candidates, rehearsed and prepared
    assert len(drawn) > 6


# ------------------------------------------------------------------ no row changes another


@pytest.mark.parametrize("d", [1, 3, 13, 64, 200])
def test_predictions_that_are_scored_do_not_depend_on_other_rows(d):
    X = RNG.integers(0, 2, (1200, d))
    y = X[:, 0] ^ (RNG.random(1200) < 0.2)
    for model in (binary(temperature=1), linear()):
        fitted = model.fit(X, y)
        together = fitted._predict_by_row(X)
        for rows in (slice(1, None), slice(3, 40), slice(1023, 1026), slice(7, 8)):
            assert np.array_equal(fitted._predict_by_row(X[rows]), together[rows])
    joint = binary(temperature=1).fit(X, y).predict_joint_log_proba
    assert np.array_equal(joint(X)[5:], joint(X[5:]))


def test_column_by_column_is_the_product():
    X, y = RNG.random((300, 6)), RNG.random(300)
    fitted = linear().fit(X, y)
    assert np.allclose(fitted._predict_by_row(X), fitted.predict(X), rtol=1e-12)
