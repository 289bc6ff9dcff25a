"""The parts that released models are made of: an explicit list, and nothing else is ever made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.laws.sup_norm import JointNoise
from dpbayes_sklearn.posteriors.categories import Beta, Dirichlet
from dpbayes_sklearn.posteriors.coefficient_draws import CoefficientDraws
from dpbayes_sklearn.posteriors.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.posteriors.draws import DrawsPosterior
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior
from dpbayes_sklearn.posteriors.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.posteriors.noise_aware_network import NoiseAwarePosterior
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.serialization.arrays import FLOATS, INTEGERS
from dpbayes_sklearn.serialization.codecs import (
    Choice,
    Codec,
    Integer,
    Label,
    Many,
    OneOf,
    Optional,
    Rational,
    RealNumber,
    Record,
    Text,
    refuse,
    refuse_same_hash,
)
from dpbayes_sklearn.statistics.counts import ReleasedCounts
from dpbayes_sklearn.statistics.fourier import (
    ReleasedCharacters,
    closure,
    sum_count,
    varying_families,
)
from dpbayes_sklearn.statistics.network import Network

__all__ = [
    "CATEGORIES",
    "CONJUGATE_MODEL",
    "INTERVAL",
    "LINEAR_MODEL",
    "NETWORK_MODEL",
    "SCHEMA",
]

_RECORDS = Integer(1, 2**53)
_NON_NEGATIVE = RealNumber(0.0)
_SCALE = Rational(largest_term=2**80)  # 2^56 of what can be drawn, times the finest grid
_FEW_PARTS = 2**16  # of all families, that are listed without a thought


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


class _Labels(Many):
    def decode(self, json: Any, where: str) -> tuple[Any, ...]:
        labels = super().decode(json, where)
        refuse_same_hash(labels, where)
        return labels


INTERVAL = Record(
    Interval, {"low": RealNumber(), "high": RealNumber(), "bins": Optional(Integer(2, 2**16))}
)
CATEGORIES = Record(Categories, {"values": _Labels(Label(), 1), "unseen": Label()})
_DOMAIN = OneOf({"Interval": (Interval, INTERVAL), "Categories": (Categories, CATEGORIES)})
SCHEMA = Record(Schema, {"columns": Pairs(Text(), _DOMAIN), "target": Optional(_DOMAIN)})


def _wrong_promise(guarantee: PrivacyGuarantee) -> str | None:
    meant = PrivacyGuarantee.of(Budget(Fraction(1), unit=guarantee.unit), guarantee.mechanism)
    same = guarantee.neighbours == meant.neighbours
    return None if same else "has neighbours that are not those of its unit"


GUARANTEE = Record(
    PrivacyGuarantee,
    {
        "epsilon": RealNumber(math.ulp(0.0), finite=False),
        "delta": RealNumber(0.0, 1.0),
        "unit": Choice(("record", "feature")),
        "neighbours": Text(),
        "mechanism": Text(),
        "conditions": Many(Text()),
    },
    _wrong_promise,
)

NETWORK = Record(
    Network, {"sizes": Many(Integer(1, 2**16), 1), "parents": Many(Many(Integer(0, 2**16)))}
)


def _wrong_counts(released: ReleasedCounts) -> str | None:
    shapes = tuple(table.shape for table in released.tables)
    if shapes != released.network.shapes or len(released.scales) != len(shapes):
        return "has tables that are not those of its network"
    shared = {tuple(law for law in laws if _joint(law)) for laws in released.scales}
    if len(shared) > 1 or not (released.independent or released.network.is_star):
        return "has scales of a noise that its tables cannot share"
    return _off_lattice(released.tables, released.grid, not released.independent)


def _joint(law: Any) -> bool:
    return isinstance(law, RowNoise)


def _off_lattice(arrays: Iterable[Any], grid: int, joint: bool) -> str | None:
    dtype = np.float64 if joint else np.int64
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
    fits = fits and all(law.size == sum_count(released.network) for law in released.joint)
    if not fits:
        return "has blocks that are not those of its network"
    return _off_lattice(released.blocks.values(), released.grid, bool(released.joint))


class _Sums(Codec):
    """Sums after noise: integers, or floats if all of them share one noise."""

    def encode(self, value: Any) -> Any:
        return (FLOATS if value.dtype == np.float64 else INTEGERS).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        data = json.get("data") if isinstance(json, dict) else None
        floats = isinstance(data, list) and any(type(number) is float for number in data)
        return (FLOATS if floats else INTEGERS).decode(json, where)


_JOINT = Record(JointNoise, {"scale": _SCALE, "size": Integer(1, 2**53), "grid": Integer(1, 2**24)})


class _SumLaw(Codec):
    """The law of a batch: a scale, or what is public about one noise for all sums."""

    def encode(self, value: Any) -> Any:
        return (_JOINT if isinstance(value, JointNoise) else _SCALE).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        return (_JOINT if isinstance(json, dict) else _SCALE).decode(json, where)


class _Rows(NamedTuple):
    """What a law of joint noise on counts adds to the network: its sizes are the network's."""

    scale: Fraction
    grid: int


_ROWS = Record(_Rows, {"scale": _SCALE, "grid": Integer(1, 2**24)})


class _CountLaw(Codec):
    """The law of a table in a batch: a scale, or what is public about a noise of all tables."""

    def encode(self, value: Any) -> Any:
        return (_ROWS if _joint(value) else _SCALE).encode(value)

    def decode(self, json: Any, where: str) -> Any:
        return (_ROWS if isinstance(json, dict) else _SCALE).decode(json, where)


def _released_counts(network: Network, tables: Any, n: int, scales: Any) -> ReleasedCounts:
    given = {law for laws in scales for law in laws if isinstance(law, _Rows)}
    made = {law: RowNoise(law.scale, network.sizes[:-1], law.grid) for law in given}
    laws = tuple(tuple(made.get(law, law) for law in laws) for laws in scales)
    return ReleasedCounts(network, tables, n, laws)


_COUNTS = Record(
    _released_counts,
    {
        "network": NETWORK,
        "tables": Many(_Sums()),
        "n": _RECORDS,
        "scales": Many(Many(_CountLaw())),
    },
    _wrong_counts,
)
_CHARACTERS = Record(
    ReleasedCharacters,
    {
        "network": NETWORK,
        "blocks": Pairs(Many(Integer(0, 2**16), 1), _Sums()),
        "n": _RECORDS,
        "scales": Many(_SumLaw()),
        "increment": _NON_NEGATIVE,
    },
    _wrong_characters,
)


def _wrong_alphas(prior: Any) -> str | None:
    shapes = [alpha.shape for alpha in prior.alphas]
    fits = shapes == [(size,) for size in prior.network.sizes]
    positive = all((alpha > 0).all() for alpha in prior.alphas)
    return None if fits and positive else "has pseudo-counts that are not those of its network"


def _wrong_update(posterior: Any) -> str | None:
    if posterior.released.network != posterior.network:
        return "was released for another network"
    if isinstance(posterior, DirichletPosterior):
        return None
    if not any(posterior.released.scales):
        return "has no noise to be aware of"
    return _wrong_alphas(posterior)


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
    fits = fits and draws.shape == (len(draws), *width) and len(draws) > 0
    if not fits or (np.diag(posterior.covariance) < 0).any():
        return "has a covariance or draws that do not fit its coefficients"
    return None


_ALPHAS = Many(FLOATS)
_PRIOR = Record(
    DirichletPrior,
    {"network": NETWORK, "alphas": _ALPHAS, "inference": Choice(("plug_in", "noise_aware"))},
    _wrong_alphas,
)
_RELEASED = OneOf(
    {
        "ReleasedCounts": (ReleasedCounts, _COUNTS),
        "ReleasedCharacters": (ReleasedCharacters, _CHARACTERS),
    }
)
_GAUSSIAN = {
    "coefficients": FLOATS,
    "covariance": FLOATS,
    "noise_variance": RealNumber(math.ulp(0.0)),
}


def _beta(concentration: Any) -> Beta:
    return Beta(*concentration)


POSTERIOR = OneOf(
    {
        "DirichletPosterior": (
            DirichletPosterior,
            Record(DirichletPosterior, {"prior": _PRIOR, "released": _RELEASED}, _wrong_update),
        ),
        "NoiseAwarePosterior": (
            NoiseAwarePosterior,
            Record(
                NoiseAwarePosterior,
                {"network": NETWORK, "alphas": _ALPHAS, "released": _COUNTS},
                _wrong_update,
            ),
        ),
        "NoiseAwareCharacters": (
            NoiseAwareCharacters,
            Record(
                NoiseAwareCharacters,
                {"network": NETWORK, "alphas": _ALPHAS, "released": _CHARACTERS},
                _wrong_update,
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
        "Beta": (Beta, Record(_beta, {"concentration": FLOATS})),
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
