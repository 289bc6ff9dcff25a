"""Second moments of records in several places: every question is asked everywhere and added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.data.records import Part, Records
from dpbayes_sklearn.schema.domains import as_numbers
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.moment_blocks import whole_block
from dpbayes_sklearn.statistics.moments import (
    WHOLE,
    Moments,
    Predictive,
    ReleasedMoments,
    Window,
    check_grid,
)

__all__ = ["PooledMoments"]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, repr=False)
class PooledMoments:
    """Records whose sums of products can be asked for, wherever they are.

    **Sensitive.** The same as :class:`Moments` of all records at once: sums of integers do not
    depend on how the records are spread.

    Attributes
    ----------
    design : Design
        What the columns of the records mean.
    scale : Scale
        The map of the target's bounds to [-1, 1].
    records : Records
    """

    design: Design
    scale: Scale
    records: Records

    kind: ClassVar[str] = "moments"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records.n

    @property
    def structure(self) -> tuple[Design, Scale]:
        """The public model that the moments are of."""
        return self.design, self.scale

    def __add__(self, other: PooledMoments) -> PooledMoments:
        """Return the moments of the records of both, which must be different records."""
        if self.structure != other.structure:
            raise ValueError("Moments of different models cannot be added.")
        return PooledMoments(self.design, self.scale, self.records + other.records)

    def sensitivity(self, unit: str) -> float:
        """Return how far neighbours can move the whole upper triangle; see `moment_blocks`."""
        if unit != "record":
            raise ValueError("Linear regression protects whole records: privacy_unit='record'.")
        return float(whole_block(self.design).together)

    def target_sums(self, grid: int) -> IntArray:
        """Return the sums of y and y² in units of 1/grid², exactly."""
        check_grid(self.n, grid)
        return self._total(partial(Moments.target_sums, grid=grid))

    def gram(self, grid: int, window: Window) -> IntArray:
        """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t)."""
        check_grid(self.n, grid)
        return self._total(partial(Moments.gram, grid=grid, window=window))

    def squared_residuals(self, model: Predictive, grid: int, every: int) -> tuple[int, int]:
        """Return the sum of squared residuals on the grid, and the rows it is over."""
        check_grid(self.n, grid)
        total, used = self._total(partial(_residuals, model=model, grid=grid, every=every))
        return int(total), int(used)

    def without_noise(self) -> ReleasedMoments:
        """Return the moments when no privacy is asked for: not rounded to the grid either."""
        gram = self._total(Moments.plain_gram)
        return ReleasedMoments(self.design, self.n, gram, np.zeros(gram.shape), WHOLE)

    def _total(self, ask: Callable[[Moments], npt.NDArray[T]]) -> npt.NDArray[T]:
        return self.records.total(partial(_ask, self.design, self.scale, ask))


def _residuals(moments: Moments, model: Predictive, grid: int, every: int) -> IntArray:
    return np.array(moments.squared_residuals(model, grid, every))


def _ask(
    design: Design, scale: Scale, ask: Callable[[Moments], npt.NDArray[T]], part: Part
) -> npt.NDArray[T]:
    return ask(Moments(design, part.table, as_numbers(part.target), scale, part.start))
