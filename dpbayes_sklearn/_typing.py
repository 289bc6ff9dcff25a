"""Names for the array types that appear everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

AnyArray = npt.NDArray[Any]
"""An array of any dtype, such as the values of a column."""

Positions = npt.NDArray[np.intp]
"""Positions of records or cells."""
