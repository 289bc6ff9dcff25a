from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.conjugate import certify, expected_distance, optimal_distance
from dpbayes_sklearn.mechanisms import Geometric, Sampler


@pytest.mark.parametrize(("n", "optimum"), [(20, 0.1477), (40, 0.1174)])
def test_geometric_attains_the_linear_programme(n: int, optimum: float) -> None:
    assert optimal_distance(n, (1, 1)) == pytest.approx(optimum, abs=1e-4)
    assert expected_distance("geometric", n, (1, 1)) == pytest.approx(optimum, abs=1e-4)


def test_error_at_a_thousand_balanced_records() -> None:
    def error(mechanism: str, calibrate: bool = True) -> float:
        return expected_distance(
            mechanism, 1000, (1, 1), 1.0, 1e-8, calibrate=calibrate, counts=(500, 500)
        )

    assert error("hellinger", calibrate=False) == pytest.approx(0.0432, rel=0.02)
    assert error("hellinger") == pytest.approx(0.0217, rel=0.02)
    assert error("geometric") == pytest.approx(0.0190, rel=0.02)


def test_optimum_of_the_dirichlet() -> None:
    assert optimal_distance(8, (1, 1, 1)) == pytest.approx(0.353, abs=5e-4)
    assert expected_distance("exponential", 8, (1, 1, 1)) == pytest.approx(0.576, abs=5e-4)


def test_no_calibrated_mechanism_beats_the_optimum() -> None:
    optimum = optimal_distance(12, (0.5, 2.0), 0.5)
    for mechanism in ("geometric", "laplace", "exponential", "hellinger", "local"):
        assert expected_distance(mechanism, 12, (0.5, 2.0), 0.5) >= optimum - 1e-7


def test_weights_single_out_a_data_set() -> None:
    everything_on_one = np.eye(6)[2]
    assert optimal_distance(5, (1, 1), weights=everything_on_one) == pytest.approx(0, abs=1e-9)


def test_certificate_names_the_worst_pair() -> None:
    found = certify("hellinger", 100, (1, 1), 1.0, 1e-8, calibrate=False)
    assert found.worst_pair == ((0, 100), (1, 99))
    assert found.delta == 1e-8
    assert found.epsilon <= found.pure_epsilon
    assert certify(Geometric(), 9, (1, 1, 1), 0.5).pure_epsilon == 0.5


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(ValueError, match="infinitely many outcomes"):
        expected_distance("geometric", 8, (1, 1, 1))
    with pytest.raises(ValueError, match=r"at most 150 candidates\. Got 1,001"):
        optimal_distance(1000, (1, 1))
    with pytest.raises(ValueError, match="sampler mechanism has no law of categories"):
        certify(Sampler(), 10, (1, 1))
