from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import (
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    Categories,
    DirichletMultinomial,
    PrivacyLeakWarning,
    from_json,
    mechanisms,
)
from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn.categories.posterior import NoisyDirichlet
from dpbayes_sklearn.noise import ZeroSum

ONES = np.array([1] * 30 + [0] * 50)
CODES = np.array([0] * 20 + [1] * 12 + [2] * 8)
NAMES = ["geometric", "laplace", "laplace_improved", "exponential", "hellinger", "local"]


@pytest.mark.parametrize("name", NAMES)
def test_beta_binomial_releases_with_every_mechanism(name: str) -> None:
    model = BetaBinomial(mechanism=name, random_state=0).fit(ONES)
    assert 2 <= model.posterior_.concentration.sum() < 82
    assert 0 < model.posterior_.mean() < 1
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1, 0)
    assert model.guarantee_.mechanism == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inference", ["plug_in", "median"])
def test_what_takes_a_count_as_exact_has_the_precision_of_all_records(name, inference) -> None:
    model = BetaBinomial(mechanism=name, inference=inference, random_state=0).fit(ONES)
    assert model.posterior_.concentration.sum() == 82


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inference", ["plug_in", "median", "noise_aware"])
def test_dirichlet_multinomial_releases_with_every_mechanism(name: str, inference: str) -> None:
    model = DirichletMultinomial(
        mechanism=name, categories=3, inference=inference, random_state=0
    ).fit(CODES)
    assert model.posterior_.concentration.shape == (3,)
    assert (model.posterior_.concentration > 0.1).all()


def test_infinite_budget_is_conjugate_bayes() -> None:
    beta = BetaBinomial(float("inf"), prior=(0.5, 2.0)).fit(ONES).posterior_
    assert (beta.alpha, beta.beta) == (30.5, 52)
    exact = DirichletMultinomial(np.inf, prior=[1, 2, 3]).fit(CODES).posterior_
    assert exact.concentration.tolist() == [21, 14, 11]


@pytest.mark.parametrize(
    "records",
    [
        ONES.tolist(),
        ONES.astype(bool),
        ONES.astype(float)[:, None],
        ONES.astype(object),
        pd.Series(ONES),
        pd.DataFrame({"smokes": ONES.astype(bool)}),
        ONES.astype(np.int8),
    ],
)
def test_zeros_and_ones_are_read_in_every_form(records) -> None:
    posterior = BetaBinomial(np.inf).fit(records).posterior_
    assert (posterior.alpha, posterior.beta) == (31, 51)


@pytest.mark.parametrize(
    ("categories", "records"),
    [
        (["a", "b", "c"], np.array(["a", "b", "c"])[CODES]),
        (["a", "b", "c"], pd.Series(np.array(["a", "b", "c"], dtype=object)[CODES])),
        ([5, 7, 9], 5 + 2 * CODES),
        (3, CODES.astype(float)),
        (Categories(["a", "b", "c"]), np.array(["a", "b", "c"])[CODES]),
    ],
)
def test_categories_are_read_in_every_form(categories, records) -> None:
    model = DirichletMultinomial(np.inf, categories=categories).fit(records)
    assert model.posterior_.concentration.tolist() == [21, 13, 9]
    assert model.score(records) == pytest.approx(np.log(model.posterior_.mean()[CODES]).mean())


def test_a_rule_for_unseen_values_never_refuses() -> None:
    domain = Categories(["a", "b", "other"], unseen="other")
    records = np.array(["a", "HIV+", None, 3.5, "b"], dtype=object)
    model = DirichletMultinomial(np.inf, categories=domain).fit(records)
    assert model.posterior_.concentration.tolist() == [2, 2, 4]


@pytest.mark.parametrize("records", [CODES, np.array(["x", "y", "z"])[CODES]])
def test_categories_read_from_the_data_are_a_leak(records) -> None:
    with pytest.warns(PrivacyLeakWarning, match="set categories to public values") as caught:
        model = DirichletMultinomial(random_state=0).fit(records)
    assert caught[0].filename == __file__
    assert any("categories" in condition for condition in model.guarantee_.conditions)


def test_a_prior_for_each_category_declares_them() -> None:
    model = DirichletMultinomial(prior=[1.0, 1.0, 1.0, 1.0]).fit(CODES)
    assert not any("read from the data" in c for c in model.guarantee_.conditions)
    assert model.categories_.values == (0, 1, 2, 3)


CANARY = "secret-7351"


@pytest.mark.parametrize(
    ("model", "records"),
    [
        (BetaBinomial(), [0, 1, 7351]),
        (BetaBinomial(), [0, 1, np.nan]),
        (BetaBinomial(), [0.0, 1.0, 0.7351]),
        (BetaBinomial(), ["0", "1", CANARY]),
        (BetaBinomial(), [0, 1, None]),
        (BetaBinomial(), [1 + 0j, 7351j]),
        (BetaBinomial(), []),
        (BetaBinomial(), np.zeros((3, 2))),
        (BetaBinomial(prior=(1.0, 0.0)), [0, 1]),
        (BetaBinomial(prior=(1.0, 1.0, 1.0)), [0, 1]),
        (BetaBinomial(mechanism="hellinger", calibrate=False), [0, 1]),
        (BetaBinomial(mechanism="local", calibrate=False), [0, 1]),
        (BetaBinomial(mechanism=mechanisms.Sampler()), [0, 1]),
        (BetaBinomial(mechanism="exponential"), np.zeros(20_000)),
        (DirichletMultinomial(categories=["a", "b"]), ["a", CANARY]),
        (DirichletMultinomial(categories=3), [0, 1, 7351]),
        (DirichletMultinomial(categories=3), [0, -1]),
        (DirichletMultinomial(categories=["a"]), ["a"]),
        (DirichletMultinomial(categories=["a", "a"]), ["a"]),
        (DirichletMultinomial(categories=["a", None]), ["a", None]),
        (DirichletMultinomial(categories=3, prior=[1.0, 1.0]), [0, 1]),
        (DirichletMultinomial(), [0.5, 7351.5]),
        (DirichletMultinomial(), np.array([CANARY, 7351], dtype=object)),
        (DirichletMultinomial(categories=3, mechanism="hellinger"), np.zeros(1000)),
        (BetaBinomial(epsilon=1e-13), [0, 1]),
        (BetaBinomial(epsilon=1e-18, mechanism="laplace"), [0, 1]),
        (BetaBinomial(epsilon=1e-18, mechanism="laplace_improved"), [0, 1]),
        (BetaBinomial(epsilon=1e-9, mechanism="exponential", calibrate=False), [0, 1]),
        (DirichletMultinomial(categories=range(2**15 + 1)), [0, 1]),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(model, records) -> None:
    ledger = BudgetAccountant(1.0)
    model = clone(model).set_params(accountant=ledger)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.fit(records)
    assert "7351" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(ledger) == 0
    assert not hasattr(model, "posterior_")


def test_sparse_input_is_refused() -> None:
    with pytest.raises(TypeError, match="one dense column"):
        BetaBinomial().fit(csr_array(np.eye(3)))


@pytest.mark.parametrize("delta", [-0.1, 1.0, 2, Fraction(3, 2), Fraction(-1, 2), "0", None])
def test_a_delta_outside_its_range_is_refused(delta) -> None:
    with pytest.raises(InvalidParameterError, match="delta"):
        BetaBinomial(delta=delta).fit(ONES)


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, "1"])
def test_an_epsilon_outside_its_range_is_refused(epsilon) -> None:
    with pytest.raises(InvalidParameterError, match="epsilon"):
        DirichletMultinomial(epsilon, categories=3).fit(CODES)


def test_unknown_mechanism_lists_the_valid_ones() -> None:
    with pytest.raises(InvalidParameterError, match=r"'geometric'.*'laplace_improved'|geometric"):
        BetaBinomial(mechanism="sampler").fit(ONES)


def test_delta_is_spent_only_where_it_is_needed() -> None:
    ledger = BudgetAccountant(delta=1e-5)
    pure = BetaBinomial(mechanism="hellinger", delta=1e-6, accountant=ledger).fit(ONES)
    assert pure.guarantee_.delta == 0
    approximate = clone(pure).set_params(calibrate=False).fit(ONES)
    assert approximate.guarantee_.delta == 1e-6
    assert BetaBinomial(delta=0.1, accountant=ledger).fit(ONES).guarantee_.delta == 0
    total = ledger.total()
    assert (total.epsilon, total.delta) == (3, 1e-6)


def test_an_instance_carries_its_own_options() -> None:
    mechanism = mechanisms.Hellinger(calibrate=False)
    model = BetaBinomial(mechanism=mechanism, delta=1e-6).fit(ONES)
    assert model.guarantee_.delta == 1e-6
    model.set_params(mechanism__calibrate=True).fit(ONES)
    assert model.guarantee_.delta == 0


def test_the_ledger_refuses_and_nothing_is_left_behind() -> None:
    model = BetaBinomial(2.0, accountant=BudgetAccountant(1.0))
    with pytest.raises(BudgetError):
        model.fit(ONES)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_fitted_object_depends_on_the_release_alone(monkeypatch) -> None:
    """Replay: the same released counts from neighbouring data give the same bytes."""
    from dpbayes_sklearn.categories import plans
    from dpbayes_sklearn.categories.counts import ReleasedSimplex

    frozen = ReleasedSimplex(np.array([33, 47]), 80, (ZeroSum(Fraction(2), 2),))

    def replay(self, statistics, noise):
        return self.prior.update(frozen)

    monkeypatch.setattr(plans.NoisyCounts, "release", replay)
    neighbour = ONES.copy()
    neighbour[0] = 0
    fits = [pickle.dumps(BetaBinomial().fit(x)) for x in (ONES, neighbour)]
    assert fits[0] == fits[1]


def test_seed_repeats_the_release_and_is_a_condition() -> None:
    a, b = (BetaBinomial(random_state=3).fit(ONES) for _ in range(2))
    assert a.posterior_.alpha == b.posterior_.alpha
    assert any("random_state" in condition for condition in a.guarantee_.conditions)
    assert not any("random_state" in c for c in BetaBinomial().fit(ONES).guarantee_.conditions)


def test_clone_pickle_and_pipeline() -> None:
    model = DirichletMultinomial(categories=3, random_state=0).fit(CODES)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.posterior_.concentration.tolist() == model.posterior_.concentration.tolist()
    assert not hasattr(clone(model), "posterior_")
    pipe = make_pipeline(FunctionTransformer(lambda x: x % 3), clone(model)).fit(CODES[:, None] + 3)
    assert pipe.score(CODES[:, None]) < 0


@pytest.mark.filterwarnings("ignore:Scores are computed:dpbayes_sklearn.PrivacyLeakWarning")
def test_model_selection_scores_and_charges() -> None:
    ledger = BudgetAccountant()
    model = BetaBinomial(accountant=ledger, random_state=0)
    scores = cross_val_score(model, ONES[:, None], cv=4)
    assert np.isfinite(scores).all()
    assert len(ledger) == 4
    search = GridSearchCV(model, {"prior": [(1.0, 1.0), (5.0, 5.0)]}, cv=2).fit(ONES[:, None])
    assert search.best_params_["prior"] in [(1.0, 1.0), (5.0, 5.0)]


def test_score_is_the_mean_log_predictive() -> None:
    model = BetaBinomial(np.inf).fit(ONES)
    share = 31 / 82
    assert model.score([1, 1, 0]) == pytest.approx(np.log([share, share, 1 - share]).mean())
    with pytest.raises(NotFittedError):
        BetaBinomial().score(ONES)


def test_a_median_is_closer_where_noise_is_wide() -> None:
    """Exact average over all data sets of 20 records, epsilon 0.1: the optimum is 0.561."""
    from dpbayes_sklearn.categories.counts import ReleasedSimplex
    from dpbayes_sklearn.categories.posterior import Beta, SimplexPrior, hellinger

    n, epsilon = 20, 0.1
    x, y = np.arange(n + 1), np.arange(-200, 221)
    law = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(x[:, None] - y))
    truth = np.column_stack([1.0 + x, 1.0 + n - x])[:, None]
    errors = {}
    for inference in ("plug_in", "median"):
        prior = SimplexPrior(Beta(1, 1), inference)
        laws = (ZeroSum(Fraction(20), 2),)
        read = [
            prior.update(ReleasedSimplex(np.array([v, n - v]), n, laws)).concentration for v in y
        ]
        errors[inference] = float((law * hellinger(truth, np.array(read))).sum() / (n + 1))
    assert errors["plug_in"] == pytest.approx(0.642, abs=1e-3)
    assert errors["median"] < 0.567


def test_the_precision_of_every_category_is_kept_in_files() -> None:
    model = DirichletMultinomial(0.3, categories=3, random_state=0).fit(CODES)
    again = from_json(model.to_json())
    assert np.array_equal(again.posterior_.precisions, model.posterior_.precisions)
    assert np.array_equal(
        again.posterior_.credible_interval(), model.posterior_.credible_interval()
    )
    with pytest.raises(ValueError, match="one for each category"):
        NoisyDirichlet([1.0, 2.0], [3.0])
