r"""The mode of a regression of ordered classes: cumulative logits, all in one release.

The log odds that a record of C classes lies above the k-th class are :math:`z_k = x^\top B w +
c_k`, with the same effects for every cut k between two classes: *proportional odds*. The loss of a
record is the mean over the C - 1 cuts of that of two classes, above and not above,

.. math:: \ell = \frac1{C-1}\sum_k \big[\log(1 + e^{z_k}) - [y > k] z_k\big] .

It is a composite likelihood: effects are those of the cumulative logits where these are
proportional, and an average over the cuts where they are not. The cuts are one more block of C - 1
levels, whose contrasts join those of the columns: :math:`x_k = (x, e_k)` is a record of two classes
with a column that says which cut is asked about, and :math:`p + C - 2` parameters.

**Noise.** The gradient is :math:`\frac1{C-1}\sum_k r_kx_k` with :math:`|r_k| \le 1`, a mean of
points of the hull of all :math:`\pm x` of these blocks, and so is in the hull. Noise of its norm is
that of two classes with one column more. Gaussian noise is proven for :math:`a\,x` only, which a
mean of several is not: a delta is not spent.

**Determinant.** Second derivatives :math:`\frac1{C-1}\sum_k \sigma_k(1 - \sigma_k)B^\top
x_kx_k^\top B` have a rank of at most C - 1, and a trace over the ridge of at most the q of two
classes with one column more (:mod:`dpbayes_sklearn.logistic.mode`), as the mean of numbers that
this q bounds.

**Exactly.** Sums are those of two classes, at C - 1 cuts, and their mean: C - 1 roundings of sums
more, which are less than the rounding of the residuals.

The ridge pulls effects to zero and cuts to those of classes that are alike. Cuts are sorted after
the release, as noise may turn neighbours around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import log_expit, logit

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.perturbed import PerturbedPlan
from dpbayes_sklearn.logistic.blocks import Blocks
from dpbayes_sklearn.logistic.mode import LogisticLoss, plan_mode
from dpbayes_sklearn.logistic.posterior import LogisticPosterior, OddsTable, odds_table
from dpbayes_sklearn.logistic.record_sums import MappedRecords, on_lattice
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema import Categories, Schema


def with_cuts(blocks: Blocks, n_classes: int) -> Blocks:
    """Return the blocks of the columns, and that of the cuts.

    >>> with_cuts(Blocks((Categories([*"ab"]),)), 4).sizes
    (2, 3)
    """
    return replace(blocks, domains=(*blocks.domains, Categories(range(n_classes - 1))))


@dataclass(frozen=True)
class OrderedLoss(LogisticLoss):
    """**Sensitive:** the loss of all records; the last of the blocks is that of the cuts."""

    @property
    def centre(self) -> FloatArray:
        """What the ridge pulls parameters to."""
        return centre_of(self.blocks)

    def _at_cuts(self, w: FloatArray) -> Iterator[tuple[MappedRecords, FloatArray]]:
        """Yield records of two classes, above a cut and not, and their coefficients."""
        own, cuts = np.split(on_lattice(self.blocks.basis @ w), self.blocks.starts[-2:-1])
        for k, cut in enumerate(cuts):
            reader = self.records.reader._replace(above=k)
            yield replace(self.records, reader=reader, level=float(cut)), own

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient at parameters of coefficients on the lattice."""
        sums = np.stack([records.gradient(own)[0] for records, own in self._at_cuts(w)])
        mean = np.append(sums.sum(axis=0), sums[:, 0]) / len(sums)
        return np.asarray(mean @ self.blocks.basis)

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        each = np.stack([records.curvature(own) for records, own in self._at_cuts(w)])
        rows, basis = each[:, 0], self.blocks.basis
        whole = np.block([[each.sum(axis=0), rows.T], [rows, np.diag(rows[:, 0])]]) / len(each)
        return np.asarray(basis.T @ whole @ basis)


def plan_ordered(
    blocks: Blocks, n: int, epsilon: Fraction, unit: PrivacyUnit, rho: float, prior: float | None
) -> PerturbedPlan:
    """Choose ridge and noise of the blocks of columns and cuts, by the rules of two classes."""
    given = n, epsilon, unit, rho, prior
    return plan_mode(blocks, *given, rank=blocks.sizes[-1], centre=centre_of(blocks))


def centre_of(blocks: Blocks) -> FloatArray:
    """Return what the ridge pulls parameters to: no effects, and even cuts."""
    cuts = even_cuts(blocks.sizes[-1])
    return np.asarray(cuts @ blocks.basis[blocks.starts[-2] :])


def even_cuts(cuts: int) -> FloatArray:
    """Return the log odds of a class above each but the last, of classes that are alike.

    >>> even_cuts(3).round(2).tolist()
    [1.1, 0.0, -1.1]
    """
    return np.asarray(logit(np.arange(cuts, 0, -1) / (cuts + 1)))


def of_sorted(
    of: Callable[[FloatArray], AnyArray], places: IntArray, answers: FloatArray
) -> AnyArray:
    """Return ``of`` answers whose columns are those of sorted classes, as scikit-learn expects."""
    return of(answers[:, places])


@dataclass(frozen=True)
class OrderedPosterior(LogisticPosterior):
    """A released mode of ordered classes, with effects on the log odds of a higher class.

    Attributes
    ----------
    cuts : array of shape (n_classes - 1,)
        What is added to the log odds of a class above each class but the last, in falling order.
    """

    cuts: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, blocks: Blocks, whole: LogisticPosterior) -> OrderedPosterior:
        """Return the effects of the columns and, sorted, the cuts: the last of the blocks."""
        p = blocks.parameters - (blocks.sizes[-1] - 1)
        cuts = (blocks.basis @ whole.parameters)[blocks.starts[-2] :]
        even = even_cuts(len(cuts))
        given = {**vars(whole), "cuts": np.sort(even + whole.scale * (cuts - even))[::-1]}
        given |= {name: given[name][:p] for name in ("parameters", "ridge", "noise")}
        return cls(**given)

    @property
    def plain(self) -> LogisticPosterior:
        """The effects alone."""
        return LogisticPosterior(
            **{name: value for name, value in vars(self).items() if name != "cuts"}
        )

    def fits(self, blocks: Blocks, n_classes: int = 2) -> bool:
        """Tell whether all arrays have the shapes and signs that a model needs."""
        cuts = self.cuts.shape == (n_classes - 1,) and bool((np.diff(self.cuts) <= 0).all())
        plain = not (self.has_intervals or len(self.draws))
        return n_classes > 2 and cuts and plain and super().fits(blocks)

    def answers(self, z: FloatArray) -> FloatArray:
        r"""Return log probabilities of all classes, (rows, classes).

        .. math:: \log(\sigma(a) - \sigma(b)) = \log\sigma(a) + \log\sigma(-b) + \log(1 - e^{b-a})
        """
        at = z + self.cuts
        ends = np.full((len(at), 1), np.inf)
        with np.errstate(divide="ignore"):  # classes of no width
            between = np.log(-np.expm1(np.append(np.diff(self.cuts), -np.inf)))
        lower, upper = np.hstack([ends, at]), np.hstack([at, -ends])
        return np.asarray(log_expit(lower) + log_expit(-upper) + np.insert(between, 0, 0.0))

    def table(self, schema: Schema, blocks: Blocks, level: float, labels: list[Any]) -> OddsTable:
        """Return effects on the log odds of a higher class, and those odds for every cut."""
        table = odds_table(schema, blocks, self, level)
        constant = table.rows[0].shifted(0.0)
        rows = [
            constant.shifted(float(cut))._replace(name=f"above {label}")
            for cut, label in zip(self.cuts, labels, strict=False)
        ]
        why = "Estimates only: intervals need two classes."
        return replace(table, rows=(*rows, *table.rows[1:]), no_intervals=why)
