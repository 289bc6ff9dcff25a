"""The published JSON schemas: what the library writes fits them, other documents do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BetaBinomial, from_json

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"
MODEL_SCHEMA, GUARANTEE_SCHEMA = (
    json.loads((PUBLISHED / f"{name}.schema.json").read_text()) for name in ("model", "guarantee")
)
X = np.random.default_rng(0).random((60, 2))
DECLARED = {"classes": [0, 1], "bounds": (0, 1)}
MODELS = (
    BayesianNaiveBayes(1.0, **DECLARED),
    BayesianNaiveBayes(np.inf, **DECLARED),
    BayesianNaiveBayes(1.0, delta=1e-6, mechanism="gaussian", **DECLARED),
    BayesianLinearRegression(1.0, bounds_X=(0, 1), bounds_y=(0, 1)),
)


def validator():
    jsonschema = pytest.importorskip("jsonschema")
    from referencing import Registry, Resource

    guarantee = Resource.from_contents(GUARANTEE_SCHEMA)
    registry = Registry().with_resource("guarantee.schema.json", guarantee)
    return jsonschema.Draft202012Validator(MODEL_SCHEMA, registry=registry)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_documents_fit_the_schema_and_name_their_guarantee(model):
    document = json.loads(model.fit(X, (X[:, 0] > 0.5).astype(int)).to_json())
    assert document["guarantee"]["is_private"] is np.isfinite(model.epsilon).item()
    assert set(GUARANTEE_SCHEMA["required"]) == set(document["guarantee"])
    assert {*MODEL_SCHEMA["required"], "plan"} == set(document)
    validator().validate(document)


def test_a_document_that_claims_privacy_without_epsilon_is_refused():
    document = json.loads(BetaBinomial(np.inf).fit([0, 1, 1]).to_json())
    document["guarantee"]["is_private"] = True
    assert list(validator().iter_errors(document))


@pytest.mark.parametrize("change", [{"epsilon": 0.1}, {"is_private": False}, {"conditions": []}])
def test_the_head_must_be_that_of_the_model(change):
    document = json.loads(BetaBinomial(1.0).fit([0, 1, 1]).to_json())
    document["guarantee"].update(change)
    with pytest.raises(ValueError, match="guarantee must be that of the fitted model"):
        from_json(json.dumps(document))
