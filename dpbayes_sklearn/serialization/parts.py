"""The parts that released models are made of: an explicit list, and nothing else is ever made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn.posteriors.adaptive_network import AdaptivePosterior
from dpbayes_sklearn.posteriors.categories import Beta, Dirichlet, NoisyDirichlet
from dpbayes_sklearn.posteriors.coefficient_draws import CoefficientDraws
from dpbayes_sklearn.posteriors.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.posteriors.draws import DrawsPosterior
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior
from dpbayes_sklearn.posteriors.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.posteriors.noise_aware_network import NoiseAwarePosterior
from dpbayes_sklearn.posteriors.tempered import TemperedPosterior
from dpbayes_sklearn.privacy import PrivacyGuarantee, PrivacyUnit
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.schema.json_form import (
    NotTheForm,
    fields_of,
    read_categories,
    read_interval,
)
from dpbayes_sklearn.serialization.arrays import FLOATS
from dpbayes_sklearn.serialization.codecs import (
    Boolean,
    Choice,
    Codec,
    Many,
    OneOf,
    Optional,
    RealNumber,
    Record,
    Text,
    refuse,
)
from dpbayes_sklearn.serialization.released import CHARACTERS, COUNTS, NETWORK, RECORDS
from dpbayes_sklearn.statistics.counts import ReleasedCounts
from dpbayes_sklearn.statistics.fourier import (
    ReleasedCharacters,
)
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Tempering
from dpbayes_sklearn.statistics.windows import Windows

__all__ = [
    "CATEGORIES",
    "COLUMN_TRANSFORMER",
    "CONJUGATE_MODEL",
    "INTERVAL",
    "LINEAR_MODEL",
    "NETWORK_MODEL",
    "SCHEMA",
    "SELECTOR",
]


@dataclass(frozen=True)
class Public(Codec):
    """A schema or a domain, in the form that ``schema.json_form`` writes and checks."""

    write: Callable[[Any], dict[str, Any]]
    read: Callable[[Any, str], Any]

    def encode(self, value: Any) -> dict[str, Any]:
        """Return its fields."""
        return self.write(value)

    def decode(self, json: Any, where: str) -> Any:
        """Return the schema or domain."""
        try:
            return self.read(json, where)
        except NotTheForm as error:
            refuse(error.where, error.what)


INTERVAL = Public(fields_of, read_interval)
CATEGORIES = Public(fields_of, read_categories)
SCHEMA = Public(Schema.to_dict, Schema.from_dict)


def _wrong_promise(guarantee: PrivacyGuarantee) -> str | None:
    try:
        PrivacyUnit.read(guarantee.unit, guarantee.max_records, guarantee.neighbours)
    except ValueError:
        return "has neighbours that are not those of its unit"
    return None


GUARANTEE = Record(
    PrivacyGuarantee,
    {
        "epsilon": RealNumber(math.ulp(0.0), finite=False),
        "delta": RealNumber(0.0, 1.0),
        "unit": Choice(("record", "feature", "person")),
        "neighbours": Text(),
        "mechanism": Text(),
        "conditions": Many(Text()),
        "rho": Optional(RealNumber(math.ulp(0.0))),
        "max_records": RECORDS,
    },
    _wrong_promise,
)


def _wrong_alphas(prior: Any) -> str | None:
    shapes = [alpha.shape for alpha in prior.alphas]
    fits = shapes == [(size,) for size in prior.network.sizes]
    positive = all((alpha > 0).all() for alpha in prior.alphas)
    return None if fits and positive else "has pseudo-counts that are not those of its network"


def _wrong_update(posterior: DirichletPosterior) -> str | None:
    other = posterior.released.network != posterior.network
    return "was released for another network" if other else None


class _Parts(NamedTuple):
    """The parts of a posterior, checked before anything is inferred from them."""

    network: Network
    alphas: Any
    released: Any
    ordered: tuple[bool, ...] | None = None


def _inferred(posterior: type) -> Callable[..., Any]:
    """Return a function that checks the parts of a posterior, then infers it."""

    def make(**parts: Any) -> Any:
        given = _Parts(**parts)
        fault = _wrong_alphas(given)
        if given.released.network != given.network:
            fault = "was released for another network"
        if not given.released.laws:
            fault = "has no noise to be aware of"
        if given.ordered is not None and len(given.ordered) != len(given.network.sizes):
            fault = "does not say of every node whether its values are ordered"
        if fault is not None:
            raise ValueError(f"it {fault}")
        return posterior(**parts)

    return make


def _wrong_draws(posterior: DrawsPosterior) -> str | None:
    k = len(posterior.weights)
    shapes = tuple((k, *shape) for shape in posterior.network.shapes)
    if k == 0 or tuple(draw.shape for draw in posterior.draws) != shapes:
        return "has draws that are not those of its network"
    possible = all(((draw > 0) & (draw <= 1)).all() for draw in posterior.draws)
    return None if possible and (posterior.weights > 0).all() else "has impossible draws"


def _wrong_gaussian(posterior: GaussianPosterior) -> str | None:
    width = posterior.coefficients.shape
    draws = getattr(posterior, "draws", np.zeros((1, *width)))
    fits = len(width) == 1 and posterior.covariance.shape == width * 2
    fits = (
        fits and posterior.slopes.shape == width and posterior.slope_covariance.shape == width * 2
    )
    ends = posterior.windows.centres.shape, posterior.windows.halves.shape
    fits = fits and ends == ((width[0] - 1,),) * 2 and bool((posterior.windows.halves > 0).all())
    fits = fits and draws.shape == (len(draws), *width) and len(draws) > 0
    if not fits or (np.diag(posterior.covariance) < 0).any():
        return "has a covariance or draws that do not fit its coefficients"
    return None


class _Temperature(Codec):
    """A temperature, or that it was to be learned."""

    def encode(self, value: Any) -> Any:
        return value if value == "auto" else RealNumber(0.0, 1.0).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        return json if json == "auto" else RealNumber(0.0, 1.0).decode(json, where)


_ALPHAS = Many(FLOATS)
_PRIOR = Record(
    DirichletPrior,
    {
        "network": NETWORK,
        "alphas": _ALPHAS,
        "inference": Choice(("plug_in", "noise_aware", "adaptive")),
        "ordered": Many(Boolean()),
        "temperature": _Temperature(),
    },
    _wrong_alphas,
)
_RELEASED = OneOf(
    {
        "ReleasedCounts": (ReleasedCounts, COUNTS),
        "ReleasedCharacters": (ReleasedCharacters, CHARACTERS),
    }
)
_GAUSSIAN = {
    "coefficients": FLOATS,
    "covariance": FLOATS,
    "noise_variance": RealNumber(math.ulp(0.0)),
    "slopes": FLOATS,
    "slope_covariance": FLOATS,
    "windows": Record(Windows, {"centres": FLOATS, "halves": FLOATS}),
}


def _beta(concentration: Any) -> Beta:
    return Beta(*concentration)


_UNTEMPERED = OneOf(
    {
        "DirichletPosterior": (
            DirichletPosterior,
            Record(DirichletPosterior, {"prior": _PRIOR, "released": _RELEASED}, _wrong_update),
        ),
        "NoiseAwarePosterior": (
            NoiseAwarePosterior,
            Record(
                _inferred(NoiseAwarePosterior),
                {"network": NETWORK, "alphas": _ALPHAS, "released": COUNTS},
            ),
        ),
        "AdaptivePosterior": (
            AdaptivePosterior,
            Record(
                _inferred(AdaptivePosterior),
                {
                    "network": NETWORK,
                    "alphas": _ALPHAS,
                    "released": COUNTS,
                    "ordered": Many(Boolean()),
                },
            ),
        ),
        "NoiseAwareCharacters": (
            NoiseAwareCharacters,
            Record(
                _inferred(NoiseAwareCharacters),
                {"network": NETWORK, "alphas": _ALPHAS, "released": CHARACTERS},
            ),
        ),
        "DrawsPosterior": (
            DrawsPosterior,
            Record(
                DrawsPosterior,
                {"network": NETWORK, "draws": Many(FLOATS), "weights": FLOATS},
                _wrong_draws,
            ),
        ),
        "GaussianPosterior": (
            GaussianPosterior,
            Record(GaussianPosterior, _GAUSSIAN, _wrong_gaussian),
        ),
        "CoefficientDraws": (
            CoefficientDraws,
            Record(CoefficientDraws, {**_GAUSSIAN, "draws": FLOATS}, _wrong_gaussian),
        ),
        "Dirichlet": (Dirichlet, Record(Dirichlet, {"concentration": FLOATS})),
        "NoisyDirichlet": (
            NoisyDirichlet,
            Record(NoisyDirichlet, {"concentration": FLOATS, "precisions": FLOATS}),
        ),
        "Beta": (Beta, Record(_beta, {"concentration": FLOATS})),
    }
)

_TEMPERING = Record(
    Tempering, {"temperature": RealNumber(0.0, 1.0), "emphasis": RealNumber(0.0, 2.0)}
)
POSTERIOR = OneOf(
    {
        **_UNTEMPERED.kinds,
        "TemperedPosterior": (
            TemperedPosterior,
            Record(
                TemperedPosterior,
                {"posterior": _UNTEMPERED, "tempering": _TEMPERING, "n": RECORDS},
            ),
        ),
    }
)

NETWORK_MODEL: dict[str, Codec] = {
    "schema_": SCHEMA,
    "posterior_": POSTERIOR,
    "_batches": Many(GUARANTEE, 1),
}
LINEAR_MODEL: dict[str, Codec] = {
    "schema_": SCHEMA,
    "posterior_": POSTERIOR,
    "guarantee_": GUARANTEE,
}
CONJUGATE_MODEL: dict[str, Codec] = {
    "categories_": CATEGORIES,
    "posterior_": POSTERIOR,
    "guarantee_": GUARANTEE,
}
COLUMN_TRANSFORMER: dict[str, Codec] = {
    "_answers": Many(Many(RealNumber()), 1),
    "guarantee_": GUARANTEE,
}
SELECTOR: dict[str, Codec] = {
    "schema_": SCHEMA,
    "_support": Many(Boolean(), 1),
    "guarantee_": GUARANTEE,
}
