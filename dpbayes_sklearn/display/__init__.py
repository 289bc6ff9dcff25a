"""Displays in scikit-learn's manner: score against epsilon, and released posteriors."""

from dpbayes_sklearn.display.curve import PrivacyUtilityCurve, privacy_utility_curve
from dpbayes_sklearn.display.posterior import PosteriorDisplay
from dpbayes_sklearn.display.utility import PrivacyUtilityDisplay

__all__ = [
    "PosteriorDisplay",
    "PrivacyUtilityCurve",
    "PrivacyUtilityDisplay",
    "privacy_utility_curve",
]
