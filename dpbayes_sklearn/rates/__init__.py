"""Counts of events as a regression target: loss, release and rate ratios."""
