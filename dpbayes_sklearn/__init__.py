"""Bayesian inference with differential privacy, as scikit-learn estimators."""

from __future__ import annotations

from dpbayes_sklearn import feature_selection, mechanisms, metrics, planning, preprocessing
from dpbayes_sklearn.base.published import from_json
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier, tree_augmented
from dpbayes_sklearn.classifier import BayesianClassifier
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.count_regression import BayesianCountRegression
from dpbayes_sklearn.display import (
    ContributionDisplay,
    CoverageDisplay,
    ForestDisplay,
    PosteriorDisplay,
    PrivacyUtilityDisplay,
    ReliabilityDisplay,
)
from dpbayes_sklearn.exceptions import BudgetError, LedgerError, PrivacyLeakWarning
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.means import GammaExponential, NormalMean
from dpbayes_sklearn.model_selection import PrivateSearchCV
from dpbayes_sklearn.moments import PrivateMoments
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.papers import theory
from dpbayes_sklearn.papers.query import PosteriorQuerySession
from dpbayes_sklearn.pooling import pool
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyGuarantee, PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.survival import LifeTable

__version__ = "0.2.0"

__all__ = [
    "BayesianClassifier",
    "BayesianCountRegression",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianNaiveBayes",
    "BayesianNetworkClassifier",
    "BetaBinomial",
    "BudgetAccountant",
    "BudgetError",
    "Categories",
    "ContributionDisplay",
    "CoverageDisplay",
    "DirichletMultinomial",
    "ForestDisplay",
    "GammaExponential",
    "Interval",
    "LedgerError",
    "LifeTable",
    "NormalMean",
    "PosteriorDisplay",
    "PosteriorQuerySession",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivacyUnit",
    "PrivacyUtilityDisplay",
    "PrivateMoments",
    "PrivateSearchCV",
    "ReliabilityDisplay",
    "Schema",
    "feature_selection",
    "from_json",
    "mechanisms",
    "metrics",
    "planning",
    "pool",
    "preprocessing",
    "theory",
    "tree_augmented",
]


def __dir__() -> list[str]:
    """Return what is public, so that completion in a notebook shows nothing else."""
    return [*__all__, "__version__"]
