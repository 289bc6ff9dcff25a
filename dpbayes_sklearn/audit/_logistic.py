r"""The perturbed mode of a logistic regression as a step of a release.

Between two data sets, the records that only one of them has move the gradient by :math:`\sum \pm
r\,x` with residuals r of the sign that their labels fix, wherever the mode is: a convex function of
residuals, which is largest at corners. The volume moves by at most :math:`\prod(1 + \tfrac14
x^\top B\Lambda^{-1}B^\top x)`; the noise of the search is paid for on both sides.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.audit._steps import Step
from dpbayes_sklearn.logistic.blocks import STEPS
from dpbayes_sklearn.logistic.mode import ModePlan, tilt_of

__all__ = ["LogisticMode", "weighed_records"]


def weighed_records(records: Any) -> FloatArray:
    """Return (weights, label) of all records as a release sees them."""
    rows: list[FloatArray] = []

    def collected(shard: Any) -> int:
        for codes, labels in records.reader.chunks(shard):
            weights = records.reader.blocks.weights(codes, records.tables) / STEPS
            rows.append(np.column_stack([weights, labels]))
        return 0

    records.records.total(collected)
    return np.concatenate([np.empty((0, records.reader.blocks.width + 1)), *rows])


@dataclass(frozen=True)
class LogisticMode(Step):
    """The mode of a perturbed logistic regression; ``records`` are (weights, label)."""

    records: FloatArray
    plan: ModePlan

    def key(self) -> bytes:
        """Return everything, the records in one order."""
        order = np.lexsort(self.records.T)
        return self._public + self.records[order].tobytes()

    @property
    def _public(self) -> bytes:
        return repr(self.plan._replace(ridge=self.plan.ridge.tolist())).encode()

    def _loss(self, other: LogisticMode) -> float:
        if self._public != other._public:
            return math.inf
        mine, theirs = (Counter(map(tuple, own.records.tolist())) for own in (self, other))
        gone, come = ([*(a - b).elements()] for a, b in ((mine, theirs), (theirs, mine)))
        if not (gone or come):
            return 0.0
        volume = max(self._volume(gone), self._volume(come))
        return self._pulled(gone, come) + volume + float(2 / self.plan.jitter.scale)

    def _pulled(self, gone: list[tuple[float, ...]], come: list[tuple[float, ...]]) -> float:
        signed = [(1, row) for row in gone] + [(-1, row) for row in come]
        x = np.array([row[:-1] for _, row in signed]).T
        ends = [(0, sign * (1 if row[-1] == 0 else -1)) for sign, row in signed]
        moved = max(self._norm(x @ np.array(corner)) for corner in product(*ends))
        cells = 2 * max(self.plan.blocks.sizes) / self.plan.lattice
        return (moved + cells) * self.plan.lattice / float(self.plan.pull.scale)

    def _norm(self, shift: FloatArray) -> float:
        """Return the largest L1 norm of a block, or the size of the constant's entry."""
        by_block = np.add.reduceat(np.abs(shift), [0, *self.plan.blocks.starts[:-1]])
        return float(by_block.max())

    def _volume(self, rows: list[tuple[float, ...]]) -> float:
        x = np.array(rows).reshape(len(rows), self.records.shape[1])[:, :-1]
        x = x @ self.plan.blocks.basis
        return float(np.log1p((np.square(x) / self.plan.ridge).sum(axis=1) / 4).sum())

    def log_density(self, w: FloatArray) -> FloatArray:
        """Return the log of the density of the exact mode at rows of parameters.

        Needs an intercept: then a gradient determines the noise.
        """
        blocks, ridge = self.plan.blocks, self.plan.ridge
        x, y = self.records[:, :-1] @ blocks.basis, self.records[:, -1]
        q = expit(w @ x.T)
        gradient = ridge * w + (q - y) @ x
        noise = gradient @ blocks.basis.T
        for start, size in zip(blocks.starts, blocks.sizes, strict=False):
            noise[:, start : start + size] += gradient[:, :1] / size
        norm = np.array([self._norm(each) for each in noise]) * self.plan.lattice
        curvature = np.einsum("rn,ni,nj->rij", q * (1 - q), x, x) + np.diag(ridge)
        return np.asarray(np.linalg.slogdet(curvature)[1] - norm / float(self.plan.pull.scale))

    def left(self, found: FloatArray, noise: IntArray) -> float:
        """Return the norm of the gradient at what was found, and how far the noise may be off."""
        plan, blocks = self.plan, self.plan.blocks
        x, y = self.records[:, :-1] @ blocks.basis, self.records[:, -1]
        pulls = np.split(noise, np.cumsum(blocks.sizes))
        gradient = plan.ridge * found + (expit(x @ found) - y) @ x + tilt_of(plan, *pulls)
        sizes = np.array(blocks.sizes)
        cell = math.sqrt(1 + float((sizes + sizes**2).sum())) / 2 / plan.lattice
        return float(np.linalg.norm(gradient)) + cell
