"""Exact Bayes on counts that were released with discrete Laplace noise: the star network.

The released tables are data with a known law. With class counts n_c (adding to the public n), a
cell of a feature's table adds the factor

    f(k) = Gamma(alpha + k) / (Gamma(alpha) k!) P(noise = z - k),

so a row with total N is worth the message [N! Gamma(A) / Gamma(A + N)] (f_1 * ... * f_K)(N), A
the sum of the alphas and * the convolution, and the class counts have posterior weights (their
own factors) times (the product of their rows' messages). That is a tree, so two passes of
convolutions give everything; see :mod:`dpbayes_sklearn.posteriors.count_messages`.

Sums of noises stay in known windows, so the cost does not depend on n. Every integer is visited
as long as that is cheap. Otherwise counts live on a lattice with a step that is small beside the
standard deviation of everything inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.posteriors.count_lattice import Lattice
from dpbayes_sklearn.posteriors.count_laws import NoiseLaw, log_row_weight
from dpbayes_sklearn.posteriors.count_messages import LINEAR, LOG, Segment, SumTree

__all__ = ["StarInference", "infer_star"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_NEGLIGIBLE = 50.0  # nats below the mode from which a class count is not looked at any more


class _Star:
    """Class counts that add to a known total, and the rows that hang on each of them."""

    def __init__(self, classes: Table, tables: Sequence[Table], n: int) -> None:
        self.classes, self.tables, self.n = classes, tables, n
        self._solve(Lattice.for_star(classes, tables, n))
        if not self.possible:  # counts that this noise cannot have produced
            self._solve(Lattice.whole_range(n))

    def _solve(self, lattice: Lattice) -> None:
        self.lattice = lattice
        windows = lattice.class_windows(self.classes, self.tables)
        rows = [self._rows(table, windows) for table in self.tables]
