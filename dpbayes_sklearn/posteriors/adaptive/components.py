r"""Coordinates of rows in which prior spread, sampling and noise all separate.

Around the pooled row m, counts of :math:`n_c` records have covariance A/n_c with
:math:`A = \mathrm{diag}(m) - m m^T`, noise is isotropic, and the rows' prior covariance is gS.

*Exchangeable*: S = A. Eigenvectors of A diagonalise all three.

*Smooth*, for ordered values: :math:`S = P\,\mathrm{diag}(m)\,R\,\mathrm{diag}(m)\,P^T`, with R a
Matern correlation of adjacent values and P the projection that keeps the row sum, scaled to the
trace of A, of which it keeps a small share. Generalised eigenvectors of S and of noise plus
sampling, at the mean class count, diagonalise all three for equal classes; for others the
remaining correlation is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.pooled_rows import smooth_kernel, with_rough_share

__all__ = ["Components", "exchangeable", "smooth"]

_MOST_VALUES = 64  # above, cells themselves are coordinates and there is no smooth covariance
_LEAST = 1e-15


@dataclass(frozen=True)
class Components:
    """L coordinates of J features' rows.

    Attributes
    ----------
    forward, backward : arrays of shape (J, K, L), or None for cells as they are
        Coordinates of contrasts, and contrasts of coordinates.
    isotropic, sampling, spread : arrays of shape (J, L)
        Diagonals of the identity, of A and of S in these coordinates.
    log_volume : array of shape (J,)
        Logarithm of the determinant of ``forward``.
    weight : float
        Degrees of freedom that one coordinate is worth.
    covariance : array of shape (J, K, K) or None
        S if it is smooth.
    """

    forward: FloatArray | None
    backward: FloatArray | None
    isotropic: FloatArray
    sampling: FloatArray
    spread: FloatArray
    log_volume: FloatArray
    weight: float = 1.0
    covariance: FloatArray | None = None

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
    if K > _MOST_VALUES:
        variance = np.maximum(pooled * (1.0 - pooled), _LEAST)
        even = np.full((J, K), 1.0 - 1.0 / K)
        return Components(None, None, even, variance, variance, np.zeros(J), 1.0 - 1.0 / K)
    # the constant vector is moved to the top of the spectrum and left out
    values, vectors = np.linalg.eigh(_sampling(pooled) + 2.0 / K)
    variance, vectors = np.maximum(values[:, :-1], _LEAST), vectors[..., :-1]
    return Components(vectors, vectors, np.ones_like(variance), variance, variance, np.zeros(J))


def smooth(pooled: FloatArray, noise: FloatArray, count: float) -> Components | None:
    """Return the components of smooth rows, for classes of ``count`` records; None if too many."""
    K = pooled.shape[1]
    if K > _MOST_VALUES:
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
        np.maximum(values, _LEAST),
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
