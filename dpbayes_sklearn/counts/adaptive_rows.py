r"""Adaptive inference: rows of released tables, and how far they spread around their pooled row.

**Released tables in one form, whatever the noise: row contrasts, and class counts.**

A released row z of a class with :math:`n_c` records is split into its contrasts
:math:`u_k = z_k - \bar z`, with :math:`E u = n_c(\theta - 1/K)`, and its sum, which all features
share. Noise is isotropic on contrasts, of variance :math:`\sigma_j^2` per degree of freedom.

**Pooled rows: what a feature's values look like when all classes are taken together.**

Row estimates x have variance near :math:`1/\omega_c = \sigma^2/n_c^2 + \frac1K(1-\frac1K)/n_c` per
degree of freedom. Pooled rows have the prior :math:`N(h, \varrho_j)` around a row h that all
features of the same size share: for Boolean columns that is a common base rate.

**Coordinates of rows in which prior spread, sampling and noise all separate.**

Around the pooled row m, counts of :math:`n_c` records have covariance A/n_c with
:math:`A = \mathrm{diag}(m) - m m^T`, noise is isotropic, and the rows' prior covariance is gS.

*Exchangeable*: S = A. Eigenvectors of A diagonalise all three.

*Smooth*, for ordered values: :math:`S = P\,\mathrm{diag}(m)\,R\,\mathrm{diag}(m)\,P^T`, with R a
Matern correlation of adjacent values and P the projection that keeps the row sum, scaled to the
trace of A, of which it keeps a small share. Generalised eigenvectors of S and of noise plus
sampling, at the mean class count, diagonalise all three for equal classes; for others the
remaining correlation is left out.

**How far rows spread around their pooled row: a mixture learned from all features.**

Evidence for a spread g with the pooled row integrated out under a flat prior. In coordinates of a
class, :math:`s_c = \sigma^2/n_c^2 + \lambda/n_c + g\lambda`; with :math:`w = \sum_c 1/s_c` and
:math:`\bar x = \sum_c x_c/s_c / w`,

.. math:: \ell = -\tfrac12 \Bigl[\sum_c \log s_c + \log w + \sum_c (x_c - \bar x)^2/s_c\Bigr].

So only differences of classes speak for a spread. Under the prior :math:`N(h, \varrho)` the shape
of the pooled row did, and where one class has nearly all records the rows of the other were
flattened.

**Evidence of rows about class counts.**

Contrasts of a row are :math:`n_c` times what the other classes' rows let expect. The pooled row has
precision :math:`W = w + 1/\varrho` and mean :math:`\hat\mu = (w \bar x + h/\varrho)/W`. With it
learned from the other classes only, :math:`W_- = W - 1/s_c` and
:math:`\mu_- = (W\hat\mu - x_c/s_c)/W_-`, the log message for a count :math:`\nu` is

.. math:: \sum_j \sum_l \log N\bigl(a_{cl};\; \nu\mu_-,\;
    \sigma^2 + \nu\lambda + \nu^2 (\bar g\lambda + 1/W_-)\bigr)

with the mean spread :math:`\bar g` of the feature.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes_sklearn._typing import FloatArray

_POOLING_ROUNDS = 3  # h and its variance are estimated in turn this many times.
_PSEUDO_FEATURES = 5.0  # The prior of what features share counts as this many features.
_SHARED_FREEDOM = 8.0  # The common variance counts as 8 degrees of freedom in a feature's own.
_CORRELATION_LENGTH = 0.1  # Correlation length of smooth rows, in units of a feature's range.
_ROUGH_SHARE = 0.05  # Adjacent values share all but this part of smooth rows' variance.
_MOST_SMOOTH_VALUES = 64  # With more values cells are coordinates themselves, and not smooth.
_LEAST_VARIANCE = 1e-15  # Variances are at least this, so that their logarithms are finite.
_NO_SPREAD = 0.1  # Prior probability of g = 0.
_LOG_G_SD = 1.2  # Prior standard deviation of log g.
_SMOOTH = 0.5  # Prior probability that rows of ordered values are smooth, if they spread at all.
_EM_ROUNDS = 60  # The weights of the spreads are estimated in this many rounds of EM.


@dataclass(frozen=True)
class FeatureRows:
    """Rows of J features that have the same number K of values."""

    features: tuple[int, ...]  # Which features these are.
    contrasts: FloatArray  # (J, C, K): released counts less their row means.
    noise: FloatArray  # (J,): variance of the noise, per degree of freedom of the contrasts.
    ordered: bool  # Whether the values are adjacent intervals of a number.

    @cached_property
    def size(self) -> int:
        """Number K of values."""
        return int(self.contrasts.shape[2])

    def shares(self, counts: FloatArray) -> FloatArray:
        """Return unbiased row estimates u/n_c + 1/K for given class counts: (J, C, K)."""
        return np.asarray(self.contrasts / counts[:, None] + 1.0 / self.size)


def group_rows(
    tables: Sequence[FloatArray], contrast_variance: Sequence[float], ordered: Sequence[bool]
) -> list[FeatureRows]:
    """Group features by number of values and order, leaving out those with a single value.

    >>> tables = [np.ones((2, 2)), np.ones((2, 3)), np.zeros((2, 2)), np.ones((2, 1))]
    >>> [rows.features for rows in group_rows(tables, [1.0] * 4, [False] * 4)]
    [(0, 2), (1,)]
    """
    alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for j, table in enumerate(tables):
        if table.shape[1] > 1:
            alike[table.shape[1], bool(ordered[j]) and table.shape[1] > 2].append(j)
    groups = []
    for (_, sequential), features in sorted(alike.items()):
        stacked = np.stack([np.asarray(tables[j], np.float64) for j in features])
        noise = np.array([float(contrast_variance[j]) for j in features])
        contrasts = stacked - stacked.mean(axis=2, keepdims=True)
        groups.append(FeatureRows(tuple(features), contrasts, noise, sequential))
    return groups


@dataclass(frozen=True)
class PooledRows:
    """Pooled rows of J features, and the prior that they came from."""

    mean: FloatArray  # (J, K): positive rows that sum to one.
    center: FloatArray  # (K,): the h.
    variance: FloatArray  # (J,): the variance around it per degree of freedom.
    floor: FloatArray  # (J,): what was added to every value before the rows were normalised.

    def positive(self, rows: FloatArray) -> FloatArray:
        """Bring rows of shape (J, K) to the simplex, off its boundary."""
        lifted = on_simplex(rows) + self.floor[:, None]
        return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def on_simplex(rows: FloatArray) -> FloatArray:
    """Project rows to the nearest probability vectors.

    >>> on_simplex(np.array([[0.9, 0.3, -0.2]]))
    array([[0.8, 0.2, 0. ]])
    """
    falling = -np.sort(-rows, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - 1.0) / np.arange(1, rows.shape[-1] + 1)
    last = (falling > excess).sum(axis=-1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(excess, np.maximum(last, 0), axis=-1), 0.0)


def smooth_kernel(size: int) -> FloatArray:
    """Return the Matern-3/2 correlation of the values of a feature with ordered values."""
    gaps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (
        _CORRELATION_LENGTH * size
    )
    return np.asarray((1.0 + gaps) * np.exp(-gaps))


def with_rough_share(smooth: FloatArray, rough: FloatArray) -> FloatArray:
    """Mix a smooth covariance, scaled to the trace of the rough one, with the latter."""
    scale = np.trace(rough, axis1=-2, axis2=-1) / np.trace(smooth, axis1=-2, axis2=-1)
    share = (1.0 - _ROUGH_SHARE) * scale
    return np.asarray(share[..., None, None] * smooth + _ROUGH_SHARE * rough)


def pool(rows: FeatureRows, counts: FloatArray, n: float, alpha: float) -> PooledRows:
    """Return the pooled rows for given class counts; alpha is that of a Dirichlet over rows."""
    K, x = rows.size, rows.shares(counts)
    sampling = (1.0 - 1.0 / K) / K / counts
    precision = 1.0 / (rows.noise[:, None] / counts**2 + sampling)
    total = precision.sum(axis=1)
    pooled = (precision[..., None] * x).sum(axis=1) / total[:, None]
    center, common = _hyperprior(pooled, total, alpha)
    variance = _own_variance(((pooled - center) ** 2).sum(axis=1) / (K - 1), total, common, K)
    if rows.ordered:
        flat = np.eye(K) - 1.0 / K
        shape = with_rough_share(flat @ smooth_kernel(K) @ flat, flat)
        prior = variance[:, None, None] * shape
        gain = np.linalg.solve(prior + np.eye(K) / total[:, None, None], prior)
        mean = center + np.einsum("jwv,jw->jv", gain, pooled - center)
    else:
        gain = variance * total / (1.0 + variance * total)
        mean = center + gain[:, None] * (pooled - center)
    deviation = np.sqrt(variance / (1.0 + variance * total))
    floor = np.maximum(0.5 * alpha / max(n, 1.0), 0.25 * deviation / np.sqrt(K))
    unprojected = PooledRows(mean, center, variance, floor)
    return PooledRows(unprojected.positive(mean), center, variance, floor)


def _own_variance(
    squares: FloatArray, precision: FloatArray, common: float, size: int
) -> FloatArray:
    """Return each feature's variance around the center: rows with one likely value are far off.

    A feature's own moment counts as its degrees of freedom, as far as it is not noise.
    """
    own = np.clip(squares - 1.0 / precision, 0.0, 1.0 / (size - 1))
    freedom = (size - 1) * (common / (common + 1.0 / precision)) ** 2
    return np.asarray((freedom * own + _SHARED_FREEDOM * common) / (freedom + _SHARED_FREEDOM))


def _hyperprior(
    pooled: FloatArray, precision: FloatArray, alpha: float
) -> tuple[FloatArray, float]:
    r"""Return center and variance of pooled rows of one size.

    The variance :math:`v_0 = 1/(K(\alpha K + 1))` of a Dirichlet counts as five more features, and
    1/K with precision 2/v_0 as a prior of the center.
    """
    J, K = pooled.shape
    flat = 1.0 / (K * (alpha * K + 1.0))
    variance = flat
    for _ in range(_POOLING_ROUNDS):
        weight = 1.0 / (variance + 1.0 / precision)
        total = weight.sum() + 2.0 / flat
        center = (weight @ pooled + 2.0 / flat / K) / total
        spread = ((pooled - center) ** 2).sum(axis=1) / (K - 1) - 1.0 / precision
        moment = (spread.sum() + _PSEUDO_FEATURES * flat) / (J + _PSEUDO_FEATURES)
        variance = float(np.clip(moment, 0.05 * flat, 2.0 * flat) + 1.0 / total)
    return center, variance


@dataclass(frozen=True)
class Components:
    """L coordinates of J features' rows."""

    # forward, backward: (J, K, L) or None: coordinates of contrasts, and contrasts of coordinates.
    forward: FloatArray | None
    backward: FloatArray | None
    # isotropic, sampling, spread: (J, L): diagonals of the identity, of A and of S in these
    # coordinates.
    isotropic: FloatArray
    sampling: FloatArray
    spread: FloatArray
    log_volume: FloatArray  # (J,): logarithm of the determinant of ``forward``.
    weight: float = 1.0  # Degrees of freedom that one coordinate is worth.
    covariance: FloatArray | None = None  # (J, K, K) or None: S if it is smooth.

    def coordinates(self, contrasts: FloatArray) -> FloatArray:
        """Return coordinates (J, ..., L) of contrasts (J, ..., K)."""
        if self.forward is None:
            return contrasts
        return np.asarray(np.einsum("j...k,jkl->j...l", contrasts, self.forward))

    def contrasts(self, coordinates: FloatArray) -> FloatArray:
        """Return the contrasts (J, K) that have the coordinates (J, L)."""
        if self.backward is None:
            return coordinates
        return np.asarray(np.einsum("jl,jkl->jk", coordinates, self.backward))


def exchangeable(pooled: FloatArray) -> Components:
    """Return the components of rows that spread as a Dirichlet around pooled rows (J, K)."""
    J, K = pooled.shape
    if K > _MOST_SMOOTH_VALUES:
        variance = np.maximum(pooled * (1.0 - pooled), _LEAST_VARIANCE)
        even = np.full((J, K), 1.0 - 1.0 / K)
        return Components(None, None, even, variance, variance, np.zeros(J), 1.0 - 1.0 / K)
    # the constant vector is moved to the top of the spectrum and left out
    values, vectors = np.linalg.eigh(_sampling(pooled) + 2.0 / K)
    variance, vectors = np.maximum(values[:, :-1], _LEAST_VARIANCE), vectors[..., :-1]
    return Components(vectors, vectors, np.ones_like(variance), variance, variance, np.zeros(J))


def smooth(pooled: FloatArray, noise: FloatArray, count: float) -> Components | None:
    """Return the components of smooth rows, for classes of ``count`` records; None if too many."""
    K = pooled.shape[1]
    if K > _MOST_SMOOTH_VALUES:
        return None
    sampling, basis = _sampling(pooled), _contrast_basis(K)
    keep = np.eye(K) - pooled[..., None]
    weighted = keep * pooled[:, None, :]
    covariance = with_rough_share(weighted @ smooth_kernel(K) @ _transposed(weighted), sampling)
    error = noise[:, None, None] / count**2 * np.eye(K) + sampling / count
    root = np.linalg.cholesky(basis.T @ error @ basis)
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(
        inverse @ (basis.T @ covariance @ basis) @ _transposed(inverse)
    )
    forward = basis @ _transposed(inverse) @ vectors
    return Components(
        forward,
        basis @ root @ vectors,
        (forward**2).sum(axis=1),
        (forward * (sampling @ forward)).sum(axis=1),
        np.maximum(values, _LEAST_VARIANCE),
        -np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1),
        covariance=covariance,
    )


def _sampling(pooled: FloatArray) -> FloatArray:
    """Return diag(m) - m m^T, by feature."""
    K = pooled.shape[1]
    return np.asarray(pooled[..., None] * np.eye(K) - pooled[..., None] * pooled[:, None, :])


def _contrast_basis(size: int) -> FloatArray:
    """Return orthonormal vectors of sum zero, (K, K-1)."""
    start = np.eye(size)
    start[:, 0] = 1.0
    return np.asarray(np.linalg.qr(start)[0][:, 1:])


def _transposed(matrices: FloatArray) -> FloatArray:
    return np.swapaxes(matrices, -1, -2)


# Values of the spread g of the rows of a feature whose evidence is compared.
SPREADS = np.array([0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6])


@dataclass(frozen=True)
class RowEvidence:
    """What the rows of J features say about G spreads, and pooled rows given each of them."""

    components: Components
    spreads: FloatArray  # (G,).
    log_evidence: FloatArray  # (J, G).
    observed: FloatArray  # (J, C, L): coordinates of row estimates.
    precision: FloatArray  # (J, C, L, G): the 1/s.
    # pooled_precision, pooled_mean: (J, L, G).
    pooled_precision: FloatArray
    pooled_mean: FloatArray


def evidence(
    rows: FeatureRows,
    pooled: PooledRows,
    components: Components,
    spreads: FloatArray,
    counts: FloatArray,
) -> RowEvidence:
    """Return the evidence of rows for each of the spreads, at given class counts."""
    parts = components
    observed = parts.coordinates(rows.contrasts) / counts[:, None]
    center = parts.coordinates(np.broadcast_to(pooled.center - 1.0 / rows.size, pooled.mean.shape))[
        ..., None
    ]
    error = (rows.noise[:, None] / counts**2)[..., None] * parts.isotropic[:, None]
    error = error + parts.sampling[:, None] / counts[:, None]
    variance = error[..., None] + parts.spread[:, None, :, None] * spreads
    precision, prior = 1.0 / variance, (pooled.variance[:, None] * parts.isotropic)[..., None]
    total = precision.sum(axis=1) + 1.0 / prior
    mean = ((observed[..., None] * precision).sum(axis=1) + center / prior) / total
    own = precision.sum(axis=1)
    between = (observed[..., None] * precision).sum(axis=1) / own
    misfit = ((observed[..., None] - between[:, None]) ** 2 * precision).sum(axis=1)
    log = np.log(variance).sum(axis=1) + np.log(own)
    log_evidence = -0.5 * parts.weight * (log + misfit).sum(axis=1)
    log_evidence += (len(counts) - 1) * parts.log_volume[:, None]
    return RowEvidence(parts, spreads, log_evidence, observed, precision, total, mean)


def prior_weights(freedom: int, ordered: bool) -> FloatArray:
    r"""Return prior weights of the spreads; of ordered features exchangeable, then smooth ones.

    Positive spreads are log-normal around :math:`\min(3/D, 0.3)`, D being the degrees of freedom
    of all rows together: many features cannot all be very informative.

    >>> prior_weights(100, ordered=False).round(2)
    array([0.1 , 0.  , 0.01, 0.05, 0.22, 0.34, 0.21, 0.05, 0.02])
    """
    away = np.log(SPREADS[1:] / min(3.0 / freedom, 0.3)) / _LOG_G_SD
    positive = np.exp(-0.5 * away**2)
    positive *= (1.0 - _NO_SPREAD) / positive.sum()
    if ordered:
        return np.concatenate([[_NO_SPREAD], (1.0 - _SMOOTH) * positive, _SMOOTH * positive])
    return np.concatenate([[_NO_SPREAD], positive])


def mixture(log_evidence: Sequence[FloatArray], prior: FloatArray) -> list[FloatArray]:
    """Learn the weights of the spreads by EM; return each feature's posterior over them.

    The prior counts as five more features.
    """
    every = np.concatenate(list(log_evidence))
    likelihood = np.exp(every - every.max(axis=1, keepdims=True))
    weights, pseudo = prior, _PSEUDO_FEATURES * prior
    for _ in range(_EM_ROUNDS):
        weights = weights * ((1.0 / (likelihood @ weights)) @ likelihood) + pseudo
        weights /= weights.sum()
    posterior = weights * likelihood
    posterior /= posterior.sum(axis=1, keepdims=True)
    ends = np.cumsum([len(part) for part in log_evidence])[:-1]
    return np.split(posterior, ends)


def row_messages(
    rows: FeatureRows, found: RowEvidence, posterior: FloatArray, nodes: FloatArray
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


class Reading:
    """The rows of all features, read at given class counts."""

    def __init__(
        self, groups: list[FeatureRows], counts: FloatArray, n: float, freedom: int, alpha: float
    ) -> None:
        self.groups, self.counts = groups, counts
        self.pooled: list[PooledRows] = []
        self.found: list[list[RowEvidence]] = []
        for rows in groups:
            pooled = pool(rows, counts, n, alpha)
            self.pooled.append(pooled)
            self.found.append(self._evidence(rows, pooled, n / len(counts)))
        self.posterior: dict[int, list[FloatArray]] = {}
        for kinds in (1, 2):  # exchangeable rows only; or smooth ones as well
            some = [i for i, found in enumerate(self.found) if len(found) == kinds]
            if not some:
                continue
            logs = [np.concatenate([e.log_evidence for e in self.found[i]], 1) for i in some]
            weights = mixture(logs, prior_weights(freedom, kinds == 2))
            for i, weight in zip(some, weights, strict=True):
                self.posterior[i] = np.split(weight, [len(SPREADS)], axis=1)[:kinds]

    def _evidence(self, rows: FeatureRows, pooled: PooledRows, count: float) -> list[RowEvidence]:
        parts = exchangeable(pooled.mean)
        found = [evidence(rows, pooled, parts, SPREADS, self.counts)]
        wavy = smooth(pooled.mean, rows.noise, count) if rows.ordered else None
        if wavy is not None:
            found.append(evidence(rows, pooled, wavy, SPREADS[1:], self.counts))
        return found

    def messages(self, nodes: FloatArray) -> FloatArray:
        """Return the log messages of all rows about class counts."""
        total = np.zeros_like(nodes)
        for i, rows in enumerate(self.groups):
            for found, weights in zip(self.found[i], self.posterior[i], strict=True):
                total += row_messages(rows, found, weights, nodes)
        return total
