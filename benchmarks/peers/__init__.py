"""Comparison with diffprivlib, which runs in an environment of its own."""
