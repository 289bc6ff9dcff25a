"""Exact Bayes on noisy counts: messages between the tables of a star network."""
