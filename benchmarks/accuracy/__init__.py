"""Accuracy, log loss and coverage on public and simulated data."""
