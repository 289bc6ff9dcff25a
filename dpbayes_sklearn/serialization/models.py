"""The parts that released models are made of: an explicit list, and nothing else is ever made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn import noise
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, NoisyDirichlet
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.counts.fourier import ReleasedCharacters, closure, sum_count, varying_families
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior
from dpbayes_sklearn.counts.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.counts.posterior import DrawsPosterior, TemperedPosterior
from dpbayes_sklearn.counts.tables import ReleasedCounts
from dpbayes_sklearn.counts.temperature import Tempering
from dpbayes_sklearn.logistic.posterior import LogisticPosterior
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.privacy import PrivacyGuarantee, PrivacyUnit
from dpbayes_sklearn.regression.design import Windows
from dpbayes_sklearn.regression.mode import CoefficientDraws
from dpbayes_sklearn.regression.posterior import GaussianPosterior
from dpbayes_sklearn.regression.slopes import Slopes
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.schema import NotTheForm, read_categories, read_interval
from dpbayes_sklearn.serialization.codecs import (
    FLOATS,
    INTEGERS,
    Boolean,
    Codec,
    Fields,
    Integer,
    Many,
    OneOf,
    Optional,
    Rational,
    RealNumber,
    Text,
    TextAmong,
    refuse,
)
from dpbayes_sklearn.sums.posterior import SumsPosterior

__all__ = [
    "CATEGORIES",
    "CHARACTERS",
    "COLUMN_TRANSFORMER",
    "CONJUGATE_MODEL",
    "COUNTS",
    "INTERVAL",
    "LAW",
    "LINEAR_MODEL",
    "LOGISTIC_MODEL",
    "NETWORK",
    "NETWORK_MODEL",
    "RECORDS",
    "SCHEMA",
    "SELECTOR",
    "SUMS_MODEL",
]


# The largest term is 2^56 times the finest grid.
_SCALE = Rational(positive=False, largest_term=2**80)
_BY_TYPE: dict[str, Codec] = {
    "Fraction": _SCALE,
    "tuple[Fraction, ...]": Many(_SCALE),
    "int": Integer(1, 2**53),
    "tuple[int, ...]": Many(Integer(0, 2**53)),
}


def _record(law: type[NoiseLaw]) -> Fields:
    return Fields(law, {field.name: _BY_TYPE[str(field.type)] for field in fields(law)})  # type: ignore[arg-type]


_FOUND = {name: getattr(noise, name) for name in noise.__all__}
LAW = OneOf(
    {
        name: (cls, _record(cls))
        for name, cls in _FOUND.items()
        if isinstance(cls, type) and issubclass(cls, NoiseLaw) and cls is not NoiseLaw
    }
)


RECORDS = Integer(1, 2**53)
_NON_NEGATIVE = RealNumber(0.0)
_FEW_PARTS = 2**16  # Up to this many parts of all families are always listed and compared.


@dataclass(frozen=True)
class Pairs(Codec):
    """A mapping as a list of pairs, which keeps its order and any kind of key."""

    key: Codec
    value: Codec

    def encode(self, value: Any) -> list[list[Any]]:
        """Return the pairs."""
        return [[self.key.encode(k), self.value.encode(v)] for k, v in value.items()]

    def decode(self, json: Any, where: str) -> dict[Any, Any]:
        """Return the mapping."""
        pairs = [(f"{where}[{i}]", pair) for i, pair in enumerate(Many(_PAIR).decode(json, where))]
        read = {
            self.key.decode(key, at): self.value.decode(value, at) for at, (key, value) in pairs
        }
        if len(read) < len(pairs):
            refuse(where, "has a key twice")
        return read


class _Pair(Codec):
    def encode(self, value: Any) -> Any:
        return value

    def decode(self, json: Any, where: str) -> Any:
        if not isinstance(json, list) or len(json) != 2:
            refuse(where, "must be a pair")
        return json


_PAIR = _Pair()


NETWORK = Fields(
    Network, {"sizes": Many(Integer(1, 2**16), 1), "parents": Many(Many(Integer(0, 2**16)))}
)


def _wrong_counts(released: ReleasedCounts) -> str | None:
    shapes = tuple(table.shape for table in released.tables)
    if shapes != released.network.shapes:
        return "has tables that are not those of its network"
    cells = tuple(math.prod(shape) for shape in shapes)
    joint = any(not law.independent for law in released.laws)
    if any(law.sizes != cells for law in released.laws) or (joint and not released.network.is_star):
        return "has the noise law of other tables"
    if any(law.sizes != (1,) for law in released.size_laws):
        return "has the noise law of more than one number of records"
    if released.laws and _impossible(released):
        return "has tables without noise that are no counts of its records"
    return _off_lattice(released.tables, released.grid)


def _impossible(released: ReleasedCounts) -> bool:
    """Tell whether a table without noise holds anything but n, or the counts of the classes.

    The latter leave without noise if all features are constant and labels are not protected.
    """
    *values, n_classes = released.network.sizes
    known = {1} if max(values, default=1) > 1 else {1, n_classes}
    tables = [np.ravel(table) for table in released.tables]
    exact = [t for node, t in enumerate(tables) if not released.noise(node).variance]
    return any(
        t.size not in known
        or (t < 0).any()
        or t.sum() != released.n
        or not (t.size == 1 or np.array_equal(t, tables[-1]))
        for t in exact
    )


def _off_lattice(arrays: Iterable[Any], grid: int) -> str | None:
    dtype = np.float64 if grid > 1 else np.int64
    for array in arrays:
        steps = array * grid
        if array.dtype != dtype or (steps != np.rint(steps)).any():
            return "has sums that are not on the grid of its noise"
    return None


def _wrong_characters(released: ReleasedCharacters) -> str | None:
    sizes = released.network.sizes
    # a family of k nodes has 2^k parts: too many to be listed only to see that they are not there
    parts = sum(2 ** len(family) for family in varying_families(released.network))
    if parts > max(_FEW_PARTS, 4 * len(released.blocks)):
        return "has blocks that are not those of its network"
    wanted = {s: tuple(sizes[u] - 1 for u in s) for s in closure(released.network)}
    fits = wanted == {support: block.shape for support, block in released.blocks.items()}
    fits = fits and all(law.sizes == (sum_count(released.network),) for law in released.laws)
    if not fits:
        return "has blocks that are not those of its network"
    return _off_lattice(released.blocks.values(), released.grid)


class _Sums(Codec):
    """Sums after noise: integers, or floats if the noise has a finer grid."""

    def encode(self, value: Any) -> Any:
        return (FLOATS if value.dtype == np.float64 else INTEGERS).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        data = json.get("data") if isinstance(json, dict) else None
        floats = isinstance(data, list) and any(type(number) is float for number in data)
        return (FLOATS if floats else INTEGERS).decode(json, where)


COUNTS = Fields(
    ReleasedCounts,
    {
        "network": NETWORK,
        "tables": Many(_Sums()),
        "n": RECORDS,
        "laws": Many(LAW),
        "size_laws": Many(LAW),
    },
    _wrong_counts,
)
CHARACTERS = Fields(
    ReleasedCharacters,
    {
        "network": NETWORK,
        "blocks": Pairs(Many(Integer(0, 2**16), 1), _Sums()),
        "n": RECORDS,
        "laws": Many(LAW),
        "increment": _NON_NEGATIVE,
        "size_laws": Many(LAW),
    },
    _wrong_characters,
)


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


INTERVAL = Public(Interval.to_dict, read_interval)
CATEGORIES = Public(Categories.to_dict, read_categories)
SCHEMA = Public(Schema.to_dict, Schema.from_dict)


def _wrong_promise(guarantee: PrivacyGuarantee) -> str | None:
    try:
        PrivacyUnit.read(guarantee.unit, guarantee.max_records, guarantee.neighbours)
    except ValueError:
        return "has neighbours that are not those of its unit"
    return None


GUARANTEE = Fields(
    PrivacyGuarantee,
    {
        "epsilon": RealNumber(math.ulp(0.0), finite=False),
        "delta": RealNumber(0.0, 1.0),
        "unit": TextAmong(("record", "feature", "person")),
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
    slopes = posterior.slopes
    fits = fits and slopes.mean.shape == width and slopes.growth.shape == (len(slopes.growth), 2)
    fits = fits and slopes.sampling.shape == slopes.privacy.shape == width * 2
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
_PRIOR = Fields(
    DirichletPrior,
    {
        "network": NETWORK,
        "alphas": _ALPHAS,
        "inference": TextAmong(("plug_in", "noise_aware", "adaptive")),
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
    "slopes": Fields(
        Slopes,
        {
            "mean": FLOATS,
            "sampling": FLOATS,
            "privacy": FLOATS,
            "growth": FLOATS,
            "n": Optional(Integer(0, 2**62)),
            "explained": Optional(RealNumber()),
        },
    ),
    "windows": Fields(Windows, {"centres": FLOATS, "halves": FLOATS}),
}


def _beta(concentration: Any) -> Beta:
    return Beta(*concentration)


_UNTEMPERED = OneOf(
    {
        "DirichletPosterior": (
            DirichletPosterior,
            Fields(DirichletPosterior, {"prior": _PRIOR, "released": _RELEASED}, _wrong_update),
        ),
        "NoiseAwarePosterior": (
            NoiseAwarePosterior,
            Fields(
                _inferred(NoiseAwarePosterior),
                {"network": NETWORK, "alphas": _ALPHAS, "released": COUNTS},
            ),
        ),
        "AdaptivePosterior": (
            AdaptivePosterior,
            Fields(
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
            Fields(
                _inferred(NoiseAwareCharacters),
                {"network": NETWORK, "alphas": _ALPHAS, "released": CHARACTERS},
            ),
        ),
        "DrawsPosterior": (
            DrawsPosterior,
            Fields(
                DrawsPosterior,
                {"network": NETWORK, "draws": Many(FLOATS), "weights": FLOATS},
                _wrong_draws,
            ),
        ),
        "GaussianPosterior": (
            GaussianPosterior,
            Fields(GaussianPosterior, _GAUSSIAN, _wrong_gaussian),
        ),
        "CoefficientDraws": (
            CoefficientDraws,
            Fields(CoefficientDraws, {**_GAUSSIAN, "draws": FLOATS}, _wrong_gaussian),
        ),
        "LogisticPosterior": (
            LogisticPosterior,
            Fields(
                LogisticPosterior,
                {
                    "parameters": FLOATS,
                    "nodes": FLOATS,
                    "ridge": FLOATS,
                    "noise": FLOATS,
                    "scale": RealNumber(0.0),
                    "curvature": FLOATS,
                    "curvature_noise": FLOATS,
                    "draws": FLOATS,
                },
            ),
        ),
        "Dirichlet": (Dirichlet, Fields(Dirichlet, {"concentration": FLOATS})),
        "NoisyDirichlet": (
            NoisyDirichlet,
            Fields(NoisyDirichlet, {"concentration": FLOATS, "precisions": FLOATS}),
        ),
        "Beta": (Beta, Fields(_beta, {"concentration": FLOATS})),
    }
)

_TEMPERING = Fields(
    Tempering, {"temperature": RealNumber(0.0, 1.0), "emphasis": RealNumber(0.0, 2.0)}
)
POSTERIOR = OneOf(
    {
        **_UNTEMPERED.kinds,
        "TemperedPosterior": (
            TemperedPosterior,
            Fields(
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
LOGISTIC_MODEL = LINEAR_MODEL
CONJUGATE_MODEL: dict[str, Codec] = {
    "categories_": CATEGORIES,
    "posterior_": POSTERIOR,
    "guarantee_": GUARANTEE,
}
SUMS_MODEL: dict[str, Codec] = {
    "schema_": SCHEMA,
    "posterior_": Fields(
        SumsPosterior,
        {
            "means": FLOATS,
            "variances": FLOATS,
            "slopes": FLOATS,
            "positive": Boolean(),
            "joint": Boolean(),
            "draws": Optional(FLOATS),
        },
    ),
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
