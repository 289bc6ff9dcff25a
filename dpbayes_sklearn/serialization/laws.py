"""Noise laws as JSON: every law of the package, by the types of its fields."""

from __future__ import annotations

from dataclasses import fields

from dpbayes_sklearn import noise
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.serialization.codecs import Codec, Integer, Many, OneOf, Rational, Record

__all__ = ["LAW"]

_SCALE = Rational(positive=False, largest_term=2**80)  # 2^56 times the finest grid
_BY_TYPE: dict[str, Codec] = {
    "Fraction": _SCALE,
    "tuple[Fraction, ...]": Many(_SCALE),
    "int": Integer(1, 2**53),
    "tuple[int, ...]": Many(Integer(0, 2**53)),
}


def _record(law: type[NoiseLaw]) -> Record:
    return Record(law, {field.name: _BY_TYPE[str(field.type)] for field in fields(law)})  # type: ignore[arg-type]


_FOUND = {name: getattr(noise, name) for name in noise.__all__}
LAW = OneOf(
    {
        name: (cls, _record(cls))
        for name, cls in _FOUND.items()
        if isinstance(cls, type) and issubclass(cls, NoiseLaw) and cls is not NoiseLaw
    }
)
