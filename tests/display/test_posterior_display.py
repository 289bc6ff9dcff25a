from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import beta
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    PosteriorDisplay,
    Schema,
)
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 300)
JOBS = np.where(rng.random(300) < 0.4, "nurse", "clerk")
AGES = rng.uniform(20, 60, 300)
X = np.stack([AGES, JOBS], axis=1).astype(object)
COLUMNS = {"age": Interval(20, 60, bins=2), "job": Categories(["clerk", "nurse"])}


def shown(estimator, **options):
    return PosteriorDisplay.from_estimator(estimator, ax=Figure().subplots(), **options)


def test_a_beta_is_drawn_as_a_density_with_its_interval() -> None:
    model = BetaBinomial(epsilon=1.0, prior=(2, 3), random_state=0).fit(Y)
    display = shown(model, level=0.9)
    assert display.intervals_["probability of a one"] == pytest.approx(
        model.posterior_.credible_interval(0.9)
    )
    assert display.means_["probability of a one"] == pytest.approx(model.posterior_.mean())
    (curve,) = display.ax_.lines
    x, density = curve.get_data()
    np.testing.assert_allclose(density, model.posterior_.pdf(x))
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["prior", "released posterior", "90% interval"]
    prior = display.prior["probability of a one"]
    assert (prior.mean(), prior.var()) == pytest.approx((0.4, beta(2, 3).var()))


def test_a_density_that_is_infinite_at_its_end_can_be_drawn() -> None:
    model = BetaBinomial(epsilon=np.inf, prior=(0.5, 0.5)).fit(np.zeros(50, dtype=bool))
    display = shown(model)
    assert np.isfinite(display.ax_.get_ylim()[1])
    assert display.ax_.get_xlim()[1] < 0.5
    assert display.ax_.get_xlabel() == "probability of a one"


def test_a_dirichlet_has_a_row_for_each_category() -> None:
    model = DirichletMultinomial(categories=["clerk", "nurse", "pilot"], random_state=0).fit(JOBS)
    display = shown(model)
    assert [*display.intervals_] == ["clerk", "nurse", "pilot"]
    np.testing.assert_allclose(
        [*display.intervals_.values()], model.posterior_.credible_interval(0.95)
    )
    np.testing.assert_allclose([*display.means_.values()], model.posterior_.mean())
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [*display.means_]
    assert display.ax_.get_xlabel() == "probability"


def test_coefficients_are_those_of_the_table() -> None:
    schema = Schema({**COLUMNS, "town": Categories(["a", "b", "c"])}, target=Interval(0, 1))
    towns = rng.choice(["a", "b", "c"], 300)
    model = BayesianLinearRegression(epsilon=5, schema=schema, prior_precision=4, random_state=0)
    model.fit(np.column_stack([X, towns]), Y)
    display = shown(model)
    table = model.coefficients()
    assert [*display.means_] == ["age", "job=nurse", "town=b", "town=c"]
    assert [*display.means_.values()] == [row.estimate for row in table.rows[1:]]
    np.testing.assert_allclose(display.intervals_["age"], (table["age"].low, table["age"].high))
    # per year of 40, of a target between 0 and 1; a sign counts twice, and levels are a difference
    assert display.prior["age"].std() == pytest.approx(0.5 * 0.5 / 20)
    assert display.prior["job=nurse"].std() == pytest.approx(2 * 0.5 * 8**-0.5)
    assert display.prior["town=b"].std() == pytest.approx(2**0.5 * 0.5 * 0.5)
    assert "units of the data" in display.ax_.get_xlabel()


@pytest.mark.parametrize("mechanism", ["sampler", "map"])
def test_estimates_without_known_errors_are_drawn_without_intervals(mechanism) -> None:
    schema = Schema(COLUMNS, target=Interval(0, 1))
    model = BayesianLinearRegression(schema=schema, mechanism=mechanism, random_state=0).fit(X, Y)
    display = shown(model)
    assert np.isnan([*display.intervals_.values()]).all()
    assert [*display.means_.values()] == [row.estimate for row in model.coefficients().rows[1:]]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["prior, 95%", "released estimate, without an interval"]
    assert len(display.ax_.collections) == 1  # of the prior


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler", "map"])
def test_tables_of_a_classifier(mechanism) -> None:
    schema = Schema(COLUMNS, target=Categories(["no", "yes"]))
    model = BayesianNaiveBayes(
        epsilon=20, schema=schema, mechanism=mechanism, random_state=0, alpha=2.0
    ).fit(X, np.array(["no", "yes"])[Y])
    classes = shown(model, column="class")
    assert [*classes.means_] == ["class no", "class yes"]
    assert sum(classes.means_.values()) == pytest.approx(1)
    ages = shown(model, column="age")
    assert [*ages.means_] == [
        "age 20 to 40 | class no",
        "age 40 to 60 | class no",
        "age 20 to 40 | class yes",
        "age 40 to 60 | class yes",
    ]
    expected = model.posterior_.mean()[0].ravel()
    np.testing.assert_allclose([*ages.means_.values()], expected, atol=0.02)
    assert ages.prior["age 20 to 40 | class no"].mean() == 0.5


def test_naive_bayes_shows_its_most_informative_features() -> None:
    telling = rng.random((3000, 15)) < 0.5
    y = telling[:, 3] ^ (rng.random(3000) < 0.1)
    model = BayesianNaiveBayes(
        epsilon=5.0, bounds=(0, 1), n_bins=2, classes=[0, 1], random_state=0
    ).fit(telling.astype(int), y.astype(int))
    display = shown(model)
    assert len(display.means_) == 12
    assert next(iter(display.means_)) == "x3"
    entropy = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    low, high = display.intervals_["x3"]
    assert low < np.log(2) - entropy < high
    assert [*display.means_.values()] == sorted(display.means_.values(), reverse=True)
    assert display.prior is None
    assert display.ax_.get_xlim()[0] == 0


def test_a_network_names_all_parents() -> None:
    schema = Schema(COLUMNS, target=Categories([0, 1]))
    parents = {"class": ["job"], "age": ["job", "class"]}
    model = BayesianNetworkClassifier(parents=parents, schema=schema, random_state=0).fit(X, Y)
    assert "age 40 to 60 | job nurse, class 1" in shown(model, column="age").means_
    assert "class 1 | job clerk" in shown(model).means_


def test_integers_are_named_by_their_value() -> None:
    model = BayesianNaiveBayes(bounds=(0, 2), n_bins=3, classes=[0, 1], random_state=0)
    display = shown(model.fit(rng.integers(0, 3, (300, 1)), Y), column="x0")
    assert [*display.means_][:3] == ["x0 0 | class 0", "x0 1 | class 0", "x0 2 | class 0"]


def test_a_posterior_may_be_drawn_without_its_prior() -> None:
    ax = Figure().subplots()
    display = PosteriorDisplay.from_posterior(
        Dirichlet([2, 3, 5]), Dirichlet([1, 1, 1]), names=["x", "y", "z"], ax=ax
    )
    assert display.means_ == pytest.approx({"x": 0.2, "y": 0.3, "z": 0.5})
    assert display.ax_ is ax
    alone = PosteriorDisplay.from_posterior(Beta(3, 1), ax=Figure().subplots(), show_prior=False)
    assert alone.means_ == pytest.approx({"0": 0.75})
    with pytest.raises(ValueError, match="names must have 3 entries"):
        PosteriorDisplay.from_posterior(Dirichlet([1, 1, 1]), names=["a", "b"])


def test_what_it_cannot_show_it_refuses() -> None:
    with pytest.raises(NotFittedError):
        PosteriorDisplay.from_estimator(BetaBinomial())
    with pytest.raises(TypeError, match="Got LinearRegression instead"):
        PosteriorDisplay.from_estimator(LinearRegression().fit([[0], [1]], [0, 1]))
    model = BetaBinomial(random_state=0).fit(Y)
    with pytest.raises(ValueError, match="BetaBinomial has no tables of columns"):
        shown(model, column="age")
    with pytest.raises(ValueError, match=r"'level' parameter .* range \(0, 1\). Got 1 instead"):
        shown(model, level=1)


def test_an_unknown_column_lists_the_known_ones() -> None:
    schema = Schema(COLUMNS, target=Categories([0, 1]))
    model = BayesianNaiveBayes(schema=schema, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"must be one of \['age', 'job', 'class'\]. Got 'town'"):
        shown(model, column="town")


def test_the_prior_may_be_left_out() -> None:
    model = DirichletMultinomial(categories=2, random_state=0).fit(Y)
    with_prior, without = shown(model), shown(model, show_prior=False)
    assert len(with_prior.ax_.collections) == len(without.ax_.collections) + 1
