"""A guarantee in the fields of the Differential Privacy Deployments Registry.

The registry (registry.opendp.org) asks what was published under which variant of differential
privacy, for which unit, with which parameters, by whom it was trusted, how it was accounted for and
implemented, and what is not protected. What the library knows is filled in; product, curators and
sources are the curator's to add.
"""

from __future__ import annotations

import sys
from typing import Any

from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["registry_entry"]

_UNITS = {"record": "Record-level", "feature": "Attribute-level", "person": "Person-level"}
_EXACT = ", drawn in integer arithmetic without rounding"
_MECHANISMS = {
    "laplace": "discrete Laplace noise, or joint noise of a K-norm mechanism" + _EXACT,
    "fourier": "discrete Laplace noise on Fourier coefficients" + _EXACT,
    "gaussian": "discrete Gaussian noise" + _EXACT,
    "geometric": "discrete Laplace (geometric) noise" + _EXACT,
}


def registry_entry(guarantee: Any) -> dict[str, Any]:
    """Return what the registry asks for, as far as the library knows it."""
    unit: PrivacyUnit = guarantee.privacy_unit
    parameters = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    if not guarantee.is_private:
        raise ValueError(
            "This release is not private (epsilon is infinite): the registry has no entry for it."
        )
    mechanism = _MECHANISMS.get(guarantee.mechanism, f"{guarantee.mechanism} mechanism")
    deployment = {
        "dp_flavor": {
            "name": _flavour(guarantee),
            "input_metric": unit.definition,
            "bound_on_input_distance": str(unit),
            "output_measure": "Rényi divergences" if guarantee.rho else "privacy loss",
            "bound_on_output_distance": guarantee.meaning,
            "unprotected_quantities": _unprotected(guarantee),
        },
        "privacy_loss": {
            "privacy_unit": _UNITS[unit.name],
            "privacy_unit_description": f"{unit.full}; neighbours are {unit.definition}.",
            "privacy_parameters": {k: v for k, v in parameters.items() if v},
            "privacy_parameters_description": guarantee.risk_sentence,
        },
        "model": {
            "model_name": "Central",
            "model_name_description": "The curator holds the records and adds the noise.",
            "release_type": "Single release",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Inference, predictions and intervals use released values only.",
            "composition": "Steps of a release share its budget exactly, as fractions.",
        },
        "implementation": {
            "mechanisms": f"{mechanism} (dpbayes_sklearn {_version()}).",
        },
    }
    return {"status": "Draft", "deployment": deployment}


def _flavour(guarantee: Any) -> str:
    if not guarantee.delta:
        return "Pure DP"
    return "Approximate DP" if guarantee.rho is None else "Zero-concentrated DP"


def _unprotected(guarantee: Any) -> str:
    unit = guarantee.privacy_unit
    size = [] if unit.size_is_secret else ["the number of records"]
    label = ["the label of the record"] if unit.name == "feature" else []
    known = [*size, *label, "declared domains and parameters", "running time"]
    conditions = [f"It holds provided that {c}." for c in guarantee.conditions]
    return " ".join([f"Not protected: {', '.join(known)}.", *conditions])


def _version() -> str:
    return str(getattr(sys.modules.get("dpbayes_sklearn"), "__version__", ""))
