"""Logistic regression: blocks of features, the perturbed mode, its curvature, and inference."""
