"""What columns add to predictions, and draws of predictions: post-processing of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, check_scalar

from dpbayes_sklearn._typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Contributions:
    """What every column adds to the prediction of every record.

    Attributes
    ----------
    values : array of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
        One number for each record and column; from three classes on, one for each class.
    baseline : float, or array of shape (n_classes,)
        The prediction without any column.
    names : tuple of str
        The columns.
    what : str
        What is added up, such as "log-odds of 1".
    """

    values: FloatArray
    baseline: Any
    names: tuple[str, ...]
    what: str

    @property
    def total(self) -> FloatArray:
        """The predictions: the baseline and all columns."""
        return np.asarray(self.values.sum(axis=1) + self.baseline)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame, one row per record and one column per feature.

        From three classes on, its columns are pairs of feature and class number.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas. Use values and names.") from None
        if self.values.ndim == 2:
            return pd.DataFrame(self.values, columns=[*self.names])
        pairs = pd.MultiIndex.from_product([self.names, range(self.values.shape[2])])
        return pd.DataFrame(self.values.reshape(len(self.values), -1), columns=pairs)


@dataclass(frozen=True)
class Effect:
    """What one column adds, by its value, with a band.

    Attributes
    ----------
    name : str
        The column.
    places : array of shape (n_values,)
        Numbers, or the positions of categories.
    labels : tuple of str
        Names of the values; empty if they are numbers.
    value, low, high : array of shape (n_values,) or (n_classes, n_values)
        Posterior mean, and the ends of a pointwise credible interval that includes the privacy
        noise; NaN if the release says nothing about it.
    steps : bool
        Whether the places are bins of a number, in each of which the value is constant.
    what : str
        What is added up.
    """

    name: str
    places: FloatArray
    labels: tuple[str, ...]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    steps: bool
    what: str


def summed_by_column(
    terms: FloatArray, column_of: npt.NDArray[np.intp], n_columns: int
) -> FloatArray:
    """Add up the terms (n_samples, n_coordinates) of the coordinates of every column.

    >>> summed_by_column(np.array([[1.0, 2.0, 4.0]]), np.array([0, 0, 1]), 2)
    array([[3., 4.]])
    """
    member = (np.arange(n_columns) == column_of[:, None]).astype(np.float64)
    return np.asarray(terms @ member)


def draws_generator(n_draws: int, random_state: Any) -> np.random.Generator:
    """Return a generator for so many public draws, by the parameter ``random_state``."""
    check_scalar(n_draws, "n_draws", Integral, min_val=1)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)


def column_number(names: Sequence[str], feature: Any) -> int:
    """Return the number of a column that is given by its name or number."""
    if isinstance(feature, Integral) and 0 <= int(feature) < len(names):
        return int(feature)
    if isinstance(feature, str) and feature in names:
        return [*names].index(feature)
    raise ValueError(
        f"feature must be the name of a column or its number, from 0 to {len(names) - 1}. "
        f"Got {feature!r} instead."
    )
