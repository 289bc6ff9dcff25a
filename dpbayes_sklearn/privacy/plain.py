"""Public values as JSON has them, for those who check a release without this library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn.privacy.budget import round_up, written


def plain(value: Any) -> Any:
    """Return numbers, texts, lists and dicts; of a value with fields also the name of its type.

    Fractions are texts such as "1/10", and what can only be called is left out.

    >>> from dpbayes_sklearn.noise import SupNorm
    >>> plain(SupNorm(Fraction(2), (1, 1)))
    {'type': 'SupNorm', 'scale': '2/1', 'sides': [1, 1], 'grid': 1}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        try:
            return written(value)
        except ValueError:  # too long to be written exactly
            return round_up(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if is_dataclass(value):
        named = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    elif hasattr(value, "_asdict"):
        named = value._asdict()
    elif isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    else:
        named = {}  # what has no fields is its type
    known = {name: plain(one) for name, one in named.items() if not callable(one)}
    return {"type": type(value).__name__, **known}
