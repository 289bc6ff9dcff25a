"""Ways to write one kind of value as JSON and to read it back, checked.

Every codec reads only what it would have written itself, and raises an error that says where
something else stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.schema.declared import read_fields, refuse

# How a fraction is written: its length is limited before it is computed with.
_FRACTION = re.compile(r"-?[0-9]{1,400}/[1-9][0-9]{0,400}", re.ASCII)


T = TypeVar("T")

_LARGEST_COUNT = 2**62  # Counts and their noise stay below this.


class Codec(NamedTuple, Generic[T]):
    """Writes and reads one kind of value; ``decode(json, where)`` refuses any other JSON."""

    encode: Callable[[T], Any]
    decode: Callable[[object, str], T]


def _plain(kind: type[T], fits: Callable[[T], bool], wanted: str) -> Codec[T]:
    """Return the codec of something that JSON has too."""

    def decode(json: object, where: str) -> T:
        if type(json) is not kind or not fits(json):
            refuse(where, f"must be {wanted}")
        return json

    return Codec(kind, decode)


def integer(low: int, high: int) -> Codec[int]:
    """Return the codec of whole numbers between two bounds."""
    return _plain(int, lambda value: low <= value <= high, f"an integer from {low} to {high}")


def text_among(*options: str) -> Codec[str]:
    """Return the codec of some texts."""
    return _plain(str, options.__contains__, f"one of {', '.join(options)}")


BOOLEAN = _plain(bool, lambda value: True, "true or false")
TEXT = _plain(str, lambda value: True, "a string")


def real(low: float = -math.inf, high: float = math.inf, *, finite: bool = True) -> Codec[float]:
    """Return the codec of floats in a closed range, whose decimal text is exact; NaN never."""

    def encode(value: float) -> float | str:
        return float(value) if math.isfinite(value) else str(float(value))

    def decode(json: object, where: str) -> float:
        infinite = not finite and isinstance(json, str) and json in ("inf", "-inf")
        number = float(str(json)) if infinite else json
        if type(number) is not float or not low <= number <= high:
            refuse(where, f"must be a float from {low:g} to {high:g}")
        if math.isinf(number) and not infinite:  # 1e999 is not how an infinity is written
            refuse(where, "must be a finite float")
        return number

    return Codec(encode, decode)


def rational(*, positive: bool = True, largest_term: int = 10**401) -> Codec[Fraction]:
    """Return the codec of exact fractions, ``numerator/denominator``."""

    def encode(value: Fraction) -> str:
        exact = Fraction(value)
        return f"{exact.numerator}/{exact.denominator}"

    def decode(json: object, where: str) -> Fraction:
        if not isinstance(json, str) or not _FRACTION.fullmatch(json):
            refuse(where, "must be a fraction such as 1/3")
        value = Fraction(json)
        if (positive and value <= 0) or encode(value) != json:
            refuse(where, "must be a positive fraction in lowest terms")
        if max(value.numerator, value.denominator) > largest_term:
            refuse(where, "must be a fraction of smaller terms")
        return value

    return Codec(encode, decode)


def optional(of: Codec[T]) -> Codec[T | None]:
    """Return the codec of something, or null for None."""
    return Codec(
        lambda value: None if value is None else of.encode(value),
        lambda json, where: None if json is None else of.decode(json, where),
    )


def many(of: Codec[T], least: int = 0) -> Codec[tuple[T, ...]]:
    """Return the codec of a tuple of things of one kind."""

    def decode(json: object, where: str) -> tuple[T, ...]:
        if not isinstance(json, list) or len(json) < least:
            refuse(where, f"must be a list of at least {least}")
        return tuple(of.decode(one, f"{where}[{i}]") for i, one in enumerate(json))

    return Codec(lambda value: [of.encode(one) for one in value], decode)


def record(
    make: Callable[..., T],
    parts: Mapping[str, Codec[Any]],
    fault: Callable[[T], str | None] = lambda value: None,
) -> Codec[T]:
    """Return the codec of an object that is made again by calling ``make`` with its fields.

    ``fault`` says what is wrong with an object whose fields do not fit together, or None.
    """

    def encode(value: T) -> dict[str, Any]:
        return {name: part.encode(getattr(value, name)) for name, part in parts.items()}

    def decode(json: object, where: str) -> T:
        given = read_fields(json, set(parts), where)
        read = {name: part.decode(given[name], f"{where}.{name}") for name, part in parts.items()}
        try:
            value = make(**read)
            wrong = fault(value)
        except (TypeError, ValueError) as error:
            refuse(where, f"is not valid ({error})")
        return value if wrong is None else refuse(where, wrong)

    return Codec(encode, decode)


def one_of(kinds: Mapping[type, Codec[Any]]) -> Codec[Any]:
    """Return the codec of objects of some classes; their field ``type`` is the class."""
    by_name = {cls.__name__: codec for cls, codec in kinds.items()}

    def encode(value: Any) -> dict[str, Any]:
        if type(value) not in kinds:
            raise ValueError(f"{type(value).__name__} has no JSON form.")
        return {"type": type(value).__name__, **kinds[type(value)].encode(value)}

    def decode(json: object, where: str) -> Any:
        if not isinstance(json, dict) or not isinstance(json.get("type"), str):
            refuse(where, "must be an object with a type")
        if json["type"] not in by_name:
            refuse(where, f"must be of a type among {', '.join(by_name)}")
        return by_name[json["type"]].decode({k: v for k, v in json.items() if k != "type"}, where)

    return Codec(encode, decode)


def _array_of(dtype: str, fits: Callable[[object], bool]) -> Codec[AnyArray]:
    """Return the codec of arrays: shape, order of the axes and numbers in that order."""

    def encode(value: AnyArray) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype != dtype:
            raise ValueError(f"Expected an array of {dtype}. Got {array.dtype} instead.")
        return {**layout(array), "data": in_memory(array).tolist()}

    def decode(json: object, where: str) -> AnyArray:
        given = read_fields(json, {"shape", "axes", "data"}, where)
        numbers = given["data"]
        if not isinstance(numbers, list) or not all(map(fits, numbers)):
            refuse(f"{where}.data", f"must be a list of {dtype}")
        return laid_out(given, np.array(numbers, dtype=dtype), where)

    return Codec(encode, decode)


FLOATS = _array_of("float64", lambda number: type(number) is float and math.isfinite(number))
INTEGERS = _array_of(
    "int64", lambda number: type(number) is int and -_LARGEST_COUNT < number < _LARGEST_COUNT
)


def layout(array: AnyArray) -> dict[str, Any]:
    """Return the shape, and the axes from the slowest to the fastest in memory.

    Sums depend on it in their last bit.
    """
    slowest_first = np.argsort([-abs(stride) for stride in array.strides], kind="stable")
    axes = [*range(array.ndim)] if array.flags.c_contiguous else slowest_first.tolist()
    return {"shape": list(array.shape), "axes": axes}


def in_memory(array: AnyArray) -> AnyArray:
    """Return the numbers in the order in which they lie in memory."""
    return array.transpose(layout(array)["axes"]).ravel()


def laid_out(given: dict[str, Any], flat: AnyArray, where: str) -> AnyArray:
    """Return numbers in the shape and layout that :func:`layout` described."""
    shape, axes = given["shape"], given["axes"]
    for name, sizes in (("shape", shape), ("axes", axes)):
        if not isinstance(sizes, list) or not all(type(s) is int and s >= 0 for s in sizes):
            refuse(f"{where}.{name}", "must be a list of integers")
    if len(shape) > 64 or math.prod(shape) != flat.size or sorted(axes) != [*range(len(shape))]:
        refuse(where, "has a shape that does not fit its data")
    return flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes).tolist())
