r"""Evidence of rows about class counts.

Contrasts of a row are :math:`n_c` times what the other classes' rows let expect. With the pooled
row learned from the other classes only, :math:`W_- = W - 1/s_c` and
:math:`\mu_- = (W\hat\mu - x_c/s_c)/W_-`, the log message for a count :math:`\nu` is

.. math:: \sum_j \sum_l \log N\bigl(a_{cl};\; \nu\mu_-,\;
    \sigma^2 + \nu\lambda + \nu^2 (\bar g\lambda + 1/W_-)\bigr)

with the mean spread :math:`\bar g` of the feature.
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.spread import Evidence
from dpbayes_sklearn.posteriors.adaptive.standard_form import Rows

__all__ = ["row_messages"]


def row_messages(
    rows: Rows, found: Evidence, posterior: FloatArray, nodes: FloatArray
) -> FloatArray:
    """Return the log messages (C, nodes) of one set of features, at nodes (C, nodes).

    ``posterior`` holds the features' weights (J, G) of the spreads; features with little weight
    on these components say little here.
    """
    parts, share = found.components, posterior.sum(axis=1)
    use = share > 1e-3
    if not use.any():
        return np.zeros_like(nodes)
    weights = posterior[use] / share[use, None]
    spread = (weights @ found.spreads)[:, None] * parts.spread[use]
    total = np.einsum("jlg,jg->jl", found.pooled_precision[use], weights)
    mean = np.einsum("jlg,jg->jl", found.pooled_mean[use], weights)
    precision = np.einsum("jclg,jg->jcl", found.precision[use], weights)
    noise = rows.noise[use, None] * parts.isotropic[use]
    sampling = parts.sampling[use]
    contrasts = parts.coordinates(rows.contrasts)[use]
    messages = np.empty_like(nodes)
    for c, count in enumerate(nodes):
        others = np.maximum(total - precision[:, c], 1e-12 * total)
        expected = (total * mean - found.observed[use, c] * precision[:, c]) / others
        nu = count[:, None, None]
        variance = noise + nu * (sampling + nu * (spread + 1.0 / others))
        log = np.log(variance) + (contrasts[:, c] - nu * expected) ** 2 / variance
        messages[c] = -0.5 * parts.weight * (log.sum(axis=2) @ share[use])
    return messages
