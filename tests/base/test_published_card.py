"""Cards of models: every estimator has one, from public facts only."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
    preprocessing,
)
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.privacy.budget import PrivacyUnit

X = np.random.default_rng(0).random((200, 2))
Y = (X[:, 0] > 0.5).astype(int)
SCHEMA = Schema({"a|b": Interval(0, 1), "<c>": Interval(0, 1)}, target=Categories([0, 1]))


@pytest.mark.parametrize("form", ["markdown", "html"])
@pytest.mark.parametrize(
    "model",
    [
        BayesianNaiveBayes(0.5, schema=SCHEMA),
        BayesianNaiveBayes(0.5, mechanism="sampler", schema=SCHEMA),
        BayesianLinearRegression(0.5, bounds_X=(0, 1), bounds_y=(0, 1)),
    ],
    ids=lambda model: f"{type(model).__name__}, {model.mechanism}",
)
def test_a_card_says_what_it_is_and_what_it_promises(model: Any, form: str) -> None:
    card = model.fit(X, Y).card(form)
    assert type(model).__name__ in card
    assert "epsilon = 0.5" in card
    assert "1.65 times" in card
    assert card == type(model).from_json(model.to_json()).card(form)


def test_names_of_columns_do_not_break_a_card() -> None:
    model = BayesianNaiveBayes(schema=SCHEMA).fit(X, Y)
    assert "| a\\|b | [0, 1], " in model.card()
    assert "&lt;c&gt;" in model.card("html")
    assert "every released number differs from the exact one by at most" in model.card()
    assert "2 features and 2 classes, fitted to 200 records" in model.card()


@pytest.mark.parametrize(
    "model", [BetaBinomial(0.5), DirichletMultinomial(0.5, categories=[0, 1])], ids=repr
)
def test_posteriors_of_one_variable_have_cards(model: Any) -> None:
    assert "epsilon = 0.5" in model.fit(Y).card()


@pytest.mark.parametrize(
    "model",
    [
        preprocessing.PrivateStandardScaler(bounds=(0, 1), random_state=0),
        preprocessing.PrivateKBinsDiscretizer(bounds=(0, 1), n_bins=2, random_state=0),
    ],
)
def test_transformers_have_cards(model: Any) -> None:
    card = model.fit(np.random.default_rng(0).random((300, 2))).card()
    assert card.startswith(f"# {type(model).__name__}\n\n## Data")
    assert str(model.guarantee_) in card
    assert "## Accuracy" not in card


def test_only_models_that_predict_are_said_to_have_predictions() -> None:
    card = BetaBinomial(random_state=0).fit([0, 1]).card()
    assert "predictions" not in card


def test_forms_and_unfitted_models_are_refused() -> None:
    with pytest.raises(NotFittedError):
        BayesianNaiveBayes().card()
    with pytest.raises(ValueError, match="'markdown' or 'html'"):
        BetaBinomial().fit(Y).card("pdf")


def test_a_share_of_a_budget_is_shown_in_decimals_rounded_up() -> None:
    model = BayesianNaiveBayes(Fraction(6004799503160661, 18014398509481984), schema=SCHEMA)
    assert "| epsilon | 0.333334 |" in model.fit(X, Y).card()


def test_cards_tell_the_options_of_a_mechanism_apart() -> None:
    plain = BayesianNaiveBayes(schema=SCHEMA, mechanism="laplace").fit(X, Y)
    usual = BayesianNaiveBayes(schema=SCHEMA, mechanism=Laplace()).fit(X, Y)
    other = BayesianNaiveBayes(schema=SCHEMA, mechanism=Laplace(noise="independent")).fit(X, Y)
    assert "<dd>laplace</dd>" in plain._repr_html_()
    assert "<dd>laplace</dd>" in usual._repr_html_()
    assert "<dd>laplace, noise=independent</dd>" in other._repr_html_()


@pytest.mark.parametrize(
    ("options", "inference", "calibration"),
    [
        ({"temperature": 0.9}, "learned from the released", "temperature of 0.9, set"),
        ({"temperature": 1, "inference": "plug_in"}, "treated as exact", "without a temp"),
        ({"mechanism": "fourier", "temperature": 0.8}, "likelihood includes", "temperature of 0.8"),
        ({"mechanism": "map", "temperature": 0.5}, "directly", "temperature of 0.5, set"),
    ],
)
def test_a_card_describes_inference_and_calibration(
    options: dict[str, Any], inference: str, calibration: str
) -> None:
    card = BayesianNaiveBayes(schema=SCHEMA, **options).fit(X, Y).card()
    assert inference in card
    assert calibration in card


@pytest.mark.parametrize(("inference", "counted"), [("noise_aware", True), ("plug_in", False)])
def test_a_regression_shows_its_coefficients(inference: str, counted: bool) -> None:
    model = BayesianLinearRegression(30, bounds_X=(0, 1), bounds_y=(0, 1), inference=inference)
    card = model.fit(X, Y).card()
    assert "| x1 | " in card
    assert ("include the privacy noise" in card) is counted


def test_a_card_says_what_unlisted_and_missing_values_count_as() -> None:
    domains = {"a": Interval(0, 1, missing="indicator"), "b": Interval(0, 1)}
    model = BayesianNaiveBayes(schema=Schema(domains, target=Categories([0, 1]))).fit(X, Y)
    assert "if missing, a separate value" in model.card()


def test_a_secret_number_of_records_is_not_stated_as_exact() -> None:
    model = BayesianNaiveBayes(
        schema=SCHEMA, privacy_unit=PrivacyUnit("record", neighbours="add_remove")
    ).fit(X, Y)
    assert f"fitted to about {model.posterior_.released.n:,} records" in model.card()
