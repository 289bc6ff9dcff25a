"""Displays in scikit-learn's manner: scores, released posteriors, reliability and coverage."""

from dpbayes_sklearn.display.calibration import (
    CoverageDisplay,
    ReliabilityDisplay,
    coverage_curve,
    reliability_curve,
)
from dpbayes_sklearn.display.contributions import ContributionDisplay, ForestDisplay
from dpbayes_sklearn.display.posterior import PosteriorDisplay
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
