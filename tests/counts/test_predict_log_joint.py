"""Predictions from log p(x, c)."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts import predict


def test_the_first_of_equal_classes_is_predicted() -> None:
    joint = np.array([[-1.0, -1.0], [-2.0, -1.0], [-1.0, -2.0]])
    assert predict.most_probable(np.array(["a", "b"]), joint).tolist() == ["a", "b", "a"]
    three = np.array([[-1.0, -3.0, -1.0], [-2.0, -1.0, -1.0]])
    assert predict.most_probable(np.array([5, 6, 7]), three).tolist() == [5, 6]


def test_probabilities_of_the_classes_add_up() -> None:
    joint = np.array([[-1000.0, -1001.0], [0.0, -5.0]])
    assert predict.proba(joint).sum(axis=1) == pytest.approx(1.0)
    assert np.exp(predict.log_sum(joint))[1] == pytest.approx(1 + np.exp(-5))
    assert predict.log_proba(joint)[0] == pytest.approx([-np.log1p(np.exp(-1)), -1.3132617])
