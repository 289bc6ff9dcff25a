"""The kind of values that the dtype of a column declares, for any data frame library."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

__all__ = ["WHOLE", "Kind", "kind_of"]

Kind = Literal["booleans", "integers", "numbers", "text", "dates", "durations", "anything"]
"""Kind of the values of a column: ``anything`` where its dtype does not determine it."""

WHOLE: frozenset[Kind] = frozenset({"booleans", "integers"})

_NAMES: dict[Kind, str] = {  # how the types of numpy, pandas, polars and pyarrow begin
    "booleans": r"bool",
    "integers": r"u?int\d",
    "numbers": r"float|double|halffloat|longdouble|decimal",
    "text": r"str|utf8|large_str|large_utf8",
    "dates": r"date|timestamp",
    "durations": r"duration|timedelta",
}


def kind_of(dtype: Any) -> Kind:
    """Return the kind of values that a type declares; it is read off its name, never off a value.

    Examples
    --------
    >>> kind_of(np.dtype("int8")), kind_of(np.dtype("<U3")), kind_of(np.dtype(object))
    ('integers', 'text', 'anything')
    """
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    for kind, pattern in _NAMES.items():
        if re.match(pattern, name.lower()):
            return kind
    return "anything"
