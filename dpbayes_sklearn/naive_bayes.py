"""Naive Bayes: the class, and features that are independent given it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._discrete_classifier import DiscreteClassifier
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.statistics.network import Network

__all__ = ["BayesianNaiveBayes"]


class BayesianNaiveBayes(DiscreteClassifier):
    r"""Bayesian naive Bayes classifier released under differential privacy.

    The class c and the features x_j have the model

    .. math:: p(c, x) = \theta_c \prod_j \theta_{j,c,x_j}

    with Dirichlet priors on every row of parameters. Numeric features are cut into bins.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives exact, non-private Bayes.
    mechanism : {"laplace", "fourier", "sampler", "map"} or Mechanism, default="laplace"
        How the posterior is released. An instance such as ``mechanisms.Sampler(n_samples=2)``
        carries its own options.
    inference : {"plug_in", "noise_aware"}, default="noise_aware"
        Take the released counts as counts, or as counts seen through noise of a known law.
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of the Dirichlet priors; given per feature, the class has 1.
    classes : array-like, optional
        The public list of classes.
    bounds : tuple (low, high), optional
        Public bounds of the features, numbers or one entry per feature. Values are clipped.
    n_bins : "auto", int or array-like of int, default="auto"
        Equal-width bins per feature. ``"auto"`` gives few-valued integers a bin each and
        otherwise decides from the number of records, of features and epsilon.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; also for text columns.
    privacy_unit : {"record", "feature"}, default="record"
        What is protected: a whole record, or (much weaker) one feature value of one record.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source. A seed makes the noise
        reproducible, for tests and papers only.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    posterior_ : NetworkPosterior
        The released posterior, the only thing derived from the data that is kept.
    guarantee_ : PrivacyGuarantee
        What is promised, to whom, and on which conditions.
    schema_ : Schema
        The public domains in use.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has string column names.

    Notes
    -----
    **Privacy.** The unit is one record (or one feature value), neighbours have the same number of
    records and differ in one; every ``fit`` and ``partial_fit`` spends ``epsilon``. What is not
    declared (``classes``, and ``bounds`` or ``schema``) is read from the data with a
    :class:`PrivacyLeakWarning` and becomes a condition of the guarantee. With declared domains
    no value whatever makes ``fit`` fail.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianNaiveBayes(
    ...     epsilon=2.0, classes=[0, 1], bounds=(X.min(0), X.max(0)), n_bins=2, random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    >>> model.guarantee_.epsilon
    2.0
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        mechanism: str | Mechanism = "laplace",
        inference: str = "noise_aware",
        alpha: float | npt.ArrayLike = 1.0,
        classes: npt.ArrayLike | None = None,
        bounds: Any = None,
        n_bins: Any = "auto",
        schema: Schema | None = None,
        privacy_unit: str = "record",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.inference = inference
        self.alpha = alpha
        self.classes = classes
        self.bounds = bounds
        self.n_bins = n_bins
        self.schema = schema
        self.privacy_unit = privacy_unit
        self.accountant = accountant
        self.random_state = random_state

    def _network(self, public: Schema) -> Network:
        sizes = [domain.n_values for domain in public.columns.values()]
        return Network.star(sizes, public.classes.n_values)
