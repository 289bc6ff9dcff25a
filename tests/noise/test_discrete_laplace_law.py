"""Independent discrete Laplace noise: bounds of errors."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpbayes_sklearn.noise import DiscreteLaplace


@pytest.mark.parametrize("exponent", [0, 3, 6, 12, 40])
@pytest.mark.parametrize("largest", [1, 10**6, 2**56])
def test_error_bound_of_scales_that_differ_however_much(exponent, largest):
    scales = Fraction(largest), Fraction(largest, 10**exponent)
    law = DiscreteLaplace(scales, (42, 2))
    alone = DiscreteLaplace(scales[:1], (42,)).error_bound(0.01)
    both = DiscreteLaplace(scales[:1], (44,)).error_bound(0.01)
    assert alone <= law.error_bound(0.01) <= both * (1 + 1e-12)
