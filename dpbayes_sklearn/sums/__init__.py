"""Sums of bounded numbers: statistics, releases and posteriors of means and rates."""
