r"""What the two-valued features of a table have in common in a class: larger baskets, for example.

Let :math:`x_{cj}` be the estimated share of the second value and :math:`\bar x_j` its mean over the
classes, weighted by precision. The model

.. math:: x_{cj} - \bar x_j = a_c v_j + e_{cj}, \qquad v_j = m_j(1 - m_j), \qquad
    \operatorname{Var} e_{cj} = \frac{\sigma_j^2}{2n_c^2} + \frac{v_j}{n_c} + g_j v_j

has one effect :math:`a_c` of each class, in log odds, and the features' own spreads around it. It
is estimated by weighted least squares, and shrunk by
:math:`\bigl(1 - (8(C-1)/\sum_c z_c^2)^2\bigr)_+`, with :math:`z_c` the effect over its standard
error. So an effect within two standard errors is taken for none, and so is, by another factor, one
of half a unit of log odds or more, where the model is not linear. Rows are then read without the
effect, which is added to the result: rows that noise hides shrink to what the class does in
general, not to what all classes share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.standard_form import Rows

__all__ = ["ClassEffects", "class_effects"]

_LEAST_FEATURES = 10
_EVIDENCE = 8.0  # what the squared effects must exceed, in squared standard errors
_LARGEST = 0.5  # log odds, up to which an effect is nearly linear in the shares


@dataclass(frozen=True)
class ClassEffects:
    """Effects of all classes on the features of some rows.

    Attributes
    ----------
    effects : array of shape (C,)
        In log odds of the second value.
    errors : array of shape (C,)
        Their standard errors; 0 where there is no effect.
    """

    effects: FloatArray
    errors: FloatArray

    def taken_out(self, rows: Rows, pooled: FloatArray, counts: FloatArray) -> Rows:
        """Return the rows without the effects, for pooled rows (J, K)."""
        if not self.effects.any():
            return rows
        shift = counts * self.effects * pooled.prod(axis=1)[:, None]
        return replace(rows, contrasts=rows.contrasts - np.stack([-shift, shift], axis=-1))

    def put_back(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (J, C, K) with the effects."""
        if not self.effects.any():
            return mean, variance
        odds = mean[..., 1] / mean[..., 0] * np.exp(self.effects)
        share = odds / (1.0 + odds)
        error = (share * (1.0 - share) * self.errors)[..., None] ** 2
        return np.stack([1.0 - share, share], axis=-1), variance + error


def class_effects(
    rows: Rows, pooled: FloatArray, spread: FloatArray, counts: FloatArray
) -> ClassEffects:
    """Estimate the effects from rows, pooled rows (J, K), spreads (J,) and class counts (C,).

    Examples
    --------
    All of twenty items are more frequent in the second of two classes of a thousand records:

    >>> share = np.outer(np.linspace(0.1, 0.4, 20), [1.0, 1.5])
    >>> contrasts = 1000 * (np.stack([1 - share, share], -1) - 0.5)
    >>> rows = Rows(tuple(range(20)), contrasts, np.full(20, 100.0), ordered=False)
    >>> pooled = np.stack([1 - share.mean(1), share.mean(1)], -1)
    >>> class_effects(rows, pooled, np.full(20, 0.01), np.array([1000.0, 1000.0])).effects.round(2)
    array([-0.3,  0.3])
    """
    none = np.zeros(len(counts))
    if rows.size != 2 or len(rows.features) < _LEAST_FEATURES:
        return ClassEffects(none, none)
    v = pooled.prod(axis=1)[:, None]
    x = rows.shares(counts)[..., 1]
    variance = rows.noise[:, None] / (2.0 * counts**2) + v / counts + spread[:, None] * v
    centre = (x / variance).sum(axis=1) / (1.0 / variance).sum(axis=1)
    precision = (v**2 / variance).sum(axis=0)
    effects = (v * (x - centre[:, None]) / variance).sum(axis=0) / precision
    evidence = float((effects**2 * precision).sum())
    kept = max(1.0 - (_EVIDENCE * (len(counts) - 1) / max(evidence, 1e-12)) ** 2, 0.0)
    kept *= max(1.0 - (float(np.abs(effects).max()) / _LARGEST) ** 4, 0.0)
    if not kept:
        return ClassEffects(none, none)
    return ClassEffects(kept * effects, 1.0 / np.sqrt(precision))
