"""The parts that released models are made of: an explicit list, and nothing else is ever made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn import noise
from dpbayes_sklearn.categories.life_tables import LifeTables
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, NoisyDirichlet
from dpbayes_sklearn.convex.design import Windows
from dpbayes_sklearn.convex.moments import LEAST_TURN
from dpbayes_sklearn.convex.posterior import CoefficientDraws, GaussianPosterior
from dpbayes_sklearn.convex.regressions import Moments
from dpbayes_sklearn.convex.slopes import Slopes
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.counts.fourier import ReleasedCharacters, closure, sum_count, varying_families
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior
from dpbayes_sklearn.counts.noise_aware_fourier import NoiseAwareCharacters
from dpbayes_sklearn.counts.posterior import DrawsPosterior, TemperedPosterior
from dpbayes_sklearn.counts.tables import ReleasedCounts
from dpbayes_sklearn.counts.temperature import Tempering
from dpbayes_sklearn.logistic.ordered import OrderedPosterior
from dpbayes_sklearn.logistic.posterior import LogisticPosterior
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.privacy import PrivacyGuarantee, PrivacyUnit
from dpbayes_sklearn.rates.posterior import RatePosterior
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.declared import read_categories, read_interval, refuse
from dpbayes_sklearn.serialization.codecs import (
    BOOLEAN,
    FLOATS,
    INTEGERS,
    TEXT,
    Codec,
    T,
    integer,
    many,
    one_of,
    optional,
    rational,
    real,
    record,
    text_among,
)
from dpbayes_sklearn.sums.posterior import SumsPosterior

K = TypeVar("K")

# The largest term is 2^56 times the finest grid.
_NOISE_SCALE = rational(positive=False, largest_term=2**80)
_NUMBER_OF_RECORDS = integer(1, 2**53)  # A number of records: what floats hold exactly.
_NODE = integer(0, 2**16)  # The place of a node in a network.
_POSITIVE = real(math.ulp(0.0))  # A number above 0.
# Fields without a codec of their own have that of their type.
_BY_TYPE: dict[str, Codec[Any]] = {
    "FloatArray": FLOATS,
    "Fraction": _NOISE_SCALE,
    "bool": BOOLEAN,
    "int": _NUMBER_OF_RECORDS,
    "str": TEXT,
    "float | None": optional(real()),
    "tuple[Fraction, ...]": many(_NOISE_SCALE),
    "tuple[FloatArray, ...]": many(FLOATS),
    "tuple[bool, ...]": many(BOOLEAN),
    "tuple[int, ...]": many(integer(0, 2**53)),
    "tuple[str, ...]": many(TEXT),
}
_FEW_PARTS = 2**16  # Up to this many parts of all families are always listed and compared.


def _of_fields(
    cls: type[T], fault: Callable[[T], str | None] = lambda value: None, **own: Codec[Any]
) -> Codec[T]:
    """Return the codec of a dataclass, which fields of its type have from now on."""
    parts = {
        field.name: own.get(field.name) or _BY_TYPE[str(field.type)]
        for field in fields(cls)  # type: ignore[arg-type]
        if field.init
    }
    _BY_TYPE[cls.__name__] = codec = record(cls, parts, fault)
    return codec


_FOUND: list[Any] = [getattr(noise, name) for name in noise.__all__]
_LAWS = [cls for cls in _FOUND if isinstance(cls, type) and issubclass(cls, NoiseLaw)]
_BY_TYPE["tuple[NoiseLaw, ...]"] = many(
    one_of({cls: _of_fields(cls) for cls in _LAWS if cls is not NoiseLaw})
)


def _pairs(keys: Codec[K], values: Codec[T]) -> Codec[dict[K, T]]:
    """Return the codec of a mapping: a list of pairs, which keeps its order and any kind of key."""

    def encode(value: dict[K, T]) -> list[list[Any]]:
        return [[keys.encode(k), values.encode(v)] for k, v in value.items()]

    def decode_pair(json: object, where: str) -> tuple[K, T]:
        if not isinstance(json, list) or len(json) != 2:
            refuse(where, "must be a pair")
        return keys.decode(json[0], where), values.decode(json[1], where)

    def decode(json: object, where: str) -> dict[K, T]:
        pairs = many(Codec(encode, decode_pair)).decode(json, where)
        read = dict(pairs)
        return read if len(read) == len(pairs) else refuse(where, "has a key twice")

    return Codec(encode, decode)


_NETWORK = _of_fields(Network, sizes=many(integer(1, 2**16), 1), parents=many(many(_NODE)))


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


def _decoded_sums(json: object, where: str) -> Any:
    data = json.get("data") if isinstance(json, dict) else None
    floats = isinstance(data, list) and any(type(number) is float for number in data)
    return (FLOATS if floats else INTEGERS).decode(json, where)


# Sums after noise: integers, or floats if the noise has a finer grid.
_SUMS = Codec(
    lambda value: (FLOATS if value.dtype == np.float64 else INTEGERS).encode(value), _decoded_sums
)
_COUNTS = _of_fields(ReleasedCounts, _wrong_counts, tables=many(_SUMS))
_CHARACTERS = _of_fields(
    ReleasedCharacters, _wrong_characters, blocks=_pairs(many(_NODE, 1), _SUMS), increment=real(0.0)
)


INTERVAL = Codec(Interval.to_dict, read_interval)
CATEGORIES = Codec(Categories.to_dict, read_categories)
SCHEMA = Codec(Schema.to_dict, Schema.from_dict)


def _wrong_promise(guarantee: PrivacyGuarantee) -> str | None:
    try:
        PrivacyUnit.read(guarantee.unit, guarantee.max_records, guarantee.neighbours)
    except ValueError:
        return "has neighbours that are not those of its unit"
    return None


GUARANTEE = _of_fields(
    PrivacyGuarantee,
    _wrong_promise,
    epsilon=real(math.ulp(0.0), finite=False),
    delta=real(0.0, 1.0),
    unit=text_among("record", "feature", "person"),
    rho=optional(_POSITIVE),
)


def _wrong_alphas(prior: Any) -> str | None:
    shapes = [alpha.shape for alpha in prior.alphas]
    fits = shapes == [(size,) for size in prior.network.sizes]
    positive = all((alpha > 0).all() for alpha in prior.alphas)
    return None if fits and positive else "has pseudo-counts that are not those of its network"


class _PosteriorParts(NamedTuple):
    """The parts of a posterior, checked before anything is inferred from them."""

    network: Network
    alphas: Any
    released: Any
    ordered: tuple[bool, ...] | None = None


def _inferred(posterior: type) -> Callable[..., Any]:
    """Return a function that checks the parts of a posterior, then infers it."""

    def make(**parts: Any) -> Any:
        given = _PosteriorParts(**parts)
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
    if (slopes := posterior.slopes) is not None:
        fits = fits and slopes.mean.shape == width and slopes.growth.ndim == 1
        fits = fits and slopes.sampling.shape == slopes.privacy.shape == width * 2
    ends = posterior.windows.centres.shape, posterior.windows.halves.shape
    fits = fits and ends == ((width[0] - 1,),) * 2 and bool((posterior.windows.halves > 0).all())
    fits = fits and draws.shape == (len(draws), *width) and len(draws) > 0
    if not fits or (np.diag(posterior.covariance) < 0).any():
        return "has a covariance or draws that do not fit its coefficients"
    return None


_FRACTION_OF_ONE = real(0.0, 1.0)
# A temperature, or that it was to be learned.
_TEMPERATURE = Codec(
    lambda value: value if value == "auto" else _FRACTION_OF_ONE.encode(value),
    lambda json, where: json if json == "auto" else _FRACTION_OF_ONE.decode(json, where),
)
_of_fields(
    DirichletPrior,
    _wrong_alphas,
    inference=text_among("plug_in", "noise_aware", "adaptive"),
    temperature=_TEMPERATURE,
)
_BY_TYPE["Slopes | None"] = optional(_of_fields(Slopes))
_BY_TYPE["int | None"] = optional(integer(0, 2**62))
_of_fields(Windows)
_of_fields(Tempering, temperature=_FRACTION_OF_ONE, emphasis=real(0.0, 2.0))
_RELEASED = one_of({ReleasedCounts: _COUNTS, ReleasedCharacters: _CHARACTERS})
_INFERRED_FIELDS: dict[str, Codec[Any]] = {
    "network": _NETWORK,
    "alphas": many(FLOATS),
    "released": _COUNTS,
}
_CONCENTRATION = {"concentration": FLOATS}
# All posteriors but those with a temperature, which contain one of these.
_UNTEMPERED: dict[type, Codec[Any]] = {
    DirichletPosterior: _of_fields(
        DirichletPosterior,
        lambda p: None if p.released.network == p.network else "was released for another network",
        released=_RELEASED,
    ),
    NoiseAwarePosterior: record(_inferred(NoiseAwarePosterior), _INFERRED_FIELDS),
    AdaptivePosterior: record(
        _inferred(AdaptivePosterior), {**_INFERRED_FIELDS, "ordered": many(BOOLEAN)}
    ),
    NoiseAwareCharacters: record(
        _inferred(NoiseAwareCharacters), {**_INFERRED_FIELDS, "released": _CHARACTERS}
    ),
    DrawsPosterior: _of_fields(DrawsPosterior, _wrong_draws, draws=many(FLOATS)),
    GaussianPosterior: _of_fields(GaussianPosterior, _wrong_gaussian, noise_variance=_POSITIVE),
    CoefficientDraws: _of_fields(CoefficientDraws, _wrong_gaussian, noise_variance=_POSITIVE),
    **{
        kind: _of_fields(kind, scale=real(0.0), records=real(0.0))
        for kind in (LogisticPosterior, OrderedPosterior)
    },
    RatePosterior: _of_fields(
        RatePosterior,
        scale=real(0.0),
        records=real(0.0),
        cap=real(1.0),
        level=real(),
        usual=real(),
    ),
    Dirichlet: record(Dirichlet, _CONCENTRATION),
    NoisyDirichlet: record(NoisyDirichlet, {**_CONCENTRATION, "precisions": FLOATS}),
    Beta: record(lambda concentration: Beta(*concentration), _CONCENTRATION),
}
_TEMPERED = _of_fields(TemperedPosterior, posterior=one_of(_UNTEMPERED))
_POSTERIOR = one_of({**_UNTEMPERED, TemperedPosterior: _TEMPERED})

# The fitted attributes that are written, by kind of model.
NETWORK_MODEL: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "posterior_": _POSTERIOR,
    "_batches": many(GUARANTEE, 1),
}
LINEAR_MODEL: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "posterior_": _POSTERIOR,
    "guarantee_": GUARANTEE,
}
CONJUGATE_MODEL: dict[str, Codec[Any]] = {
    "categories_": CATEGORIES,
    "posterior_": _POSTERIOR,
    "guarantee_": GUARANTEE,
}


def _wrong_moments(moments: Moments) -> str | None:
    p, size = len(moments.turn), len(moments.pairs)
    squares = moments.turn, moments.products, moments.far, moments.pairs
    fits = [each.shape for each in squares] == [(p, p)] * 3 + [(size, size)]
    whole = fits and moments.first.ndim == 2 and len(moments.first) == p and p > 0
    if not whole:
        return "has moments that do not fit their coordinates"
    if max(np.abs(each).max() for each in (*squares, moments.first)) > _LARGEST_MOMENT:
        return "has moments that are too large"
    if not all(np.allclose(each, each.T, rtol=1e-9, atol=1e-9) for each in squares):
        return "has moments that are not symmetric"
    turned, far = np.linalg.eigvalsh(moments.turn), np.linalg.eigvalsh(moments.far)
    if min(turned[0], 1 / turned[-1]) < 0.99 * LEAST_TURN:
        return "has coordinates that no release turns to"
    if far[0] < -1e-9 * max(far[-1], 1.0):
        return "has far records of negative weight"
    return None


_LARGEST_MOMENT = 1e60  # Products of what is larger exceed floats.
_MOMENTS_NUMBERS = dict.fromkeys(
    ("variance", "pair_variance", "lost_sd", "lost_pairs"), real(0.0, _LARGEST_MOMENT)
)
MOMENTS_MODEL: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "posterior_": _of_fields(Moments, _wrong_moments, **_MOMENTS_NUMBERS),
    "guarantee_": GUARANTEE,
}
_SUMS_PARTS: dict[str, Codec[Any]] = {
    **dict.fromkeys(("means", "variances", "slopes", "roundings"), FLOATS),
    **dict.fromkeys(("positive", "joint"), BOOLEAN),
    "draws": optional(FLOATS),
}
SUMS_MODEL: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "posterior_": record(SumsPosterior, _SUMS_PARTS),
    "guarantee_": GUARANTEE,
}


def _wrong_tables(tables: LifeTables) -> str | None:
    shape = tables.counts.shape
    fits = len(shape) == 2 and shape[0] > 0 and shape[1] > 2 and shape[1] % 2
    if not fits or any(law.sizes != (tables.counts.size,) for law in tables.laws):
        return "has counts that are not those of life tables, or another noise law"
    return None


SURVIVAL_MODEL: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "posterior_": _of_fields(LifeTables, _wrong_tables, counts=INTEGERS),
    "guarantee_": GUARANTEE,
}
COLUMN_TRANSFORMER: dict[str, Codec[Any]] = {
    "_answers": many(many(real()), 1),
    "guarantee_": GUARANTEE,
}
SELECTOR: dict[str, Codec[Any]] = {
    "schema_": SCHEMA,
    "_support": many(BOOLEAN, 1),
    "guarantee_": GUARANTEE,
}
