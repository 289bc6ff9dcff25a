"""Displays in scikit-learn's manner: scores, released posteriors, reliability and coverage."""

from dpbayes_sklearn.display.coverage import CoverageDisplay, coverage_curve
from dpbayes_sklearn.display.curve import PrivacyUtilityCurve, privacy_utility_curve
from dpbayes_sklearn.display.posterior import PosteriorDisplay
from dpbayes_sklearn.display.reliability import ReliabilityDisplay, reliability_curve
from dpbayes_sklearn.display.utility import PrivacyUtilityDisplay

__all__ = [
    "CoverageDisplay",
    "PosteriorDisplay",
    "PrivacyUtilityCurve",
    "PrivacyUtilityDisplay",
    "ReliabilityDisplay",
    "coverage_curve",
    "privacy_utility_curve",
    "reliability_curve",
]
