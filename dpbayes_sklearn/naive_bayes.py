"""Naive Bayes: the class, and features that are independent given it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.published import Contributions, Effect, column_number
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema import Schema

__all__ = ["BayesianNaiveBayes"]

_BAND_DRAWS = 1000
"""Draws from the posterior that a band is made of."""


@dataclass(eq=False, repr=False)
class BayesianNaiveBayes(DiscreteClassifier):
    r"""Bayesian naive Bayes classifier released under differential privacy.

    The class c and the features x_j have the model

    .. math:: p(c, x) = \theta_c \prod_j \theta_{j,c,x_j}

    with Dirichlet priors on every row of parameters. Numeric features are binned.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. ``float("inf")`` gives exact, non-private Bayes.
    delta : float in [0, 1), default=0.0
        Additive slack, far below one over the number of records. Spent by "gaussian" and, where
        draws are then cheaper, by "sampler".
    mechanism : str or Mechanism, default="laplace"
        How the posterior is released: "laplace", "fourier", "sampler", "map", "gaussian" (needs a
        delta), or "auto": the least noise that epsilon and delta allow. An instance such as
        ``mechanisms.Sampler(n_samples=2)`` carries its own options.
    inference : {"adaptive", "noise_aware", "plug_in"}, default="adaptive"
        How probabilities are computed from released counts. ``"plug_in"`` treats them as exact.
        ``"noise_aware"`` includes the known noise distribution in the likelihood, with Dirichlet
        priors. ``"adaptive"`` also learns the prior from the released tables, at no further
        privacy cost; with the mechanism "fourier" it is the same as ``"noise_aware"``.
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of the Dirichlet priors. If given per feature, that of the class is 1.
    temperature : "auto" or float in (0, 1], default="auto"
        Power of the features' probabilities in predictions, because naive Bayes counts the
        evidence of dependent features several times. ``"auto"`` learns it with 4 to 15 % of the
        budget. If the number of records times epsilon is below 500, it is 1, or less where the
        released features together seem to tell far more about the class than there is to know. 1
        is the plain model.
    classes : array-like, optional
        The public list of classes.
    bounds : tuple (low, high), optional
        Public bounds of the features: two numbers, or arrays with one entry per feature. Values
        are clipped.
    n_bins : "auto", int or array-like of int, default="auto"
        Number of equal-width bins per feature. For ``"auto"`` the number depends on the numbers of
        records and features, and on epsilon; integers with at most twice as many values get one
        bin per value.
    schema : Schema, optional
        Public domains by column name, instead of ``bounds``; also for text columns.
    privacy_unit : "record", "feature" or PrivacyUnit, default="record"
        Who is protected: one record, one feature value of it (not its label), all records of a
        person, or whether they are there at all. See :class:`PrivacyUnit`.
    max_weight : int, optional
        Public bound of ``sample_weight``. Without it ``fit`` refuses weights.
    accountant : BudgetAccountant, optional
        The ledger that every fit is charged to.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    posterior_ : NetworkPosterior
        The released posterior, the only thing derived from the data that is kept.
    guarantee_ : PrivacyGuarantee
    schema_ : Schema
        The public domains in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the mutual information with the class, from the released
        posterior.
    class_prior_ : ndarray of shape (n_classes,)
        Probability of every class, from the released posterior.

    Notes
    -----
    **Privacy.** Neighbours have the same number of records and differ in one, unless
    ``privacy_unit`` says otherwise; every ``fit`` and ``partial_fit`` spends ``epsilon``. What is
    not declared (``classes``, and ``bounds`` or ``schema``) is read from the data with a
    :class:`PrivacyLeakWarning` and becomes a condition of the guarantee. With declared domains
    no value makes ``fit`` fail.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(0, 1, (2000, 3)) + 1.5 * y[:, None]
    >>> model = BayesianNaiveBayes(
    ...     epsilon=1.0, classes=[0, 1], bounds=(-3, 5), n_bins=4, random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    >>> model.guarantee_.epsilon
    1.0
    """

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str | Mechanism = "laplace"
    inference: str = "adaptive"
    alpha: float | npt.ArrayLike = 1.0
    temperature: float | str = "auto"
    classes: npt.ArrayLike | None = None
    bounds: Any = None
    n_bins: Any = "auto"
    schema: Schema | None = None
    privacy_unit: PrivacyUnit | str = "record"
    max_weight: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _network(self, public: Schema) -> Network:
        """Return the star: every feature has one parent, the class."""
        sizes = [domain.n_values for domain in public.columns.values()]
        return Network.star(sizes, public.classes.n_values)

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        r"""Return the log joint of every row and class.

        .. math:: \ln p(c, x) = \ln \theta_c + \sum_j w_j \ln \theta_{j,c,x_j}

        with posterior means as parameters; for "sampler" and "map" it is averaged over draws. With
        ``temperature=1`` all weights w are 1. All other predictions are computed from it.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return super().predict_joint_log_proba(X)

    def contributions(self, X: Any) -> Contributions:
        r"""Return what every feature of every record adds to its classification.

        .. math:: \ln\frac{p(1 \mid x)}{p(0 \mid x)} = \ln\frac{\theta_1}{\theta_0}
                  + \sum_j w_j \ln\frac{\theta_{j,1,x_j}}{\theta_{j,0,x_j}}

        The first term is the baseline, and the terms of the sum are the contributions: the same
        numbers that ``predict_proba`` adds up, at no further privacy cost. From three classes on
        they are log probabilities of every class less the mean over the classes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        Contributions

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 1000)
        >>> X = (rng.random((1000, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
        >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2).fit(X, y)
        >>> found, p = model.contributions(X[:5]), model.predict_proba(X[:5])
        >>> np.allclose(found.total, np.log(p[:, 1] / p[:, 0]))
        True
        """
        check_is_fitted(self)
        *features, classes = self._evidence_tables()
        codes = self._codes_of(X)
        values = np.stack([part[codes[:, j]] for j, part in enumerate(features)], axis=1)
        binary = len(self.classes_) == 2
        return Contributions(
            values[..., 0] if binary else values,
            float(classes[0]) if binary else classes,
            tuple(self.schema_.columns),
            self._contributes_to,
        )

    def effect(self, feature: int | str, level: float = 0.95) -> Effect:
        """Return what one feature adds to the classification, by its value, with a band.

        Parameters
        ----------
        feature : int or str
            Its number, or its name.
        level : float, default=0.95
            Of the pointwise credible intervals, which include the privacy noise.

        Returns
        -------
        Effect
            What :class:`ContributionDisplay` draws.
        """
        check_is_fitted(self)
        names = [*self.schema_.columns]
        j = column_number(names, feature)
        domain = self.schema_.columns[names[j]]
        value = self._evidence_tables()[j].T
        rng = np.random.default_rng(0)  # what is released may be looked at with any
        drawn = self.posterior_.sample(rng, _BAND_DRAWS)[j]
        tempered = self.posterior_.untempered is not self.posterior_
        weights = getattr(self.posterior_, "weights", None) if tempered else None
        logs = np.log(drawn) * (1.0 if weights is None else weights[j])
        ends = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(_contrasts(np.swapaxes(logs, 0, 1)), ends, axis=1)
        if len(self.classes_) == 2:
            value, low, high = value[0], low[0], high[0]
        return Effect(
            names[j],
            np.arange(domain.n_values, dtype=np.float64),
            tuple(domain.names_of_codes()),
            value,
            low,
            high,
            domain.is_numeric,
            self._contributes_to,
        )

    @property
    def _contributes_to(self) -> str:
        if len(self.classes_) == 2:
            return f"log-odds of {self.classes_[1]}"
        return "log probability, less the mean over classes"

    def _evidence_tables(self) -> list[FloatArray]:
        """Return what every value of a feature adds: (values, 1), or one column per class."""
        logs = self.posterior_.log_tables()
        if logs is None:
            raise ValueError(
                "Predictions are averages over several draws, which no sum over features gives: "
                "use one draw, or another mechanism."
            )
        return [_contrasts(table).T for table in logs]

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of every feature in the mutual information with the class, from the release."""
        check_is_fitted(self)
        information: FloatArray = self.posterior_.information
        total = information.sum()
        return information / total if total > 0 else np.full_like(information, 1 / len(information))

    @property
    def class_prior_(self) -> FloatArray:
        """Mean of the released posterior of the class probabilities."""
        check_is_fitted(self)
        return np.asarray(self.posterior_.mean()[-1])


def _contrasts(logs: FloatArray) -> FloatArray:
    """Two classes: log-odds of the second. More: log probabilities minus their mean."""
    if len(logs) == 2:
        return np.asarray(logs[1:] - logs[:1])
    return np.asarray(logs - logs.mean(axis=0))
