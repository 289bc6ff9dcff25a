from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    DirichletMultinomial,
    GammaExponential,
    NormalMean,
    PrivacyLeakWarning,
    PrivateSearchCV,
)
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.papers.query import PosteriorQuerySession
from dpbayes_sklearn.papers.theory import distinguishable_distance

N = 200


def data(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return (rng.random((N, 2)) < 0.2 + 0.6 * y[:, None]).astype(int), y


def model(**parameters):
    fixed = {"mechanism": "sampler", "classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return BayesianNaiveBayes(**{"epsilon": 0.1, **fixed, **parameters})


def share_of_ones(tables):
    return tables[-1][1]


def test_every_query_is_a_fresh_draw_that_is_charged():
    accountant = BudgetAccountant(epsilon=1.0)
    session = PosteriorQuerySession(model(random_state=0), *data(), accountant=accountant)
    answers = [session.query(share_of_ones) for _ in range(10)]
    assert len(set(answers)) > 5
    assert len(session) == len(accountant) == 10
    assert session.spent == accountant.total().epsilon == 1.0
    with pytest.raises(BudgetError):
        session.query(share_of_ones)
    assert len(session) == 10


def test_draws_have_the_law_of_the_sampler():
    """Sessions and fits release through the same mechanism: the same seed, the same draw."""
    accountant = BudgetAccountant()
    session = PosteriorQuerySession(model(random_state=3), *data(), accountant=accountant)
    fitted = model(random_state=3, temperature=1).fit(*data())
    for ours, theirs in zip(session.query(lambda t: t), fitted.posterior_.draws, strict=True):
        np.testing.assert_array_equal(ours, theirs[0])


def test_answers_follow_the_data():
    X, _ = data()
    means = []
    for label in (0, 1):
        parts = model(epsilon=5.0, random_state=0), X, np.full(N, label)
        with PosteriorQuerySession(*parts, accountant=BudgetAccountant()) as session:
            means.append(np.mean([session.query(share_of_ones) for _ in range(20)]))
    assert means[0] < 0.3 < 0.7 < means[1]


@pytest.mark.parametrize("held", [100, 37])
def test_concurrent_queries_never_cross_the_ceiling(held):
    accountant = BudgetAccountant(epsilon=held / 10)
    session = PosteriorQuerySession(model(), *data(), accountant=accountant)

    def ask(_):
        try:
            return session.query(share_of_ones)
        except BudgetError:
            return None

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(1000 if held == 100 else 100)))
    assert sum(a is not None for a in answers) == held == len(session) == len(accountant)
    assert accountant.remaining().epsilon == 0
    assert session.spent == accountant.total().epsilon == held / 10


def test_distinguishability_is_that_of_theorem_3():
    session = PosteriorQuerySession(model(), *data(), accountant=BudgetAccountant())
    assert session.distinguishable() == math.inf
    for draws in (1, 2, 3):
        session.query(share_of_ones)
        lipschitz = 0.1 / 2
        expected = 3 / (4 * lipschitz * draws) * math.log(1 / 0.01)
        assert session.distinguishable(delta=0.01) == pytest.approx(expected)
    with pytest.raises(ValueError, match="range"):
        session.distinguishable(delta=1.0)


def test_another_test_tells_closer_data_sets_apart():
    """One draw of a coin's bias, truncated to [w, 1 - w], after a single flip: heads or tails.

    The densities are 2t/(1 - 2w) and 2(1 - t)/(1 - 2w) there, and the best test has as advantage
    their distance in total variation.
    """
    lipschitz = 2.25
    w = 1 / (1 + math.exp(lipschitz))
    assert distinguishable_distance(lipschitz, 1, delta=0.04) > 1  # one flip is within it
    advantage = ((1 - w) ** 2 - (1 - w) + 0.25) / (0.5 - w)
    assert 0.4 < advantage < 0.41


def test_guarantee_adds_up_and_keeps_conditions():
    X, y = data()
    seeded = model(classes=None, random_state=0)
    with pytest.warns(PrivacyLeakWarning, match="classes") as caught:
        session = PosteriorQuerySession(seeded, X, y, accountant=BudgetAccountant())
    assert caught[0].filename == __file__
    session.query(share_of_ones)
    session.query(share_of_ones)
    guarantee = session.guarantee()
    assert guarantee.epsilon == session.spent == 0.2
    assert any("classes" in c for c in guarantee.conditions)
    assert any("random_state" in c for c in guarantee.conditions)


def test_exact_counts_do_not_travel():
    session = PosteriorQuerySession(model(), *data(), accountant=BudgetAccountant())
    assert repr(session) == (
        "<PosteriorQuerySession of BayesianNaiveBayes, open: 0 queries, epsilon=0.0>"
    )
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="exact counts"):
            travel(session)


def test_closing_drops_the_counts():
    with PosteriorQuerySession(model(), *data(), accountant=BudgetAccountant()) as session:
        session.query(share_of_ones)
    assert "closed" in repr(session)
    assert session._exact is None
    assert session
    with pytest.raises(ValueError, match="closed"):
        session.query(share_of_ones)
    assert len(session) == 1


def test_accountant_of_the_estimator_or_the_block():
    X, y = data()
    own, block = BudgetAccountant(), BudgetAccountant()
    PosteriorQuerySession(model(accountant=own), X, y).query(share_of_ones)
    with block:
        session = PosteriorQuerySession(model(), X, y)
    session.query(share_of_ones)
    assert (len(own), len(block)) == (1, 1)
    with pytest.raises(ValueError, match="needs an accountant"):
        PosteriorQuerySession(model(), X, y)
    with pytest.raises(BudgetError):
        PosteriorQuerySession(model(), X, y, accountant=BudgetAccountant(epsilon=0.05))


def test_queries_are_not_parallel():
    accountant = BudgetAccountant()
    session = PosteriorQuerySession(model(), *data(), accountant=accountant)
    with accountant.parallel(), pytest.raises(ValueError, match="same people"):
        session.query(share_of_ones)
    assert len(accountant) == 0


def test_an_error_in_the_question_is_paid_for():
    accountant = BudgetAccountant()
    session = PosteriorQuerySession(model(), *data(), accountant=accountant)
    with pytest.raises(ZeroDivisionError):
        session.query(lambda tables: 1 / 0)
    assert len(session) == len(accountant) == 1


@pytest.mark.parametrize(
    ("estimator", "error", "match"),
    [
        (LogisticRegression(), TypeError, "must be a model with"),
        (model(mechanism="laplace"), ValueError, "mechanism='sampler'"),
        (model(mechanism=Sampler(n_samples=2)), ValueError, "n_samples=1"),
        (model(epsilon=math.inf), ValueError, "finite epsilon"),
        (model(epsilon=-1), ValueError, "epsilon"),
    ],
)
def test_what_cannot_answer_is_refused(estimator, error, match):
    with pytest.raises(error, match=match):
        PosteriorQuerySession(estimator, *data(), accountant=BudgetAccountant())


def test_any_network():
    estimator = BayesianNetworkClassifier(
        0.5, parents={1: [0, "class"]}, mechanism=Sampler(omega=0.1), classes=[0, 1],
        bounds=(0, 1), n_bins=2, random_state=0,
    )  # fmt: skip
    session = PosteriorQuerySession(estimator, *data(), accountant=BudgetAccountant())
    tables = session.query(lambda t: t)
    assert [t.shape for t in tables] == [(2,), (2, 2, 2), (2,)]
    for table in tables:
        np.testing.assert_allclose(table.sum(axis=-1), 1)


def test_many_small_queries_cost_their_square_root_where_there_is_a_delta():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.integers(0, 2, (60, 1))
    model = BayesianNaiveBayes(
        0.05,
        mechanism="sampler",
        classes=[0, 1],
        bounds=(0, 1),
        n_bins=2,
        accountant=BudgetAccountant(epsilon=1.0, delta=1e-6, composition="zcdp"),
    )
    with PosteriorQuerySession(model, X, y) as session:
        assert session.guarantee(delta=1e-6).epsilon == 0
        with suppress(BudgetError):
            for _ in range(400):
                session.query(len)
        found = session.guarantee(delta=1e-6)
        assert 55 < len(session) < 80  # 20 by adding up, 19 if all were known of it is epsilon
        assert 0.97 < found.epsilon <= 1.0
        assert found.delta == 1e-6
        assert found.rho < len(session) * 0.05**2 / 5
        assert session.guarantee().epsilon == session.spent == pytest.approx(0.05 * len(session))
        assert session.guarantee().delta == 0
        with pytest.raises(ValueError, match="delta must be"):
            session.guarantee(delta=1.0)


def flat(draw):
    parts = draw if isinstance(draw, tuple) else (draw,)
    return np.hstack([np.ravel(part) for part in parts])


def kinds():
    """Return an estimator of every other kind, its records, and what a draw must be near."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (3000, 2))
    y = 2 + X @ [1.0, -0.5] + rng.normal(0, 1, 3000)
    sampler = Sampler()
    shares = DirichletMultinomial(2.0, mechanism=sampler, categories=["a", "b", "c"])
    regression = BayesianLinearRegression(
        2.0, mechanism="sampler", bounds_X=(0, 10), bounds_y=(-10, 20)
    )
    means = NormalMean(2.0, mechanism="sampler", bounds=(0, 10), sigma=3.0)
    rates = GammaExponential(2.0, mechanism="sampler", bounds=(0, 10), data="laplace", location=5)
    proportion = BetaBinomial(2.0, mechanism=sampler)
    return {
        "proportion": (proportion, [1] * 900 + [0] * 2100, None, [0.3]),
        "shares": (shares, ["a"] * 1500 + ["b"] * 900 + ["c"] * 600, None, [0.5, 0.3, 0.2]),
        "regression": (regression, X, y, [2.0, 1.0, -0.5]),
        "means": (means, X, None, [5.0, 5.0]),
        "rates": (rates, X, None, [0.4, 0.4]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["proportion", "shares", "regression", "means", "rates"])
def test_other_models_answer_too(kind):
    """Every draw is charged, new, and about the parameters; draws of a session scatter about it."""
    estimator, X, y, truth = kinds()[kind]
    ledger = BudgetAccountant(epsilon=60.0)
    with PosteriorQuerySession(estimator, X, y, accountant=ledger) as session:
        drawn = [session.query(flat) for _ in range(30)]
        with pytest.raises(BudgetError):
            session.query(lambda draw: draw)
        assert session.spent == ledger.total().epsilon == 60.0
        assert session.guarantee().mechanism == "sampler"
        assert session.guarantee(1e-6).epsilon < 60.0
    answers = np.array(drawn)
    assert len({tuple(a) for a in answers}) > 5  # on a grid
    assert np.median(answers, axis=0) == pytest.approx(truth, rel=0.35, abs=0.4)


def test_an_expectation_given_a_value():
    """Example 1 of the paper: E(y | z) of a drawn network, for every z in turn."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 4000)
    z = (rng.random((4000, 1)) < 0.2 + 0.6 * y[:, None]).astype(int)
    asked = model(epsilon=1.0, accountant=BudgetAccountant(epsilon=2.0), random_state=0)

    def expected(tables, value):
        joint = tables[-1] * tables[0][:, value]
        return joint[1] / joint.sum()

    with PosteriorQuerySession(asked, z, y) as session:
        answers = [session.query(lambda tables, v=v: expected(tables, v)) for v in (0, 1)]
    assert answers[0] < 0.5 < answers[1]


def test_proportions_need_the_sampler():
    with pytest.raises(ValueError, match="Sampler"):
        PosteriorQuerySession(BetaBinomial(accountant=BudgetAccountant(1.0)), [0, 1])
    with pytest.raises(TypeError, match="must be a model"):
        PosteriorQuerySession(PrivateSearchCV(BetaBinomial(), {}), [0, 1])


def test_a_session_is_planned_whatever_numpy_does_with_underflows():
    model = GammaExponential(0.5, mechanism="sampler", bounds=(0, 3))
    with np.errstate(all="raise"):
        PosteriorQuerySession(model, np.ones((30, 2)), accountant=BudgetAccountant(epsilon=1))
