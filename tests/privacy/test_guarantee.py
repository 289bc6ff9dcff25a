from __future__ import annotations

import dataclasses
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from dpbayes_sklearn._presenting import ACCENTS
from dpbayes_sklearn.base.classifier import PUBLIC_TYPES
from dpbayes_sklearn.base.estimator import SEEDED, WIDTH_OF_LIST
from dpbayes_sklearn.base.supervised import KEPT_SECRET
from dpbayes_sklearn.conjugate import REFUSES
from dpbayes_sklearn.convex.draws import REAL_ARITHMETIC
from dpbayes_sklearn.data.persons import COUNTED, OWN_WEIGHTS, PROMISED
from dpbayes_sklearn.metrics.plan import BESIDES
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD
from dpbayes_sklearn.serialization.models import GUARANTEE as CODEC

CONDITIONS = (
    SEEDED,
    WIDTH_OF_LIST,
    COUNTED,
    PROMISED,
    OWN_WEIGHTS,
    KEPT_SECRET,
    PUBLIC_TYPES,
    REFUSES,
    REAL_ARITHMETIC,
    BESIDES,
)

GUARANTEE = PrivacyGuarantee.of(Budget(exact(0.1), exact(1e-6), FEATURE), "laplace", ["a <b>"])


def test_sentence_names_level_mechanism_unit_and_conditions():
    assert str(GUARANTEE) == (
        "Differentially private with epsilon = 0.1, delta = 1e-06 under the laplace mechanism, for "
        "data sets that differ in one feature value of one record, its label unchanged; "
        "provided that a <b>."
    )


def test_infinite_epsilon_is_called_not_private():
    assert str(PrivacyGuarantee.of(Budget(math.inf), "laplace")).startswith("Not private")


def test_figures_are_rounded_to_the_private_side():
    third = PrivacyGuarantee.of(Budget(Fraction(2, 3)), "laplace").epsilon
    assert exact(third) >= Fraction(2, 3) > exact(math.nextafter(third, 0))


def test_it_never_changes():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GUARANTEE.epsilon = 0.0


def test_conditions_are_added_once_and_in_order():
    assert GUARANTEE.under("b", "a <b>", "b").conditions == ("a <b>", "b")
    assert GUARANTEE.conditions == ("a <b>",)


def test_dictionary_survives_json():
    record = GUARANTEE.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["conditions"] == ["a <b>"]


def test_a_card_escapes_text():
    card = GUARANTEE._repr_html_()
    assert "a &lt;b&gt;" in card
    assert "<b>" not in card.replace("<b>Differentially", "")


def test_card_has_every_field():
    card = GUARANTEE.under("more")._repr_html_()
    for text in (
        "<dt>epsilon</dt><dd>0.1</dd>",
        "<dt>delta</dt><dd>1e-06</dd>",
        "<dt>unit</dt><dd>one feature value of one record</dd>",
        "<dt>mechanism</dt><dd>laplace</dd>",
        GUARANTEE.neighbours,
        "<li>more</li>",
    ):
        assert text in card


def test_card_has_no_list_of_no_conditions():
    assert "Provided" not in PrivacyGuarantee.of(Budget(exact(1)), "laplace")._repr_html_()


@pytest.mark.parametrize(
    ("epsilon", "accent"), [(10, "good"), (10.5, "weak"), (math.inf, "bad")], ids=str
)
def test_card_is_coloured_by_what_is_promised(epsilon, accent):
    assert ACCENTS[accent] in PrivacyGuarantee.of(Budget(exact(epsilon)), "map")._repr_html_()


@pytest.mark.parametrize(
    ("epsilon", "times"),
    [(0.001, "1.01"), (1, "2.72"), (3, "20.09"), (5, "149"), (10, "22,027"), (20, "exp(20)")],
)
def test_meaning_rounds_the_factor_up(epsilon, times):
    meaning = PrivacyGuarantee.of(Budget(exact(epsilon)), "laplace").meaning
    assert f"no result of this release more than {times} times as likely." in meaning


def test_the_meaning_names_delta_and_no_privacy():
    assert GUARANTEE.meaning.endswith("1.11 times as likely (plus 1e-06).")
    assert "any record" in PrivacyGuarantee.of(Budget(math.inf), "laplace").meaning


def test_rho_is_in_the_sentence_the_card_and_the_dictionary():
    budget = Budget(exact(1), exact(1e-6), RECORD, Fraction(243_559_703, 10**10))
    guarantee = PrivacyGuarantee.of(budget, "gaussian")
    assert str(guarantee).startswith(
        "Differentially private with epsilon = 1, delta = 1e-06 (rho = 0.0244 zCDP) under the"
    )
    assert "<dt>rho</dt><dd>0.0244</dd>" in guarantee._repr_html_()
    assert guarantee.to_dict()["rho"] == guarantee.rho == 0.0243559703
    assert exact(guarantee.rho) >= budget.rho
    assert GUARANTEE.rho is GUARANTEE.to_dict()["rho"] is None
    assert "rho" not in str(GUARANTEE) + GUARANTEE._repr_html_()


def test_batches_have_a_rho_if_all_of_them_do():
    def batch(rho):
        return PrivacyGuarantee.of(Budget(exact(1), exact(1e-6), RECORD, rho), "gaussian")

    assert PrivacyGuarantee.parallel([batch(Fraction(1, 50)), batch(Fraction(1, 40))]).rho == 0.025
    assert PrivacyGuarantee.parallel([batch(Fraction(1, 50)), batch(None)]).rho is None


def test_rho_survives_the_json_of_a_model():
    budget = Budget(exact(1), exact(1e-6), RECORD, Fraction(1, 3))
    for guarantee in (PrivacyGuarantee.of(budget, "gaussian"), GUARANTEE):
        text = json.dumps(CODEC.encode(guarantee))
        assert CODEC.decode(json.loads(text), "guarantee") == guarantee


def test_the_page_lists_every_condition() -> None:
    page = (Path(__file__).parents[2] / "docs/user_guide/guarantee.md").read_text("utf-8")
    listed = re.findall(r"^\| \*([^*|]+?)(?: \.\.\.)?\* \|", page, re.M)
    constants = [text.replace("{}", "k") for text in CONDITIONS]
    assert [c for c in constants if not any(c.startswith(text) for text in listed)] == []
    assert len(listed) == len(CONDITIONS) + 3  # what was read, learned, or released in batches
