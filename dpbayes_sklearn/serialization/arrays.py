"""Arrays of numbers as JSON, exact to the last bit and laid out in memory as they were."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.serialization.codecs import Codec, only_fields, refuse

__all__ = ["FLOATS", "INTEGERS", "Array", "laid_out", "layout"]

_MOST = 2**62  # counts and their noise stay below it


@dataclass(frozen=True)
class Array(Codec):
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


FLOATS, INTEGERS = Array("float64"), Array("int64")


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
