"""Shared by all estimators: the one sequence of every fit, reading X and y, cards, remarks."""
