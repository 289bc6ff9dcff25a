"""Benchmarks by kind: speed, accuracy, other libraries, posterior release, and the privacy audit.

``make bench`` runs them all through ``report.py``; each is a script of its own, for example
``python -m benchmarks.accuracy.table``. ``data`` holds what they read.
"""
