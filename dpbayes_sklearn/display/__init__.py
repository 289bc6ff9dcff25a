"""Displays in scikit-learn's manner: scores, released posteriors, reliability and coverage."""

from dpbayes_sklearn.display.posterior import ForestDisplay, PosteriorDisplay
from dpbayes_sklearn.display.predictions import (
    ContributionDisplay,
    CoverageDisplay,
    ReliabilityDisplay,
    coverage_curve,
    reliability_curve,
)
from dpbayes_sklearn.display.utility import (
    PrivacyUtilityCurve,
    PrivacyUtilityDisplay,
    privacy_utility_curve,
)

__all__ = [
    "ContributionDisplay",
    "CoverageDisplay",
    "ForestDisplay",
    "PosteriorDisplay",
    "PrivacyUtilityCurve",
    "PrivacyUtilityDisplay",
    "ReliabilityDisplay",
    "coverage_curve",
    "privacy_utility_curve",
    "reliability_curve",
]
