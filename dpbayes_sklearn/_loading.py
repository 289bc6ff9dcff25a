"""Load any released model or transformer from JSON."""

from __future__ import annotations

from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.means import GammaExponential, NormalMean
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.serialization import estimator_name

__all__ = ["from_json"]

_ESTIMATORS: dict[str, type[PrivateEstimator]] = {
    cls.__name__: cls
    for cls in (
        BayesianLinearRegression,
        BayesianLogisticRegression,
        BayesianNaiveBayes,
        BayesianNetworkClassifier,
        BetaBinomial,
        DirichletMultinomial,
        GammaExponential,
        NormalMean,
        PrivateKBinsDiscretizer,
        PrivateMinMaxScaler,
        PrivateSelectKBest,
        PrivateStandardScaler,
    )
}


def from_json(text: str) -> PrivateEstimator:
    """Return the fitted model or transformer that ``to_json()`` of an estimator wrote.

    Nothing in the text is run or imported: an estimator is one of this library, and every field is
    checked. Whether the guarantee in it is true is for its publisher to answer for.

    Parameters
    ----------
    text : str

    Returns
    -------
    estimator
        Without ``accountant`` and ``random_state``, which are never written.

    Raises
    ------
    ValueError
        If the text is anything else.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial, from_json
    >>> published = BetaBinomial(epsilon=0.5).fit([1, 0, 0, 1, 1]).to_json()
    >>> model = from_json(published)
    >>> model.guarantee_.epsilon, model.to_json() == published
    (0.5, True)
    """
    name = estimator_name(text)
    if name not in _ESTIMATORS:
        raise ValueError(
            f"The text is not a released model: estimator must be one of {', '.join(_ESTIMATORS)}."
        )
    return _ESTIMATORS[name].from_json(text)
