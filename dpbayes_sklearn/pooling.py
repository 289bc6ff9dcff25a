r"""One posterior of the people of several sites, from what each of them has released.

A release of site s tells a posterior :math:`p_s(\theta) \propto p(\theta)\,L_s(\theta)`. Sites have
different people, so the likelihoods multiply, and the prior counts once:

.. math:: p(\theta \mid \text{all}) \propto p(\theta) \prod_s \frac{p_s(\theta)}{p(\theta)} .

For the members of one exponential family that is a sum of parameters, less S - 1 times those of
the prior. Coefficients of a regression, which have weak priors, are weighted by their precisions.
Second moments are sums over records, so those of all sites are added, each with its noise.

All of it is post-processing of releases about disjoint data: parallel composition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.published import from_json
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, NoisyDirichlet
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.convex.posterior import GaussianPosterior
from dpbayes_sklearn.convex.slopes import Slopes, contrasts
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.means import SumsEstimator
from dpbayes_sklearn.moments import PrivateMoments
from dpbayes_sklearn.privacy import PrivacyGuarantee
from dpbayes_sklearn.sums.posterior import SumsPosterior

__all__ = ["pool"]

_OF_A_SITE = {"epsilon", "delta", "accountant", "random_state"}  # These may differ.
_LEAST = 1e-3  # A pooled parameter is at least this part of the prior's.


def pool(models: Sequence[Any]) -> Any:
    """Return one fitted model of all people, from models that several sites have released.

    Epsilons do not add up if nobody is at two sites: the guarantee is that of the weakest site,
    under this condition. The model assumes that all sites have the same parameters; second moments
    assume nothing, since they are sums over all records.

    Parameters
    ----------
    models : sequence of fitted estimators, or of their ``to_json()`` texts
        All of one type with the same parameters but epsilon and delta: :class:`NormalMean`,
        :class:`GammaExponential`, :class:`BetaBinomial`, :class:`DirichletMultinomial`,
        :class:`BayesianLinearRegression` where it has intervals, or :class:`PrivateMoments`.
        The same domains must be declared at every site.

    Returns
    -------
    model
        Of the same type, fitted.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial, pool
    >>> sites = [BetaBinomial(0.5, random_state=i).fit([1] * 300 + [0] * 700) for i in range(3)]
    >>> together = pool([site.to_json() for site in sites])
    >>> 2900 < together.posterior_.alpha + together.posterior_.beta < 3002
    True
    >>> together.guarantee_.epsilon
    0.5
    """
    sites = [from_json(model) if isinstance(model, str) else model for model in models]
    _check(sites)
    first = sites[0]
    released = {name: getattr(first, name) for name in first._exported}
    released["posterior_"] = _posterior(sites)
    released["guarantee_"] = PrivacyGuarantee.parallel([site.guarantee_ for site in sites])
    pooled = clone(first).set_params(
        accountant=None, random_state=None, epsilon=max(site.epsilon for site in sites)
    )
    pooled.n_features_in_ = first.n_features_in_
    if hasattr(first, "feature_names_in_"):
        pooled.feature_names_in_ = first.feature_names_in_
    return pooled._restore(**released)


def _check(sites: Sequence[Any]) -> None:
    """Refuse models that do not belong together."""
    if not sites:
        raise ValueError("pool needs at least one fitted model.")
    for site in sites:
        if not isinstance(
            site,
            (
                SumsEstimator,
                BetaBinomial,
                DirichletMultinomial,
                BayesianLinearRegression,
                PrivateMoments,
            ),
        ):
            raise TypeError(f"A {type(site).__name__} cannot be pooled.")
        check_is_fitted(site)
        if type(site) is not type(sites[0]) or _public(site) != _public(sites[0]):
            raise ValueError(
                "Models can be pooled if they are of one type, with the same parameters but epsilon "
                "and delta, the same declared domains and the same privacy unit."
            )
        unknown = site.inference != "noise_aware" or (
            getattr(site.posterior_, "draws", None) is not None
            or getattr(site.posterior_, "slopes", ()) is None
        )
        if unknown:
            raise ValueError(
                "The error of a release must be known: use inference='noise_aware', no draws, and "
                "of a linear regression one with intervals."
            )


def _public(site: Any) -> str:
    """Return what has to be the same at all sites."""
    parameters = site.get_params(deep=False)
    own = {name: value for name, value in parameters.items() if name not in _OF_A_SITE}
    unit = site.guarantee_.privacy_unit
    domains = site.categories_ if hasattr(site, "categories_") else site.schema_.to_json()
    return repr((own, unit, domains))


def _posterior(sites: Sequence[Any]) -> Any:
    """Return the posterior of all."""
    own, first = [site.posterior_ for site in sites], sites[0]
    if isinstance(first, SumsEstimator):
        return _of_sums(own, first)
    if isinstance(first, PrivateMoments):
        best = min(own, key=lambda one: one.variance)
        return reduce(lambda one, other: one + other, [one.like(best) for one in own])
    if isinstance(first, BayesianLinearRegression):
        return _of_coefficients(own, first)
    return _of_shares(own, first._belief(first.categories_))


def _together(parts: Sequence[FloatArray], prior: FloatArray) -> FloatArray:
    """Return the sum of parameters, with those of the prior once."""
    return np.maximum(np.sum(parts, axis=0) - (len(parts) - 1) * prior, _LEAST * prior)


def _of_shares(own: Sequence[Dirichlet], prior: Dirichlet) -> Dirichlet:
    """Pool the Beta law of every category."""
    beta = _together([one.marginals() for one in own], prior.marginals())
    if isinstance(prior, Beta):
        return Beta(*beta[0])
    means, precisions = beta[:, 0] / beta.sum(axis=1), beta.sum(axis=1)
    whole = _together([one.concentration for one in own], prior.concentration).sum()
    return NoisyDirichlet(whole * means / means.sum(), precisions)


def _of_sums(own: Sequence[SumsPosterior], site: Any) -> SumsPosterior:
    """Pool the natural parameters of normal laws, or of Gamma laws."""
    families = [site._column(interval)[1] for interval in site.schema_.columns.values()]
    before = [family.moments(0, np.array(0.0)) for family in families]
    laws = [(one.means, one.variances) for one in own]
    laws.append(tuple(np.array([float(pair[i]) for pair in before]) for i in (0, 1)))
    if own[0].positive:  # shape and rate
        *parts, prior = (np.stack([m * m / v, m / v]) for m, v in laws)
        shape, rate = _together(parts, prior)
        means, variances = shape / rate, shape / rate**2
    else:
        *precisions, flat = (1 / v for _, v in laws)
        *weighted, centre = (m / v for m, v in laws)
        precision = _together(precisions, flat)
        means = (np.sum(weighted, axis=0) - (len(own) - 1) * centre) / precision
        variances = 1 / precision
    slopes, roundings = (
        np.max([getattr(one, name) for one in own], axis=0) for name in ("slopes", "roundings")
    )
    joint = all(one.joint for one in own)
    return SumsPosterior(means, variances, slopes, roundings, own[0].positive, joint)


def _of_coefficients(own: Sequence[Any], site: BayesianLinearRegression) -> GaussianPosterior:
    """Weight the coefficients of every site by their precisions."""
    slopes = [one.slopes for one in own]
    precisions = [np.linalg.inv(each.sampling + each.privacy) for each in slopes]
    covariance = np.linalg.inv(sum(precisions))
    weights = [covariance @ precision for precision in precisions]
    pairs = [*zip(weights, slopes, strict=True)]
    mean = sum((w @ each.mean for w, each in pairs), np.zeros(len(covariance)))
    sampling, privacy = (
        sum((w @ getattr(each, part) @ w.T for w, each in pairs), np.zeros_like(covariance))
        for part in ("sampling", "privacy")
    )
    _, rows = contrasts(site._design)
    variances = [
        np.einsum("ij,jk,ik->i", rows, c, rows)
        for c in (covariance, *(each.sampling + each.privacy for each in slopes))
    ]
    shares = [variances[0] / np.maximum(each, 1e-300) for each in variances[1:]]
    growth = sum(
        (share**2 * each.growth for share, each in zip(shares, slopes, strict=True)),
        np.zeros(len(rows)),
    )
    sizes = np.array([one.n or 1 for one in own], float)
    sizes /= sizes.sum()
    residual = float(sizes @ [one.noise_variance for one in own])
    explained = float(sizes @ [each.explained or 0.0 for each in slopes])
    together = Slopes(
        np.asarray(mean), np.asarray(sampling), np.asarray(privacy), growth, explained
    )
    return replace(
        own[0], coefficients=together.mean, covariance=covariance, noise_variance=residual,
        slopes=together, n=sum(one.n or 0 for one in own),
    )  # fmt: skip
