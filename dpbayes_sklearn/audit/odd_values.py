"""Values that have broken data pipelines, and tables with some of them in them.

With declared domains none of them may make a fit fail or warn. Every text and most numbers carry
the digits of :data:`MARK`, so that they can be looked for in whatever is shown.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MARK", "NUMBERS", "OBJECTS", "everything_said", "spiked"]

MARK = "73917391"


class Hostile:
    """Refuses whatever it is asked."""

    def _refuse(self, *arguments: Any) -> Any:
        raise RuntimeError(f"hostile {MARK}")

    __eq__ = __lt__ = __float__ = __int__ = __str__ = __bool__ = __len__ = __iter__ = _refuse
    __index__ = __array__ = __hash__ = _refuse

    def __repr__(self) -> str:
        return f"Hostile({MARK})"


class Unstable(float):
    """A float that converts to something else."""

    def __float__(self) -> float:
        raise OverflowError(MARK)


NUMBERS: tuple[float, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    -2.2e-308,
    1e308,
    -1.7391e308,
    float(MARK),
    -float(MARK) - 0.5,
    2.0**53,
    0.1 + 0.2,
)

OBJECTS: tuple[Any, ...] = (
    *NUMBERS,
    int(MARK),
    2**63,
    -(2**63) - 1,
    2**70 + int(MARK),
    10**400,
    -(10**400),
    Fraction(int(MARK), 7),
    Fraction(10**400, 3),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("1e9999"),
    Decimal(MARK),
    complex(float(MARK), 1),
    None,
    True,
    "",
    "nan",
    "-inf",
    "\x00",
    "\ud800",
    "٣",
    " 1 ",
    "1_0",
    f"HIV+{MARK}",
    MARK,
    f"b{MARK}".encode(),
    [1, MARK],
    (0,),
    {"a": MARK},
    {1},
    np.array(1),
    np.array([0.0, float(MARK)]),
    np.float16("nan"),
    np.float32(3e38),
    np.int8(-128),
    np.uint64(2**64 - 1),
    np.longdouble("1e400"),
    np.complex64(1j),
    np.datetime64("NaT"),
    np.timedelta64(int(MARK), "s"),
    np.str_(MARK),
    np.bool_(False),
    datetime.date(2020, 1, 1),
    datetime.timedelta.max,
    Hostile(),
    Unstable(1.0),
    Ellipsis,
    NotImplemented,
    int,
    np,
    len,
)


def spiked(
    values: npt.NDArray[Any], odd: tuple[Any, ...], count: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Return a copy of an array with some odd values at random places.

    >>> spiked(np.zeros((2, 2)), (7.0,), 4, np.random.default_rng(0)).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    plain = all(isinstance(value, float) for value in odd)
    table = values.astype(float if plain else object)
    places = rng.permutation(table.size)[:count]
    for place in places:
        table[np.unravel_index(place, table.shape)] = odd[rng.integers(len(odd))]
    return table


def everything_said(error: BaseException) -> str:
    """Return the texts of an error, of its causes and contexts, suppressed ones too, and notes."""
    texts: list[str] = []
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            texts += [str(one), repr(one), *getattr(one, "__notes__", [])]
            waiting += [one.__cause__, one.__context__]
    return "\n".join(texts)
