"""Codes of sparse rows: what is not stored has the code of zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SparseCodes"]


@dataclass(frozen=True)
class SparseCodes:
    """The codes of some rows of a sparse matrix.

    Attributes
    ----------
    starts : array of shape (n_rows + 1,)
        Where each row starts among the stored values.
    columns, codes : arrays of shape (n_stored,)
        Of every value that is stored.
    zeros : array of shape (n_columns,)
        The code of a value that is not.
    """

    starts: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    codes: npt.NDArray[Any]
    zeros: npt.NDArray[Any]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.starts) - 1

    def dense(self) -> npt.NDArray[Any]:
        """Return all codes, one row of them for each record."""
        codes = np.empty((len(self), len(self.zeros)), self.zeros.dtype)
        codes[:] = self.zeros
        codes[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.columns] = self.codes
        return codes
