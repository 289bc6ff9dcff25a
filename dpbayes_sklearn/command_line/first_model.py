"""The first part of the demonstration: a table of one's own, from its schema to a card to publish.

The table is invented: 20,000 patients of whom some come back to hospital.
"""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from dpbayes_sklearn._presenting import Html, tag
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.linear_model import BayesianLogisticRegression
from dpbayes_sklearn.metrics import private_score
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Categories, Interval, Schema

TITLE = "A table of your own: who comes back to hospital?"
STORY = (
    "20,000 invented patients. The schema says what is public; a plan shows what a fit would do, "
    "before any record is read; the model has odds ratios; and its score on other patients is "
    "private, too. The ledger adds both up."
)
SCHEMA = Schema(
    {
        "age": Interval(18, 95),
        "smoker": Categories(["no", "yes"]),
        "ward": Categories(["surgery", "medicine", "other"], unseen="other"),
        "visits": Interval(0, 10),
    },
    target=Categories(["no", "yes"]),
)
_N = 20_000


class FirstModel(NamedTuple):
    """A model of one half of the patients, evaluated on the other, and its ledger."""

    plan: Any
    model: BayesianLogisticRegression
    score: Any
    ledger: BudgetAccountant


def patients() -> tuple[AnyArray, AnyArray]:
    """Return invented patients, and whether they come back."""
    rng = np.random.default_rng(0)
    age, visits = rng.integers(18, 96, _N), np.minimum(rng.poisson(1.2, _N), 10)
    smoker = rng.random(_N) < 0.3
    ward = rng.choice(["surgery", "medicine", "other"], _N, p=[0.4, 0.4, 0.2])
    odds = 0.03 * (age - 60) + 0.7 * smoker + 0.4 * (ward == "medicine") + 0.35 * visits - 1.5
    back = np.where(rng.random(_N) < expit(odds), "yes", "no")
    columns = [age, np.where(smoker, "yes", "no"), ward, visits]
    return np.array([column.astype(object) for column in columns]).T, back


def first_model() -> FirstModel:
    """Plan, fit and evaluate a model with epsilon 1 for each."""
    (X, y), half, ledger = patients(), _N // 2, BudgetAccountant(epsilon=2.0)
    model = BayesianLogisticRegression(
        1.0, schema=SCHEMA, effects="linear", intervals=True, accountant=ledger
    )
    plan = model.plan(half)
    model.fit(X[:half], y[:half])
    score = private_score(model, X[half:], y[half:], scoring=["accuracy", "roc_auc"], epsilon=1.0)
    return FirstModel(plan, model, score, ledger)


def told(first: FirstModel) -> str:
    """Return what the screen shows."""
    parts = {
        "Its plan": first.plan,
        "Its odds ratios": first.model.coefficients(),
        "Its private score": first.score,
        "Its ledger": first.ledger,
    }
    shown = [f"\n{TITLE}\n{textwrap.fill(STORY, 98)}"]
    for name, part in parts.items():
        lines = (textwrap.fill(line, 96, subsequent_indent="  ") for line in str(part).splitlines())
        shown.append(textwrap.indent("\n".join([name, *lines]), "  "))
    return "\n\n".join(shown)


def section(first: FirstModel, *figures: Html) -> Html:
    """Return the section of the report."""
    card = first.model.card("html", evaluation=first.score)
    return tag(
        "section",
        tag("h2", TITLE),
        tag("p", STORY),
        Html(first.plan._repr_html_()),
        Html(first.model.coefficients().to_html()),
        tag("div", *figures, class_="figures"),
        tag("h3", "Its card, with a private score: what you would publish"),
        Html(card),
        tag("h3", "Its ledger"),
        Html(first.ledger._repr_html_()),
        id="first_model",
    )
