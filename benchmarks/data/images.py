"""Tables of measured images and pen strokes: numeric columns with public ranges."""

from __future__ import annotations

from benchmarks.data.classification import Classification, equal_columns
from dpbayes_sklearn import Interval


def optdigits() -> Classification:
    """Handwritten digits: black pixels in 64 squares of 4 x 4."""
    return equal_columns("optdigits", 64, Interval(0, 16, bins=4), "0123456789")


def penbased() -> Classification:
    """Digits written with a pen: eight points, on a scale from 0 to 100."""
    return equal_columns("penbased", 16, Interval(0, 100, bins=10), "0123456789")


def satimage() -> Classification:
    """Land seen from a satellite: four colours of nine pixels, a byte each."""
    return equal_columns("satimage", 36, Interval(0, 255, bins=10), "123457")


def letter() -> Classification:
    """Capital letters in print: sixteen features on a scale from 0 to 15."""
    return equal_columns("letter", 16, Interval(0, 15, bins=16), "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
