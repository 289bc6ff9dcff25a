"""Ways to write one kind of value as JSON and to read it back, checked.

Every codec reads only what it would have written itself, and raises a ValueError that says where
something else stands.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.schema import many_of_one_hash

__all__ = [
    "FLOATS",
    "INTEGERS",
    "ArrayOf",
    "Boolean",
    "Codec",
    "Fields",
    "Integer",
    "Many",
    "OneOf",
    "Optional",
    "Rational",
    "RealNumber",
    "Text",
    "TextAmong",
    "laid_out",
    "layout",
    "only_fields",
    "refuse",
    "refuse_same_hash",
]


_FRACTION = re.compile(r"-?[0-9]{1,400}/[1-9][0-9]{0,400}", re.ASCII)


def refuse(where: str, what: str) -> NoReturn:
    """Raise the error of a text that is not in the form."""
    raise ValueError(f"The text is not a released model: {where} {what}.") from None


def only_fields(json: Any, names: set[str], where: str) -> dict[str, Any]:
    """Return a JSON object that has these fields, no fewer and no more."""
    if not isinstance(json, dict):
        refuse(where, "must be an object")
    if missing := names - set(json):
        refuse(where, f"lacks {', '.join(sorted(missing))}")
    if set(json) - names:
        refuse(where, "has an unknown field")
    return json


def refuse_same_hash(values: Iterable[Any], where: str) -> None:
    """Refuse values made to have one hash: a set of them would take forever."""
    if many_of_one_hash(values):
        refuse(where, "has too many values of one hash")


class Codec(ABC):
    """One kind of value."""

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """Return what stands in the JSON text."""

    @abstractmethod
    def decode(self, json: Any, where: str) -> Any:
        """Return the value, or refuse; ``where`` is its place in the text."""


class _Itself(Codec):
    """Something that JSON has too."""

    def encode(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Integer(_Itself):
    """A whole number between two bounds."""

    low: int
    high: int

    def encode(self, value: Any) -> int:
        """Return a plain int."""
        return int(value)

    def decode(self, json: Any, where: str) -> int:
        """Return the number."""
        if type(json) is not int or not self.low <= json <= self.high:
            refuse(where, f"must be an integer from {self.low} to {self.high}")
        return json


class Boolean(_Itself):
    """True or false."""

    def encode(self, value: Any) -> bool:
        """Return a plain bool."""
        return bool(value)

    def decode(self, json: Any, where: str) -> bool:
        """Return the truth value."""
        if type(json) is not bool:
            refuse(where, "must be true or false")
        return json


@dataclass(frozen=True)
class RealNumber(Codec):
    """A float in a closed range; infinities only if they are its ends, NaN never."""

    low: float = -math.inf
    high: float = math.inf
    finite: bool = True

    def encode(self, value: Any) -> Any:
        """Return a float, whose decimal text is exact, or the text of an infinity."""
        return float(value) if math.isfinite(value) else str(float(value))

    def decode(self, json: Any, where: str) -> float:
        """Return the number."""
        infinite = isinstance(json, str) and json in ("inf", "-inf") and not self.finite
        number = float(json) if infinite else json
        if type(number) is not float or not self.low <= number <= self.high:
            refuse(where, f"must be a float from {self.low:g} to {self.high:g}")
        if math.isinf(number) and not infinite:  # 1e999 is not how an infinity is written
            refuse(where, "must be a finite float")
        return number


@dataclass(frozen=True)
class Rational(Codec):
    """An exact fraction, positive by default."""

    positive: bool = True
    largest_term: int = 10**401

    def encode(self, value: Any) -> str:
        """Return ``numerator/denominator``."""
        exact = Fraction(value)
        return f"{exact.numerator}/{exact.denominator}"

    def decode(self, json: Any, where: str) -> Fraction:
        """Return the fraction."""
        if not isinstance(json, str) or not _FRACTION.fullmatch(json):
            refuse(where, "must be a fraction such as 1/3")
        value = Fraction(json)
        if (self.positive and value <= 0) or self.encode(value) != json:
            refuse(where, "must be a positive fraction in lowest terms")
        if max(value.numerator, value.denominator) > self.largest_term:
            refuse(where, "must be a fraction of smaller terms")
        return value


@dataclass(frozen=True)
class Text(_Itself):
    """Any text."""

    def decode(self, json: Any, where: str) -> str:
        """Return the text."""
        if not isinstance(json, str):
            refuse(where, "must be a string")
        return json


@dataclass(frozen=True)
class TextAmong(_Itself):
    """One of some texts."""

    options: tuple[str, ...]

    def decode(self, json: Any, where: str) -> str:
        """Return the text."""
        if json not in self.options or not isinstance(json, str):
            refuse(where, f"must be one of {', '.join(self.options)}")
        return json


@dataclass(frozen=True)
class Optional(Codec):
    """Something, or null."""

    of: Codec

    def encode(self, value: Any) -> Any:
        """Return null for None."""
        return None if value is None else self.of.encode(value)

    def decode(self, json: Any, where: str) -> Any:
        """Return None for null."""
        return None if json is None else self.of.decode(json, where)


@dataclass(frozen=True)
class Many(Codec):
    """A tuple of things of one kind."""

    of: Codec
    least: int = 0

    def encode(self, value: Any) -> list[Any]:
        """Return a list."""
        return [self.of.encode(one) for one in value]

    def decode(self, json: Any, where: str) -> tuple[Any, ...]:
        """Return a tuple."""
        if not isinstance(json, list) or len(json) < self.least:
            refuse(where, f"must be a list of at least {self.least}")
        return tuple(self.of.decode(one, f"{where}[{i}]") for i, one in enumerate(json))


@dataclass(frozen=True)
class Fields(Codec):
    """An object of one class, made again by calling it with its fields.

    ``fault`` says what is wrong with an object whose fields do not fit together, or None.
    """

    cls: Callable[..., Any]
    parts: Mapping[str, Codec]
    fault: Callable[[Any], str | None] = lambda value: None

    def __post_init__(self) -> None:
        if is_dataclass(self.cls):  # a field that is added there must be added here
            assert {field.name for field in fields(self.cls) if field.init} == set(self.parts)

    def encode(self, value: Any) -> dict[str, Any]:
        """Return an object."""
        return {name: part.encode(getattr(value, name)) for name, part in self.parts.items()}

    def decode(self, json: Any, where: str) -> Any:
        """Return the object, all of it checked."""
        given = only_fields(json, set(self.parts), where)
        read = {
            name: part.decode(given[name], f"{where}.{name}") for name, part in self.parts.items()
        }
        try:
            value = self.cls(**read)
            fault = self.fault(value)
        except (TypeError, ValueError) as error:
            refuse(where, f"is not valid ({error})")
        if fault is not None:
            refuse(where, fault)
        return value


@dataclass(frozen=True)
class OneOf(Codec):
    """An object of one of some classes, identified by its field ``type``."""

    kinds: Mapping[str, tuple[type, Codec]]

    def encode(self, value: Any) -> dict[str, Any]:
        """Return an object with a field ``type``."""
        for name, (cls, codec) in self.kinds.items():
            if type(value) is cls:
                return {"type": name, **codec.encode(value)}
        raise ValueError(f"{type(value).__name__} has no JSON form.")

    def decode(self, json: Any, where: str) -> Any:
        """Return the object."""
        if not isinstance(json, dict) or not isinstance(json.get("type"), str):
            refuse(where, "must be an object with a type")
        if json["type"] not in self.kinds:
            refuse(where, f"must be of a type among {', '.join(self.kinds)}")
        _, codec = self.kinds[json["type"]]
        return codec.decode({k: v for k, v in json.items() if k != "type"}, where)


_MOST = 2**62  # Counts and their noise stay below it.


@dataclass(frozen=True)
class ArrayOf(Codec):
    """An array of one dtype: finite floats, or integers far from overflow."""

    dtype: str

    def encode(self, value: npt.NDArray[Any]) -> dict[str, Any]:
        """Return shape, order of the axes and numbers in that order."""
        array = np.asarray(value)
        if array.dtype != self.dtype:
            raise ValueError(f"Expected an array of {self.dtype}. Got {array.dtype} instead.")
        return {**layout(array), "data": in_memory(array).tolist()}

    def decode(self, json: Any, where: str) -> npt.NDArray[Any]:
        """Return the array."""
        given = only_fields(json, {"shape", "axes", "data"}, where)
        numbers = given["data"]
        if not isinstance(numbers, list) or not all(self._fits(number) for number in numbers):
            refuse(f"{where}.data", f"must be a list of {self.dtype}")
        return laid_out(given, np.array(numbers, dtype=self.dtype), where)

    def _fits(self, number: Any) -> bool:
        if self.dtype == "int64":
            return type(number) is int and -_MOST < number < _MOST
        return type(number) is float and math.isfinite(number)


FLOATS, INTEGERS = ArrayOf("float64"), ArrayOf("int64")


def layout(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return the shape, and the axes from the slowest to the fastest in memory.

    Sums depend on it in their last bit.
    """
    slowest_first = np.argsort([-abs(stride) for stride in array.strides], kind="stable")
    axes = [*range(array.ndim)] if array.flags.c_contiguous else slowest_first.tolist()
    return {"shape": list(array.shape), "axes": axes}


def in_memory(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the numbers in the order in which they lie in memory."""
    return array.transpose(layout(array)["axes"]).ravel()


def laid_out(given: dict[str, Any], flat: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    """Return numbers in the shape and layout that :func:`layout` described."""
    shape, axes = given["shape"], given["axes"]
    for name, sizes in (("shape", shape), ("axes", axes)):
        if not isinstance(sizes, list) or not all(type(s) is int and s >= 0 for s in sizes):
            refuse(f"{where}.{name}", "must be a list of integers")
    if len(shape) > 64 or math.prod(shape) != flat.size or sorted(axes) != [*range(len(shape))]:
        refuse(where, "has a shape that does not fit its data")
    return flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes).tolist())
