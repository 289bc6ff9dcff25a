"""Messages between noisy tables and the class counts they share: the star network.

With class counts n_c, which add to the public n, a cell of a feature's table adds the factor

    f(k) = Gamma(alpha + k) / (Gamma(alpha) k!) P(noise = z - k),

so a row with total N is worth the message [N! Gamma(A) / Gamma(A + N)] (f_1 * ... * f_K)(N), A
the sum of the alphas and * the convolution, and the class counts have posterior weights (their
own factors) times (the product of their rows' messages). That is a tree, so two passes of
convolutions give everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.posteriors.count_lattice import CountTable, Lattice
from dpbayes_sklearn.posteriors.count_laws import log_row_weight
from dpbayes_sklearn.posteriors.count_messages import (
    LINEAR,
    LOG,
    Algebra,
    Segment,
    SumTree,
    Window,
)

__all__ = ["NoisyStar"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_SPAN = 300.0  # largest difference of log weights in a window that doubles multiply safely
_NEGLIGIBLE = 40.0  # nats below the mode from which a class count is not looked at any more
_WIDER = 16.0  # factor on the nats of windows that turn out to cut the posterior


class NoisyStar:
    """Posterior of class counts that add to ``n`` and of the rows that hang on each of them.

    Parameters
    ----------
    classes : CountTable
        One row of noisy class counts.
    tables : sequence of CountTable
        For every feature one row of noisy counts per class.
    n : int
        Number of records.
    """

    def __init__(self, classes: CountTable, tables: Sequence[CountTable], n: int) -> None:
        self.classes, self.tables = classes, tables
        lattice = Lattice.for_star(classes, tables, n)
        wider = replace(lattice, nats=_WIDER * lattice.nats)
        for attempt in (lattice, wider, Lattice.over_everything(n)):
            if self._solve(attempt):
                break

    def _solve(self, lattice: Lattice) -> bool:
        """Send messages from the cells to the class counts; tell whether the windows sufficed."""
        self.lattice = lattice
        windows = list(zip(*lattice.class_windows(self.classes, self.tables), strict=True))
        self._alphas = [tuple(table.alpha.tolist()) for table in self.tables]
        self._rows = [self._row_trees(table, windows) for table in self.tables]
        own = lattice.cells(self.classes)[0]
        parts = [self._class_weights(c, own[c], *window) for c, window in enumerate(windows)]
        if any(np.isneginf(part.values).all() for part in parts):
            return False
        self._tree = _tree(parts, lattice.partial_sums(self.classes)(0, (lattice.points,) * 2))
        known = Segment(lattice.points, self._tree.algebra.of_log(np.zeros(1)))
        given = self._tree.parts_given(known)
        log_laws = [
            part.values + self._tree.algebra.to_log(rest.values)
            for part, rest in zip(parts, given, strict=True)
        ]
        if any(np.isneginf(law).all() for law in log_laws):
            return False
        self._laws = [_law(p.start, law) for p, law in zip(parts, log_laws, strict=True)]
        return not any(_cut(law, *window) for law, window in zip(self._laws, windows, strict=True))
